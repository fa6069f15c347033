import assert from 'node:assert/strict';
import { isKeepingRecords } from '../../../store/capabilities.ts';
import type { RestingStore } from '../../../store/due-port.ts';
import type { StoredSchedule, TickRun } from '../../../store/schedules/port.ts';
import { type Draft, scheduleStore } from '../case.ts';
import { sampleOutcome, sampleRecord } from '../records.ts';

/** Longer than any case takes. */
const LONG = 600_000;

const none = { count: 0 };

function scheduleOf(id: string, revision: number, fields: Partial<StoredSchedule> = {}): StoredSchedule {
  const counts = { skipped: none, missed: none, failed: none };
  return { id, revision, every: '1h', isEnabled: true, definedAt: 1, since: 1, ...counts, ...fields };
}

const runOf = (runId: string): TickRun => ({ record: sampleRecord(runId, { revision: 1, attempts: 0 }) });

const dueIn = async (store: RestingStore) => (await store.due.list({ limit: 10 })).runs.map(({ runId }) => runId);

/** Cases of a store that keeps schedules. */
export const scheduleCases: readonly Draft[] = [
  scheduleStore('a schedule is kept as it was written last, also for other processes (schedules 5)', async (bench) => {
    const { store } = bench;
    assert.deepEqual(await store.schedules.list(), []);
    assert.equal(await store.schedules.note(scheduleOf('a', 1)), true);
    assert.equal(await store.schedules.note(scheduleOf('b', 1, { cron: '0 7 * * *', every: undefined })), true);
    const next = scheduleOf('a', 2, {
      ...{ lastAt: 20, nextAt: 30, lastRunId: 'a@20', deployment: 4, gone: true },
      paused: { by: { id: 'ada', name: 'Ada' }, at: 7 },
      failed: { count: 2, lastAt: 20, error: 'no \ud800' },
    });
    assert.equal(await store.schedules.note(next), true);
    const kept = [...(await store.schedules.list())].sort((a, b) => (a.id < b.id ? -1 : 1));
    const { every: _, ...cron } = scheduleOf('b', 1, { cron: '0 7 * * *' });
    assert.deepEqual(kept, [next, cron]);
  }),

  scheduleStore(
    'of two processes that write one schedule, one is the first, and the other changes nothing (schedules 2)',
    async ({ store, reopen }) => {
      const other = await reopen();
      for (const revision of [1, 2, 3, 4, 5]) {
        const tries = [store, other, store, other].map((each, i) => {
          const runId = `a@${revision}-${i}`;
          return each.schedules.note(scheduleOf('a', revision, { lastRunId: runId }), runOf(runId));
        });
        const noted = await Promise.all(tries);
        assert.equal(noted.filter(Boolean).length, 1);
        assert.equal((await other.schedules.list())[0]?.lastRunId, `a@${revision}-${noted.indexOf(true)}`);
      }
      assert.equal((await dueIn(store)).length, 5);
    },
    'reopen',
  ),

  scheduleStore('a write that does not follow the stored one changes nothing (schedules 2)', async ({ store }) => {
    assert.equal(await store.schedules.note(scheduleOf('a', 2), runOf('early')), false);
    assert.equal(await store.schedules.note(scheduleOf('a', 1)), true);
    assert.equal(await store.schedules.note(scheduleOf('a', 1, { every: '2h' }), runOf('again')), false);
    assert.equal(await store.schedules.note(scheduleOf('a', 3), runOf('late')), false);
    assert.deepEqual(await dueIn(store), []);
    assert.deepEqual(await store.schedules.list(), [scheduleOf('a', 1)]);
  }),

  scheduleStore('a run that begins with a tick is due, and can be claimed (schedules 2)', async ({ store }) => {
    assert.equal(await store.schedules.note(scheduleOf('a', 1), runOf('a@1')), true);
    assert.deepEqual(await store.load('a@1'), runOf('a@1').record);
    assert.deepEqual(await dueIn(store), ['a@1']);
    const claim = await store.claim('a@1', 'me', LONG);
    assert.equal(claim?.attempts, 1);
    assert.deepEqual(await dueIn(store), []);
  }),

  scheduleStore(
    'a run of which something is known does not begin again, and its tick is noted (schedules 2)',
    async ({ store }) => {
      const record = sampleRecord('stored', { attempts: 0 });
      await store.save(record);
      assert.equal(await store.schedules.note(scheduleOf('a', 1), runOf('stored')), true);
      assert.deepEqual(await store.load('stored'), record);
      const claim = await store.claim('held', 'me', LONG);
      assert(claim);
      await store.save(sampleRecord('held'), { claim });
      assert.equal(await store.schedules.note(scheduleOf('a', 2), runOf('held')), true);
      if (store.outcomes) {
        const { now } = await store.due.list({ limit: 1 });
        const done = await store.claim('done', 'me', LONG);
        assert(done);
        await store.save(sampleRecord('done'), { claim: done });
        await store.outcomes.keep('done', sampleOutcome('done'), now + LONG, { claim: done });
        await store.delete('done', { claim: done });
        assert.equal(await store.schedules.note(scheduleOf('a', 3), runOf('done')), true);
        assert.equal(await store.load('done'), null);
      }
      if (store.outcomes && isKeepingRecords(store)) {
        const ended = await store.claim('ended', 'me', LONG);
        assert(ended);
        await store.save(sampleRecord('ended'), { claim: ended });
        const keepUntil = Number.POSITIVE_INFINITY;
        await store.history.end(ended, { outcome: sampleOutcome('ended'), keepUntil, outcomeUntil: 0 });
        assert.equal(await store.schedules.note(scheduleOf('a', 4), runOf('ended')), true);
        assert.equal(await store.load('ended'), null);
      }
      assert.deepEqual(await dueIn(store), ['stored']);
    },
  ),
];
