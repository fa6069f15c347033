import { createExecutor, createPalette, defineWorkflow, type Message, memoryStore, type Tool } from 'pawl';
import { exportRuns, importRuns, readRun, readRuns, replay } from 'pawl/lab';
import { callTool, callTools, fail, reply, scriptedModel } from 'pawl/testing';
import { expect, test } from 'vitest';
import { setup } from 'xstate';
import { addUsage, noUsage } from '../../src/values/usage.ts';
import { gate, hostOf, toolOf, until } from '../fixtures/host.ts';
import { allSame, retention } from './recorded.ts';

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

test('what was put before the model is in its step: steered texts and the request to repair an answer (lab 1)', async () => {
  const output = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] } as const;
  const say = async () => {
    await host.executor.control('r').steer('Hurry.');
    return callTool('look');
  };
  const host = hostOf({
    ...{ script: [say, reply('yes'), reply('{"ok":true}')], tools: [toolOf('look')] },
    ...{ store: memoryStore(), retention, agent: { output } },
  });
  await host.run({ runId: 'r' });
  const run = await readRun(host.executor, 'r');
  const texts = run.steps.map(({ before }) => before.map(({ content }) => (content[0] as { text: string }).text));
  expect(texts).toStrictEqual([[], ['Hurry.'], [expect.stringContaining('does not have the requested form')]]);
  expect(run).toMatchObject({ status: 'ok', data: { ok: true }, finishReason: 'stop' });
});

test('a pipeline is read with the steps of all phases, each with its name, also while a phase is open (lab 1, 2)', async () => {
  const phases = ['a', 'b'].map((name) => ({ name, instructions: name.toUpperCase() }));
  const held = gate<ReturnType<typeof reply>>();
  const script = [callTool('pay'), reply('A.'), callTool('pay'), () => held.pass()];
  const host = hostOf({ script, tools: [toolOf('pay', 'once')], store: memoryStore(), retention, agent: { phases } });
  const live = await host.start({ runId: 'r' });
  await held.reached;
  await until(async () => (await readRun(host.executor, 'r')).steps.length === 3);
  expect((await readRun(host.executor, 'r')).steps.map(({ phase }) => phase)).toStrictEqual(['a', 'a', 'b']);
  held.open(reply('B.'));
  const { messages } = await live.result;
  const run = await readRun(host.executor, 'r');
  expect(run.steps.map(({ phase, calls }) => [phase, calls.map(({ id, effect }) => [id, effect])])).toStrictEqual([
    ['a', [['call-1', 'once']]],
    ['a', []],
    ['b', [['call-2-p2', 'once']]],
    ['b', []],
  ]);
  expect(run.messages).toStrictEqual(JSON.parse(JSON.stringify(messages)));
  expect(run.steps.map(({ usage }) => usage).reduce(addUsage, noUsage)).toStrictEqual(run.usage);
  expect(await replay(run, { agent: host.agent })).toStrictEqual({ ...run, ...allSame });
});

test('a waiting and a parked run are read and replayed as far as they came (lab 1, 17)', async () => {
  const pay = { ...toolOf('pay', 'once'), needsApproval: true } as Tool;
  const script = [callTool('look'), callTool('pay'), reply('Done.')];
  const host = hostOf({ script, tools: [toolOf('look'), pay], store: memoryStore(), defaults: { waitLingerMs: 1 } });
  expect((await host.run({ runId: 'r' })).status).toBe('waiting');
  const waiting = await readRun(host.executor, 'r');
  expect(waiting).toMatchObject({ status: 'waiting', steps: [{ calls: [{ name: 'look' }] }] });
  expect(await replay(waiting, { agent: host.agent })).toMatchObject({ ...allSame, status: 'waiting' });
  await host.executor.park('r', 'later');
  const parked = await readRun(host.executor, 'r');
  expect(parked).toStrictEqual({ ...waiting, status: 'parked' });
  expect(await replay(parked, { agent: host.agent })).toMatchObject({ ...allSame, status: 'parked' });
});

test('a run that a call began is read by its id, and names the call; calls name the runs that they began (lab 1)', async () => {
  const script = [callTool('agent__helper', { prompt: 'Help.' }), reply('helped'), reply('Done.')];
  const helper = hostOf({ agent: { id: 'helper' } }).agent;
  const host = hostOf({ script, store: memoryStore(), retention, agent: { subAgents: ['helper'] }, agents: [helper] });
  await host.run({ runId: 'r' });
  const run = await readRun(host.executor, 'r');
  const call = run.steps[0]?.calls[0];
  expect(call).toMatchObject({ name: 'agent__helper', effect: 'idempotent', childRunId: expect.stringMatching(/^~/) });
  const child = await readRun(host.executor, call?.childRunId ?? '');
  expect(child).toMatchObject({ agentId: 'helper', output: 'helped', parent: { runId: 'r', callId: call?.id } });
  expect(await replay(run, { agent: host.agent })).toStrictEqual({ ...run, ...allSame });
  expect(host.model.calls).toHaveLength(3);
});

test('a fork that is erased leaves its origin and the runs of its calls; those calls are of no run of the fork (lab 1, 12)', async () => {
  const call = callTool('agent__helper', { prompt: 'Help.' });
  const helper = hostOf({ agent: { id: 'helper' } }).agent;
  const ports = { palette: createPalette({ agents: [helper] }) };
  const options = { store: memoryStore(), retention, agent: { subAgents: ['helper'] }, ports };
  const { executor, run } = hostOf({
    ...options,
    script: [call, reply('helped'), reply('Done.'), call, reply('Other.')],
  });
  await run({ runId: 'r' });
  const childOf = async (runId: string, step: number) =>
    (await readRun(executor, runId)).steps[step]?.calls[0]?.childRunId ?? 'none';
  const child = await childOf('r', 0);
  const next = hostOf({ ...options, script: [call, reply('helped again'), reply('Other.')] });
  await (await next.executor.fork('r', { at: 1, runId: 'f' })).result;
  expect(await childOf('f', 0)).toBe('none');
  const own = await childOf('f', 1);
  expect((await readRun(executor, own)).output).toBe('helped again');
  const { agent } = next;
  const fork = await readRun(executor, 'f');
  expect(await replay(fork, { agent, agents: [helper] })).toMatchObject({ ...allSame, steps: fork.steps });
  const filed = [];
  for await (const each of readRuns(exportRuns(executor, ['f']))) filed.push(each.runId);
  expect(filed).toEqual(['f', own]);
  await executor.erase('f');
  expect([await executor.find(own), (await readRun(executor, child)).output]).toEqual([null, 'helped']);
  expect((await readRun(executor, 'r')).output).toBe('Done.');
});

test('a turn of a thread is read with the turns before it in front, and replayed with them (lab 1, 17)', async () => {
  const host = hostOf({
    script: [reply('Ann.'), callTool('look'), reply('Of Ann.')],
    tools: [toolOf('look')],
    store: memoryStore(),
  });
  const thread = host.executor.thread('t', { agent: host.agent });
  const ids = [];
  for (const [id, text] of [
    ['m1', 'Who?'],
    ['m2', 'Whose?'],
  ] as const) {
    const { runId } = await thread.send({ id, text });
    ids.push(runId);
    await until(async () => (await host.executor.find(runId))?.status === 'ended');
  }
  const run = await readRun(host.executor, ids[1] ?? '');
  expect(run.earlier.map(({ role }) => role)).toStrictEqual(['user', 'assistant']);
  expect(run).toMatchObject({ prompt: 'Whose?', output: 'Of Ann.' });
  expect(run.messages.map(({ role }) => role)).toStrictEqual(['user', 'assistant', 'tool', 'assistant']);
  expect(await replay(run, { agent: host.agent })).toMatchObject(allSame);
  const { model } = { model: scriptedModel([reply('Ann’s.')]) };
  await replay(run, { agent: host.agent, model });
  expect(model.calls[0]?.messages).toHaveLength(3);
});

test('of a run whose model failed for good, the usage is more than that of its steps (lab 1)', async () => {
  const broken = Object.assign(new Error('broken off'), { statusCode: 400 });
  const host = hostOf({
    script: [callTool('look'), fail(broken)],
    tools: [toolOf('look')],
    store: memoryStore(),
    retention,
  });
  expect((await host.run({ runId: 'r' })).status).toBe('error');
  const run = await readRun(host.executor, 'r');
  expect(run).toMatchObject({ status: 'error', error: { code: 'MODEL' }, steps: [{}] });
  expect(await replay(run, { agent: host.agent })).toMatchObject({ ...allSame, status: 'error', error: run.error });
});

test('a run of a workflow has no steps of a model: UNSUPPORTED (lab 1)', async () => {
  const machine = setup({}).createMachine({ initial: 'a', states: { a: { on: { go: 'b' } }, b: { type: 'final' } } });
  const workflow = defineWorkflow({ id: 'w', machine });
  const executor = createExecutor({ workflows: [workflow], store: memoryStore() });
  await executor.start(workflow, { runId: 'w1' });
  await expect(readRun(executor, 'w1')).rejects.toMatchObject({ code: 'UNSUPPORTED' });
  await executor.shutdown({ drainMs: 0 });
});

test('a fork is read with the steps that it has of its origin, and replayed with them; its usage is its own (lab 1, 17)', async () => {
  const script = [callTool('look'), reply('Done.'), reply('Otherwise.')];
  const host = hostOf({ script, tools: [toolOf('look')], store: memoryStore(), retention });
  await host.run({ runId: 'r' });
  const fork = await host.executor.fork('r', { at: 1, runId: 'f' });
  expect((await fork.result).output).toBe('Otherwise.');
  const [origin, run] = [await readRun(host.executor, 'r'), await readRun(host.executor, 'f')];
  expect(run).toMatchObject({ forkedFrom: { runId: 'r', at: 1 }, output: 'Otherwise.' });
  expect(run.steps[0]).toStrictEqual(origin.steps[0]);
  expect(run.usage).toStrictEqual(run.steps[1]?.usage);
  expect(await replay(run, { agent: host.agent })).toMatchObject({ ...allSame, forkedFrom: run.forkedFrom });
  const edited = await host.executor.fork('r', {
    ...{ at: 1, runId: 'e' },
    edit: (messages) =>
      messages.map(
        (message, i) => (i === 0 ? { ...message, content: [{ type: 'text', text: 'Hm.' }] } : message) as Message,
      ),
  });
  await edited.result;
  expect(await replay(await readRun(host.executor, 'e'), { agent: host.agent })).toMatchObject({ difference: null });
});

test('an imported run is forked, and the fork works on with its results (lab 25)', async () => {
  const script = [callTool('look'), reply('Done.')];
  const host = hostOf({ script, tools: [toolOf('look')], store: memoryStore(), retention });
  await host.run({ runId: 'r' });
  const there = hostOf({ script: [reply('Forked.')], tools: [toolOf('look')], store: memoryStore(), retention });
  await importRuns(there.executor, exportRuns(host.executor, ['r']));
  const fork = await there.executor.fork('r', { at: 1, runId: 'f' });
  expect(await fork.result).toMatchObject({ status: 'ok', output: 'Forked.' });
  expect(there.model.calls[0]?.messages).toHaveLength(3);
  expect(await readRun(there.executor, 'f')).not.toHaveProperty('imported');
  expect(await readRun(there.executor, 'r')).toMatchObject({ status: 'ok', imported: true });
  await expect(there.executor.retry('r')).rejects.toMatchObject({ code: 'RUN_ENDED' });
});

test('an ended turn of a thread whose agent has phases is read with the steps of all phases, replayed and filed; its thread shows the answer (lab 1, 17, 22)', async () => {
  const phases = ['plan', 'write'].map((name) => ({ name, instructions: name }));
  const script = ['a', 'b'].flatMap((turn) => [callTool('look'), reply(`plan ${turn}`), reply(`text ${turn}`)]);
  const host = hostOf({ store: memoryStore(), agent: { phases }, tools: [toolOf('look')], script, retention });
  const thread = host.executor.thread('t', { agent: host.agent, callerId: 'ada' });
  let runId = '';
  for (const id of ['m1', 'm2']) {
    ({ runId } = await thread.send({ id, text: `Hi ${id}.` }));
    await until(async () => (await thread.turn({ runId }))?.state === 'ended');
  }
  const run = await readRun(host.executor, runId);
  expect(run.steps.map(({ phase, calls }) => [phase, calls.length])).toStrictEqual([
    ['plan', 1],
    ['plan', 0],
    ['write', 0],
  ]);
  expect(run.messages.map(({ role }) => role)).toStrictEqual(['user', 'assistant', 'tool', 'assistant', 'assistant']);
  expect(run.earlier).toHaveLength(2);
  expect(await replay(run, { agent: host.agent })).toStrictEqual({ ...run, ...allSame });
  const lines: string[] = [];
  for await (const line of exportRuns(host.executor, [runId])) lines.push(line);
  for await (const read of readRuns(lines)) expect(read).toStrictEqual(run);
  const shown = JSON.stringify(await thread.messages());
  for (const text of ['Hi m1.', 'text a', 'Hi m2.', 'text b']) expect(shown).toContain(text);
  expect(shown).not.toContain('plan');
});

test('of a turn whose phases an earlier version has not kept, reading is UNSUPPORTED (lab 1)', async () => {
  const store = memoryStore();
  const phases = ['plan', 'write'].map((name) => ({ name, instructions: name }));
  const host = hostOf({ store, agent: { phases }, script: [reply('the plan'), reply('the text')], retention });
  const thread = host.executor.thread('t', { agent: host.agent, callerId: 'ada' });
  const { runId } = await thread.send({ id: 'm1', text: 'Hi.' });
  await until(async () => (await thread.turn({ runId }))?.state === 'ended');
  const { load } = store;
  store.load = async (...args) => {
    const found = await load(...args);
    if (!found) return null;
    const { phaseMessages: _, ...record } = found;
    return record;
  };
  const older = hostOf({ store, agent: { phases } });
  await expect(readRun(older.executor, runId)).rejects.toMatchObject({
    code: 'UNSUPPORTED',
    message: expect.stringContaining('a turn of a thread'),
  });
  await expect(older.executor.fork(runId, { at: 0 })).rejects.toMatchObject({ code: 'UNSUPPORTED' });
});
