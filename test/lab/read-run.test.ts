import { memoryStore } from 'pawl';
import { readRun } from 'pawl/lab';
import { callTool, callTools, reply } from 'pawl/testing';
import { expect, test } from 'vitest';
import { addUsage, noUsage } from '../../src/values/usage.ts';
import { gate, hostOf, toolOf, until } from '../fixtures/host.ts';

const retention = { records: '1h' };
const tools = [toolOf('look'), toolOf('pay', 'once'), toolOf('book', 'idempotent')];

test('a run that ended is read with its steps: their calls, effects, results, model, tokens and time (lab 1)', async () => {
  const script = [
    callTools([
      { name: 'look', input: { id: 1 } },
      { name: 'pay', input: { cents: 7 } },
      { name: 'book', input: {} },
    ]),
    reply('Done.'),
  ];
  const host = hostOf({ script, tools, store: memoryStore(), retention });
  const result = await host.run({ runId: 'r', callerId: 'ada', labels: { order: '17' }, inputs: { tenant: 'x' } });
  const run = await readRun(host.executor, 'r');
  expect(run).toMatchObject({
    ...{ runId: 'r', agentId: 'worker', status: 'ok', prompt: 'Go.', callerId: 'ada', labels: { order: '17' } },
    ...{ inputs: { tenant: 'x' }, earlier: [], output: 'Done.', usage: result.usage },
  });
  expect(run.messages).toStrictEqual(JSON.parse(JSON.stringify(result.messages)));
  expect(run.steps.map(({ message }) => message)).toStrictEqual([run.messages[1], run.messages[3]]);
  expect(run.steps.map(({ model, before }) => [model, before])).toStrictEqual([
    ['scripted/scripted', []],
    ['scripted/scripted', []],
  ]);
  expect(run.steps[0]?.calls).toStrictEqual([
    { id: 'call-1', name: 'look', input: { id: 1 }, output: { type: 'text', value: 'look ok' }, effect: 'read' },
    { id: 'call-2', name: 'pay', input: { cents: 7 }, output: { type: 'text', value: 'pay ok' }, effect: 'once' },
    { id: 'call-3', name: 'book', input: {}, output: { type: 'text', value: 'book ok' }, effect: 'idempotent' },
  ]);
  expect(run.steps.map(({ usage }) => usage).reduce(addUsage, noUsage)).toStrictEqual(run.usage);
  expect(JSON.parse(JSON.stringify(run))).toStrictEqual(run);
});

test('an unknown run is RUN_NOT_FOUND, and so is one of which only the end is kept (lab 1)', async () => {
  const host = hostOf({ store: memoryStore() });
  await host.run({ runId: 'r' });
  await expect(readRun(host.executor, 'x')).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
  await expect(readRun(host.executor, 'r')).rejects.toMatchObject({
    code: 'RUN_NOT_FOUND',
    message: expect.stringContaining('only its end is kept (ok)'),
  });
});

test('a live run is read as it is recorded: its open step is none, and its effects are known afterwards (lab 1, 2)', async () => {
  const store = memoryStore();
  const held = gate<string>();
  const pay = toolOf('pay', 'once', () => held.pass());
  const host = hostOf({
    script: [callTool('look'), callTool('pay'), reply('Done.')],
    tools: [toolOf('look'), pay],
    store,
    retention,
  });
  const live = await host.start({ runId: 'r' });
  await until(async () => (await store.load('r'))?.openStep !== undefined);
  const open = await readRun(host.executor, 'r');
  expect(open).toMatchObject({ status: 'live', output: '', steps: [{ calls: [{ name: 'look', effect: 'read' }] }] });
  expect(open.messages).toHaveLength(3);
  held.open('paid');
  await live.result;
  const run = await readRun(host.executor, 'r');
  expect(run).toMatchObject({ status: 'ok', steps: [{}, { calls: [{ name: 'pay', effect: 'once' }] }, {}] });
  expect(run.usage).toStrictEqual(run.steps.map(({ usage }) => usage).reduce(addUsage, noUsage));
});
