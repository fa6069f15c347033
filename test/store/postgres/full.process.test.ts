import { expect, test } from 'vitest';
import { postgresStore } from '../../../src/store/postgres/index.ts';
import { seededRandom } from '../../../src/testing/store-contract/random.ts';
import { nextStep, sampleRecord, userMessage } from '../../../src/testing/store-contract/records.ts';
import { postgresServer, whyNoSmallDisk } from '../../fixtures/postgres-server.ts';

const server = postgresServer(['fsync=off'], '8m');

/** Letters at random, which the server cannot compress. */
function letters(seed: number): string {
  const random = seededRandom(seed);
  return Array.from({ length: 60_000 }, () => String.fromCharCode(40 + random.below(50))).join('');
}

test.skipIf(whyNoSmallDisk)(
  'a full disk: a typed refusal at once, what was stored loads, and room makes it work again (recovery 6)',
  async () => {
    await server.sql(`CREATE TABLESPACE small LOCATION '${server.smallDisk}'`);
    await server.sql('ALTER DATABASE postgres SET default_tablespace = small');
    const store = postgresStore({ pool: server.pool(), schema: server.freshSchema() });
    await store.save(sampleRecord('first'));
    await server.sql(
      'CREATE TABLE filler TABLESPACE small AS SELECT repeat(md5(i::text), 60) FROM generate_series(1, 1000) i',
    );

    const saved: string[] = [];
    let refusal: unknown;
    for (let i = 0; i < 200 && refusal === undefined; i++) {
      const record = sampleRecord(`run-${i}`, { messages: [userMessage(letters(i))] });
      await store.save(record).then(
        () => saved.push(record.meta.runId),
        (error: unknown) => {
          refusal = error;
        },
      );
    }
    expect(refusal).toMatchObject({ code: 'STORE_FULL', message: expect.stringContaining('full') });
    expect(saved.length).toBeGreaterThan(20);
    for (const runId of saved) expect((await store.load(runId))?.meta.runId).toBe(runId);
    const step = nextStep(sampleRecord('first'), [userMessage(letters(1_000))]);
    await expect(store.append(step.delta)).rejects.toMatchObject({ code: 'STORE_FULL' });
    expect(await store.load('first')).toEqual(sampleRecord('first'));

    await server.sql('DROP TABLE filler');
    await store.append(step.delta);
    expect(await store.load('first')).toEqual(step.record);
  },
);
