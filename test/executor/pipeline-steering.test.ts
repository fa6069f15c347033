import { type Message, memoryStore, type Phase, type Run } from 'pawl';
import { callTool, fail, hang, reply, type ScriptedEntry } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, hostOf, toolOf, until } from '../fixtures/host.ts';
import { look, outputsOf, tell } from '../fixtures/phases.ts';
import { afterCrash, onlyRecord, watchedStore } from '../fixtures/watched-store.ts';

const phasesWith = (recovery: 'step' | 'boundary'): Phase[] => [look, { ...tell, recovery }];
const said = (messages: readonly Message[] = [], text = 'also X') =>
  messages.filter((message) => message.role === 'user' && JSON.stringify(message).includes(text)).length;
const tools = [toolOf('look'), toolOf('send', 'idempotent')];

/** A run whose model waits at the gate in its call of this number; there the test steers. */
async function at(call: number, script: readonly ScriptedEntry[], phases: readonly Phase[] = phasesWith('step')) {
  const store = memoryStore();
  const thinking = gate();
  const entries = script.map((entry, i): ScriptedEntry => {
    if (i !== call) return entry;
    return async (request) => {
      await thinking.pass();
      return typeof entry === 'function' ? entry(request) : entry;
    };
  });
  const host = hostOf({ agent: { phases }, tools, store, script: entries });
  const run: Run = await host.start({ runId: 'r' });
  await thinking.reached;
  return { ...host, run, store, go: () => thinking.open() };
}

describe('a message steered into a pipeline', () => {
  test('is read in the next turn of the phase that it fell into (pipeline 1, supervision 9)', async () => {
    const { run, go, model } = await at(1, [reply('one'), callTool('look'), reply('two')]);
    expect(await run.steer('also X')).toBe('durable');
    go();
    expect(await run.result).toMatchObject({ status: 'ok', undelivered: [] });
    expect(model.calls.map(({ messages }) => said(messages))).toEqual([0, 0, 1]);
  });

  test('in the last turn of a phase is read by the next, once (supervision 9)', async () => {
    const { run, go, model } = await at(0, [reply('one'), callTool('look'), reply('two')]);
    await run.steer('also X');
    go();
    const result = await run.result;
    expect(result).toMatchObject({ status: 'ok', undelivered: [] });
    expect(model.calls.map(({ messages }) => said(messages))).toEqual([0, 1, 1]);
    expect(result.messages.map(({ role }) => role)).toEqual([
      ...['user', 'assistant'],
      ...['user', 'assistant', 'tool', 'assistant'],
    ]);
  });

  test('in a phase that fails and is optional is read by the next (pipeline 4)', async () => {
    const phases = [{ ...look, optional: true }, tell];
    const { run, go, model } = await at(
      0,
      [fail(Object.assign(new Error('down'), { statusCode: 400 })), reply('two')],
      phases,
    );
    await run.steer('also X');
    go();
    expect(await run.result).toMatchObject({ status: 'ok', undelivered: [] });
    expect(said(model.calls[1]?.messages)).toBe(1);
  });

  test('in the last turn of the last phase is undelivered (executor 11)', async () => {
    const { run, go } = await at(1, [reply('one'), reply('two')]);
    await run.steer('also X');
    go();
    expect(said((await run.result).undelivered)).toBe(1);
  });

  test('while the run resolves is read in its first phase, once', async () => {
    const claiming = gate();
    const store = watchedStore({ before: ({ method }) => (method === 'claim' ? claiming.pass() : undefined) });
    const script = [reply('one'), reply('two')];
    const host = hostOf({ agent: { phases: phasesWith('step') }, store, script });
    void host.start({ runId: 'r' });
    await claiming.reached;
    const run = host.executor.get('r') as Run;
    const steered = run.steer('also X');
    claiming.open();
    expect(await steered).toBe('durable');
    expect(await run.result).toMatchObject({ status: 'ok', undelivered: [] });
    expect(host.model.calls.map(({ messages }) => said(messages))).toEqual([1, 0]);
  });
});

describe.for(['step', 'boundary'] as const)('over a crash, in a phase with recovery %s', (recovery) => {
  const phases = phasesWith(recovery);

  test('a message that waits is delivered, once (supervision 9)', async () => {
    const first = await at(2, [reply('one'), callTool('look'), hang()], phases);
    expect(await first.run.steer('also X')).toBe('durable');
    const left = await afterCrash(first.store);
    expect(said((await onlyRecord(left)).undelivered)).toBe(1);
    const next = hostOf({ agent: { phases }, tools, store: left, script: [callTool('look'), reply('two')] });
    const result = await next.run({ runId: 'r' });
    expect(result).toMatchObject({ status: 'ok', undelivered: [] });
    expect(next.model.calls.map(({ messages }) => said(messages))).toEqual([1, 1]);
    expect(said(result.messages)).toBe(1);
  });

  test('a message that was read in a turn of which nothing is recorded is delivered again, once (supervision 9)', async () => {
    const script = [reply('one'), callTool('look'), callTool('look', { n: 2 }), hang()];
    const first = await at(2, script, phases);
    await first.run.steer('also X');
    first.go();
    await until(() => first.model.calls.length === 4);
    expect(said(first.model.calls[3]?.messages)).toBe(1);
    const left = await afterCrash(first.store);
    const next = hostOf({ agent: { phases }, tools, store: left, script: [callTool('look'), reply('two')] });
    const result = await next.run({ runId: 'r' });
    expect(next.model.calls.map(({ messages }) => said(messages))).toEqual([1, 1]);
    expect([said(result.messages), result.undelivered]).toEqual([1, []]);
  });

  test('a message that was read in a recorded step stays where it was, once (supervision 9)', async () => {
    const script = [reply('one'), callTool('look'), callTool('look', { n: 2 }), callTool('look', { n: 3 }), hang()];
    const first = await at(2, script, phases);
    await first.run.steer('also X');
    first.go();
    await until(async () => (await first.store.load('r'))?.iteration === 4);
    const left = await afterCrash(first.store);
    const record = await onlyRecord(left);
    expect([said(record.messages), record.undelivered]).toEqual([1, undefined]);
    const next = hostOf({ agent: { phases }, tools, store: left, script: [reply('two')] });
    const result = await next.run({ runId: 'r' });
    expect(result).toMatchObject({ status: 'ok', iterations: 5, undelivered: [] });
    expect(next.model.calls.map(({ messages }) => said(messages))).toEqual([1]);
    expect(outputsOf(result)).toEqual(['a: one', 'b: two']);
  });

  test('a message for the next phase, steered before the boundary, is delivered there, once (supervision 9)', async () => {
    const first = await at(0, [reply('one'), hang()], phases);
    await first.run.steer('also X');
    first.go();
    await until(() => first.model.calls.length === 2);
    const left = await afterCrash(first.store);
    const next = hostOf({ agent: { phases }, tools, store: left, script: [reply('two')] });
    expect(await next.run({ runId: 'r' })).toMatchObject({ status: 'ok', undelivered: [] });
    expect(next.model.calls.map(({ messages }) => said(messages))).toEqual([1]);
  });

  test('several messages keep their order and their number (supervision 9)', async () => {
    const first = await at(1, [reply('one'), hang()], phases);
    for (const text of ['also 1', 'also 2', 'also 3']) await first.run.steer(text);
    const left = await afterCrash(first.store);
    const next = hostOf({ agent: { phases }, tools, store: left, script: [reply('two')] });
    await next.run({ runId: 'r' });
    const told = next.model.calls[0]?.messages.slice(1).map(({ content }) => JSON.stringify(content));
    expect(told).toEqual(['1', '2', '3'].map((n) => expect.stringContaining(`also ${n}`)));
  });
});

test('a phase that begins again, once it took a message in, continues at its step (pipeline 8)', async () => {
  const script = [reply('one'), callTool('look'), callTool('look', { n: 2 }), hang()];
  const first = await at(1, script, phasesWith('boundary'));
  await first.run.steer('also X');
  first.go();
  await until(async () => (await first.store.load('r'))?.openPhase);
  const left = await afterCrash(first.store);
  const next = hostOf({ agent: { phases: phasesWith('boundary') }, tools, store: left, script: [reply('two')] });
  expect(await next.run({ runId: 'r' })).toMatchObject({ status: 'ok', iterations: 4 });
  expect(next.warnings).toHaveLength(1);
});
