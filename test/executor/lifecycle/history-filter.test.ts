import { type HistoryFilter, memoryStore } from 'pawl';
import { fail, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf } from '../../fixtures/host.ts';
import { watchedStore } from '../../fixtures/watched-store.ts';

/** Ten runs, a second apart; each third fails, and every second one is of the tenant acme. */
async function ended() {
  const clock = testClock(1_000_000);
  const store = watchedStore({}, memoryStore({ clock }));
  const no = () => fail(Object.assign(new Error('no'), { statusCode: 400 }));
  const script = Array.from({ length: 10 }, (_, i) => (i % 3 === 2 ? no() : reply('done')));
  const host = hostOf({ script, store, clock, retention: { records: '1d' } });
  const times: number[] = [];
  for (let i = 0; i < 10; i++) {
    await host.run({
      runId: `r${i}`,
      callerId: i < 5 ? 'ada' : 'bob',
      labels: { tenant: i % 2 === 0 ? 'acme' : 'zeta' },
    });
    times.push((await host.executor.history({ limit: 1 }))[0]?.endedAt ?? 0);
    await clock.advance(1_000);
  }
  const ids = async (filter: HistoryFilter) => (await host.executor.history(filter)).map(({ runId }) => runId);
  return { ...host, store, times, ids };
}

describe('executor.history', () => {
  test('finds runs by status, by labels and by the time of their end, the newest first (operations 45)', async () => {
    const { ids, times } = await ended();
    expect(await ids({ status: 'error' })).toEqual(['r8', 'r5', 'r2']);
    expect(await ids({ status: ['ok', 'error'], labels: { tenant: 'acme' } })).toEqual(['r8', 'r6', 'r4', 'r2', 'r0']);
    expect(await ids({ labels: { tenant: 'acme', other: 'x' } })).toEqual([]);
    expect(await ids({ status: 'error', labels: { tenant: 'acme' }, callerId: 'ada' })).toEqual(['r2']);
    expect(await ids({ since: times[7] })).toEqual(['r9', 'r8', 'r7']);
    expect(await ids({ until: times[2] })).toEqual(['r1', 'r0']);
    expect(await ids({ since: times[3], until: times[6], status: 'ok' })).toEqual(['r4', 'r3']);
  });

  test('gives them by pages: each begins after the last one of the page before (operations 45)', async () => {
    const { executor, times } = await ended();
    const found: string[] = [];
    for (let after: HistoryFilter['after']; ; ) {
      const page = await executor.history({ status: 'ok', until: times[9], limit: 2, after });
      found.push(...page.map(({ runId }) => runId));
      if (page.length < 2) break;
      after = page.at(-1);
    }
    expect(found).toEqual(['r7', 'r6', 'r4', 'r3', 'r1', 'r0']);
  });

  test('reads nothing before the time that is asked for, and one page where all fit (operations 45)', async () => {
    const { ids, store, times } = await ended();
    const asked = store.log.length;
    await ids({ until: times[3], limit: 2 });
    await ids({ limit: 10 });
    expect(store.log.slice(asked).map(({ method }) => method)).toEqual(['history.list', 'history.list']);
    expect(store.log[asked]?.args[0]).toMatchObject({ after: { endedAt: times[3] } });
  });

  test.for<[object, string]>([
    [{ status: 'gone' }, 'status must be one or more of ok,'],
    [{ status: [] }, 'an empty list'],
    [{ labels: { tenant: 7 } }, 'labels.tenant must be a string'],
    [{ since: 'monday' }, 'since must be a time in ms'],
    [{ until: Number.NaN }, 'until must be a time in ms'],
  ])('refuses %o with the name of the option (operations 45)', async ([filter, message]) => {
    const { executor } = hostOf({ store: memoryStore() });
    await expect(executor.history(filter as never)).rejects.toThrow(message);
  });
});
