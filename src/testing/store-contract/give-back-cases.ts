import assert from 'node:assert/strict';
import type { RestingStore } from '../../store/due-port.ts';
import type { Draft } from './case.ts';
import { dueStore } from './case.ts';
import { claimFor, LONG_MS, sampleRecord, takeIds, takeRuns, waitingForTime } from './records.ts';

const listIds = async (store: RestingStore, status?: 'waiting') =>
  (await store.listInterrupted(status ? { status } : {})).map(({ runId }) => runId).sort();

/** A run that its process leaves for a time. @returns its claim */
async function leaveFor(
  store: RestingStore,
  runId: string,
  { inMs = LONG_MS, ...how }: { readonly inMs?: number; readonly givenBack?: true; readonly fields?: object },
): Promise<void> {
  const { fields, ...options } = how;
  await store.save(sampleRecord(runId, fields));
  const claim = await claimFor(store, runId);
  const dueAt = Math.floor((await store.due.list({ limit: 1 })).now) + inMs;
  assert.equal(await store.due.leave(claim, { dueAt, readUpTo: 0, attempts: 0, ...options }), true);
}

/** Cases of runs that are named, and of runs that a process gives back because it cannot continue them. */
export const giveBackCases: readonly Draft[] = [
  dueStore('due.take takes only runs that it names, up to its limit (engine 16)', async ({ store }) => {
    for (const runId of ['a', 'b', 'c', 'd', 'held']) await store.save(sampleRecord(runId));
    await store.save(sampleRecord('parked', { parked: { code: 'PARKED', reason: 'not today' } }));
    await claimFor(store, 'held');
    assert.deepEqual(await takeIds(store, { runIds: [] }), []);
    const runIds = ['c', 'b', 'gone', 'held', 'parked'];
    const one = await takeIds(store, { runIds, limit: 1 });
    assert.equal(one.length, 1);
    assert.deepEqual([...one, ...(await takeIds(store, { runIds }))].sort(), ['b', 'c']);
    assert.deepEqual(await takeIds(store, { runIds }), []);
    assert.deepEqual(await takeIds(store), ['a', 'd']);
    await assert.rejects(takeRuns(store, { runIds: Array.from({ length: 1_001 }, (_, i) => `run-${i}`) }), TypeError);
  }),

  dueStore('two calls that name the same runs get different ones (engine 16)', async ({ store }) => {
    const runIds = Array.from({ length: 20 }, (_, i) => `run-${i}`);
    await Promise.all(runIds.map((runId) => store.save(sampleRecord(runId))));
    const wishes = ['me', 'you', 'they'].map((owner) => takeIds(store, { owner, runIds, limit: 10 }));
    const taken = (await Promise.all(wishes)).flat();
    assert.deepEqual([...taken, ...(await takeIds(store, { runIds }))].sort(), [...runIds].sort());
  }),

  dueStore(
    'a run that was given back is listed as interrupted meanwhile, and does not rest (engine 19)',
    async ({ store, reopen }) => {
      await leaveFor(store, 'back', { givenBack: true });
      await leaveFor(store, 'waits, back', { givenBack: true, fields: { waiting: waitingForTime } });
      await leaveFor(store, 'rests', { fields: { waiting: waitingForTime } });
      for (const opened of [store, await reopen()]) {
        assert.deepEqual(await listIds(opened), ['back', 'waits, back']);
        assert.deepEqual(await listIds(opened, 'waiting'), ['rests']);
        assert.equal(await opened.due.countResting(), 1);
        assert.deepEqual(await takeIds(opened), []);
        assert.deepEqual((await opened.due.list({ limit: 10 })).runs, []);
        const [entry] = await opened.listInterrupted();
        assert(entry && entry.status !== 'quarantined');
        assert.ok(Number.isInteger(entry.dueAt), String(entry.dueAt));
      }
    },
    'reopen',
  ),

  dueStore(
    'a run that was given back is taken before its time by its name, not one that rests (engine 19)',
    async ({ store }) => {
      await leaveFor(store, 'back', { givenBack: true });
      await leaveFor(store, 'rests', { fields: { waiting: waitingForTime } });
      const [taken, ...others] = await takeRuns(store, { runIds: ['back', 'rests'] });
      assert(taken);
      assert.deepEqual([taken.runId, taken.attempts, others.length], ['back', 1, 0]);
      await store.release(taken, { attempts: 0 });
      // It keeps its pause.
      assert.deepEqual(await takeIds(store), []);
      await store.commands.send('back', { id: 'a', kind: 'steer', text: 'go' });
      assert.deepEqual(await takeIds(store), ['back']);
    },
  ),

  dueStore('a run that was given back is due when its pause is over (engine 19)', async ({ store }) => {
    await leaveFor(store, 'back', { givenBack: true, inMs: 30 });
    await leaveFor(store, 'at once', { givenBack: true, inMs: -1 });
    const { nextAt = 0, now } = await store.due.take({ owner: 'me', ttlMs: LONG_MS, limit: 0 });
    assert.ok(nextAt <= now + 31, String(nextAt - now));
    const taken: string[] = [];
    for (let looks = 0; looks < 1_000 && taken.length < 2; looks++) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      taken.push(...(await takeIds(store)));
    }
    assert.deepEqual(taken.sort(), ['at once', 'back']);
  }),
];
