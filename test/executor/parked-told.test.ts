import { createExecutor, memoryStore, type Notice, type RunEvent } from 'pawl';
import { callTool, hang, reply, scriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { type HostOptions, hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { notingBudget } from '../fixtures/noting-ports.ts';
import { afterCrash } from '../fixtures/watched-store.ts';

const tools = [toolOf('look')];
const journal = { flushMs: 5 };
const noTier = { agent: { model: 'gone' }, tools };

/** A host whose run is parked by its budget after a step. */
function parking(options: HostOptions = {}) {
  const notices: Notice[] = [];
  const limit = { calls: 1 };
  const ports = { budget: notingBudget({ refuse: () => limit.calls-- <= 0 }) };
  const notify = (notice: Notice) => void notices.push(notice);
  const store = memoryStore();
  const script = [callTool('look'), reply('done')];
  return { ...hostOf({ tools, store, script, ports, notify, ...options }), notices, limit, store };
}

/** A run that has recorded a step, and whose process has died. @param attempts that it has had since */
async function left({ attempts = 0, clock = testClock(1_000) } = {}) {
  const store = memoryStore({ clock });
  const host = hostOf({ script: [callTool('look'), hang()], tools, store, clock, journal });
  await host.start({ runId: 'r' });
  await until(async () => (await store.load('r'))?.iteration === 1);
  const after = await afterCrash(store);
  const record = await after.load('r');
  if (record && attempts > 0) await after.save({ ...record, attempts });
  return { clock, store: after };
}

async function journaled(store: Awaited<ReturnType<typeof left>>['store']): Promise<RunEvent[]> {
  const { entries = [] } = (await store.journal.read('r', { limit: 100 })) ?? {};
  return entries.map(({ event }) => event as RunEvent).filter(({ type }) => ['run.parked', 'run.ended'].includes(type));
}

describe('the parking of a run', () => {
  test('is the last word of its process: no end follows it, in its events, for observers and in the journal (edges 19)', async () => {
    const seen: string[] = [];
    const observers = [{ onEvent: ({ type }: RunEvent) => void seen.push(type) }];
    const { start, executor, limit, store } = parking({ journal, observers });
    const run = await start({ runId: 'r' });
    const types: string[] = [];
    for await (const { type } of run.events()) types.push(type);
    for (const all of [types, seen]) {
      expect(all.filter((type) => type !== 'run.status').at(-1)).toBe('run.parked');
      expect(all).not.toContain('run.ended');
    }
    expect(await journaled(store)).toMatchObject([{ type: 'run.parked', code: 'BUDGET_EXCEEDED' }]);

    // A reader that has come up to here gets the rest after the unpark.
    let cursor = '';
    for await (const event of executor.events('r')) {
      cursor = event.cursor;
      if (event.type === 'run.parked') break;
    }
    limit.calls = 9;
    await executor.unpark('r');
    expect((await executor.recover()).resumed).toMatchObject([{ runId: 'r' }]);
    const rest: string[] = [];
    for await (const { type } of executor.events('r', { after: cursor })) rest.push(type);
    expect([rest[0], rest.at(-1)]).toEqual(['run.unparked', 'run.ended']);
  });

  test('by a start that finds too many failed starts is in its journal, once, and noticed once (edges 19)', async () => {
    const { store, clock } = await left({ attempts: 3 });
    const notices: Notice[] = [];
    const notify = (notice: Notice) => void notices.push(notice);
    const { executor, run } = hostOf({ tools, store, clock, journal, notify });
    expect((await executor.recover()).parked).toMatchObject([{ runId: 'r' }]);
    expect(await journaled(store)).toMatchObject([{ type: 'run.parked', code: 'TOO_MANY_ATTEMPTS' }]);
    expect(await run({ runId: 'r' })).toMatchObject({ error: { code: 'RUN_PARKED' } });
    expect(await journaled(store)).toHaveLength(1);
    expect(notices).toMatchObject([{ kind: 'parked', runId: 'r', agentId: 'worker', code: 'TOO_MANY_ATTEMPTS' }]);
  });

  test('for a setup that no process had is in its journal, and noticed (edges 2, 19)', async () => {
    const { store, clock } = await left();
    const notices: Notice[] = [];
    const notify = (notice: Notice) => void notices.push(notice);
    const bad = hostOf({ ...noTier, store, clock, journal, notify, defaults: { setupMs: 1_000 } });
    await bad.executor.recover();
    expect([notices, await journaled(store)]).toEqual([[], []]);
    await clock.advance(31_000);
    await bad.executor.recover();
    expect(await journaled(store)).toMatchObject([{ type: 'run.parked', code: 'SETUP' }]);
    expect(notices).toMatchObject([{ kind: 'parked', runId: 'r', code: 'SETUP' }]);
    expect(bad.warnings.filter((message) => message === 'run: parked')).toHaveLength(1);
  });

  test('by a worker is counted in its numbers (edges 19)', async () => {
    const { store, clock } = await left();
    const { executor } = hostOf({
      ...{ tools, store, clock, script: [] },
      ports: { budget: notingBudget({ refuse: () => true }) },
    });
    const worker = executor.work();
    await until(() => worker.stats().parked === 1);
    expect(worker.stats()).toMatchObject({ taken: 1, live: 0 });
    await executor.shutdown();
  });
});

describe('notify', () => {
  test('gets a run that a person parks, with the person, and redacted texts (edges 19)', async () => {
    const { store, clock } = await left();
    const notices: Notice[] = [];
    const { executor } = hostOf({
      ...{ tools, store, clock, notify: (notice) => void notices.push(notice) },
      redact: (text: string) => text.replaceAll('secret', '[hidden]'),
    });
    await executor.park('r', 'see secret', { by: { id: 'ada' } });
    const by = { id: 'ada' };
    expect(notices).toEqual([
      {
        noticeId: 'r:parked:PARKED:1',
        kind: 'parked',
        runId: 'r',
        agentId: 'worker',
        code: 'PARKED',
        reason: 'see [hidden]',
        by,
      },
    ]);
  });

  test.each([
    ['throws', () => Promise.reject(new Error('the pager is away'))],
    [
      'throws at once',
      () => {
        throw new Error('the pager is away');
      },
    ],
    ['hangs', () => new Promise<void>(() => {})],
  ])('that %s changes nothing of the run, and is logged (edges 19)', async (_, notify) => {
    const clock = testClock(1_000);
    const host = parking({ notify, clock });
    const result = await host.run({ runId: 'r' });
    expect(result).toMatchObject({ status: 'interrupted', error: { code: 'BUDGET_EXCEEDED' } });
    const isOver = host.executor.shutdown();
    await clock.advance(31_000);
    await isOver;
    const said = host.warned.map(({ message }) => message);
    expect(said.filter((message) => message.startsWith('executor: notify failed'))).toHaveLength(1);
    expect(await host.store.load('r')).toMatchObject({ parked: { code: 'BUDGET_EXCEEDED' } });
  });

  test('is called for 100 runs at a time, and one warning says that more were parked (edges 19)', async () => {
    const store = memoryStore();
    const first = await left();
    const record = await first.store.load('r');
    if (!record) throw new Error('no record');
    for (let i = 0; i < 102; i++) await store.save({ ...record, meta: { ...record.meta, runId: `r${i}` } });
    let called = 0;
    const warned: string[] = [];
    const executor = createExecutor({
      ...{
        models: { fast: scriptedModel([]) },
        store,
        logger: { warn: (message) => void warned.push(message) },
      },
      notify: () => {
        called += 1;
        return new Promise(() => {});
      },
    });
    for (let i = 0; i < 102; i++) await executor.park(`r${i}`, 'all of them');
    await settle();
    expect([called, warned]).toEqual([100, ['executor: notify failed']]);
  });
});
