import fc from 'fast-check';
import { createBudget } from 'pawl';
import { postgresBudget } from 'pawl/stores/postgres';
import { describe, expect, test } from 'vitest';
import { memoryBudget } from '../../src/budget/memory.ts';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { event, play } from './played.ts';
import { call, use } from './stores.ts';

const server = postgresServer(['fsync=off', 'autovacuum=off']);
const PROCESSES = 8;
const CALLS = 100;

describe.skipIf(whyNoPostgres)('a budget in PostgreSQL', () => {
  test('says what adding it all up says, whichever process asks next (operations 13, supervision 4)', async () => {
    const pool = server.pool();
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 20 }), async (events) => {
        const schema = server.freshSchema();
        const open = async () => postgresBudget({ pool, schema });
        await play(events, await open(), open);
      }),
      { numRuns: 15 },
    );
  });

  test('lets 100 calls of one caller over 8 processes go no further over a limit than one process does (operations 13)', async () => {
    const granted = async (budgets: readonly ReturnType<typeof createBudget>[]) => {
      const asked = Array.from({ length: CALLS }, async (_, i) => {
        const budget = budgets[i % budgets.length];
        const reservation = await budget?.reserve('ada', call(`r${i}`, 1, { inputTokens: 100 }));
        if (reservation) await budget?.commit(reservation, use(100));
      });
      return (await Promise.allSettled(asked)).filter(({ status }) => status === 'fulfilled').length;
    };
    const limits = { tokens: 1_000, expected: { outputTokens: 0, seconds: 0 } };
    const schema = server.freshSchema();
    const shared = Array.from({ length: PROCESSES }, () =>
      createBudget({ ...limits, store: postgresBudget({ pool: server.pool({ max: 2 }), schema, timeoutMs: 60_000 }) }),
    );
    const alone = await granted([createBudget({ ...limits, store: memoryBudget() })]);
    expect(alone).toBe(10);
    expect(await granted(shared)).toBe(alone);
    expect((await shared[0]?.standing('ada'))?.spent.tokens).toBe(1_000);
  });

  test('makes its tables once, and then needs no right to make any (operations 13, 33)', async () => {
    const schema = server.freshSchema();
    const owner = createBudget({ tokens: 10, store: postgresBudget({ pool: server.pool(), schema }) });
    await owner.check('ada');
    await server.sql(`CREATE ROLE ${schema}_worker`);
    await server.sql(`GRANT USAGE ON SCHEMA ${schema} TO ${schema}_worker`);
    await server.sql(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${schema}_worker`);
    const pool = server.pool({ options: `-c role=${schema}_worker` });
    const worker = createBudget({ tokens: 10, store: postgresBudget({ pool, schema }) });
    const reservation = await worker.reserve('ada\0\u{1F600}', call('r', 1));
    expect(await worker.commit(reservation, use(10))).toMatchObject({ tokens: 10 });
    await expect(owner.check('ada\0\u{1F600}')).rejects.toMatchObject({ code: 'BUDGET_EXCEEDED' });
  });

  test('refuses an unknown option, a value that is no pool, and a name that no schema can have', () => {
    expect(() => postgresBudget({ pool: {} as never })).toThrow('postgresBudget needs a pool');
    expect(() => postgresBudget({ pool: server.pool(), schema: 'pg_x' })).toThrow('schema must be a name');
    expect(() => postgresBudget({ pool: server.pool(), path: 'x' } as never)).toThrow('unknown option path');
  });
});
