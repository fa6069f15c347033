import assert from 'node:assert/strict';
import type { RunCheckpoint } from '../../record/checkpoint.ts';
import { knownPhases } from '../../run/pipeline.ts';
import { isAppending } from '../../store/capabilities.ts';
import type { RestingStore, TakeDueOptions } from '../../store/due-port.ts';
import type { Claim } from '../../store/port.ts';
import { type Draft, dueStore } from './case.ts';
import { LONG_MS, nextStep, sampleMeta, sampleRecord } from './records.ts';

const changed = { code: 'DEFINITION_CHANGED', reason: 'the phases are others' };
/** A run in its second phase. */
const fields: Partial<RunCheckpoint> = {
  completedPhases: [{ name: 'plan', output: 'a plan', index: 0, hash: 'plan-1' }],
  openPhase: { index: 1, hash: 'act-1', iteration: 0 },
  parked: changed,
};
const { agentId } = sampleMeta('run');
/** The definitions of agents with the phases of the run and one more, and with another second phase. */
const fitting = knownPhases(agentId, ['plan-1', 'act-1', 'tell-1']);
const others = knownPhases(agentId, ['plan-1', 'act-2']);

async function take(store: RestingStore, definitions?: readonly string[], wish: Partial<TakeDueOptions> = {}) {
  const { claims } = await store.due.take({ owner: 'me', ttlMs: LONG_MS, limit: 1_000, definitions, ...wish });
  return claims;
}

const takeIds = async (store: RestingStore, definitions?: readonly string[], wish?: Partial<TakeDueOptions>) =>
  (await take(store, definitions, wish)).map(({ runId }) => runId).sort();

/** Saves a record with the reason why it is parked, as a part where the store can. */
async function parkBy(
  store: RestingStore,
  before: RunCheckpoint,
  { parked, ...options }: { readonly parked: RunCheckpoint['parked'] & object; readonly claim?: Claim },
): Promise<RunCheckpoint> {
  const { delta, record } = nextStep(before, [], { parked });
  await (isAppending(store) ? store.append(delta, options) : store.save(record, options));
  return record;
}

/** Cases of runs that were parked because their agent had changed. */
export const definitionCases: readonly Draft[] = [
  dueStore(
    'a run that was parked because its agent had changed is taken for the definitions that can continue it, and for no others (engine 19)',
    async ({ store }) => {
      await store.save(sampleRecord('run', fields), { fairKey: 'a' });
      assert.deepEqual(await take(store), []);
      assert.deepEqual(await take(store, []), []);
      assert.deepEqual(await take(store, others), []);
      assert.deepEqual(await take(store, fitting, { agentIds: ['another'] }), []);
      assert.deepEqual((await store.due.list({ limit: 10 })).runs, []);
      const looked = await store.due.take({ owner: 'me', ttlMs: LONG_MS, limit: 0, definitions: fitting });
      assert.deepEqual([looked.claims, looked.nextAt], [[], looked.now]);
      const [taken] = await take(store, [...others, ...fitting], { agentIds: [agentId] });
      assert(taken);
      assert.deepEqual([taken.epoch, taken.attempts, taken.run.attempts, taken.run.dueAt], [1, 2, 1, 0]);
      assert.ok(fitting.includes(taken.run.definition ?? ''));
      assert.deepEqual(await take(store, fitting), []);
    },
  ),

  dueStore(
    'a run that was parked by its last save is taken by its definition, and again after its release, until it is not parked (engine 19)',
    async ({ store }) => {
      const { parked: _, ...unparked } = fields;
      const before = sampleRecord('run', unparked);
      await store.save(before);
      const [first] = await take(store);
      assert(first);
      const record = await parkBy(store, before, { parked: changed, claim: first });
      await store.release(first, { attempts: 0 });
      assert.deepEqual(await take(store), []);
      const [second] = await take(store, fitting);
      assert(second);
      assert.deepEqual([second.epoch, second.attempts], [first.epoch + 1, 1]);
      // A time is nothing to a run that is never due.
      const now = (await store.due.list({ limit: 1 })).now;
      assert.equal(
        await store.due.leave(second, { dueAt: now + LONG_MS, readUpTo: 0, attempts: 0, givenBack: true }),
        true,
      );
      const [third] = await take(store, fitting);
      assert(third);
      const { parked: __, ...freed } = record;
      await store.save({ ...freed, revision: record.revision + 1 }, { claim: third });
      await store.release(third);
      assert.deepEqual(await takeIds(store, others), ['run']);
    },
  ),

  dueStore(
    'a run that was parked for another reason, that its parent continues, or that a host owns has no definition (engine 19)',
    async ({ store }) => {
      const parent = { runId: 'run', callId: 'call', rootRunId: 'run' };
      await store.save(sampleRecord('person', { ...fields, parked: { code: 'PARKED', reason: 'not today' } }));
      await store.save(sampleRecord('child', { ...fields, parent }));
      await store.save(sampleRecord('hosted', { ...fields, hosted: true }));
      const begun = sampleRecord('later', fields);
      await store.save(begun);
      await parkBy(store, begun, { parked: { code: 'PARKED', reason: 'by a person since' } });
      assert.deepEqual(await take(store, fitting), []);
    },
  ),

  dueStore(
    'runs that were parked for a definition have their turns with those that are due, up to the limit (engine 17, 19)',
    async ({ store }) => {
      for (let i = 0; i < 3; i++) await store.save(sampleRecord(`parked-${i}`, fields), { fairKey: 'a' });
      for (let i = 0; i < 3; i++) await store.save(sampleRecord(`due-${i}`), { fairKey: 'b' });
      const first = await takeIds(store, fitting, { limit: 2 });
      assert.deepEqual(first.map((id) => id.split('-')[0]).sort(), ['due', 'parked']);
      assert.equal((await take(store, fitting, { fullKeys: [] })).length, 4);
    },
  ),

  dueStore(
    'a run that a higher deployment parked for its definition is left alone by a lower one (engine 18, 19)',
    async ({ store }) => {
      await store.save(sampleRecord('run', fields));
      const claim = await store.claim('run', 'me', LONG_MS, { deployment: 2 });
      assert(claim);
      await store.release(claim);
      assert.deepEqual(await take(store, fitting, { version: 1 }), []);
      assert.deepEqual(await takeIds(store, fitting, { version: 3 }), ['run']);
    },
  ),
];
