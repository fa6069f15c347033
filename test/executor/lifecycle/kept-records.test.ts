import { createPalette, type ExecutorOptions, memoryStore, type RunOutcome } from 'pawl';
import { callTool, fail, hang, recordingFactory, reply, testClock } from 'pawl/testing';
import { afterEach, describe, expect, test } from 'vitest';
import { childId } from '../../fixtures/child-id.ts';
import { asking, askReviewer, family, reviewer } from '../../fixtures/family.ts';
import { type HostOptions, hostOf, toolOf, until } from '../../fixtures/host.ts';
import { afterCrash, plainStore, type StoreCall, watchedStore } from '../../fixtures/watched-store.ts';

const HOUR = 3_600_000;
const keepMs = HOUR;

const left: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const leave of left.splice(0)) await leave();
});
const someHost = (options: HostOptions) => {
  const host = hostOf({ retention: { records: keepMs }, ...options });
  left.push(() => host.executor.shutdown());
  return host;
};

const looking = { script: [callTool('look'), reply('the answer')], tools: [toolOf('look')] };
const ends = (methods: readonly string[]) =>
  methods.filter((name) => ['outcomes.keep', 'delete', 'history.end'].includes(name));
/** The writes that the end of a run makes, and what they keep. */
const isEnd = ({ method }: StoreCall) => method === 'history.end';

describe('without history and journal', () => {
  test('a run ends with the same calls to its store as before, and its outcome says nothing of its caller (web 16)', async () => {
    const store = watchedStore();
    const host = someHost({ ...looking, store, retention: undefined } as never);
    await host.run({ runId: 'r', callerId: 'ada' });
    expect(ends(store.methods)).toEqual(['outcomes.keep', 'delete']);
    expect(await store.outcomes.find('r')).not.toHaveProperty('run');
    expect(await host.executor.history()).toEqual([]);
    expect(await host.executor.messages('r')).toBeNull();
  });
});

describe('with history', () => {
  test('one write ends a run, and writes no message again: its record and its outcome are kept (web 16)', async () => {
    const store = watchedStore();
    const host = someHost({ ...looking, store });
    const result = await host.run({ runId: 'r', callerId: 'ada', labels: { team: 'x' } });
    expect(ends(store.methods)).toEqual(['history.end']);
    expect(await store.listInterrupted()).toEqual([]);
    expect(await store.load('r')).toBeNull();
    expect(await host.executor.messages('r')).toEqual(result.messages);
    expect(await host.executor.messages('r', { after: 1, limit: 2 })).toEqual(result.messages.slice(1, 3));
    const [entry] = await host.executor.history();
    expect(entry).toMatchObject({
      runId: 'r',
      status: 'ok',
      meta: { agentId: 'worker', agentName: 'Worker', callerId: 'ada', prompt: 'Go.' },
      labels: { team: 'x' },
      usage: result.usage,
      iterations: 2,
      endedAt: expect.any(Number),
    });
    expect(JSON.stringify(entry)).not.toContain('the answer');
  });

  test('the kept outcome, and executor.find, name the caller of a run that ended (web 16, 19)', async () => {
    const store = memoryStore();
    const host = someHost({ store });
    await host.run({ runId: 'r', callerId: 'ada', prompt: 'x'.repeat(500) });
    const meta = { runId: 'r', agentId: 'worker', callerId: 'ada', prompt: 'x'.repeat(200) };
    expect(await store.outcomes.find('r')).toMatchObject({ run: { meta } });
    expect(await host.executor.find('r')).toMatchObject({
      status: 'ended',
      meta,
      outcome: { output: 'done' },
      endedAt: expect.any(Number),
    });
    expect((await host.executor.find('r')) as object).not.toHaveProperty('outcome.run');
  });

  test('a repeated start gets the kept answer, and its result says only that more than the first (web 16)', async () => {
    const store = memoryStore();
    const first = await someHost({ ...looking, store }).run({ runId: 'r' });
    const { messages: _, ...same } = first;
    const again = await someHost({ script: [], store }).start({ runId: 'r' });
    expect(again.accepted).toBe('ended');
    expect(await again.result).toEqual({ ...same, messages: [], kept: true, endedAt: expect.any(Number) });
  });

  test('each end is kept: with its status and its error (web 16)', async () => {
    const clock = testClock();
    const store = memoryStore({ clock });
    const failed = someHost({
      script: [fail(Object.assign(new Error('down '.repeat(1_000)), { statusCode: 400 }))],
      store,
      clock,
      defaults: { modelAttempts: 1 },
    });
    await failed.run({ runId: 'failed' });
    const stopped = someHost({
      script: [hang(), hang()],
      store,
      clock,
      defaults: { maxRuntimeMs: 5_000 },
    });
    const late = await stopped.start({ runId: 'late' });
    const run = await stopped.start({ runId: 'cancelled' });
    await until(() => stopped.model.calls.length === 2);
    run.cancel('enough');
    await run.result;
    await clock.advance(6_000);
    await late.result;
    const entries = await stopped.executor.history();
    const short = entries.map((entry) => [entry.runId, entry.status, 'error' in entry && entry.error?.code]);
    expect(short.sort()).toEqual([
      ['cancelled', 'cancelled', 'CANCELLED'],
      ['failed', 'error', 'MODEL'],
      ['late', 'timeout', 'DEADLINE_EXCEEDED'],
    ]);
    const error = entries.find(({ runId }) => runId === 'failed') as { error?: { message: string } };
    expect(error.error?.message.length).toBeLessThanOrEqual(1_000);
  });

  test('a stored run that is cancelled is kept too (web 16)', async () => {
    const store = watchedStore();
    const first = someHost({ script: [hang()], store });
    await first.start({ runId: 'r', callerId: 'ada' });
    await until(() => first.model.calls.length === 1);
    await first.executor.shutdown();
    const host = someHost({ script: [], store });
    await host.executor.control('r').cancel('enough');
    expect(ends(store.methods)).toEqual(['history.end']);
    expect(await host.executor.history({ callerId: 'ada' })).toMatchObject([{ runId: 'r', status: 'cancelled' }]);
    expect(await host.executor.messages('r')).toHaveLength(1);
    expect(await store.listInterrupted()).toEqual([]);
  });

  test('a child run is kept as a run of its own, with the run above it (web 16, 19)', async () => {
    const store = memoryStore();
    const host = family(
      asking(askReviewer, () => reply('fine')),
      { store, retention: { records: keepMs } },
    );
    await host.run({ runId: 'r', callerId: 'ada' });
    expect(await host.executor.history({ agentId: 'reviewer' })).toMatchObject([
      { runId: childId('r', 'c1'), parent: { runId: 'r', callId: 'c1', rootRunId: 'r' } },
    ]);
    expect(await host.executor.history({ callerId: 'ada' })).toHaveLength(2);
  });

  test('a record goes when its time is over, and its answer when its own is (web 16)', async () => {
    const clock = testClock();
    const store = memoryStore({ clock });
    const host = someHost({
      script: [reply('one'), reply('two')],
      store,
      clock,
      retention: { records: keepMs, outcomes: HOUR / 2 },
    });
    await host.run({ runId: 'r' });
    clock.wallJump(HOUR / 2);
    expect(await store.outcomes.find('r')).toBeNull();
    expect(await host.executor.messages('r')).toHaveLength(2);
    expect(await host.executor.history()).toHaveLength(1);
    clock.wallJump(HOUR / 2);
    expect(await host.executor.messages('r')).toBeNull();
    expect(await host.executor.history()).toEqual([]);
  });

  test('a new run takes the id once the record is erased, and not before, also when the answer is not kept any more (web 16, edges 17)', async () => {
    const store = memoryStore();
    const host = someHost({ script: [reply('one'), reply('two')], store, retention: { records: keepMs, outcomes: 0 } });
    await host.run({ runId: 'r' });
    const another = { runId: 'r', prompt: 'Another.' };
    expect((await host.run(another)).error?.code).toBe('RUN_ID_CONFLICT');
    await host.executor.erase('r');
    expect(await host.run(another)).toMatchObject({ status: 'ok', output: 'two' });
    expect(await host.executor.history()).toMatchObject([{ runId: 'r', meta: { prompt: 'Another.' } }]);
    const messages = await host.executor.messages('r');
    expect(messages?.map(({ role }) => role)).toEqual(['user', 'assistant']);
  });

  test('what is redacted in the record is redacted in the list (web 16)', async () => {
    const redact: ExecutorOptions['redact'] = (text) => text.replaceAll('hunter2', '***');
    const script = [fail(Object.assign(new Error('no hunter2'), { statusCode: 400 }))];
    const host = someHost({ script, store: memoryStore(), redact, defaults: { modelAttempts: 1 } });
    await host.run({ runId: 'r', prompt: 'My password is hunter2.' });
    const entries = JSON.stringify(await host.executor.history());
    expect(entries).toContain('***');
    expect(entries).not.toContain('hunter2');
  });

  test('with a journal a record is kept for retention.events, also without retention.records (web 8)', async () => {
    const clock = testClock();
    const store = memoryStore({ clock });
    const host = someHost({ store, clock, retention: { events: 1_000 }, journal: true });
    await host.run({ runId: 'r', callerId: 'ada' });
    expect(await host.executor.history({ callerId: 'ada' })).toHaveLength(1);
    clock.wallJump(1_000);
    expect(await host.executor.history()).toEqual([]);
    const longer = someHost({ store, clock, retention: { records: 5_000, events: 1_000 }, journal: true });
    await longer.run({ runId: 's' });
    clock.wallJump(4_999);
    expect(await longer.executor.history()).toHaveLength(1);
  });
});

describe('a crash at the end of a run with history', () => {
  test('between the outcome and the end: the outcome is delivered again, and the record is kept (finalize 6, web 16)', async () => {
    const store = watchedStore({ before: (call) => isEnd(call) && Promise.reject(new Error('killed')) });
    const delivered: RunOutcome[] = [];
    const onOutcome = (outcome: RunOutcome) => void delivered.push(outcome);
    const host = someHost({ ...looking, store, onOutcome });
    expect(await host.run({ runId: 'r' })).toMatchObject({ status: 'ok', output: 'the answer' });
    expect(host.warnings).toEqual(['run: checkpoint complete failed']);
    const next = await afterCrash(store);
    const later = someHost({ script: [], store: next, onOutcome });
    await later.executor.recover();
    await until(() => delivered.length === 2);
    expect(delivered[1]).toEqual(delivered[0]);
    await until(async () => (await later.executor.history()).length === 1);
    expect(await next.listInterrupted()).toEqual([]);
    expect(await later.executor.messages('r')).toHaveLength(4);
  });

  test('whose answer is lost: the run has ended once (web 16)', async () => {
    const store = watchedStore({ after: (call) => isEnd(call) && Promise.reject(new Error('connection lost')) });
    const host = someHost({ ...looking, store });
    expect(await host.run({ runId: 'r' })).toMatchObject({ status: 'ok' });
    expect(await store.listInterrupted()).toEqual([]);
    expect(await host.executor.history()).toHaveLength(1);
    expect((await someHost({ script: [], store }).start({ runId: 'r' })).accepted).toBe('ended');
  });

  test('after another process took the run over: it ends there, and not here (web 16)', async () => {
    const store = watchedStore({
      before: async (call) => {
        if (isEnd(call)) expect(await store.claim('r', 'another', 60_000)).toBeNull();
      },
    });
    await someHost({ ...looking, store }).run({ runId: 'r' });
    expect(await store.claim('r', 'another', 60_000)).toMatchObject({ epoch: 2 });
  });
});

describe('executor.erase', () => {
  test('removes all of a run that ended: record, outcome, and what this process knows of it (web 16)', async () => {
    const store = memoryStore();
    const host = someHost({ ...looking, store });
    await host.run({ runId: 'r' });
    await host.executor.erase('r');
    expect(await host.executor.history()).toEqual([]);
    expect(await host.executor.messages('r')).toBeNull();
    expect(await store.outcomes.find('r')).toBeNull();
    expect(host.executor.get('r')).toBeUndefined();
    expect(await host.executor.find('r')).toBeNull();
    await host.executor.erase('r');
  });

  test('removes the child runs that its calls began (web 16)', async () => {
    const store = memoryStore();
    const host = family(
      asking(askReviewer, () => reply('fine')),
      {
        store,
        retention: { records: keepMs },
        ports: { palette: createPalette({ agents: [reviewer] }) },
        agent: { subAgents: ['reviewer'] },
      },
    );
    await host.run({ runId: 'r' });
    expect(await store.outcomes.find(childId('r', 'c1'))).not.toBeNull();
    await host.executor.erase('r');
    expect(await host.executor.history()).toEqual([]);
    expect(await store.outcomes.find(childId('r', 'c1'))).toBeNull();
  });

  test('refuses a run that has not ended: live here, live elsewhere, or interrupted (web 16)', async () => {
    const store = memoryStore();
    const host = someHost({ script: [hang()], store });
    const other = someHost({ script: [], store });
    await host.start({ runId: 'r' });
    await until(() => host.model.calls.length === 1);
    await expect(host.executor.erase('r')).rejects.toMatchObject({ code: 'RUN_OWNED_ELSEWHERE' });
    await expect(other.executor.erase('r')).rejects.toMatchObject({ code: 'RUN_OWNED_ELSEWHERE' });
    await host.executor.shutdown();
    await expect(other.executor.erase('r')).rejects.toMatchObject({
      code: 'RUN_NOT_ENDED',
      message: expect.stringContaining('cancel it'),
    });
    await other.executor.control('r').cancel('enough');
    await other.executor.erase('r');
    expect(await other.executor.history()).toEqual([]);
  });
});

test('executor.erase refuses a turn of a thread: its thread erases it (web 15, 16)', async () => {
  const host = someHost({ store: memoryStore() });
  const thread = host.executor.thread('t', { agent: host.agent });
  const { runId } = await thread.send({ id: 'm', text: 'Hello.' });
  await until(async () => (await host.executor.find(runId))?.status === 'ended');
  await expect(host.executor.erase(runId)).rejects.toMatchObject({
    code: 'UNSUPPORTED',
    message: expect.stringContaining('thread'),
  });
  expect(await thread.messages()).toHaveLength(2);
  await thread.delete();
  await host.executor.erase(runId);
  expect(await host.executor.find(runId)).toBeNull();
});

describe('a store that keeps no records of ended runs', () => {
  test('deletes them as before, with one warning (web 16)', async () => {
    const { history: _, ...store } = watchedStore();
    const host = someHost({ script: [reply('one'), reply('two')], store });
    await host.run({ runId: 'r', callerId: 'ada' });
    await host.run({ runId: 's' });
    expect(host.warnings).toEqual([expect.stringContaining('the option retention.records has no effect')]);
    expect(await store.listInterrupted()).toEqual([]);
    expect(await store.outcomes.find('r')).toMatchObject({ run: { meta: { callerId: 'ada' } } });
    await expect(host.executor.history()).rejects.toMatchObject({ code: 'UNSUPPORTED' });
    await expect(host.executor.erase('r')).rejects.toMatchObject({ code: 'UNSUPPORTED' });
  });

  test('may have four methods only (web 16)', async () => {
    const host = someHost({ store: plainStore() });
    expect(await host.run({ runId: 'r' })).toMatchObject({ status: 'ok' });
    expect(host.warnings).toHaveLength(1);
  });

  test('may be behind a checkpointer of the host, which finalises its runs itself (web 16)', async () => {
    const store = memoryStore();
    const factory = { ...recordingFactory(), store };
    const host = someHost({ ports: { checkpointer: factory } });
    expect(await host.run({ runId: 'r' })).toMatchObject({ status: 'ok' });
    expect(await host.executor.history()).toEqual([]);
    expect(await store.outcomes.find('r')).not.toBeNull();
  });

  test('is none: then there is no history to read', async () => {
    const host = hostOf();
    for (const call of [host.executor.history(), host.executor.messages('r'), host.executor.erase('r')]) {
      await expect(call).rejects.toMatchObject({ code: 'NOT_DURABLE' });
    }
  });
});

describe('the options of retention', () => {
  test.for([
    [{ records: -1 }, 'retention.records'],
    [{ records: 'an hour' }, 'retention.records'],
    [{ records: Number.NaN }, 'retention.records'],
    [{ record: 1 }, 'retention.records'],
    [{ signals: 0 }, 'retention.signals must be ms above 0'],
    [{ events: -1 }, 'retention.events'],
    [{ outcomes: false }, 'retention.outcomes'],
  ] as const)('createExecutor refuses %j', ([retention, named]) => {
    expect(() => hostOf({ retention: retention as never })).toThrow(named);
    expect(() => hostOf({ retention: retention as never })).toThrow(TypeError);
  });

  test.for([
    { limit: 0 },
    { limit: 1.5 },
    { after: {} },
    { after: { runId: 'r' } },
    { agentId: 5 },
    { callerId: null },
    { caller: 'ada' },
  ])('executor.history refuses %j', async (options) => {
    const host = someHost({ store: memoryStore() });
    await expect(host.executor.history(options as never)).rejects.toBeInstanceOf(TypeError);
  });

  test.for([{ after: -1 }, { limit: 0 }, { limit: 'all' }, { from: 1 }])(
    'executor.messages refuses %j',
    async (options) => {
      const host = someHost({ store: memoryStore() });
      await expect(host.executor.messages('r', options as never)).rejects.toBeInstanceOf(TypeError);
    },
  );

  test('a page of executor.history continues after its last entry', async () => {
    const clock = testClock();
    const host = someHost({
      script: Array.from({ length: 5 }, () => reply('x')),
      store: memoryStore({ clock }),
      clock,
    });
    for (const runId of ['a', 'b', 'c', 'd', 'e']) {
      clock.wallJump(1);
      await host.run({ runId });
    }
    const first = await host.executor.history({ limit: 2 });
    const second = await host.executor.history({ limit: 10, after: first[1] });
    expect([...first, ...second].map(({ runId }) => runId)).toEqual(['e', 'd', 'c', 'b', 'a']);
  });
});
