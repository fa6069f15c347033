import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import type { RunCheckpoint } from '../../../src/record/checkpoint.ts';
import type { RestingStore } from '../../../src/store/due-port.ts';
import { memoryStore } from '../../../src/store/memory/memory-store.ts';
import type { AppendingStore, Claim, StoreGroups } from '../../../src/store/port.ts';
import { postgresStore } from '../../../src/store/postgres/index.ts';
import { nextStep, sampleOutcome, sampleRecord, userMessage } from '../../../src/testing/store-contract/records.ts';
import { type TestClock, testClock } from '../../../src/testing/test-clock.ts';
import { seed, torture } from '../../crash/random.ts';
import { postgresServer, whyNoPostgres } from '../../fixtures/postgres-server.ts';
import { type Fate, TroubledPool, writing } from '../../fixtures/postgres-trouble.ts';
import { emptyTables } from './tables.ts';

const server = postgresServer(['fsync=off']);
const schema = server.freshSchema();

const limit = { timeout: 180_000 * torture };

const methods = [
  ...['save', 'append', 'append', 'gap', 'delete', 'claim', 'claim', 'renew', 'release'],
  ...['keepOutcome', 'outcome', 'load', 'list', 'wait'],
  ...['leave', 'leave', 'send', 'send', 'acknowledge', 'inbox', 'due', 'take', 'take', 'resting'],
] as const;

/** What one of two hosts asks of one of three runs, with no claim or one of the last that it got. */
const command = fc.record({
  method: fc.constantFrom(...methods),
  run: fc.nat(2),
  host: fc.nat(1),
  claim: fc.constantFrom('none', 'last', 'last', 'last', 'one before'),
  /** What becomes of the next statements that write. */
  fates: fc.array(fc.constantFrom<Fate>('fine', 'fine', 'lost', 'unsent'), { maxLength: 3 }),
  /** Whether a run that leaves has read all commands, and when it is due. */
  hasRead: fc.boolean(),
  dueMs: fc.constantFrom(0, 700, undefined),
});
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;

/** A story whose writes all meet with trouble: of those that are drawn only few may. */
const troubled = (
  [
    'claim',
    'save',
    'append',
    'append',
    'release',
    'take',
    'append',
    'keepOutcome',
    'append',
    'renew',
    'delete',
  ] as const
).map(
  (method): Command => ({ method, run: 0, host: 0, claim: 'last', fates: ['lost', 'unsent'], hasRead: true, dueMs: 0 }),
);

/** A place where commands are carried out: by both hosts on one storage. */
type Stores = AppendingStore & RestingStore & Pick<StoreGroups, 'outcomes'>;

interface World {
  readonly hosts: readonly Stores[];
  readonly claims: Map<string, Claim[]>;
  readonly records: Map<string, RunCheckpoint>;
}

const world = (hosts: readonly Stores[]): World => ({ hosts, claims: new Map(), records: new Map() });

/** The answer, or the code of the refusal. */
async function answer({ hosts, claims, records }: World, asked: Command, clock: TestClock): Promise<unknown> {
  const runId = `run-${asked.run}`;
  const owner = `host-${asked.host}`;
  const store = hosts[asked.host] as Stores;
  const own = claims.get(`${owner} ${runId}`) ?? [];
  const claim = asked.claim === 'none' ? undefined : own.at(asked.claim === 'last' ? -1 : -2);
  const record = records.get(runId) ?? sampleRecord(runId);
  const step = nextStep(record, [userMessage(`${owner} ${record.revision}`)], { attempts: record.revision % 3 });
  const does: Record<Command['method'], () => Promise<unknown>> = {
    save: () => store.save({ ...step.record, messages: step.record.messages.slice(-2) }, { claim }),
    append: () => store.append(step.delta, { claim }),
    gap: () => store.append({ ...step.delta, revision: step.delta.revision + 2 }, { claim }),
    delete: () => store.delete(runId, { claim }),
    claim: () => store.claim(runId, owner, 1_000),
    renew: async () => claim && store.renew(claim, 1_000),
    release: async () => claim && store.release(claim),
    keepOutcome: () =>
      store.outcomes.keep(runId, sampleOutcome(runId, { output: owner }), clock.now() + 3_000, { claim }),
    outcome: () => store.outcomes.find(runId),
    load: () => store.load(runId),
    list: () => store.listInterrupted(),
    leave: async () => {
      const dueAt = asked.dueMs === undefined ? undefined : clock.now() + asked.dueMs;
      const readUpTo = asked.hasRead ? Number.MAX_SAFE_INTEGER : 0;
      return claim && store.due.leave(claim, { dueAt, readUpTo, attempts: 0 });
    },
    send: () => store.commands.send(runId, { id: `c${asked.host}`, kind: 'steer', text: 'Hello.' }),
    acknowledge: async () => claim && store.commands.acknowledge(claim, ['c0']),
    inbox: async () => (await store.commands.inbox({ runId })).map(({ command }) => command.id),
    due: async () => (await store.due.list({ limit: 2 })).runs,
    take: async () => {
      const { claims: taken } = await store.due.take({ owner, ttlMs: 1_000, limit: 10 });
      for (const { run: _, ...got } of taken) {
        const of = `${owner} ${got.runId}`;
        claims.set(of, [...(claims.get(of) ?? []), got]);
      }
      return taken.toSorted((a, b) => (a.runId < b.runId ? -1 : 1));
    },
    resting: () => store.due.countResting(),
    wait: async () => {},
  };
  try {
    const value = await does[asked.method]();
    if (asked.method === 'claim' && value) claims.set(`${owner} ${runId}`, [...own, value as Claim]);
    const now = await store.load(runId);
    if (now) records.set(runId, now);
    else records.delete(runId);
    return value ?? null;
  } catch (error) {
    return (error as { code?: unknown }).code;
  }
}

describe.skipIf(whyNoPostgres)('two hosts on PostgreSQL, any answers of which get lost', () => {
  let pool: TroubledPool;
  beforeAll(() => {
    pool = new TroubledPool(server.pool());
  });

  test(
    `get what two on one memory store would get (seed ${seed}) (checkpoint 8, 14, recovery 3, 4, waiting 16, 18, engine 16)`,
    limit,
    async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(command, { minLength: 10, maxLength: 40 }), async (commands) => {
          pool.fate = () => 'fine';
          const clock = testClock(1_000_000);
          const memory = memoryStore({ clock });
          const model = world([memory, memory]);
          const stores = [0, 1].map(() => postgresStore({ pool, schema, clock }));
          const real = world(stores);
          // The first use of a store forgets claims of runs without a record; a memory store has no such moment.
          for (const store of stores) await store.load('run');
          await emptyTables(server, schema);
          for (const [i, asked] of commands.entries()) {
            if (asked.method === 'wait') await clock.advance(400);
            pool.next(writing, ...asked.fates);
            const [given, expected] = [await answer(real, asked, clock), await answer(model, asked, clock)];
            expect(given, `command ${i}: ${JSON.stringify(asked)}`).toEqual(expected);
          }
          for (const store of stores) await store.close();
        }),
        { numRuns: 8 * torture, seed, examples: [[troubled]] },
      );
      expect(pool.fired).toBeGreaterThan(5);
    },
  );
});
