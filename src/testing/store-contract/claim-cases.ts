import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAppending } from '../../store/capabilities.ts';
import type { Claim, OwningStore } from '../../store/port.ts';
import { type Draft, owningStore, refuses } from './case.ts';
import { LONG_MS, nextStep, sampleRecord } from './records.ts';

/** The cases of the store contract about claims and leases. */
export const claimCases: readonly Draft[] = [
  owningStore(
    'a record that its owner releases as damaged is listed as quarantined, and no owner can claim it or append to it until it is saved as a whole (recovery 6)',
    async ({ store }) => {
      await store.save(sampleRecord('run', { attempts: 0 }));
      const claim = await claimOwn(store, 'one');
      await store.release(claim, { attempts: 0, damage: 'its messages are missing' });
      const [listed] = await store.listInterrupted();
      const { runId, status, reason } = listed ?? {};
      const expected = { runId: 'run', status: 'quarantined', reason: 'CHECKPOINT_CORRUPT: its messages are missing' };
      assert.deepEqual({ runId, status, reason }, expected);
      await refuses(store.claim('run', 'one', LONG_MS), 'CHECKPOINT_CORRUPT');
      await refuses(store.claim('run', 'two', LONG_MS), 'CHECKPOINT_CORRUPT');
      if (isAppending(store)) await refuses(store.append(nextStep(sampleRecord('run')).delta), 'CHECKPOINT_CORRUPT');
      await store.save(sampleRecord('run', { attempts: 0 }));
      assert.equal((await store.listInterrupted())[0]?.status, 'interrupted');
      assert.equal((await claimOwn(store, 'two')).attempts, 1);
    },
  ),

  owningStore('a record that was released as damaged can be deleted (recovery 6)', async ({ store }) => {
    await store.save(sampleRecord('run'));
    await store.release(await claimOwn(store, 'one'), { damage: 'its messages are missing' });
    await store.delete('run');
    assert.deepEqual(await store.listInterrupted(), []);
    await claimOwn(store, 'two');
  }),

  owningStore('a claim can be made before there is a record (recovery 3)', async ({ store }) => {
    const claim = await claimOwn(store, 'one');
    assert.deepEqual({ ...claim }, { runId: 'run', owner: 'one', epoch: claim.epoch, attempts: 1 });
    assert(claim.epoch >= 1);
    assert.equal(await store.load('run'), null);
    assert.deepEqual(await store.listInterrupted(), []);
    await store.save(sampleRecord('run'), { claim });
    assert.deepEqual(await store.load('run'), sampleRecord('run'));
  }),

  owningStore('while a claim is valid, no other owner gets one (recovery 3)', async ({ store }) => {
    await claimOwn(store, 'one');
    assert.equal(await store.claim('run', 'two', LONG_MS), null);
    assert(await store.claim('another run', 'two', LONG_MS));
  }),

  owningStore('of many owners that claim one run at once, one gets it (recovery 3)', async ({ store }) => {
    await store.save(sampleRecord('run'));
    const claims = await Promise.all(Array.from({ length: 20 }, (_, i) => store.claim('run', `owner-${i}`, LONG_MS)));
    assert.equal(claims.filter((claim) => claim !== null).length, 1);
  }),

  owningStore(
    'a claim that was released, or ran out, goes to the next with a higher epoch (recovery 3)',
    async ({ store }) => {
      const one = await claimOwn(store, 'one');
      await store.release(one);
      const two = await claimOwn(store, 'two', 1);
      await sleep(30);
      const three = await claimOwn(store, 'three');
      assert(one.epoch < two.epoch && two.epoch < three.epoch);
      assert.equal(await store.claim('run', 'two', LONG_MS), null);
    },
  ),

  owningStore(
    'an owner that claims again gets a new epoch, and its old claim is lost (recovery 3)',
    async ({ store }) => {
      const old = await claimOwn(store, 'one');
      const claim = await claimOwn(store, 'one');
      assert(claim.epoch > old.epoch);
      await refuses(store.save(sampleRecord('run'), { claim: old }), 'LEASE_LOST');
      await store.save(sampleRecord('run'), { claim });
    },
  ),

  owningStore('of two writers on one run, the loser writes nothing any more (recovery 3)', async ({ store }) => {
    const loser = await claimOwn(store, 'one', 1);
    await store.save(sampleRecord('run'), { claim: loser });
    await sleep(30);
    const winner = await claimOwn(store, 'two');
    const late = nextStep(sampleRecord('run'));
    await refuses(store.save(late.record, { claim: loser }), 'LEASE_LOST');
    if (isAppending(store)) await refuses(store.append(late.delta, { claim: loser }), 'LEASE_LOST');
    await refuses(store.delete('run', { claim: loser }), 'LEASE_LOST');
    await refuses(store.renew(loser, LONG_MS), 'LEASE_LOST');
    const expected = { ...sampleRecord('run'), attempts: winner.attempts };
    assert.deepEqual(await store.load('run'), expected);
    await store.save(sampleRecord('run', { iteration: 5, attempts: 0 }), { claim: winner });
    assert.equal((await store.load('run'))?.iteration, 5);
  }),

  owningStore(
    'a write without a claim is refused while an owner holds the run (recovery 3, faults 35)',
    async ({ store }) => {
      await store.save(sampleRecord('run'));
      const claim = await claimOwn(store, 'one');
      const late = nextStep(sampleRecord('run'));
      await refuses(store.save(late.record), 'RUN_OWNED_ELSEWHERE');
      if (isAppending(store)) await refuses(store.append(late.delta), 'RUN_OWNED_ELSEWHERE');
      await refuses(store.delete('run'), 'RUN_OWNED_ELSEWHERE');
      assert.equal((await store.load('run'))?.iteration, 0);
      await store.release(claim);
      await store.save(late.record);
      await store.delete('run');
      assert.equal(await store.load('run'), null);
    },
  ),

  owningStore('a refused write does not touch those asked for with it (recovery 3)', async ({ store }) => {
    const lost = await claimOwn(store, 'one');
    const claim = await claimOwn(store, 'one');
    const settled = await Promise.allSettled([
      store.save(sampleRecord('other')),
      store.save(sampleRecord('run', { iteration: 9 }), { claim: lost }),
      store.save(sampleRecord('run', { iteration: 1 }), { claim }),
    ]);
    assert.deepEqual(
      settled.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
    assert.equal((await store.load('run'))?.iteration, 1);
    assert(await store.load('other'));
  }),

  owningStore('renewing keeps a claim alive (recovery 3)', async ({ store }) => {
    const claim = await claimOwn(store, 'one', 1);
    const renewed = await store.renew(claim, LONG_MS);
    assert.deepEqual({ ...renewed }, { ...claim });
    await sleep(30);
    assert.equal(await store.claim('run', 'two', LONG_MS), null);
    await store.save(sampleRecord('run'), { claim: renewed });
  }),

  owningStore(
    'a claim that ran out can be renewed if no other owner has claimed the run (recovery 3)',
    async ({ store }) => {
      const claim = await claimOwn(store, 'one', 1);
      await sleep(30);
      await store.save(sampleRecord('run'), { claim });
      await store.renew(claim, LONG_MS);
      assert.equal(await store.claim('run', 'two', LONG_MS), null);
    },
  ),

  owningStore('a released claim writes nothing, and cannot be renewed (recovery 3)', async ({ store }) => {
    const claim = await claimOwn(store, 'one');
    await store.release(claim);
    await refuses(store.save(sampleRecord('run'), { claim }), 'LEASE_LOST');
    await refuses(store.renew(claim, LONG_MS), 'LEASE_LOST');
    await store.release(claim);
  }),

  owningStore('releasing a claim that is lost takes nothing from its new owner (recovery 3)', async ({ store }) => {
    const lost = await claimOwn(store, 'one', 1);
    await sleep(30);
    await claimOwn(store, 'two');
    await store.release(lost);
    assert.equal(await store.claim('run', 'three', LONG_MS), null);
  }),

  owningStore('a deleted run is free, and the claim that deleted it is over (recovery 3)', async ({ store }) => {
    const claim = await claimOwn(store, 'one');
    await store.save(sampleRecord('run'), { claim });
    await store.delete('run', { claim });
    await refuses(store.save(sampleRecord('run'), { claim }), 'LEASE_LOST');
    await store.release(claim);
    const next = await claimOwn(store, 'two');
    assert.equal(next.attempts, 1);
    await refuses(store.save(sampleRecord('run'), { claim }), 'LEASE_LOST');
  }),

  owningStore('each claim counts one more attempt, until a save says otherwise (recovery 2)', async ({ store }) => {
    const claim = await claimOwn(store, 'one');
    await store.save(sampleRecord('run'), { claim });
    await store.release(claim);
    assert.equal((await claimOwn(store, 'two', 1)).attempts, 2);
    await sleep(30);
    const third = await claimOwn(store, 'three');
    assert.equal(third.attempts, 3);
    assert.equal((await store.load('run'))?.attempts, 3);
    await store.save(sampleRecord('run', { attempts: 0 }), { claim: third });
    assert.equal((await store.load('run'))?.attempts, 0);
    assert.equal((await claimOwn(store, 'three')).attempts, 1);
  }),

  owningStore(
    'a release that gives the attempts back takes its own start off the count (recovery 2)',
    async ({ store }) => {
      await store.save(sampleRecord('run', { attempts: 1 }));
      for (let start = 1; start <= 4; start++) {
        const claim = await claimOwn(store, `owner-${start}`);
        assert.equal(claim.attempts, 2);
        await store.release(claim, { attempts: 1 });
        assert.equal((await store.load('run'))?.attempts, 1);
      }
      const lost = await claimOwn(store, 'one');
      const claim = await claimOwn(store, 'one');
      await store.release(lost, { attempts: 0 });
      assert.equal((await store.renew(claim, LONG_MS)).attempts, 3);
    },
  ),

  owningStore('the first claim continues the attempts of the record (recovery 2)', async ({ store }) => {
    await store.save(sampleRecord('run', { attempts: 2 }));
    assert.equal((await claimOwn(store, 'one')).attempts, 3);
    const [listed] = await store.listInterrupted();
    assert(listed && listed.status !== 'quarantined');
    assert.equal(listed.attempts, 3);
  }),

  owningStore('a record that counts no attempts gets none from a claim (checkpoint 2)', async ({ store }) => {
    const { attempts: _, ...record } = sampleRecord('run');
    const claim = await claimOwn(store, 'one');
    await store.save(record as never, { claim });
    assert.deepEqual(await store.load('run'), record);
  }),

  owningStore('a list names the owner of a live claim, and no other (recovery 3)', async ({ store }) => {
    for (const runId of ['run', 'free', 'over']) await store.save(sampleRecord(runId));
    const claim = await claimOwn(store, 'one');
    await store.claim('over', 'one', 1);
    await sleep(30);
    assert.deepEqual(await owners(store), { run: 'one', free: undefined, over: undefined });
    await store.release(claim);
    assert.deepEqual(await owners(store), { run: undefined, free: undefined, over: undefined });
  }),

  owningStore(
    'claims, epochs and attempts are there when the storage is opened again (recovery 3)',
    async ({ store, reopen }) => {
      const claim = await claimOwn(store, 'one');
      await store.save(sampleRecord('run'), { claim });
      const reopened = await reopen();
      assert.equal(await reopened.claim('run', 'two', LONG_MS), null);
      await reopened.release(claim);
      const next = await claimOwn(reopened, 'two');
      assert(next.epoch > claim.epoch);
      assert.equal(next.attempts, 2);
      await refuses(reopened.save(sampleRecord('run'), { claim }), 'LEASE_LOST');
    },
    'reopen',
  ),
];

async function claimOwn(store: OwningStore, owner: string, ttlMs = LONG_MS): Promise<Claim> {
  const claim = await store.claim('run', owner, ttlMs);
  assert(claim, `${owner} should have got the run`);
  return claim;
}

async function owners(store: OwningStore): Promise<Record<string, string | undefined>> {
  const listed = await store.listInterrupted();
  return Object.fromEntries(listed.map((run) => [run.runId, run.status === 'quarantined' ? '?' : run.owner]));
}
