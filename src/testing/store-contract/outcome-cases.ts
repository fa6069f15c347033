import assert from 'node:assert/strict';
import { isKeepingRecords } from '../../store/capabilities.ts';
import type { UndeliveredEnd } from '../../store/deliveries/port.ts';
import type { StoreGroups } from '../../store/port.ts';
import { type Draft, deliveryStore, keepingStore, owningAndKeepingStore, refuses } from './case.ts';
import { sampleOutcome, sampleRecord, userMessage } from './records.ts';

/** The year 2100: later than any clock of a test. */
const LATER = 4_102_444_800_000;

/** The cases of the store contract about outcomes that are kept after the record is deleted. */
export const outcomeCases: readonly Draft[] = [
  keepingStore('a kept outcome is given back after the record is gone (checkpoint 8)', async ({ store }) => {
    const error = {
      name: 'Error',
      code: 'MODEL',
      message: 'down \ud800',
      cause: { name: 'E', code: 'C', message: 'm' },
    };
    const outcome = sampleOutcome('run', { undelivered: [userMessage('late')] }, { status: 'error', error });
    await store.save(sampleRecord('run'));
    await store.outcomes.keep('run', outcome, LATER);
    await store.delete('run');
    assert.deepEqual(await store.outcomes.find('run'), outcome);
    assert.deepEqual(await store.outcomes.find('run'), outcome);
  }),

  keepingStore('a kept outcome is no record (checkpoint 8)', async ({ store }) => {
    await store.outcomes.keep('run', sampleOutcome('run'), LATER);
    assert.deepEqual(await store.listInterrupted(), []);
    assert.equal(await store.load('run'), null);
    assert.equal(await store.outcomes.find('nobody'), null);
  }),

  keepingStore('an outcome whose time is over is gone (checkpoint 8)', async ({ store }) => {
    await store.outcomes.keep('run', sampleOutcome('run'), 0);
    assert.equal(await store.outcomes.find('run'), null);
    assert.equal(await store.outcomes.find('run'), null);
  }),

  keepingStore('an outcome kept again replaces the one before (checkpoint 8)', async ({ store }) => {
    await store.outcomes.keep('run', sampleOutcome('run', { output: 'one' }), LATER);
    await store.outcomes.keep('run', sampleOutcome('run', { output: 'two' }), LATER);
    await store.outcomes.keep('other', sampleOutcome('other'), LATER);
    assert.equal((await store.outcomes.find('run'))?.output, 'two');
  }),

  keepingStore('an outcome is isolated, and refused where it is no JSON (checkpoint 9)', async ({ store }) => {
    const given = structuredClone(sampleOutcome('run'));
    const keeping = store.outcomes.keep('run', given, LATER);
    Object.assign(given, { output: 'spoiled' });
    await keeping;
    Object.assign((await store.outcomes.find('run')) ?? {}, { output: 'spoiled' });
    assert.deepEqual(await store.outcomes.find('run'), sampleOutcome('run'));
    await refuses(store.outcomes.keep('run', { ...given, output: new Date(0) as never }, LATER), 'NOT_JSON');
    await refuses(store.outcomes.keep('', given, LATER), 'INVALID_RUN_ID');
    await refuses(store.outcomes.find(''), 'INVALID_RUN_ID');
  }),

  keepingStore('an aborted signal: no outcome is kept (checkpoint 10)', async ({ store }) => {
    const signal = AbortSignal.abort(Object.assign(new Error('stop'), { code: 'STOP' }));
    await refuses(store.outcomes.keep('run', sampleOutcome('run'), LATER, { signal }), 'STOP');
    assert.equal(await store.outcomes.find('run'), null);
  }),

  keepingStore(
    'a kept outcome is there when the storage is opened again (checkpoint 8)',
    async ({ store, reopen }) => {
      await store.outcomes.keep('run', sampleOutcome('run'), LATER);
      assert.deepEqual(await (await reopen()).outcomes.find('run'), sampleOutcome('run'));
    },
    'reopen',
  ),

  owningAndKeepingStore('only the owner of a run keeps its outcome (recovery 3)', async ({ store }) => {
    const lost = await store.claim('run', 'one', 600_000);
    const claim = await store.claim('run', 'one', 600_000);
    assert(lost && claim);
    await refuses(store.outcomes.keep('run', sampleOutcome('run'), LATER, { claim: lost }), 'LEASE_LOST');
    await refuses(store.outcomes.keep('run', sampleOutcome('run'), LATER), 'RUN_OWNED_ELSEWHERE');
    assert.equal(await store.outcomes.find('run'), null);
    await store.outcomes.keep('run', sampleOutcome('run'), LATER, { claim });
    assert(await store.outcomes.find('run'));
  }),

  owningAndKeepingStore(
    'the epoch of a run continues after its record, while its outcome is kept (recovery 3)',
    async ({ store }) => {
      const first = await store.claim('run', 'one', 600_000);
      assert(first);
      await store.save(sampleRecord('run'), { claim: first });
      await store.outcomes.keep('run', sampleOutcome('run'), LATER, { claim: first });
      const second = await store.claim('run', 'one', 600_000);
      assert(second && second.epoch > first.epoch);
      await store.delete('run', { claim: second });
      await store.outcomes.keep('run', sampleOutcome('run'), LATER);
      const next = await store.claim('run', 'one', 600_000);
      assert(next && next.epoch > second.epoch);
      assert.equal(next.attempts, 1);
    },
  ),
];

const undelivered = { agentId: 'agent', untilMs: LATER };

/** No store's clock comes that far during a test. */
const LONG_MS = 3_600_000;

const take = (store: Pick<StoreGroups, 'deliveries'>, { agentIds = ['agent'], limit = 100, leaseMs = LONG_MS } = {}) =>
  store.deliveries.take({ agentIds, limit, leaseMs });
const endOf = (outcomeId: string, output: string) => ({ ...sampleOutcome('run', { output }), outcomeId });
const idsOf = (ends: readonly UndeliveredEnd[]) => ends.map(({ runId }) => runId).sort();

/** The cases of the store contract about ends that no process has delivered. */
export const deliveryCases: readonly Draft[] = [
  deliveryStore(
    'an end that is kept as undelivered is taken, whole; one without the mark never is (edges 16)',
    async ({ store }) => {
      const outcome = sampleOutcome('run', { output: 'the answer' });
      await store.outcomes.keep('run', outcome, LATER, { undelivered });
      await store.outcomes.keep('other', sampleOutcome('other'), LATER);
      assert.deepEqual(await take(store), [{ runId: 'run', agentId: 'agent', outcome }]);
      assert.deepEqual(await store.outcomes.find('run'), outcome);
    },
  ),

  deliveryStore(
    'a taken end is taken by no other process within its lease, and by one after it (edges 16)',
    async ({ store }) => {
      await store.outcomes.keep('run', sampleOutcome('run'), LATER, { undelivered });
      assert.deepEqual(idsOf(await take(store, { leaseMs: 0 })), ['run']);
      assert.deepEqual(idsOf(await take(store)), ['run']);
      assert.deepEqual(await take(store), []);
    },
  ),

  deliveryStore('takes that run at once get different ends (edges 16)', async ({ store }) => {
    const runIds = Array.from({ length: 12 }, (_, i) => `run ${String(i).padStart(2, '0')}`);
    for (const runId of runIds) await store.outcomes.keep(runId, sampleOutcome(runId), LATER, { undelivered });
    const taken = await Promise.all([take(store, { limit: 5 }), take(store, { limit: 5 }), take(store, { limit: 5 })]);
    const rest = await take(store);
    assert.deepEqual(idsOf([...taken.flat(), ...rest]), runIds);
  }),

  deliveryStore(
    'an end that is marked as delivered is taken no more; a second mark changes nothing (edges 16)',
    async ({ store }) => {
      const outcome = sampleOutcome('run');
      await store.outcomes.keep('run', outcome, LATER, { undelivered });
      await take(store, { leaseMs: 0 });
      await store.deliveries.mark('run', 'another id');
      assert.deepEqual(idsOf(await take(store, { leaseMs: 0 })), ['run']);
      await store.deliveries.mark('run', outcome.outcomeId);
      await store.deliveries.mark('run', outcome.outcomeId);
      await store.deliveries.mark('nobody', 'nothing');
      assert.deepEqual(await take(store), []);
      assert.deepEqual(await store.outcomes.find('run'), outcome);
    },
  ),

  deliveryStore(
    'only ends of the asked agents are taken: two services may share a store (edges 16)',
    async ({ store }) => {
      await store.outcomes.keep('mine', sampleOutcome('mine'), LATER, { undelivered });
      await store.outcomes.keep('theirs', sampleOutcome('theirs'), LATER, {
        undelivered: { ...undelivered, agentId: 'other' },
      });
      assert.deepEqual(await take(store, { agentIds: [] }), []);
      assert.deepEqual(idsOf(await take(store)), ['mine']);
      assert.deepEqual(idsOf(await take(store, { agentIds: ['agent', 'other'] })), ['theirs']);
    },
  ),

  deliveryStore(
    'an undelivered end outlives its answer, and a later end of the run; then it has no contents (edges 16)',
    async ({ store }) => {
      const first = endOf('run:1', 'secret');
      await store.outcomes.keep('run', first, 0, { undelivered });
      assert.equal(await store.outcomes.find('run'), null);
      const [bare] = await take(store, { leaseMs: 0 });
      assert.equal(bare?.outcome.outcomeId, 'run:1');
      assert.equal(bare?.outcome.isCut, true);
      assert.deepEqual(bare?.outcome.usage, first.usage);
      assert(!JSON.stringify(bare).includes('secret'));
      await store.outcomes.keep('run', endOf('run:2', 'new'), LATER, {
        undelivered,
      });
      const ends = await take(store);
      assert.deepEqual(ends.map(({ outcome }) => [outcome.outcomeId, outcome.output]).sort(), [
        ['run:1', ''],
        ['run:2', 'new'],
      ]);
      await store.deliveries.mark('run', 'run:1');
      assert.equal((await store.outcomes.find('run'))?.output, 'new');
    },
  ),

  deliveryStore('a mark whose time is over is gone (edges 16)', async ({ store }) => {
    await store.outcomes.keep('run', sampleOutcome('run'), LATER, { undelivered: { ...undelivered, untilMs: 0 } });
    assert.deepEqual(await take(store), []);
  }),

  deliveryStore('a mark is no record, and stays when the record goes (edges 16)', async ({ store }) => {
    const claim = await store.claim('run', 'one', 600_000);
    assert(claim);
    await store.save(sampleRecord('run'), { claim });
    await store.outcomes.keep('run', sampleOutcome('run'), LATER, { claim, undelivered });
    await store.delete('run', { claim });
    assert.deepEqual(await store.listInterrupted(), []);
    assert.deepEqual(idsOf(await take(store)), ['run']);
  }),

  deliveryStore(
    'the end of a run whose record is kept is marked in the same commit, and erase leaves the end without contents (edges 16)',
    async ({ store }) => {
      if (!isKeepingRecords(store)) return;
      const claim = await store.claim('run', 'one', 600_000);
      assert(claim);
      await store.save(sampleRecord('run'), { claim });
      const outcome = sampleOutcome('run', { output: 'secret' });
      await store.history.end(claim, { outcome, keepUntil: LATER, undelivered });
      assert.deepEqual((await take(store, { leaseMs: 0 }))[0]?.outcome, outcome);
      await store.history.erase('run');
      assert.equal(await store.outcomes.find('run'), null);
      const [bare] = await take(store);
      assert.equal(bare?.outcome.outcomeId, outcome.outcomeId);
      assert(!JSON.stringify(bare).includes('secret'));
    },
  ),

  deliveryStore(
    'an undelivered end is there when the storage is opened again (edges 16)',
    async ({ store, reopen }) => {
      await store.outcomes.keep('run', sampleOutcome('run'), LATER, { undelivered });
      assert.deepEqual(idsOf(await take(await reopen())), ['run']);
    },
    'reopen',
  ),
];
