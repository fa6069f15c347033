import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { postgresBudget, postgresStore } from 'pawl/stores/postgres';
import { reply } from 'pawl/testing';
import { expect, test } from 'vitest';
import { hostOf } from '../../fixtures/host.ts';
import { postgresServer, whyNoPostgres } from '../../fixtures/postgres-server.ts';

const server = postgresServer(['fsync=off']);
const page = readFileSync(fileURLToPath(new URL('../../../docs/postgresql.md', import.meta.url)), 'utf8');
const blocks = [...page.matchAll(/```sql\n([\s\S]*?)```/g)].map(([, text = '']) => text);

test.skipIf(whyNoPostgres)(
  'with the statements of its page a worker has rights to rows alone: the owner makes the tables, runs work, and the time limits hold (operations 33)',
  async () => {
    const schema = server.freshSchema();
    // Roles are of the whole server: each test has its own.
    const named = (text: string) =>
      text.replaceAll(/\bpawl_(owner|worker)\b/g, `${schema}_$1`).replaceAll(/\bpawl\b/g, schema);
    expect(blocks).toHaveLength(2);
    for (const block of blocks)
      for (const sql of block.split(';').filter((each) => each.trim() !== '')) await server.sql(named(sql));
    const asRole = (role: string) => server.pool({ options: `-c role=${schema}_${role}` });

    // Before the owner has made the tables, the worker makes none.
    const early = postgresStore({ pool: asRole('worker'), schema });
    await expect(early.listInterrupted()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await early.close();
    const owner = postgresStore({ pool: asRole('owner'), schema });
    await owner.listInterrupted();
    await owner.close();
    const budget = postgresBudget({ pool: asRole('owner'), schema });
    await budget.standing('ada', { windowMs: 1_000, reservationMs: 1_000, clock: { now: Date.now } as never });

    await using store = postgresStore({ pool: asRole('worker'), schema });
    const host = hostOf({ store, script: [reply('done')] });
    expect(await host.run({ runId: 'r' })).toMatchObject({ status: 'ok', durable: true });
    expect((await store.outcomes.find('r'))?.status).toBe('ok');
    await host.executor.shutdown();
    const refused = asRole('worker').query(`CREATE TABLE ${schema}.mine (x int)`);
    await expect(refused).rejects.toMatchObject({ code: '42501' });
    const [limit] = await server.sql(
      `SELECT array_to_string(rolconfig, ',') AS settings FROM pg_roles WHERE rolname = $1`,
      `${schema}_worker`,
    );
    expect(limit?.settings).toContain('statement_timeout=30s');
  },
);
