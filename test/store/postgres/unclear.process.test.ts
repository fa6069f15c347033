import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Claim } from '../../../src/store/port.ts';
import { type PostgresStore, postgresStore } from '../../../src/store/postgres/index.ts';
import { nextStep, sampleOutcome, sampleRecord, userMessage } from '../../../src/testing/store-contract/records.ts';
import { postgresServer, whyNoPostgres } from '../../fixtures/postgres-server.ts';
import { TroubledPool, writing } from '../../fixtures/postgres-trouble.ts';
import { emptyTables } from './tables.ts';

const server = postgresServer(['fsync=off']);
const schema = server.freshSchema();
/** The year 2100. */
const LATER = 4_102_444_800_000;

/** What a write leaves, to be compared with what it leaves when nothing goes wrong. */
async function left(store: PostgresStore): Promise<unknown> {
  const [record, outcome, listed] = [
    await store.load('run'),
    await store.outcomes.find('run'),
    await store.listInterrupted(),
  ];
  return { record, outcome, listed };
}

/** Each write, on a run that `one` has claimed and saved. */
const writes: Readonly<Record<string, (store: PostgresStore, claim: Claim) => Promise<unknown>>> = {
  'a first save': (store) => store.save(sampleRecord('other')),
  'a save of a whole record': (store, claim) =>
    store.save(sampleRecord('run', { revision: 2, messages: [userMessage('x'), userMessage('y')] }), { claim }),
  'an append': (store, claim) => store.append(nextStep(sampleRecord('run')).delta, { claim }),
  'a first claim': (store) => store.claim('another', 'one', 60_000),
  'a claim of a released run': async (store, claim) => {
    await store.release(claim);
    return store.claim('run', 'one', 60_000);
  },
  'a renewal': (store, claim) => store.renew(claim, 60_000),
  'a release': (store, claim) => store.release(claim),
  'keeping an outcome': (store, claim) => store.outcomes.keep('run', sampleOutcome('run'), LATER, { claim }),
  'a delete': (store, claim) => store.delete('run', { claim }),
};

describe.skipIf(whyNoPostgres)('a write whose answer gets lost (faults 40, recovery 4)', () => {
  let pool: TroubledPool;
  let expected: Map<string, unknown>;

  async function begun(): Promise<{ store: PostgresStore; claim: Claim }> {
    await emptyTables(server, schema);
    const store = postgresStore({ pool, schema, timeoutMs: 5_000 });
    const claim = (await store.claim('run', 'one', 60_000)) as Claim;
    await store.save(sampleRecord('run'), { claim });
    return { store, claim };
  }

  beforeAll(async () => {
    pool = new TroubledPool(server.pool());
    await postgresStore({ pool, schema }).load('run');
    expected = new Map();
    for (const [name, write] of Object.entries(writes)) {
      const { store, claim } = await begun();
      const answer = await write(store, claim);
      expected.set(name, { answer, left: await left(store) });
      await store.close();
    }
  });
  beforeEach(() => {
    pool.fate = () => 'fine';
    pool.fired = 0;
    pool.late.length = 0;
  });

  for (const fates of [['lost'], ['unsent'], ['lost', 'lost', 'unsent', 'lost']] as const) {
    test.for(Object.keys(writes))(`${fates.join(', ')}: %s is done once`, async (name) => {
      const { store, claim } = await begun();
      pool.next(writing, ...fates);
      const answer = await writes[name]?.(store, claim);
      expect(pool.fired).toBeGreaterThan(0);
      expect({ answer, left: await left(store) }).toEqual(expected.get(name));
      await store.close();
    });
  }

  test.for(Object.keys(writes))(
    'a statement that comes late, after it was sent again, changes nothing: %s',
    async (name) => {
      const { store, claim } = await begun();
      pool.next(writing, 'unsent');
      await writes[name]?.(store, claim);
      const before = await left(store);
      expect(pool.late).toHaveLength(1);
      await sendLate();
      expect(await left(store)).toEqual(before);
      await store.close();
    },
  );

  test.for(['a save of a whole record', 'an append', 'a renewal', 'keeping an outcome'])(
    'a statement that comes late, after the run continued, changes nothing: %s',
    async (name) => {
      const { store, claim } = await begun();
      pool.fate = (text) => (writing.test(text) ? 'unsent' : 'fine');
      const hasty = postgresStore({ pool, schema, timeoutMs: 1_500 });
      await expect(writes[name]?.(hasty, claim)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
      expect(pool.late.length).toBeGreaterThan(0);
      pool.fate = () => 'fine';
      const record = sampleRecord('run', {
        revision: 3,
        messages: [userMessage('a'), userMessage('b'), userMessage('c')],
      });
      // What comes late must find the row changed by whatever came after it.
      if (name !== 'keeping an outcome') await store.save(record, { claim });
      await store.outcomes.keep('run', sampleOutcome('run', { output: 'the true one' }), LATER, { claim });
      const before = await left(store);
      await sendLate();
      expect(await left(store)).toEqual(before);
      await store.delete('run', { claim });
      await sendLate();
      expect(await store.load('run')).toBe(null);
      await store.close();
    },
  );

  test('is given up when its time is over, and says so; the next one works', async () => {
    const { store, claim } = await begun();
    const hasty = postgresStore({ pool, schema, timeoutMs: 1_500 });
    pool.fate = (text) => (writing.test(text) ? 'unsent' : 'fine');
    const calls = [hasty.append(nextStep(sampleRecord('run')).delta, { claim }), hasty.save(sampleRecord('other'))];
    for (const call of calls) {
      await expect(call).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
        message: expect.stringContaining(schema),
        cause: { message: 'Connection terminated unexpectedly' },
      });
    }
    expect(pool.fired).toBeGreaterThan(2);
    pool.fate = () => 'fine';
    await hasty.append(nextStep(sampleRecord('run')).delta, { claim });
    expect((await store.load('run'))?.revision).toBe(2);
    await store.close();
  });

  test('is not taken back by an abort that comes after it was sent', async () => {
    const { store, claim } = await begun();
    const controller = new AbortController();
    pool.fate = (text) => {
      if (!writing.test(text) || controller.signal.aborted) return 'fine';
      controller.abort(new Error('stop'));
      return 'lost';
    };
    await store.append(nextStep(sampleRecord('run')).delta, { claim, signal: controller.signal });
    expect(pool.fired).toBe(1);
    expect((await store.load('run'))?.revision).toBe(2);
    await store.close();
  });

  /** What a broken connection had sent reaches the server after all. */
  async function sendLate(): Promise<void> {
    const client = await pool.connect();
    for (const query of pool.late) await client.query(query);
    client.release();
  }
});
