import { fc, test } from '@fast-check/vitest';
import { describe, expect } from 'vitest';
import type { Claim } from '../../../src/store/port.ts';
import { type SqliteStore, sqliteStore } from '../../../src/store/sqlite/index.ts';
import { nextStep, sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { readProperty } from '../../../src/values/error-data.ts';
import { torture } from '../../crash/random.ts';
import { freshPath, sql } from './files.ts';

describe('what a store remembers of the runs that it writes', () => {
  test('is not believed when another connection has taken the run since (recovery 3)', async () => {
    const path = freshPath();
    await using store = sqliteStore({ path });
    const claim = await claimOf(store, 'one');
    const first = nextStep(sampleRecord('run'));
    await store.save(sampleRecord('run'), { claim });
    await store.append(first.delta, { claim });
    sql(path, "UPDATE claims SET epoch = epoch + 1, owner = 'two'");
    const late = store.append(nextStep(first.record).delta, { claim });
    await expect(late).rejects.toMatchObject({ code: 'LEASE_LOST' });
    expect((await store.load('run'))?.revision).toBe(first.record.revision);
  });

  test('is not believed when another connection has removed the record since (checkpoint 5)', async () => {
    const path = freshPath();
    await using store = sqliteStore({ path });
    const first = nextStep(sampleRecord('run'));
    await store.save(sampleRecord('run'));
    await store.append(first.delta);
    await using other = sqliteStore({ path });
    await other.delete('run');
    await expect(store.append(nextStep(first.record).delta)).rejects.toMatchObject({ code: 'REVISION_GAP' });
  });

  const ops = fc.record({
    by: fc.constantFrom(0, 1),
    op: fc.constantFrom('claim', 'save', 'append', 'append', 'again', 'delete', 'release', 'renew'),
    runId: fc.constantFrom('a', 'b'),
  });

  test.prop([fc.array(ops, { minLength: 4, maxLength: 24 })], { numRuns: torture > 1 ? 400 : 8 })(
    'never changes an answer: two stores that stay open answer as stores that are opened for each write do',
    async (story) => {
      const [kept, opened] = [freshPath(), freshPath()];
      await using one = sqliteStore({ path: kept });
      await using two = sqliteStore({ path: kept });
      const [lasting, brief] = [new Story(), new Story()];
      for (const { by, op, runId } of story) {
        const answer = await lasting.tell([one, two][by] as SqliteStore, `${by}`, { op, runId });
        // As the first claim of each store does that is opened: these two have no more than one such moment.
        if (op === 'claim' && typeof answer === 'number') sql(kept, forgetClaims);
        await using fresh = sqliteStore({ path: opened });
        expect([op, runId, answer]).toEqual([op, runId, await brief.tell(fresh, `${by}`, { op, runId })]);
      }
      for (const runId of ['a', 'b']) {
        await using fresh = sqliteStore({ path: opened });
        expect(await one.load(runId)).toEqual(await fresh.load(runId));
      }
    },
    // Each story opens some twenty stores on the disk.
    180_000 * torture,
  );
});

/** Released claims of runs that have no record; their epochs go with them. */
const forgetClaims = 'DELETE FROM claims WHERE owner IS NULL AND run_id NOT IN (SELECT run_id FROM runs)';

async function claimOf(store: SqliteStore, owner: string): Promise<Claim> {
  const claim = await store.claim('run', owner, 60_000);
  if (!claim) throw new Error('the run is held by somebody else');
  return claim;
}

/** Two owners that write two runs, each as far as it has got. */
class Story {
  readonly #claims = new Map<string, Claim>();
  readonly #records = new Map<string, ReturnType<typeof sampleRecord>>();

  /** What came of an operation: its result where that says something, or the code of its error. */
  async tell(store: SqliteStore, owner: string, { op, runId }: { op: string; runId: string }): Promise<unknown> {
    const claim = this.#claims.get(`${owner} ${runId}`);
    const options = claim ? { claim } : {};
    const record = this.#records.get(runId) ?? sampleRecord(runId);
    const next = nextStep(record);
    try {
      if (op === 'claim') {
        const granted = await store.claim(runId, `owner-${owner}`, 60_000);
        if (granted) this.#claims.set(`${owner} ${runId}`, granted);
        return granted?.epoch ?? null;
      }
      if (op === 'save') await store.save(record, options);
      if (op === 'append') {
        await store.append(next.delta, options);
        this.#records.set(runId, next.record);
      }
      if (op === 'again') await store.append(nextStep(sampleRecord(runId)).delta, options);
      if (op === 'delete') {
        await store.delete(runId, options);
        this.#records.delete(runId);
      }
      if (op === 'release' && claim) await store.release(claim);
      if (op === 'renew' && claim) return (await store.renew(claim, 60_000)).epoch;
      return 'done';
    } catch (error) {
      return readProperty(error, 'code');
    }
  }
}
