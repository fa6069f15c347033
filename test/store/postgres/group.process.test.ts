import { inspect } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Claim } from '../../../src/store/port.ts';
import { type PostgresStore, postgresStore } from '../../../src/store/postgres/index.ts';
import { nextStep, sampleOutcome, sampleRecord, userMessage } from '../../../src/testing/store-contract/records.ts';
import { encodeMessage, enterMessage } from '../../../src/values/message.ts';
import { postgresServer, whyNoPostgres } from '../../fixtures/postgres-server.ts';
import { TroubledPool, writing } from '../../fixtures/postgres-trouble.ts';
import { expectLoadInParts } from '../large-records.ts';

const server = postgresServer(['fsync=off']);

describe.skipIf(whyNoPostgres)('writes that are asked for at once', () => {
  let pool: TroubledPool;
  const runIds = Array.from({ length: 30 }, (_, i) => `run-${i}`);

  beforeAll(() => {
    pool = new TroubledPool(server.pool());
  });

  /** A store of its own, with some runs that it has claimed and saved. */
  async function begun(): Promise<{ store: PostgresStore; schema: string; claims: Claim[] }> {
    const schema = server.freshSchema();
    const store = postgresStore({ pool, schema });
    const claims = await Promise.all(runIds.map((runId) => store.claim(runId, 'one', 60_000)));
    await Promise.all(
      claims.map((claim) => store.save(sampleRecord(claim?.runId ?? ''), { claim: claim ?? undefined })),
    );
    pool.statements.length = 0;
    return { store, schema, claims: claims as Claim[] };
  }

  test('by owners go in one statement: nothing has to be looked up first (recovery 4)', async () => {
    const { store, claims } = await begun();
    await Promise.all(
      claims.map((claim, i) => {
        if (i % 3 === 0) return store.renew(claim, 60_000);
        if (i % 3 === 1) return store.append(nextStep(sampleRecord(claim.runId)).delta, { claim });
        return store.outcomes.keep(claim.runId, sampleOutcome(claim.runId), 4e12, { claim });
      }),
    );
    expect(pool.statements.map((text) => writing.test(text))).toEqual([true]);
    await Promise.all(claims.map((claim) => store.delete(claim.runId, { claim })));
    expect(pool.statements).toHaveLength(2);
    expect(await store.listInterrupted()).toEqual([]);
  });

  test('by others take one look for all of them (recovery 4)', async () => {
    const { store } = await begun();
    await Promise.all(runIds.map((runId) => store.save(sampleRecord(`new ${runId}`))));
    expect(pool.statements.map((text) => writing.test(text))).toEqual([false, true]);
  });

  test('come in few shapes, so that a server that keeps statistics about statements sees few (recovery 4)', async () => {
    const { store, claims } = await begun();
    const shapes = new Set<string>();
    for (let count = 1; count <= 30; count++) {
      const appended = claims.slice(0, count).map((claim) => {
        const record = sampleRecord(claim.runId, { revision: count });
        return store.save(record, { claim });
      });
      await Promise.all(appended);
    }
    for (const text of pool.statements) shapes.add(text);
    expect(shapes.size).toBeLessThanOrEqual(6);
  });

  test('of one run land in the order in which they were asked for (checkpoint 7)', async () => {
    const { store } = await begun();
    let record = sampleRecord('mine');
    const asked: Promise<unknown>[] = [store.save(record)];
    for (let i = 0; i < 20; i++) {
      const step = nextStep(record);
      asked.push(store.append(step.delta), store.save(sampleRecord(`other-${i}`)));
      record = step.record;
    }
    asked.push(store.outcomes.keep('mine', sampleOutcome('mine'), 4e12));
    const [loaded] = await Promise.all([store.load('mine'), ...asked]);
    expect(loaded).toEqual(record);
  });

  test('an error of the server fails the write that caused it, and no other (recovery 4)', async () => {
    const { store, schema, claims } = await begun();
    await server.sql(`ALTER TABLE "${schema}".messages ADD CHECK (messages NOT LIKE '%poison%')`);
    const bad = sampleRecord('bad', { messages: [userMessage('poison')] });
    const [first, second] = claims as [Claim, Claim];
    const settled = await Promise.allSettled([
      store.save(sampleRecord('a')),
      store.save(bad),
      store.append(nextStep(sampleRecord('run-0')).delta, { claim: first }),
      store.append(nextStep(sampleRecord('run-1'), [userMessage('poison')]).delta, { claim: second }),
      store.claim('a', 'one', 60_000),
      store.save({ ...bad, meta: { ...bad.meta, runId: 'a' } }),
      store.save(sampleRecord('b')),
    ]);
    expect(settled.map(({ status }) => status === 'fulfilled')).toEqual([true, false, true, false, true, false, true]);
    expect(settled[1]).toMatchObject({ reason: { code: 'STORE_UNAVAILABLE' } });
    expect(settled[5]).toMatchObject({ reason: { code: 'RUN_OWNED_ELSEWHERE' } });
    expect(inspect(settled, { depth: 9, showHidden: true })).not.toContain('"poison"');
    expect((await store.load('run-0'))?.revision).toBe(2);
    expect((await store.load('run-1'))?.revision).toBe(1);
    expect(await store.load('bad')).toBe(null);
  });

  test('hold no connection afterwards, and few at a time (recovery 4)', async () => {
    const { store, claims } = await begun();
    pool.most = 0;
    await Promise.all([
      ...claims.map((claim) => store.append(nextStep(sampleRecord(claim.runId)).delta, { claim })),
      ...runIds.flatMap((runId) => [store.load(runId), store.outcomes.find(runId)]),
      store.listInterrupted(),
    ]);
    await expect.poll(() => pool.out).toBe(0);
    expect(pool.most).toBeLessThanOrEqual(6);
  });
});

describe.skipIf(whyNoPostgres)('large records', () => {
  test('load lets the event loop continue between parts, and reads one state of the record (checkpoint 7, faults 14)', async () => {
    const schema = server.freshSchema();
    const pool = server.pool();
    await using store = postgresStore({ pool, schema });
    await using other = postgresStore({ pool, schema });
    await expectLoadInParts(store, other, 300_000);
  });

  test('the cached text of a message is given back once it is stored, and only then (checkpoint 9)', async () => {
    await using store = postgresStore({ pool: server.pool(), schema: server.freshSchema() });
    await store.save(sampleRecord('run'));
    const message = enterMessage(userMessage('hello'));
    const text = encodeMessage(message);
    const { delta } = nextStep(sampleRecord('run'), [message]);
    await expect(store.append({ ...delta, revision: 9 })).rejects.toMatchObject({ code: 'REVISION_GAP' });
    await store.append(delta);
    expect(encodeMessage(message)).toBe(text);
    expect((await store.load('run'))?.messages.at(-1)).toEqual(userMessage('hello'));
  });
});

test.skipIf(whyNoPostgres)('a store can be wrapped by spreading it', async () => {
  const store = postgresStore({ pool: server.pool(), schema: server.freshSchema() });
  const wrapped = { ...store, load: async () => null };
  await wrapped.save(sampleRecord('run'));
  expect(await store.load('run')).toEqual(sampleRecord('run'));
  await wrapped.close();
});
