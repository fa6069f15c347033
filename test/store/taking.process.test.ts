import { describe, expect, test } from 'vitest';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { sampleRecord } from '../../src/testing/store-contract/records.ts';
import { torture } from '../crash/random.ts';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { type Child, startChild } from './child-process.ts';
import { addToPostgres, addToSqlite, type Copies } from './due-runs.ts';
import { freshPath } from './sqlite/files.ts';

const server = postgresServer(['fsync=off']);
/** 2,000 runs and 8 processes under torture. */
const [RUNS, PROCESSES] = torture > 1 ? [2_000, 8] : [700, 2];
const copies: Copies = { count: RUNS - 1, fairKey: (i) => `key-${i % 7}` };

/** Lets processes take all runs at once. @returns what each of them took */
async function race(start: () => Child): Promise<string[][]> {
  const children = Array.from({ length: PROCESSES }, start);
  await Promise.all(children.map((child) => child.next()));
  for (const child of children) child.tell();
  // A refused call would end its process.
  const taken = (await Promise.all(children.map((child) => child.next()))) as string[][];
  for (const child of children) child.tell();
  await Promise.all(children.map((child) => child.exited));
  return taken;
}

function expectEachOnce(taken: readonly string[][]): void {
  expect(taken.flat()).toHaveLength(RUNS);
  expect(new Set(taken.flat()).size).toBe(RUNS);
  expect(taken.filter((ids) => ids.length > 0).length).toBeGreaterThan(1);
}

describe(`${PROCESSES} processes that take ${RUNS} due runs at once`, () => {
  const limit = { timeout: 180_000 * torture };

  test('of a SQLite file take each run once, and none is refused (engine 16, 43)', limit, async () => {
    const path = freshPath();
    const store = sqliteStore({ path, durability: 'process' });
    await store.save(sampleRecord('run'));
    addToSqlite(path, copies);
    expectEachOnce(await race(() => startChild({ script: './sqlite/child.ts', role: 'take', path })));
    await store.close();
  });

  test.skipIf(whyNoPostgres)(
    'of a PostgreSQL schema take each run once, and none is refused (engine 16, 43)',
    limit,
    async () => {
      const schema = server.freshSchema();
      await using store = postgresStore({ pool: server.pool(), schema });
      await store.save(sampleRecord('run'));
      await addToPostgres(server, schema, copies);
      const child = { script: './postgres/child.ts', role: 'take', path: server.url, argument: schema };
      expectEachOnce(await race(() => startChild(child)));
    },
  );
});
