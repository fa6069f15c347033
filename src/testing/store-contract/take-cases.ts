import assert from 'node:assert/strict';
import { isKeepingRecords } from '../../store/capabilities.ts';
import type { RestingStore, TakenRun } from '../../store/due-port.ts';
import type { Draft } from './case.ts';
import { dueStore, refuses } from './case.ts';
import { claimFor, LONG_MS, nowOf, sampleOutcome, sampleRecord, takeIds, takeRuns, waitingForTime } from './records.ts';

const parked = { code: 'PARKED', reason: 'not today' };

const ids = (taken: readonly TakenRun[]) => taken.map(({ runId }) => runId);

/** Stores runs of a key: the first of each key gets the id `<key>0`. */
async function add(store: RestingStore, fairKey: string | undefined, count = 1): Promise<void> {
  const name = fairKey ?? 'none';
  const runIds = Array.from({ length: count }, (_, i) => `${name}${i}`);
  await Promise.all(runIds.map((runId) => store.save(sampleRecord(runId), { fairKey })));
}

/** Takes runs one lot after the other, until none is left. */
async function takeAll(store: RestingStore, limit: number): Promise<string[]> {
  const all: string[] = [];
  for (;;) {
    const some = ids(await takeRuns(store, { limit }));
    all.push(...some);
    if (some.length === 0) return all;
  }
}

/** A stored run that rests until a time, or is due since then. */
async function leaveUntil(store: RestingStore, runId: string, dueAt: number): Promise<void> {
  const claim = await claimFor(store, runId);
  await store.save(sampleRecord(runId, { waiting: waitingForTime }), { claim });
  assert.equal(await store.due.leave(claim, { dueAt, readUpTo: 0 }), true);
}

/** Cases of a store from which several processes take due runs. */
export const takeCases: readonly Draft[] = [
  dueStore('due.take claims due runs: each claim counts an attempt and an epoch (engine 16)', async ({ store }) => {
    await store.save(sampleRecord('run'), { fairKey: 'a' });
    const first = await claimFor(store, 'run');
    await store.release(first);
    const [taken, ...others] = await takeRuns(store);
    assert(taken);
    assert.equal(others.length, 0);
    const { run, ...claim } = taken;
    assert.deepEqual(claim, { runId: 'run', owner: 'me', epoch: first.epoch + 1, attempts: first.attempts + 1 });
    const { fairKey, ...entry } = run;
    assert.deepEqual(entry, { runId: 'run', dueAt: 0, attempts: first.attempts, meta: sampleRecord('run').meta });
    assert.equal(typeof fairKey, 'string');
    assert.equal(await store.claim('run', 'another', LONG_MS), null);
    await store.save(sampleRecord('run'), { claim: taken });
    await refuses(store.save(sampleRecord('run'), { claim: first }), 'LEASE_LOST');
    assert.deepEqual(await takeRuns(store), []);
    assert.deepEqual(await takeRuns(store, { owner: 'another' }), []);
  }),

  dueStore(
    'a run without an earlier claim gets the attempts of its record, and one more (engine 16)',
    async ({ store }) => {
      await store.save(sampleRecord('run', { attempts: 2 }));
      const [taken] = await takeRuns(store);
      assert.deepEqual([taken?.epoch, taken?.attempts, taken?.run.attempts], [1, 3, 2]);
    },
  ),

  dueStore(
    'processes that ask at once get other runs, and all of them (engine 16)',
    async ({ store, reopen }) => {
      for (let i = 0; i < 40; i++) await store.save(sampleRecord(`run-${i}`), { fairKey: `key-${i % 3}` });
      const other = await reopen();
      const taken: string[] = [];
      for (let looks = 0; looks < 100 && taken.length < 40; looks++) {
        const both = [takeRuns(store, { limit: 3 }), takeRuns(other, { limit: 3, owner: 'another' })];
        for (const some of await Promise.all(both)) taken.push(...ids(some));
      }
      assert.equal(new Set(taken).size, 40);
      assert.equal(taken.length, 40);
    },
    'reopen',
  ),

  dueStore(
    'due.take takes at most as many runs as it is asked for, and says that others are due (engine 10, 15)',
    async ({ store }) => {
      await add(store, undefined, 3);
      const wish = { owner: 'me', ttlMs: LONG_MS };
      const none = await store.due.take({ ...wish, limit: 0 });
      assert.deepEqual([none.claims, none.nextAt], [[], none.now]);
      const some = await store.due.take({ ...wish, limit: 2 });
      assert.deepEqual([some.claims.length, some.nextAt], [2, some.now]);
      const rest = await store.due.take({ ...wish, limit: 1 });
      assert.deepEqual([rest.claims.length, rest.nextAt], [1, undefined]);
      const over = await store.due.take({ ...wish, limit: 0 });
      assert.deepEqual([over.claims, over.nextAt], [[], undefined]);
      assert.deepEqual((await store.due.take({ ...wish, limit: Number.POSITIVE_INFINITY })).claims, []);
      await assert.rejects(store.due.take({ ...wish, limit: Number.NaN }), TypeError);
    },
  ),

  dueStore('due.take says when the next run is due (engine 15)', async ({ store }) => {
    const now = await nowOf(store);
    await leaveUntil(store, 'later', now + LONG_MS + 5);
    await leaveUntil(store, 'sooner', now + LONG_MS);
    await leaveUntil(store, 'on command', Number.POSITIVE_INFINITY);
    const { claims, nextAt, now: at } = await store.due.take({ owner: 'me', ttlMs: LONG_MS, limit: 1 });
    assert.deepEqual([claims, nextAt], [[], now + LONG_MS]);
    assert.ok(at >= now);
  }),

  dueStore(
    'the k-th due run of each key is taken before the second of any that is after it (engine 17)',
    async ({ store }) => {
      await add(store, 'many', 5);
      await add(store, 'two', 2);
      await add(store, 'one', 1);
      await add(store, undefined, 3);
      const taken = await takeRuns(store);
      const places = taken.map(({ runId }) => Number(runId.at(-1)));
      assert.deepEqual(places, [0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4]);
      const keys = taken.map(({ run }) => run.fairKey ?? 'none');
      assert.deepEqual(keys.slice(0, 4), [...new Set(keys)]);
    },
  ),

  dueStore('runs of one key are taken by their time, then by their ids (engine 17)', async ({ store }) => {
    const now = await nowOf(store);
    const times = [now - 1_000, now - 3_000, now - 2_000, now - 3_000];
    for (const [i, dueAt] of times.entries()) await leaveUntil(store, `run-${i}`, dueAt);
    await store.save(sampleRecord('at once'));
    const taken = await takeRuns(store);
    assert.deepEqual(ids(taken), ['at once', 'run-1', 'run-3', 'run-2', 'run-0']);
    assert.deepEqual(
      taken.map(({ run }) => run.dueAt),
      [0, now - 3_000, now - 3_000, now - 2_000, now - 1_000],
    );
  }),

  dueStore('each key has its turn also with one run a call (engine 17)', async ({ store }) => {
    await add(store, 'noisy', 12);
    for (const key of ['a', 'p', 'z']) await add(store, key, 2);
    const first = (await takeAll(store, 1)).slice(0, 8);
    assert.equal(first.filter((id) => id.startsWith('noisy')).length, 2, first.join());
    assert.equal(first.filter((id) => id.endsWith('0')).length, 4, first.join());
  }),

  dueStore(
    'one run of each of 20 keys begins within the first 40, behind 200 of one key (engine 44)',
    async ({ store }) => {
      await add(store, 'noisy', 200);
      for (let i = 0; i < 20; i++) await add(store, `quiet-${i}-`);
      for (const limit of [1, 8]) {
        const taken: TakenRun[] = [];
        while (taken.length < 40) taken.push(...(await takeRuns(store, { limit })));
        const quiet = taken.filter(({ runId }) => runId.startsWith('quiet'));
        assert.equal(quiet.length, 20, `with a limit of ${limit}`);
        await Promise.all(taken.map((claim) => store.release(claim)));
      }
    },
  ),

  dueStore('runs of a full key are left alone (engine 17)', async ({ store }) => {
    await add(store, 'a', 2);
    await add(store, 'b', 1);
    await add(store, undefined, 1);
    const { runs } = await store.due.list({ limit: 10 });
    const fairKey = runs.find(({ runId }) => runId === 'a0')?.fairKey;
    assert(fairKey !== undefined);
    const wish = { fullKeys: [fairKey, 'a key of no run'] };
    assert.deepEqual(await takeIds(store, wish), ['b0', 'none0']);
    assert.deepEqual(
      await store.due.take({ owner: 'me', ttlMs: LONG_MS, limit: 0, ...wish }).then(({ nextAt }) => nextAt),
      undefined,
    );
    assert.deepEqual(await takeIds(store), ['a0', 'a1']);
  }),

  dueStore(
    'the fair key of a run stays when its record is saved again, and ends with it (engine 17)',
    async ({ store }) => {
      await store.save(sampleRecord('run'), { fairKey: 'a' });
      const keyOf = async () => (await store.due.list({ limit: 1 })).runs[0]?.fairKey;
      const key = await keyOf();
      assert(key !== undefined);
      await store.save(sampleRecord('run', { revision: 2 }));
      assert.equal(await keyOf(), key);
      const [taken] = await takeRuns(store);
      assert(taken);
      assert.equal(taken.run.fairKey, key);
      await store.release(taken);
      assert.equal(await keyOf(), key);
      await store.delete('run');
      await store.save(sampleRecord('run'));
      assert.equal(await keyOf(), undefined);
    },
  ),

  dueStore('any text may be a fair key (engine 17)', async ({ store }) => {
    const keys = ['', ' ', 'a\0b', '\ud800', 'é'.repeat(400), 'sealed:x', "'; --", '{"a":1}', '\u{1f600}'];
    for (const [i, fairKey] of keys.entries()) {
      await store.save(sampleRecord(`first-${i}`), { fairKey });
      await store.save(sampleRecord(`second-${i}`), { fairKey });
    }
    const taken = ids(await takeRuns(store));
    assert.equal(taken.length, 2 * keys.length);
    assert.deepEqual([...new Set(taken.slice(0, keys.length).map((id) => id.split('-')[0]))], ['first']);
  }),

  dueStore('due.take takes only runs of the agents that it is asked for (engine 18)', async ({ store }) => {
    for (const agentId of ['a', 'b', 'c', 'a\0']) {
      const record = sampleRecord(`run of ${agentId.replace('\0', '0')}`);
      await store.save({ ...record, meta: { ...record.meta, agentId } });
    }
    assert.deepEqual(await takeIds(store, { agentIds: [] }), []);
    assert.deepEqual(await takeIds(store, { agentIds: ['d'] }), []);
    assert.deepEqual(await takeIds(store, { agentIds: ['a', 'c', 'd'] }), ['run of a', 'run of c']);
    assert.deepEqual(await takeIds(store), ['run of a0', 'run of b']);
  }),

  dueStore('runs that a higher deployment has claimed are left alone by a lower one (engine 18)', async ({ store }) => {
    for (const runId of ['new', 'old', 'unknown']) await store.save(sampleRecord(runId));
    for (const [runId, deployment] of [
      ['new', 7],
      ['old', 3],
      ['unknown', undefined],
    ] as const) {
      await store.release(await claimFor(store, runId, { deployment }), { attempts: 1 });
    }
    await refuses(store.claim('new', 'other', LONG_MS, { deployment: 6 }), 'NEWER_DEPLOYMENT');
    assert.deepEqual(await takeIds(store, { version: 6 }), ['old', 'unknown']);
    await refuses(store.claim('new', 'other', LONG_MS, { deployment: 6 }), 'NEWER_DEPLOYMENT');
    const [taken] = await takeRuns(store, { version: 7 });
    assert.deepEqual([taken?.runId, taken?.attempts, taken?.epoch], ['new', 2, 2]);
    await assert.rejects(store.claim('new', 'other', LONG_MS, { deployment: 1.5 }), TypeError);
    await assert.rejects(takeRuns(store, { version: -1 }), TypeError);
  }),

  dueStore('the highest deployment stays with a run, as long as it has a record (engine 18)', async ({ store }) => {
    await store.save(sampleRecord('run'));
    const [first] = await takeRuns(store, { version: 5 });
    assert(first);
    await store.save(sampleRecord('run', { waiting: waitingForTime }), { claim: first });
    await store.renew(first, LONG_MS);
    assert.equal(await store.due.leave(first, { dueAt: 0, readUpTo: 0, attempts: 0 }), true);
    const second = await claimFor(store, 'run');
    await store.release(second);
    assert.deepEqual(await takeRuns(store, { version: 4 }), []);
    await refuses(store.claim('run', 'me', LONG_MS, { deployment: 4 }), 'NEWER_DEPLOYMENT');
    const third = await claimFor(store, 'run', { deployment: 6 });
    await store.release(third);
    assert.deepEqual(await takeRuns(store, { version: 5 }), []);
    await store.delete('run');
    await store.save(sampleRecord('run'));
    assert.deepEqual(await takeIds(store, { version: 1 }), ['run']);
  }),

  dueStore('a run that another owner holds is no error for a lower deployment (engine 18)', async ({ store }) => {
    await store.save(sampleRecord('run'));
    await claimFor(store, 'run', { deployment: 5 });
    assert.equal(await store.claim('run', 'another', LONG_MS, { deployment: 4 }), null);
  }),

  dueStore(
    'parked, hosted, resting, ended, held and unstored runs are never taken (engine 16, waiting 18)',
    async ({ store }) => {
      await store.save(sampleRecord('parked', { parked }));
      await store.save(sampleRecord('hosted', { hosted: true }));
      await leaveUntil(store, 'later', (await nowOf(store)) + LONG_MS);
      await leaveUntil(store, 'on command', Number.POSITIVE_INFINITY);
      await store.save(sampleRecord('held'));
      await claimFor(store, 'held');
      await claimFor(store, 'only claimed');
      await store.save(sampleRecord('gone'));
      await store.delete('gone');
      await store.save(sampleRecord('damaged'));
      await store.release(await claimFor(store, 'damaged'), { damage: 'its messages are missing' });
      if (isKeepingRecords(store)) {
        await store.save(sampleRecord('ended'));
        const claim = await claimFor(store, 'ended');
        await store.history.end(claim, { outcome: sampleOutcome('ended'), keepUntil: Date.now() + LONG_MS });
      }
      const { claims, nextAt, now } = await store.due.take({ owner: 'me', ttlMs: LONG_MS, limit: 10 });
      assert.deepEqual(claims, []);
      assert.ok((nextAt ?? 0) > now);
      await store.commands.send('on command', { id: 'a', kind: 'steer', text: 'go' });
      assert.deepEqual(await takeIds(store), ['on command']);
    },
  ),

  dueStore(
    'unreadable records are not taken, and stop no other one (engine 16)',
    async ({ store, damage }) => {
      for (const runId of ['a', 'b', 'c', 'd', 'e']) await store.save(sampleRecord(runId), { fairKey: runId });
      for (const runId of ['a', 'b', 'd']) await damage(runId, 'corrupt');
      await damage('c', 'newer');
      for (let looks = 0; looks < 3; looks++) {
        const [taken, ...others] = await takeRuns(store, { limit: 1 });
        assert.deepEqual([taken?.runId, others], ['e', []], `look ${looks}`);
        if (taken) await store.release(taken);
      }
    },
    'damage',
  ),

  dueStore('a run whose claim has run out is taken (engine 14)', async ({ store }) => {
    await store.save(sampleRecord('run'));
    await store.claim('run', 'gone', 1);
    let taken: readonly TakenRun[] = [];
    for (let looks = 0; looks < 1_000 && taken.length === 0; looks++) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      taken = await takeRuns(store);
    }
    assert.deepEqual(
      taken.map(({ runId, attempts }) => [runId, attempts]),
      [['run', 3]],
    );
  }),

  dueStore(
    'a run that is given back is taken when its time has come, and its attempt is not counted (engine 8, 19)',
    async ({ store }) => {
      await store.save(sampleRecord('run'));
      const [taken] = await takeRuns(store);
      assert(taken);
      const dueAt = (await nowOf(store)) + LONG_MS;
      assert.equal(await store.due.leave(taken, { dueAt, readUpTo: 0, attempts: taken.attempts - 1 }), true);
      assert.deepEqual(await takeRuns(store), []);
      await store.commands.send('run', { id: 'a', kind: 'steer', text: 'go' });
      assert.deepEqual(
        (await takeRuns(store)).map(({ attempts }) => attempts),
        [taken.attempts],
      );
    },
  ),

  dueStore('heldUntil tells when the live claim of a run ends (engine 7)', async ({ store }) => {
    assert.equal(await store.due.heldUntil('nobody'), null);
    await store.save(sampleRecord('run'));
    assert.equal(await store.due.heldUntil('run'), null);
    const before = Date.now();
    const claim = await claimFor(store, 'run');
    const until = await store.due.heldUntil('run');
    assert(until !== null);
    // The clocks of a server and of this machine may differ while the lease is read.
    assert.ok(Math.abs(until - before - LONG_MS) < LONG_MS / 10, `${until - before}`);
    await store.renew(claim, 2 * LONG_MS);
    assert.ok(((await store.due.heldUntil('run')) ?? 0) > until);
    await store.release(claim);
    assert.equal(await store.due.heldUntil('run'), null);
    await store.claim('run', 'gone', 1);
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(await store.due.heldUntil('run'), null);
  }),

  dueStore(
    'keys, deployments and claims are the same for another process (engine 16, 17, 18)',
    async ({ store, reopen }) => {
      await add(store, 'a', 3);
      await add(store, 'b', 1);
      await store.release(await claimFor(store, 'a2', { deployment: 9 }));
      const other = await reopen();
      const taken = ids(await takeRuns(other, { version: 8 }));
      assert.deepEqual([taken.slice(0, 2).sort(), taken.slice(2)], [['a0', 'b0'], ['a1']]);
      assert.deepEqual(await takeIds(store), ['a2']);
      assert.equal(await other.due.deploymentOf('a2'), 9);
      assert.equal(await other.due.deploymentOf('a1'), 8);
      assert.equal(await other.due.deploymentOf('nobody'), null);
      assert((await other.due.heldUntil('a2')) !== null);
    },
    'reopen',
  ),
];
