import { type Message, memoryStore, type Phase, type RunCheckpointMeta, type RunInfo } from 'pawl';
import {
  type CheckpointOutcome,
  classifyCheckpointOutcome,
  createCheckpointer,
  createCheckpointerFactory,
} from 'pawl/stores/kit';
import { callTool, fail, recordingCheckpointer, recordingFactory, reply, testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { CriticKillError, DeadlineExceededError, ShutdownError } from '../../src/values/errors.ts';
import { gate, hostOf, toolOf } from '../fixtures/host.ts';

/*
 * The twelve tests of the checkpoint contract, by the names that they have there. Other files prove the same rules at length;
 * this one is for a reader who knows the names. The last test covers a rule that the twelve leave open.
 */

const info: RunInfo = {
  runId: 'run-1',
  subjectId: 'worker',
  name: 'Worker',
  callerId: 'caller',
  channelId: 'channel',
  guildId: 'guild',
  parentRunId: '',
  modelTier: 'fast',
  prompt: 'Go.',
  inputs: {},
  startedAt: 0,
  maxIterations: 5,
};
const { runId, callerId, channelId, guildId, prompt, modelTier, parentRunId } = info;
const common = { runId, callerId, channelId, guildId, prompt, modelTier, parentRunId };
const meta: RunCheckpointMeta = { ...common, agentId: 'worker', agentName: 'Worker' };

const user = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] });
const assistant = (text: string): Message => ({ role: 'assistant', content: [{ type: 'text', text }] });
const stateAt = (iteration: number) => ({ iteration, messages: [user('Go.'), assistant(`turn ${iteration}`)] });

const a: Phase = { name: 'a', instructions: 'Look at {{.Query}}' };
const b: Phase = { name: 'b', instructions: 'B saw {{.a}}' };

test('save+complete clears the recovery candidate', async () => {
  const store = memoryStore();
  const checkpointer = createCheckpointer(store, meta);
  await checkpointer.save(stateAt(1));
  expect(await store.listInterrupted()).toMatchObject([{ runId: 'run-1', iteration: 1 }]);
  await checkpointer.complete();
  expect(await store.listInterrupted()).toEqual([]);
  expect(await store.load('run-1')).toBeNull();
});

test('throttle skips in-window saves', async () => {
  const T = 1_000;
  const clock = testClock();
  const store = memoryStore({ clock });
  const checkpointer = createCheckpointer(store, meta, { throttleMs: T, clock });
  const stored = async () => (await store.load('run-1'))?.iteration;
  await checkpointer.save(stateAt(1));
  await clock.advance(T - 1);
  await checkpointer.save(stateAt(2));
  expect(await stored()).toBe(1);
  await clock.advance(1);
  expect(await stored()).toBe(2);
  await clock.advance(T);
  await checkpointer.save(stateAt(3));
  expect(await stored()).toBe(3);
});

test('nil-store is a clean no-op', async () => {
  const factory = createCheckpointerFactory(undefined);
  const checkpointer = await factory.begin(info);
  expect(checkpointer).not.toBeNull();
  expect(checkpointer?.durable).toBe(false);
  await expect(checkpointer?.save(stateAt(1), { force: true })).resolves.toBeUndefined();
  await expect(checkpointer?.complete()).resolves.toBeUndefined();
  await expect(checkpointer?.fail(new Error('down'))).resolves.toBeUndefined();

  const script = [callTool('work'), reply('done')];
  const tools = [toolOf('work', 'once')];
  const host = hostOf({ script, tools, ports: { checkpointer: factory } });
  const run = await host.start({ runId: 'run-1' });
  const types: string[] = [];
  for await (const { type } of run.events()) types.push(type);
  expect(await run.result).toMatchObject({ status: 'ok', output: 'done', durable: false, saveErrors: 0 });
  expect(types.filter((type) => type.startsWith('checkpoint.'))).toEqual([]);
  expect(host.warnings).toEqual([]);
  const strict = hostOf({ ports: { checkpointer: factory }, requireDurable: true });
  expect(await strict.run()).toMatchObject({ status: 'error', error: { code: 'NOT_DURABLE' } });
});

const abort = new DOMException('aborted', 'AbortError');
const rows: readonly (readonly [title: string, error: unknown, cause: unknown, outcome: CheckpointOutcome])[] = [
  ['no error', undefined, undefined, 'complete'],
  ['no error, although the host shuts down', undefined, new ShutdownError(), 'complete'],
  ['an abort by a shutdown', abort, new Error('stopping', { cause: new ShutdownError() }), 'leave-running'],
  ['an abort by a critic kill', abort, new CriticKillError(), 'fail'],
  ['a timeout by the deadline', new DeadlineExceededError(), new DeadlineExceededError(), 'fail'],
  ['a model error without a cause', new Error('the model is down'), undefined, 'fail'],
];

test('TestClassifyCheckpointOutcome', () => {
  const found = rows.map(([title, error, cause]) => [title, classifyCheckpointOutcome(error, cause)]);
  expect(found).toEqual(rows.map(([title, , , outcome]) => [title, outcome]));
});

test('TestCheckpoint_SingleLoopSaveAndComplete', async () => {
  const factory = recordingFactory();
  const script = [callTool('work'), reply('done')];
  const host = hostOf({ script, tools: [toolOf('work')], ports: { checkpointer: factory } });
  const result = await host.run({ runId: 'run-1', guildId: 'guild' });
  expect(result.status).toBe('ok');
  expect(factory.infos).toMatchObject([{ runId: 'run-1', subjectId: 'worker', modelTier: 'fast', guildId: 'guild' }]);
  const [checkpointer] = factory.checkpointers;
  const roles = checkpointer?.states.map(({ messages }) => messages?.map(({ role }) => role).join(' '));
  expect(roles).toContain('user assistant tool');
  expect([checkpointer?.completed, checkpointer?.failed]).toEqual([1, 0]);
});

test('TestCheckpoint_TerminalErrorFails', async () => {
  const factory = recordingFactory();
  const host = hostOf({
    script: [fail(Object.assign(new Error('the model is down'), { statusCode: 400 }))],
    ports: { checkpointer: factory },
  });
  const result = await host.run({ runId: 'run-1' });
  expect(result).toMatchObject({ status: 'error', error: { code: 'MODEL' } });
  const [checkpointer] = factory.checkpointers;
  expect([checkpointer?.completed, checkpointer?.failed]).toEqual([0, 1]);
});

test('TestCheckpoint_ResumeSeedsHistory', async () => {
  const call = { type: 'tool-call' as const, toolCallId: 'c-1', toolName: 'work', input: { n: 1 } };
  const output = { type: 'text' as const, value: 'worked' };
  const history: Message[] = [
    user('The first prompt.'),
    { role: 'assistant', content: [call] },
    { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c-1', toolName: 'work', output }] },
    assistant('Half of it is done.'),
    user('Go on.'),
  ];
  const host = hostOf({ script: [reply('done')], tools: [toolOf('work')] });
  const checkpointer = recordingCheckpointer();
  const result = await host.run({ prompt: 'Not this prompt.' }, { resume: { history }, checkpointer });
  expect(result).toMatchObject({ status: 'ok', output: 'done' });
  expect(host.model.calls[0]?.messages).toEqual(history);
});

test('TestCheckpoint_PhaseBoundarySavesCompleted', async () => {
  const checkpointer = recordingCheckpointer();
  const host = hostOf({ agent: { phases: [a, b] }, script: [reply('one'), reply('two')] });
  await host.run({}, { checkpointer });
  const boundaries = checkpointer.states.flatMap(({ completedPhases = [], openPhase, outcome }, i) =>
    outcome || openPhase || completedPhases.length === 0
      ? []
      : [{ isForced: checkpointer.forced[i], phases: completedPhases.map(({ name, output }) => `${name}: ${output}`) }],
  );
  expect(boundaries).toEqual([
    { isForced: true, phases: ['a: one'] },
    { isForced: true, phases: ['a: one', 'b: two'] },
  ]);
});

test('TestCheckpoint_ResumeSkipsCompletedPhases', async () => {
  const host = hostOf({ agent: { phases: [a, b] }, script: [reply('b is done')] });
  const completedPhases = [{ name: 'a', output: 'saved-a' }];
  const result = await host.run({}, { resume: { history: [], completedPhases } });
  expect(host.model.calls.map(({ system }) => system)).toEqual(['B saw saved-a']);
  expect(result).toMatchObject({ status: 'ok', output: 'b is done' });
});

test('TestPhases_DuplicateNamesBothRun', async () => {
  const twins: Phase[] = [1, 2].map((n) => ({ name: 'x', instructions: `${n} saw {{.x}}` }));
  const host = hostOf({ agent: { phases: twins }, script: [reply('one'), reply('two')] });
  const { phases } = await host.run();
  expect(host.model.calls.map(({ system }) => system)).toEqual(['1 saw ', '2 saw one']);
  expect(phases.map(({ name, output }) => [name, output])).toEqual([
    ['x', 'one'],
    ['x', 'two'],
  ]);
  const resumed = hostOf({ agent: { phases: twins }, script: [reply('two')] });
  await resumed.run({}, { resume: { history: [], completedPhases: [{ name: 'x', output: 'one' }] } });
  expect(resumed.model.calls.map(({ system }) => system)).toEqual(['2 saw one']);
});

test('TestPhases_OptionalDoesNotSwallowCancellation', async () => {
  const phases: Phase[] = [{ ...a, optional: true, fallback: 'nothing' }, b];
  const atWork = gate();
  const work = toolOf('work', 'read', (_, { signal }) => {
    const cut = new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    return Promise.race([atWork.pass(), cut]);
  });
  const host = hostOf({ agent: { phases }, tools: [work], script: [callTool('work'), reply('never')] });
  const run = await host.start();
  await atWork.reached;
  await run.cancel('enough');
  expect(await run.result).toMatchObject({ status: 'cancelled', phases: [] });
  expect(host.model.calls).toHaveLength(1);
});

test('TestPhases_HardErrorAborts', async () => {
  const host = hostOf({
    agent: { phases: [a, b] },
    script: [fail(Object.assign(new Error('down'), { statusCode: 400 })), reply('never')],
  });
  expect(await host.run()).toMatchObject({ status: 'error', error: { code: 'MODEL' }, phases: [] });
  expect(host.model.calls).toHaveLength(1);
});

test('a shutdown that waits for a once call inside an optional phase leaves that phase open; the next process finishes it and does not repeat the call', async () => {
  const phases: Phase[] = [{ ...a, optional: true, fallback: 'nothing' }, b];
  const store = memoryStore();
  const paying = gate<string>();
  let payments = 0;
  const pay = toolOf('pay', 'once', () => {
    payments += 1;
    return paying.pass();
  });
  const agent = { phases };
  const first = hostOf({ agent, tools: [pay], store, script: [callTool('pay'), reply('never')] });
  const run = await first.start({ runId: 'run-1' });
  await paying.reached;
  const isShutDown = first.executor.shutdown();
  paying.open('paid');
  await isShutDown;
  expect(await run.result).toMatchObject({ status: 'interrupted', phases: [] });
  expect(first.model.calls).toHaveLength(1);
  const record = await store.load('run-1');
  expect(record).toMatchObject({ completedPhases: [], openPhase: { index: 0, iteration: 1 } });
  expect(record?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);

  const script = [reply('a is done'), reply('b is done')];
  const next = hostOf({ agent, tools: [pay], store, script });
  const result = await next.run({ runId: 'run-1' });
  expect(result).toMatchObject({ status: 'ok', output: 'b is done' });
  expect(result.phases.map(({ output }) => output)).toEqual(['a is done', 'b is done']);
  expect(next.model.calls.map(({ system }) => system)).toEqual(['Look at Go.', 'B saw a is done']);
  expect(payments).toBe(1);
});
