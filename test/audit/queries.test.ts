import { createAudit, memoryStore } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { describe, expect, test } from 'vitest';
import { plainStore } from '../fixtures/watched-store.ts';
import { freshPath } from '../store/sqlite/files.ts';
import { type Ending, endRun, ids, noon, someAudit, usage } from './scene.ts';

const DAY = 86_400_000;

/** An audit with runs of two callers and two agents that ended on three days, each a second after it began. */
async function filled() {
  const scene = someAudit();
  const runs: [string, Ending][] = [
    ['r1', { callerId: 'ada', agentId: 'researcher', startedAt: noon, status: 'ok' }],
    ['r2', { callerId: 'grace', agentId: 'researcher', startedAt: noon, status: 'error' }],
    ['r3', { callerId: 'ada', agentId: 'writer', startedAt: noon + DAY, status: 'ok', parentRunId: 'r1' }],
    ['r4', { callerId: 'ada', agentId: 'researcher', startedAt: noon + 2 * DAY, status: 'cancelled' }],
    ['r5', { callerId: 'grace', agentId: 'writer', startedAt: noon + 2 * DAY + 1, status: 'ok' }],
  ];
  for (const [i, [runId, ending]] of runs.entries()) {
    await scene.clock.advance((ending.startedAt ?? 0) + 1_000 + i - scene.clock.now());
    await endRun(scene.store, runId, { ...ending, tokens: 10 * (i + 1) });
  }
  return scene;
}

describe('runs', () => {
  test('of a caller, of an agent, of a time, or of a status, the latest first (supervision 5)', async () => {
    const { audit } = await filled();
    expect(ids(await audit.runs())).toEqual(['r5', 'r4', 'r3', 'r2', 'r1']);
    expect(ids(await audit.runs({ callerId: 'ada' }))).toEqual(['r4', 'r3', 'r1']);
    expect(ids(await audit.runs({ agentId: 'writer' }))).toEqual(['r5', 'r3']);
    expect(ids(await audit.runs({ agentId: 'researcher', callerId: 'ada' }))).toEqual(['r4', 'r1']);
    expect(ids(await audit.runs({ since: noon + DAY, until: noon + 2 * DAY }))).toEqual(['r3']);
    expect(ids(await audit.runs({ status: 'ok' }))).toEqual(['r5', 'r3', 'r1']);
    expect(ids(await audit.runs({ parentRunId: 'r1' }))).toEqual(['r3']);
    expect(ids(await audit.runs({ callerId: 'nobody' }))).toEqual([]);
  });

  test('come in pages that miss none and repeat none, also of runs that ended at once (supervision 5)', async () => {
    const { audit, store } = someAudit();
    for (let i = 0; i < 25; i++) await endRun(store, `run-${i}`);
    const seen: string[] = [];
    let page = await audit.runs({ limit: 7 });
    while (page.length > 0) {
      seen.push(...ids(page));
      page = await audit.runs({ limit: 7, after: page.at(-1) });
    }
    expect(new Set(seen).size).toBe(25);
    expect(seen).toEqual(ids(await audit.runs({ limit: 10_000 })));
    expect(await audit.runs()).toHaveLength(25);
  });

  test('of many are read a part at a time (supervision 5)', async () => {
    const { audit, store } = someAudit();
    for (let i = 0; i < 1_200; i++) await endRun(store, `run-${i}`);
    const pages: number[] = [];
    const list: typeof store.history.list = async (page) => {
      pages.push(page.limit);
      return store.history.list(page);
    };
    const watched = createAudit({ store: { ...store, history: { ...store.history, list } } });
    expect(new Set(ids(await watched.runs({ limit: 5_000 }))).size).toBe(1_200);
    expect(pages).toEqual([500, 500, 500]);
    expect(await audit.runs()).toHaveLength(100);
  });

  test.for([0, -1, 1.5, Number.NaN])('refuse a limit of %s (supervision 5)', async (limit) => {
    await expect(someAudit().audit.runs({ limit })).rejects.toThrow(TypeError);
  });
});

describe('totals', () => {
  test('by day, agent or caller: runs, how they ended, tokens, dollars and time (supervision 5)', async () => {
    const { audit } = await filled();
    const spend = (runs: number, tokens: number) => ({ tokens, usd: runs * 0.5, seconds: runs * 2 });
    const day = (key: string, statuses: object, tokens: number) => {
      const runs = Object.values(statuses).reduce((sum: number, count: number) => sum + count, 0);
      const rest = { usage: usage(tokens), spend: spend(runs, tokens), iterations: runs, elapsedMs: runs * 1_000 };
      return { key, runs, statuses, ...rest };
    };
    expect(await audit.totals({ by: 'day' })).toEqual([
      day('2026-11-22', { ok: 1, error: 1 }, 30),
      day('2026-11-23', { ok: 1 }, 30),
      day('2026-11-24', { cancelled: 1, ok: 1 }, 90),
    ]);
    const rows = async (by: 'agent' | 'caller') =>
      (await audit.totals({ by })).map(({ key, runs, usage, elapsedMs }) => [key, runs, usage.inputTokens, elapsedMs]);
    expect(await rows('agent')).toEqual([
      ['writer', 2, 80, 2_000],
      ['researcher', 3, 70, 3_000],
    ]);
    expect(await rows('caller')).toEqual([
      ['ada', 3, 80, 3_000],
      ['grace', 2, 70, 2_000],
    ]);
  });

  test('of a time, and up to a number: the latest days (supervision 5)', async () => {
    const { audit } = await filled();
    const days = async (filter: object) => (await audit.totals({ by: 'day', ...filter })).map(({ key }) => key);
    expect(await days({ since: noon + DAY })).toEqual(['2026-11-23', '2026-11-24']);
    expect(await days({ until: noon - (noon % DAY) + DAY })).toEqual(['2026-11-22']);
    expect(await days({ limit: 2 })).toEqual(['2026-11-23', '2026-11-24']);
    const agents = await audit.totals({ by: 'agent', since: noon + 1, limit: 1 });
    expect(agents.map(({ key, runs }) => [key, runs])).toEqual([['writer', 2]]);
    expect(await someAudit().audit.totals({ by: 'day' })).toEqual([]);
  });

  test('by something else are refused (supervision 5)', async () => {
    await expect(someAudit().audit.totals({ by: 'moon' as never })).rejects.toThrow(TypeError);
  });

  test('of days stay when their runs are erased; those of agents and callers do not (supervision 5)', async () => {
    const { audit, store } = await filled();
    const before = await audit.totals({ by: 'day' });
    for (const runId of ['r1', 'r2', 'r3', 'r4', 'r5']) await store.history.erase(runId);
    expect(await audit.totals({ by: 'day' })).toEqual(before);
    expect(await audit.totals({ by: 'caller' })).toEqual([]);
    expect(await audit.runs()).toEqual([]);
  });

  test('of two processes that write to one file side by side lose nothing of either (supervision 5)', async () => {
    const path = freshPath();
    await using one = sqliteStore({ path });
    await using two = sqliteStore({ path });
    const end = (store: typeof one, name: string) =>
      Promise.all(Array.from({ length: 20 }, (_, i) => endRun(store, `${name}-${i}`)));
    await Promise.all([end(one, 'one'), end(two, 'two')]);
    expect(await createAudit({ store: one }).totals({ by: 'day' })).toMatchObject([{ runs: 40, statuses: { ok: 40 } }]);
  });
});

describe('an audit', () => {
  test.for([
    ['no store', {}],
    ['an option that there is not', { store: memoryStore(), path: 'audit.db' }],
    ['a store that is none', { store: 'audit.db' }],
  ] as const)('with %s is refused with a TypeError (supervision 5)', ([_, options]) => {
    expect(() => createAudit(options as never)).toThrow(TypeError);
  });

  test('of a store that keeps no ended runs is refused with UNSUPPORTED', () => {
    expect(() => createAudit({ store: plainStore() })).toThrow(expect.objectContaining({ code: 'UNSUPPORTED' }));
  });
});
