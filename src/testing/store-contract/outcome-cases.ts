import assert from 'node:assert/strict';
import { type Draft, keepingStore, owningAndKeepingStore, refuses } from './case.ts';
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
    await store.keepOutcome('run', outcome, LATER);
    await store.delete('run');
    assert.deepEqual(await store.outcome('run'), outcome);
    assert.deepEqual(await store.outcome('run'), outcome);
  }),

  keepingStore('a kept outcome is no record (checkpoint 8)', async ({ store }) => {
    await store.keepOutcome('run', sampleOutcome('run'), LATER);
    assert.deepEqual(await store.listInterrupted(), []);
    assert.equal(await store.load('run'), null);
    assert.equal(await store.outcome('nobody'), null);
  }),

  keepingStore('an outcome whose time is over is gone (checkpoint 8)', async ({ store }) => {
    await store.keepOutcome('run', sampleOutcome('run'), 0);
    assert.equal(await store.outcome('run'), null);
    assert.equal(await store.outcome('run'), null);
  }),

  keepingStore('an outcome kept again replaces the one before (checkpoint 8)', async ({ store }) => {
    await store.keepOutcome('run', sampleOutcome('run', { output: 'one' }), LATER);
    await store.keepOutcome('run', sampleOutcome('run', { output: 'two' }), LATER);
    await store.keepOutcome('other', sampleOutcome('other'), LATER);
    assert.equal((await store.outcome('run'))?.output, 'two');
  }),

  keepingStore('an outcome is isolated, and refused where it is no JSON (checkpoint 9)', async ({ store }) => {
    const given = structuredClone(sampleOutcome('run'));
    const keeping = store.keepOutcome('run', given, LATER);
    Object.assign(given, { output: 'spoiled' });
    await keeping;
    Object.assign((await store.outcome('run')) ?? {}, { output: 'spoiled' });
    assert.deepEqual(await store.outcome('run'), sampleOutcome('run'));
    await refuses(store.keepOutcome('run', { ...given, output: new Date(0) as never }, LATER), 'NOT_JSON');
    await refuses(store.keepOutcome('', given, LATER), 'INVALID_RUN_ID');
    await refuses(store.outcome(''), 'INVALID_RUN_ID');
  }),

  keepingStore('an aborted signal: no outcome is kept (checkpoint 10)', async ({ store }) => {
    const signal = AbortSignal.abort(Object.assign(new Error('stop'), { code: 'STOP' }));
    await refuses(store.keepOutcome('run', sampleOutcome('run'), LATER, { signal }), 'STOP');
    assert.equal(await store.outcome('run'), null);
  }),

  keepingStore(
    'a kept outcome is there when the storage is opened again (checkpoint 8)',
    async ({ store, reopen }) => {
      await store.keepOutcome('run', sampleOutcome('run'), LATER);
      assert.deepEqual(await (await reopen()).outcome('run'), sampleOutcome('run'));
    },
    'reopen',
  ),

  owningAndKeepingStore('only the owner of a run keeps its outcome (recovery 3)', async ({ store }) => {
    const lost = await store.claim('run', 'one', 600_000);
    const claim = await store.claim('run', 'one', 600_000);
    assert(lost && claim);
    await refuses(store.keepOutcome('run', sampleOutcome('run'), LATER, { claim: lost }), 'LEASE_LOST');
    await refuses(store.keepOutcome('run', sampleOutcome('run'), LATER), 'RUN_OWNED_ELSEWHERE');
    assert.equal(await store.outcome('run'), null);
    await store.keepOutcome('run', sampleOutcome('run'), LATER, { claim });
    assert(await store.outcome('run'));
  }),

  owningAndKeepingStore(
    'the epoch of a run continues after its record, while its outcome is kept (recovery 3)',
    async ({ store }) => {
      const first = await store.claim('run', 'one', 600_000);
      assert(first);
      await store.save(sampleRecord('run'), { claim: first });
      await store.keepOutcome('run', sampleOutcome('run'), LATER, { claim: first });
      const second = await store.claim('run', 'one', 600_000);
      assert(second && second.epoch > first.epoch);
      await store.delete('run', { claim: second });
      await store.keepOutcome('run', sampleOutcome('run'), LATER);
      const next = await store.claim('run', 'one', 600_000);
      assert(next && next.epoch > second.epoch);
      assert.equal(next.attempts, 1);
    },
  ),
];
