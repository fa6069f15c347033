import fc from 'fast-check';
import { memoryStore } from 'pawl';
import { parseCheckpoint } from 'pawl/stores/kit';
import { sqliteStore } from 'pawl/stores/sqlite';
import { arbitraries } from 'pawl/testing';
import { expect, test } from 'vitest';
import { torture } from '../crash/random.ts';
import { freshPath } from '../store/sqlite/files.ts';

const { checkpoint } = arbitraries(fc);

test.for([
  ['memory', () => memoryStore()],
  ['SQLite', () => sqliteStore({ path: freshPath(), durability: 'process' })],
] as const)(
  'any records, saved one over the other in the %s store, come back deep-equal (checkpoint 2, 7)',
  async ([, open]) => {
    const store = open();
    await fc.assert(
      fc.asyncProperty(fc.array(checkpoint, { minLength: 1, maxLength: 4 }), async (records) => {
        const last = new Map(records.map((record) => [record.meta.runId, record]));
        for (const record of records) await store.save(record);
        for (const [runId, record] of last) {
          const loaded = await store.load(runId);
          expect(loaded).toEqual(record);
          expect(parseCheckpoint(JSON.parse(JSON.stringify(loaded)))).toEqual(record);
        }
        expect(await store.listInterrupted()).toHaveLength(last.size);
        for (const runId of last.keys()) await store.delete(runId);
      }),
      { numRuns: torture > 1 ? 1_000 : 30 },
    );
  },
);
