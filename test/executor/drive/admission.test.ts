import { getEventListeners } from 'node:events';
import { type Audit, type Budget, memoryStore, type RunEvent } from 'pawl';
import { callTool, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { BudgetExceededError } from '../../../src/values/errors.ts';
import { gate, type HostOptions, hostOf, settle, toolOf } from '../../fixtures/host.ts';
import { onClock } from '../../fixtures/on-clock.ts';
import { plainStore } from '../../fixtures/watched-store.ts';

const later = { drive: 'later' } as const;

/** Hosts of one store, and the hints of all of them. */
function world({ clock = testClock(1_000_000) } = {}) {
  const store = memoryStore({ clock });
  const hints: [string, number][] = [];
  const onDue = (runId: string, at: number) => void hints.push([runId, at]);
  const host = (options: HostOptions = {}) => hostOf({ clock, store, onDue, ...options });
  return { clock, store, hints, host };
}

describe('start with drive: later', () => {
  test('stores a run that is due and unclaimed, reports it, and calls no model and no tool (engine 12)', async () => {
    const { store, hints, host } = world();
    const audited: string[] = [];
    const audit: Audit = { startRun: ({ runId }) => ({ close: () => void audited.push(runId) }) };
    const { start, model } = host({ ports: { audit } });
    const run = await start({ runId: 'r' }, later);
    expect(run).toMatchObject({ runId: 'r', agentId: 'worker', accepted: 'started' });
    const { runs } = await store.due.list({ limit: 10 });
    expect(runs).toMatchObject([{ runId: 'r', dueAt: 0, attempts: 0 }]);
    expect(hints).toEqual([['r', 1_000_000]]);
    expect(model.calls).toHaveLength(0);
    expect(audited).toEqual([]);
  });

  test('begins for audit and observers with its first slice (engine 11, 12)', async () => {
    const { host } = world();
    const rows: string[] = [];
    const events: RunEvent[] = [];
    const audit: Audit = { startRun: ({ runId }) => ({ close: (status) => void rows.push(`${runId} ${status}`) }) };
    const observers = [{ onEvent: (event: RunEvent) => void events.push(event) }];
    const { start, executor } = host({ ports: { audit }, observers });
    await start({ runId: 'r' }, later);
    expect(events).toEqual([]);
    expect(await executor.drive('r')).toMatchObject({ state: 'ended' });
    expect(rows).toEqual(['r ok']);
    const whole = events.map(({ type }) => type);
    expect(whole.filter((type) => type === 'run.ended')).toHaveLength(1);
    expect(whole[0]).toBe('run.resumed');
  });

  test('is refused as any start: by the budget, for a tool that is not known, for a wrong request (engine 12)', async () => {
    const { store, hints, host } = world();
    const refusing = async () => Promise.reject(new BudgetExceededError('nothing is left'));
    const budget: Budget = { check: refusing, reserve: refusing, commit: refusing, refund: async () => {} };
    const poor = host({ ports: { budget } });
    expect(await poor.start({ runId: 'a' }, later)).toMatchObject({
      accepted: 'refused',
      error: { code: 'BUDGET_EXCEEDED' },
    });
    const toolless = host({ agent: { tools: ['unknown'] as never }, isForeign: true });
    expect(await toolless.start({ runId: 'b' }, later)).toMatchObject({
      accepted: 'refused',
      error: { code: 'UNKNOWN_TOOL' },
    });
    const { start } = host();
    await expect(start({ runId: 'c' }, { drive: 'now' as never })).rejects.toThrow("drive must be 'later'");
    expect(await store.due.list({ limit: 10 })).toMatchObject({ runs: [] });
    expect(hints).toEqual([]);
  });

  test('is refused where no store of the executor can keep the run (engine 12)', async () => {
    const { host, hints } = world();
    const nowhere = { accepted: 'refused', error: { code: 'NOT_DURABLE' } };
    expect(await host({ store: undefined as never }).start({}, later)).toMatchObject(nowhere);
    const own = { save: async () => {}, complete: async () => {}, fail: async () => {} };
    expect(await host().start({}, { ...later, checkpointer: own })).toMatchObject(nowhere);
    const refusing = { ...memoryStore(), save: async () => Promise.reject(new Error('away')) };
    expect(await host({ store: refusing }).start({}, later)).toMatchObject(nowhere);
    expect(hints).toEqual([]);
  });

  test('in a store without claims and due times is stored, and driven by its id (engine 12)', async () => {
    const { host } = world();
    const { start, executor } = host({ store: plainStore() });
    expect(await start({ runId: 'r' }, later)).toMatchObject({ accepted: 'started' });
    expect(await executor.drive('r')).toMatchObject({ state: 'ended' });
  });

  test('repeated finds its record, reports it again, and counts no attempt; another request is a conflict (engine 12)', async () => {
    const { store, hints, host } = world();
    const first = host();
    await first.start({ runId: 'r' }, later);
    for (let i = 0; i < 5; i++)
      expect(await host().start({ runId: 'r' }, later)).toMatchObject({ accepted: 'resumed' });
    expect(hints).toHaveLength(6);
    expect(await host().start({ runId: 'r', prompt: 'Other.' }, later)).toMatchObject({
      accepted: 'refused',
      error: { code: 'RUN_ID_CONFLICT' },
    });
    expect(hints).toHaveLength(6);
    expect((await store.due.list({ limit: 1 })).runs).toMatchObject([{ runId: 'r', attempts: 0 }]);
    expect(first.model.calls).toHaveLength(0);
  });

  test('twice at once stores one run, and each of the two has a handle of it (engine 12)', async () => {
    const { clock, store, host } = world();
    const { start, executor, model } = host();
    const handles = await Promise.all([start({ runId: 'r' }, later), start({ runId: 'r' }, later)]);
    expect(handles.map(({ accepted }) => accepted).sort()).toEqual(['resumed', 'started']);
    expect((await store.due.list({ limit: 10 })).runs).toHaveLength(1);
    void executor.drive('r');
    const ends = await onClock(clock, Promise.all(handles.map(({ result }) => result)));
    expect(ends).toMatchObject([{ status: 'ok' }, { status: 'ok' }]);
    expect(model.calls).toHaveLength(1);
  });

  test('of a run that a plain start begins at the same time works on it once (engine 12)', async () => {
    const { clock, host } = world();
    const { start, model } = host();
    const [admitted, started] = await Promise.all([start({ runId: 'r' }, later), start({ runId: 'r' })]);
    expect(await onClock(clock, started.result)).toMatchObject({ status: 'ok', output: 'done' });
    expect(await onClock(clock, admitted.result)).toMatchObject({ status: 'ok', output: 'done' });
    expect(model.calls).toHaveLength(1);
  });

  test('finds a run that is live elsewhere (joined), parked (refused) or over (ended) (engine 12)', async () => {
    const { clock, hints, host } = world();
    const working = gate<ReturnType<typeof reply>>();
    const owner = host({ script: [() => working.pass()] });
    const owned = await owner.start({ runId: 'r' });
    const other = host();
    const joined = await other.start({ runId: 'r' }, later);
    expect(joined.accepted).toBe('joined');
    expect(hints).toEqual([['r', 1_000_000]]);
    working.open(reply('done by the owner'));
    expect(await onClock(clock, joined.result)).toMatchObject({ status: 'ok', output: 'done by the owner' });
    await owned.result;
    const ended = await other.start({ runId: 'r' }, later);
    expect(ended.accepted).toBe('ended');
    expect(await ended.result).toMatchObject({ output: 'done by the owner' });
    await other.start({ runId: 'p' }, later);
    await other.executor.park('p', 'why not');
    expect(await other.start({ runId: 'p' }, later)).toMatchObject({
      accepted: 'refused',
      error: { code: 'RUN_PARKED' },
    });
    expect(hints.map(([runId]) => runId)).toEqual(['r', 'p']);
  });
});

describe('the handle of an admitted run', () => {
  test('resolves when the run has ended in another process, after any number of slices (engine 12)', async () => {
    const { clock, host } = world();
    const { start, executor } = host();
    const { result } = await start({ runId: 'r' }, later);
    const script = [callTool('look'), callTool('look'), reply('found')];
    const tools = [toolOf('look')];
    const worker = host({ script, agent: { tools } });
    let ended: unknown;
    void result.then((end) => {
      ended = end;
    });
    for (let slices = 0; slices < 2; slices++) {
      expect(await onClock(clock, worker.executor.drive('r', { budgetMs: 0 }))).toMatchObject({ state: 'more' });
      await clock.advance(20_000);
      expect(ended).toBeUndefined();
    }
    expect(await worker.executor.drive('r')).toMatchObject({ state: 'ended' });
    expect(await onClock(clock, result)).toMatchObject({ status: 'ok', output: 'found', iterations: 3, messages: [] });
    expect(executor.get('r')).toBeUndefined();
  });

  test('follows a run that becomes live in its own executor, and has its messages then (engine 12)', async () => {
    const { clock, host } = world();
    const { start, executor } = host({
      script: [callTool('look'), reply('found')],
      agent: { tools: [toolOf('look')] },
    });
    const run = await start({ runId: 'r' }, later);
    const { result } = run;
    expect(await executor.drive('r', { budgetMs: 0 })).toMatchObject({ state: 'more' });
    expect(await executor.drive('r')).toMatchObject({ state: 'ended' });
    const { status, messages } = await result;
    expect(status).toBe('ok');
    expect(messages.length).toBeGreaterThan(1);
    expect(clock.pending).toBe(0);
  });

  test('costs nothing until its result is read, and thousands of them share one timer (engine 12)', async () => {
    const { clock, host, store } = world();
    const { start, executor } = host();
    const runs = await Promise.all(Array.from({ length: 300 }, (_, i) => start({ runId: `r${i}` }, later)));
    await settle();
    expect(clock.pending).toBe(0);
    let reads = 0;
    const { load } = store;
    store.load = (...args) => {
      reads += 1;
      return load(...args);
    };
    const late = runs.pop();
    const results = runs.map(({ result }) => result);
    expect(clock.pending).toBe(1);
    await clock.advance(10_000);
    expect(reads).toBeLessThan(2_600);
    await executor.shutdown();
    const ends = await Promise.all(results);
    expect(ends.every(({ status, error }) => status === 'interrupted' && error?.code === 'ERR_SHUTDOWN')).toBe(true);
    expect(await late?.result).toMatchObject({ status: 'interrupted', error: { code: 'ERR_SHUTDOWN' } });
    expect(clock.pending).toBe(0);
    expect((await store.due.list({ limit: 1_000 })).runs).toHaveLength(300);
  });

  test('keeps looking while the store is away, and warns once (engine 12)', async () => {
    const { clock, host, store } = world();
    const inner = store.load;
    let isAway = false;
    const checkpoints: typeof store = {
      ...store,
      load: async (...args) => (isAway ? Promise.reject(new Error('away')) : inner(...args)),
    };
    const following = host({ store: checkpoints });
    const { result } = await following.start({ runId: 'r' }, later);
    isAway = true;
    await clock.advance(30_000);
    isAway = false;
    void host().executor.drive('r');
    expect(await onClock(clock, result)).toMatchObject({ status: 'ok' });
    expect(following.warnings).toEqual(['run: the end of a run cannot be read; it is read again']);
  });

  test('says that the end is not known where the store keeps no outcome (engine 12)', async () => {
    const { clock, host } = world();
    const store = plainStore();
    const { start, executor } = host({ store });
    const { result } = await start({ runId: 'r' }, later);
    await executor.control('r').cancel();
    expect(await onClock(clock, result)).toMatchObject({
      status: 'interrupted',
      error: { code: 'RUN_NOT_FOUND' },
    });
  });

  test('steers and cancels the run through the store (engine 12)', async () => {
    const { clock, hints, host } = world();
    const run = await host().start({ runId: 'r' }, later);
    expect(await run.steer('Look twice.')).toBe('durable');
    expect(hints).toHaveLength(2);
    const worker = host({ script: [callTool('look')], agent: { tools: [toolOf('look')] } });
    expect(await worker.executor.drive('r', { budgetMs: 0 })).toMatchObject({ state: 'more' });
    expect(JSON.stringify(worker.model.calls)).toContain('Look twice.');
    expect(await onClock(clock, run.cancel('enough'))).toMatchObject({
      status: 'cancelled',
      error: { message: 'enough' },
    });
    await expect(run.steer('Late.')).rejects.toMatchObject({ code: 'UNDELIVERED' });
    expect(await run.cancel()).toMatchObject({ status: 'cancelled' });
  });

  test('cancels the run when the caller aborts, and leaves it when the host shuts down (engine 12)', async () => {
    const { clock, host, store } = world();
    const { start } = host();
    const caller = new AbortController();
    const run = await start({ runId: 'r' }, { ...later, signal: caller.signal });
    caller.abort();
    expect(await onClock(clock, run.result)).toMatchObject({ status: 'cancelled' });
    const gone = await start({ runId: 'g' }, { ...later, signal: AbortSignal.abort() });
    expect(await onClock(clock, gone.result)).toMatchObject({ status: 'cancelled' });
    const leaving = AbortSignal.abort(Object.assign(new Error('shutdown'), { code: 'ERR_SHUTDOWN' }));
    await start({ runId: 's' }, { ...later, signal: leaving });
    await settle();
    expect((await store.due.list({ limit: 10 })).runs.map(({ runId }) => runId)).toEqual(['s']);
  });

  test("takes its listener off the caller's signal when the end of the run is known (engine 12)", async () => {
    const { clock, host } = world();
    const { start } = host();
    const caller = new AbortController();
    const runs = await Promise.all(['a', 'b'].map((runId) => start({ runId }, { ...later, signal: caller.signal })));
    expect(getEventListeners(caller.signal, 'abort')).toHaveLength(2);
    const ends = Promise.all(runs.map(({ result }) => result));
    await onClock(clock, Promise.all(['a', 'b'].map((runId) => host().executor.drive(runId))));
    expect(await onClock(clock, ends)).toMatchObject([{ status: 'ok' }, { status: 'ok' }]);
    expect(getEventListeners(caller.signal, 'abort')).toEqual([]);
  });

  test('looks soon for the run whose end is awaited last, beside those that are looked for seldom (engine 12)', async () => {
    const { clock, host } = world();
    const { start } = host();
    const early = await start({ runId: 'early' }, later);
    const ends: string[] = [];
    void early.result.then(() => ends.push('early'));
    // By now its looks are 10 s apart.
    for (let i = 0; i < 60; i++) await clock.advance(1_000);
    const late = await start({ runId: 'late' }, later);
    expect(await host().executor.drive('late')).toMatchObject({ state: 'ended' });
    void late.result.then(() => ends.push('late'));
    await clock.advance(100);
    await settle();
    expect(ends).toEqual(['late']);
  });

  test('reads its events from the journal, over all slices, and without one says so (engine 12)', async () => {
    const { clock, host } = world();
    const journal = { flushMs: 100 };
    const { start } = host({ journal });
    const run = await start({ runId: 'r' }, later);
    const types: string[] = [];
    const reading = (async () => {
      for await (const { type } of run.events()) types.push(type);
    })();
    const worker = host({ journal, script: [callTool('look'), reply('found')], agent: { tools: [toolOf('look')] } });
    expect(await onClock(clock, worker.executor.drive('r', { budgetMs: 0 }))).toMatchObject({ state: 'more' });
    expect(await onClock(clock, worker.executor.drive('r'))).toMatchObject({ state: 'ended' });
    await onClock(clock, reading);
    expect(types.filter((type) => type === 'run.ended')).toHaveLength(1);
    expect(types.at(-1)).toBe('run.ended');
    expect(types).toContain('tool.done');
    const unread = (await host().start({ runId: 'u' }, later)).events();
    await expect(unread.next()).rejects.toMatchObject({ code: 'UNSUPPORTED' });
  });
});
