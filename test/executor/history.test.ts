import { type Message, memoryStore, type RunCheckpoint } from 'pawl';
import { createCheckpointerFactory } from 'pawl/stores/kit';
import { callTool, callTools, fail, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { afterCrash, onlyRecord } from '../fixtures/watched-store.ts';

const user = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] });
const assistant = (text: string): Message => ({ role: 'assistant', content: [{ type: 'text', text }] });
const call = (toolCallId: string): Message => ({
  role: 'assistant',
  content: [{ type: 'tool-call', toolCallId, toolName: 'look', input: {} }],
});
const answer = (toolCallId: string): Message => ({
  role: 'tool',
  content: [{ type: 'tool-result', toolCallId, toolName: 'look', output: { type: 'text', value: 'seen' } }],
});
const history = [user('My name is Ada.'), assistant('Hello Ada.'), call('c1'), answer('c1'), assistant('Seen.')];
const down = () => fail(Object.assign(new Error('down'), { isRetryable: false }));
const request = { runId: 'r', prompt: 'What is my name?', history };
const tools = [toolOf('look')];
const whole = [...history, user('What is my name?')];

describe('an earlier conversation (invocation.history)', () => {
  test('comes before the prompt, message for message', async () => {
    const host = hostOf({ script: [reply('Ada.')], store: memoryStore() });
    const result = await host.run(request);
    expect(host.model.calls[0]?.messages).toEqual(whole);
    expect(result).toMatchObject({ status: 'ok', output: 'Ada.', iterations: 1 });
    expect(result.messages).toEqual([...whole, assistant('Ada.')]);
  });

  test('may be the messages of a result: the next turn of a conversation', async () => {
    const host = hostOf({ script: [callTool('look'), reply('one'), reply('two')], tools });
    const { messages } = await host.run();
    await host.run({ prompt: 'And then?', history: messages });
    expect(host.model.calls[2]?.messages).toEqual([...messages, user('And then?')]);
  });

  test('is in the record once, and a run that is taken up by another process continues with it', async () => {
    const store = memoryStore();
    const first = hostOf({ script: [callTool('look'), hang()], tools, store });
    await first.start(request);
    await until(async () => (await store.load('r'))?.iteration === 1);
    const left = await afterCrash(store);
    const record = await onlyRecord(left);
    expect(record.earlier).toEqual(history);
    expect(record.messages.slice(0, whole.length)).toEqual(whole);
    const second = hostOf({ script: [reply('Ada.')], tools, store: left });
    expect((await second.executor.recover()).resumed).toEqual([{ runId: 'r' }]);
    expect((await second.executor.get('r')?.result)?.output).toBe('Ada.');
    expect(second.model.calls[0]?.messages).toEqual(record.messages);
  });

  test('is a part of the request: another history under the same id is another request', async () => {
    const store = memoryStore();
    const host = hostOf({ script: [reply('Ada.')], store });
    await host.run(request);
    for (const other of [[], history.slice(0, 2), [...history, user('x')]])
      expect((await host.start({ ...request, history: other })).error?.code).toBe('RUN_ID_CONFLICT');
    expect((await host.start(request)).accepted).toBe('ended');
  });

  test('begins each phase of a pipeline, also after a crash between two phases', async () => {
    const phases = [
      { name: 'a', instructions: 'A' },
      { name: 'b', instructions: 'B', recovery: 'boundary' as const },
    ];
    const store = memoryStore();
    const first = hostOf({ script: [reply('one'), hang()], agent: { phases }, store });
    await first.start(request);
    await until(() => first.model.calls.length === 2);
    expect(first.model.calls.map(({ messages }) => messages)).toEqual([whole, whole]);
    const second = hostOf({ script: [reply('two')], agent: { phases }, store: await afterCrash(store) });
    await second.executor.recover();
    expect((await second.executor.get('r')?.result)?.output).toBe('two');
    expect(second.model.calls[0]?.messages).toEqual(whole);
  });

  test('begins the next phase of a hosted run without a store that is restored between two phases', async () => {
    const { createActor } = await import('xstate');
    const phases = [
      { name: 'a', instructions: 'A' },
      { name: 'b', instructions: 'B', recovery: 'boundary' as const },
    ];
    const first = hostOf({ script: [reply('one'), hang()], agent: { phases } });
    const actor = createActor(first.executor.logic(first.agent), { input: request }).start();
    await until(() => first.model.calls.length === 2);
    const snapshot = JSON.parse(JSON.stringify(actor.getPersistedSnapshot()));
    expect([snapshot.completedPhases.length, snapshot.openPhase]).toEqual([1, undefined]);
    const second = hostOf({ script: [reply('two')], agent: { phases } });
    createActor(second.executor.logic(second.agent), { snapshot, input: undefined }).start();
    await until(() => second.model.calls.length === 1);
    expect(second.model.calls[0]?.messages).toEqual(whole);
  });

  test('begins a pipeline that is restarted because its definition has changed', async () => {
    const store = memoryStore();
    const phase = { name: 'a', instructions: 'A', tools: ['look'] };
    const first = hostOf({ script: [callTool('look'), hang()], tools, agent: { phases: [phase] }, store });
    await first.start(request);
    await until(async () => (await store.load('r'))?.iteration === 1);
    const changed = { phases: [{ ...phase, instructions: 'Changed.' }] };
    const options = { tools, agent: changed, store: await afterCrash(store) };
    const second = hostOf({ script: [reply('x')], ...options, onDefinitionChange: 'restart' });
    await second.executor.recover();
    expect((await second.executor.get('r')?.result)?.status).toBe('ok');
    expect(second.model.calls[0]?.messages).toEqual(whole);
  });

  test('is no sign that a pipeline has begun: at its opening the run is taken up with the phases of today', async () => {
    const store = memoryStore();
    const phases = [{ name: 'a', instructions: 'A', recovery: 'boundary' as const }];
    await hostOf({ script: [hang()], agent: { phases }, store }).start(request);
    const record = await onlyRecord(store);
    expect([record.openPhase, record.messages.length]).toEqual([undefined, whole.length]);
    const options = { agent: { phases: [{ ...phases[0], name: 'b' }] as never }, store: await afterCrash(store) };
    const second = hostOf({ script: [reply('x')], ...options, onDefinitionChange: 'refuse' });
    expect(await second.executor.recover()).toMatchObject({ resumed: [{ runId: 'r' }], parked: [], failed: [] });
  });

  test('is no answer of the run: one that fails at once has an empty output', async () => {
    const result = await hostOf({ script: [down()] }).run(request);
    expect(result).toMatchObject({ status: 'error', output: '', error: { code: 'MODEL' } });
  });

  test('is in the snapshot of a host whose run has no store, and is continued from there', async () => {
    const { createActor } = await import('xstate');
    const first = hostOf({ script: [hang()] });
    const actor = createActor(first.executor.logic(first.agent), { input: request }).start();
    await until(() => first.model.calls.length === 1);
    const snapshot = JSON.parse(JSON.stringify(actor.getPersistedSnapshot()));
    const second = hostOf({ script: [reply('Ada.')] });
    const restored = createActor(second.executor.logic(second.agent), { snapshot, input: undefined }).start();
    await until(() => restored.getSnapshot().status === 'done');
    expect(second.model.calls[0]?.messages).toEqual(whole);
  });

  test('is redacted in the record like all that was said', async () => {
    const store = memoryStore();
    const host = hostOf({ script: [hang()], store, redact: (text) => text.replaceAll('Ada', '[name]') });
    await host.start(request);
    await until(() => host.model.calls.length === 1);
    expect(JSON.stringify(await store.load('r'))).not.toContain('Ada');
    expect(JSON.stringify(host.model.calls[0]?.messages)).toContain('Ada');
    expect((await host.start(request)).accepted).toBe('joined');
  });

  test.for([
    [
      'ends in a tool call without a result',
      [...history, call('c2')],
      /^history\[5\]: the history ends in a tool call without a result; /,
    ],
    ['has a call without a result in the middle', [call('c2'), user('x')], /a tool call has no result/],
    ['has a result without a call', [answer('c2')], /without a call/],
    ['has a message of no role', [{ role: 'robot', content: [] }], /the role is "robot"/],
    ['has a message without parts', [{ role: 'user', content: 'x' }], /needs a content of parts/],
    [
      'has a system message of parts, which no record can hold',
      [{ role: 'system', content: [{ type: 'text', text: 'x' }] }],
      /^history\[0\]: a system message needs a content that is a string$/,
    ],
  ] as const)('that %s is refused with TRANSCRIPT_INVALID, and nothing is begun', async ([, given, message]) => {
    const store = memoryStore();
    const host = hostOf({ script: [], store });
    const run = await host.start({ ...request, history: given as never });
    expect([run.accepted, run.error?.code]).toEqual(['refused', 'TRANSCRIPT_INVALID']);
    expect(run.error?.message).toMatch(message);
    expect(await store.listInterrupted()).toEqual([]);
  });

  test('that is no JSON is refused with the path, and one that is no array is a wrong call', async () => {
    const host = hostOf({ script: [] });
    const run = await host.start({
      history: [{ role: 'user', content: [{ type: 'text', text: 'x', at: new Date() }] }] as never,
    });
    expect(run.error).toMatchObject({ code: 'NOT_JSON', message: expect.stringContaining('history[0].content[0].at') });
    await expect(host.start({ history: 'x' as never })).rejects.toThrow(
      new TypeError('history must be an array of messages'),
    );
  });

  const large = 'x'.repeat(2_000);
  test.for<[string, object]>([
    ['history', { history: [user(large)] }],
    ['prompt', { prompt: large }],
    ['inputs', { inputs: { large } }],
    ['images', { images: [{ mediaType: 'image/png', data: large }] }],
  ])(
    'that no record can hold is refused with RECORD_TOO_LARGE for its %s: no run continues that nothing recovers (checkpoint 25)',
    async ([, given]) => {
      const checkpointer = createCheckpointerFactory(memoryStore(), { maxRecordBytes: 2_000 });
      const host = hostOf({ script: [], ports: { checkpointer } });
      const run = await host.start({ prompt: 'go', ...given });
      expect([run.accepted, run.error?.code]).toEqual(['refused', 'RECORD_TOO_LARGE']);
    },
  );
});

describe('RunOptions.resume', () => {
  test('sends its history as it is: the prompt and the history of the invocation are ignored', async () => {
    const host = hostOf({ script: [reply('x')] });
    await host.run(request, { resume: { history: [user('only this')] } });
    expect(host.model.calls[0]?.messages).toEqual([user('only this')]);
    const store = memoryStore();
    await hostOf({ script: [hang()], store }).start(request, { resume: { history: [user('only this')] } });
    expect(await onlyRecord(store)).not.toHaveProperty('earlier');
  });

  test('with completed phases and no history begins the next phase with the prompt', async () => {
    const phases = [
      { name: 'a', instructions: 'A' },
      { name: 'b', instructions: 'B saw {{.a}}' },
    ];
    const host = hostOf({ script: [reply('done')], agent: { phases } });
    const result = await host.run(request, { resume: { completedPhases: [{ name: 'a', output: 'saved-a' }] } });
    expect(result).toMatchObject({ status: 'ok', output: 'done' });
    expect(host.model.calls).toHaveLength(1);
    expect(host.model.calls[0]).toMatchObject({ system: 'B saw saved-a', messages: whole });
  });
});

test('an open step whose calls an earlier conversation named alike gets ids of its own', async () => {
  const seen: string[] = [];
  const look = toolOf('look', 'read', (_, { callId }) => seen.push(callId));
  const script = [callTools([{ name: 'look', input: {}, callId: 'c1' }]), reply('x')];
  const { status } = await hostOf({ script, tools: [look] }).run(request);
  expect(status).toBe('ok');
  expect(seen[0]).not.toBe('c1');
});

test('an older record, which has no earlier conversation, is read as before', async () => {
  const store = memoryStore();
  const first = hostOf({ script: [hang()], store });
  await first.start({ runId: 'r' });
  expect((await store.load('r')) as RunCheckpoint).not.toHaveProperty('earlier');
});
