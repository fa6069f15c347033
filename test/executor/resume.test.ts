import { type Message, memoryStore, type ResumeState, type RunCheckpoint } from 'pawl';
import { toResumeState } from 'pawl/stores/kit';
import { callTool, callTools, hang, recordingFactory, reply, type ScriptedEntry, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { afterCrash, onlyRecord, plainStore, watchedStore } from '../fixtures/watched-store.ts';

const six: ScriptedEntry[] = [...[1, 2, 3, 4, 5].map((n) => callTool('look', { n }, `c${n}`)), reply('six')];
const never: ScriptedEntry = () => new Promise(() => {});
const look = toolOf('look', 'read', async ({ n }) => `seen ${n}`);
const tools = [look];
const asked = { runId: 'run-1', inputs: { a: 1 } };

/** What a run of six steps leaves when its process dies after so many of them. */
async function diedAfter(steps: number, store = memoryStore()): Promise<RunCheckpoint> {
  const host = hostOf({ script: [...six.slice(0, steps), never], tools, store });
  await host.start(asked);
  await until(async () => (await store.load('run-1'))?.iteration === steps && host.model.calls.length === steps + 1);
  return onlyRecord(store);
}

async function storeWith(record: RunCheckpoint, store = memoryStore()) {
  await store.save(record);
  return store;
}

describe('a run that continues from its record', () => {
  test('4 of 6 steps done: two more model calls, the first with the saved transcript, message for message (executor 12)', async () => {
    const record = await diedAfter(4);
    const host = hostOf({ script: six.slice(4), tools, store: await storeWith(record) });
    const result = await host.run(asked);
    expect(host.model.calls).toHaveLength(2);
    expect(host.model.calls[0]?.messages).toEqual(record.messages);
    expect(result).toMatchObject({ status: 'ok', output: 'six', iterations: 6, durable: true });
  });

  test.for([0, 1, 2, 3, 4, 5])(
    'died after step %i: transcript, totals and answer equal those of a run that was never interrupted (executor 13)',
    async (steps) => {
      const whole = await hostOf({ script: six, tools, store: memoryStore() }).run(asked);
      const record = await diedAfter(steps);
      const host = hostOf({ script: six.slice(steps), tools, store: await storeWith(record) });
      expect(await host.run(asked)).toEqual(whole);
      expect(whole.usage).toMatchObject({ inputTokens: 60, outputTokens: 30 });
    },
  );

  test('iteration continues: after 2 the next save says 3 (checkpoint 4)', async () => {
    const store = watchedStore();
    await store.save(await diedAfter(2));
    store.log.length = 0;
    await hostOf({ script: six.slice(2), tools, store }).run(asked);
    const heads = store.log
      .filter(({ method }) => method === 'append')
      .map(({ args }) => (args[0] as { head: RunCheckpoint }).head);
    expect(heads.map(({ iteration }) => iteration)).toEqual([3, 4, 5, 6]);
  });

  test('writes on with deltas, and not its whole transcript again (checkpoint 19)', async () => {
    const store = watchedStore();
    await store.save(await diedAfter(4));
    store.log.length = 0;
    await hostOf({ script: six.slice(4), tools, store }).run(asked);
    expect(store.methods).not.toContain('save');
  });

  test('has its inputs back', async () => {
    let inputs: unknown;
    const curious = toolOf('look', 'read', (_, { invocation }) => {
      inputs = invocation.inputs;
      return 'x';
    });
    const host = hostOf({ script: six.slice(4), tools: [curious], store: await storeWith(await diedAfter(4)) });
    await host.run(asked);
    expect(inputs).toEqual({ a: 1 });
  });

  test('begins no second run for the factory: the same run id, and today’s definition of the agent (executor 3, 12)', async () => {
    const factory = recordingFactory();
    const store = await storeWith(await diedAfter(4));
    const host = hostOf({
      script: six.slice(4),
      tools,
      agent: { instructions: 'Work harder.' },
      ports: { checkpointer: { begin: factory.begin, store } },
    });
    await host.run(asked);
    expect(factory.infos.map(({ runId }) => runId)).toEqual(['run-1']);
    expect(host.model.calls[0]?.system).toBe('Work harder.');
  });

  test('keeps the caller, channel, guild and parent it was begun with (checkpoint 1)', async () => {
    for (const store of [memoryStore(), plainStore()]) {
      const given = { runId: 'run-1', callerId: 'c', channelId: 'ch', guildId: 'g', parentRunId: 'p' };
      const first = hostOf({ script: [callTool('look'), never], tools, store });
      await first.start(given);
      await until(async () => (await store.load('run-1'))?.iteration === 1);
      const left = 'append' in store ? await afterCrash(store) : plainStore(await afterCrash(store));
      await hostOf({ script: [callTool('look'), never], tools, store: left }).start(given);
      await until(async () => (await left.load('run-1'))?.iteration === 2);
      expect((await left.load('run-1'))?.meta).toMatchObject(given);
    }
  });

  test.for([
    ['begin throws', { begin: (): Promise<null> => Promise.reject(new Error('no disk')) }],
    ['begin says null', { begin: async (): Promise<null> => null }],
  ] as const)('is refused, and its record stays, when %s (checkpoint 24)', async ([, factory]) => {
    const store = await storeWith(await diedAfter(4));
    const host = hostOf({ script: six.slice(4), tools, ports: { checkpointer: { ...factory, store } } });
    const result = await host.run(asked);
    expect(result).toMatchObject({ status: 'error', error: { code: 'NOT_DURABLE' } });
    expect(host.model.calls).toHaveLength(0);
    expect((await onlyRecord(store)).iteration).toBe(4);
  });

  test('keeps its record, uncounted, when its tier is gone: another process may have it (executor 2)', async () => {
    const store = await storeWith(await diedAfter(4));
    const host = hostOf({ tools, store, agent: { model: 'gone' } });
    const error = { code: 'SETUP', cause: { code: 'UNKNOWN_TIER' } };
    expect(await host.run(asked)).toMatchObject({ status: 'interrupted', iterations: 4, error });
    expect(await store.load('run-1')).toMatchObject({ iteration: 4, attempts: 0 });
  });

  test('keeps its record, uncounted, when a tool is gone: a deploy may bring it back (executor 2, faults 39)', async () => {
    const store = await storeWith(await diedAfter(4));
    for (let boot = 0; boot < 5; boot++) {
      const host = hostOf({ tools: ['look'] as never, store });
      const error = { code: 'SETUP', cause: { code: 'UNKNOWN_TOOL' } };
      expect(await host.run(asked)).toMatchObject({ status: 'interrupted', error });
    }
    expect(await onlyRecord(store)).toMatchObject({ iteration: 4, attempts: 0 });
  });

  test('what is left of its working time is what it had left, with any time between the two (executor 13)', async () => {
    const clock = testClock(1_000);
    const store = memoryStore({ clock });
    const options = { tools, store, clock, agent: { maxRuntimeMs: 1_000 } };
    const slow = async () => {
      await clock.advance(400);
      return callTool('look');
    };
    const first = hostOf({ ...options, script: [slow, never] });
    await first.start({ runId: 'run-1' });
    await until(async () => (await store.load('run-1'))?.iteration === 1);
    expect((await onlyRecord(store)).elapsedMs).toBe(400);
    const left = await afterCrash(store);
    await clock.advance(500_000);
    const second = hostOf({ ...options, store: left, script: [never] });
    const run = await second.start({ runId: 'run-1' });
    let status: string | undefined;
    void run.result.then((result) => (status = result.status));
    await clock.advance(599);
    expect(status).toBeUndefined();
    await clock.advance(1);
    await settle();
    expect(status).toBe('timeout');
  });
});

const user: Message = { role: 'user', content: [{ type: 'text', text: 'Go.' }] };
const asks = (...ids: string[]): Message => ({
  role: 'assistant',
  content: ids.map((toolCallId, n) => ({ type: 'tool-call', toolCallId, toolName: 'look', input: { n } })),
});
const answers = (...ids: string[]): Message => ({
  role: 'tool',
  content: ids.map((toolCallId) => ({
    type: 'tool-result',
    toolCallId,
    toolName: 'look',
    output: { type: 'text', value: toolCallId },
  })),
});

describe("a run that continues from a host's own history", () => {
  const goOn = (resume: ResumeState, script: ScriptedEntry[] = [reply('end')]) => {
    const host = hostOf({ script, tools });
    return host.run({ prompt: 'Go.' }, { resume }).then((result) => ({ host, result }));
  };

  test('asks the model with that history and nothing added (executor 12)', async () => {
    const history = [user, asks('a'), answers('a')];
    const { host, result } = await goOn({ history });
    expect(host.model.calls[0]?.messages).toEqual(history);
    expect(result.messages.slice(0, 3)).toEqual(history);
  });

  test('an empty history is a fresh start (executor 12)', async () => {
    const { host } = await goOn({ history: [] });
    expect(host.model.calls[0]?.messages).toEqual([user]);
  });

  test('calls at its end without results are the open step: they run, and the model is asked only then (executor 12)', async () => {
    const { host, result } = await goOn({ history: [user, asks('a', 'b')] });
    expect(host.model.calls).toHaveLength(1);
    expect(result.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
    expect(result.messages[2]?.content).toMatchObject([{ toolCallId: 'a' }, { toolCallId: 'b' }]);
  });

  test.for([
    ['a result before any call', [user, answers('a')]],
    ['a result of another call', [user, asks('a'), answers('b')]],
    ['a result given twice', [user, asks('a'), answers('a', 'a')]],
    ['a call in the middle without a result', [user, asks('a'), user]],
    ['two tool messages of which the second answers nothing', [user, asks('a'), answers('a'), answers('a')]],
  ] as const)('%s is refused with TRANSCRIPT_INVALID (executor 12)', async ([, history]) => {
    const { host, result } = await goOn({ history });
    expect(result).toMatchObject({ status: 'error', error: { code: 'TRANSCRIPT_INVALID' } });
    expect(host.model.calls).toHaveLength(0);
  });

  test('a start that is repeated with the same resume state continues from the record: a once call is not made again', async () => {
    const store = memoryStore();
    const made: string[] = [];
    const send = toolOf('send', 'once', (_, { callId }) => made.push(callId));
    const resume = { history: [user] };
    const first = hostOf({ script: [callTool('send', {}, 'first'), hang()], tools: [send], store });
    await first.start({ runId: 'r' }, { resume });
    await until(async () => (await store.load('r'))?.iteration === 1);
    const second = hostOf({ script: [reply('end')], tools: [send], store: await afterCrash(store) });
    const run = await second.start({ runId: 'r' }, { resume });
    expect(run.accepted).toBe('resumed');
    expect(await run.result).toMatchObject({ status: 'ok', iterations: 2 });
    expect(second.model.calls[0]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
    expect(made).toEqual(['first']);
  });

  test('a stored record handed over as resume state continues as the record would (executor 12)', async () => {
    const record = await diedAfter(4);
    const { host, result } = await goOn(toResumeState(record), six.slice(4));
    expect(host.model.calls[0]?.messages).toEqual(record.messages);
    expect(result.iterations).toBe(6);
  });

  test('an open step in which calls are planned runs them without a model call first (executor 12)', async () => {
    const message = asks('a', 'b') as never;
    const line = { name: 'look', input: {}, effect: 'read' as const, attempt: 0 };
    const openStep = {
      message,
      calls: [
        { ...line, callId: 'a', state: 'done' as const, result: { type: 'text' as const, value: 'kept' } },
        { ...line, callId: 'b', state: 'planned' as const },
      ],
    };
    const { host, result } = await goOn({ history: [user], openStep });
    expect(host.model.calls).toHaveLength(1);
    expect(result.messages[2]?.content).toMatchObject([
      { output: { value: 'kept' } },
      { output: { value: 'seen undefined' } },
    ]);
  });
});

test('a reply whose calls were in flight at the crash is not asked for again: its step continues in the tools (executor 12)', async () => {
  const store = memoryStore();
  const hangs = toolOf('send', 'idempotent', () => new Promise(() => {}));
  const first = hostOf({ script: [callTools([{ name: 'send', input: {} }])], tools: [hangs], store });
  await first.start({ runId: 'run-1' });
  await until(async () => (await store.load('run-1'))?.openStep);
  const second = hostOf({
    script: [reply('end')],
    tools: [toolOf('send', 'idempotent')],
    store: await afterCrash(store),
  });
  expect(await second.run({ runId: 'run-1' })).toMatchObject({ status: 'ok', iterations: 2 });
  expect(second.model.calls).toHaveLength(1);
  expect(second.model.calls[0]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
});
