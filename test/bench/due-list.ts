import { join } from 'node:path';
import type { RestingStore, TakenRun } from '../../src/store/due-port.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { sampleRecord } from '../../src/testing/store-contract/records.ts';
import type { PostgresServer } from '../fixtures/postgres-server.ts';
import { addToPostgres, addToSqlite, type Copies } from '../store/due-runs.ts';
import { inFolder, median } from './measure.ts';
import type { Row } from './report.ts';

/** Many due runs of many keys. */
const spread: Copies = { count: 100_000, fairKey: (i) => `key-${i % 1_000}` };
/** A tenant with 10,000 due runs, and 50 tenants with one each, which came last. */
const noisy: Copies = { count: 10_050, fairKey: (i) => (i < 10_000 ? 'noisy' : `quiet-${i}`) };
const QUIET = 50;
const wish = { owner: 'bench', ttlMs: 600_000, limit: 16 };

/** Opens a store in which copies of a run are due, measures it, and closes it. */
type WithDue = (copies: Copies, measure: (store: RestingStore) => Promise<Row>) => Promise<Row>;

/** What taking costs behind a long list of due runs, and when the quiet tenants behind a noisy one begin. */
export async function dueListRows(server: PostgresServer | undefined): Promise<Row[]> {
  const stores: [string, WithDue][] = [['SQLite', onSqlite], ...(server ? [postgresOn(server)] : [])];
  const rows: Row[] = [];
  for (const [name, withDue] of stores) {
    rows.push(await withDue(spread, (store) => takingRow(name, store)));
    rows.push(await withDue(noisy, (store) => noisyRow(name, store)));
  }
  return rows;
}

const onSqlite: WithDue = (copies, measure) =>
  inFolder(async (folder) => {
    const path = join(folder, 'due.db');
    const store = sqliteStore({ path });
    await store.save(sampleRecord('run'), { fairKey: copies.fairKey(0) });
    addToSqlite(path, copies);
    return measure(store).finally(() => store.close());
  });

function postgresOn(server: PostgresServer): [string, WithDue] {
  const withDue: WithDue = async (copies, measure) => {
    const schema = server.freshSchema();
    const store = postgresStore({ pool: server.pool(), schema });
    await store.save(sampleRecord('run'), { fairKey: copies.fairKey(0) });
    await addToPostgres(server, schema, copies);
    return measure(store).finally(() => store.close());
  };
  return ['PostgreSQL', withDue];
}

/** 41 calls; the first ones find out that the list is long. */
async function takingRow(name: string, store: RestingStore): Promise<Row> {
  const times: number[] = [];
  for (let i = 0; i < 44; i++) {
    const startedAt = performance.now();
    const { claims } = await store.due.take(wish);
    times.push(performance.now() - startedAt);
    if (claims.length < wish.limit) throw new Error(`takeDue gave ${claims.length} of ${wish.limit} runs`);
  }
  const counted = times.slice(3).sort((a, b) => a - b);
  const note = `16 runs a call, median of ${counted.length}; the fastest ${counted[0]?.toFixed(2)} ms`;
  const what = `takeDue, 100,000 due runs of 1,000 keys, ${name}`;
  return { what, value: median(counted), unit: 'ms', budget: 5, note };
}

async function noisyRow(name: string, store: RestingStore): Promise<Row> {
  const taken: TakenRun[] = [];
  const quiet = () => taken.filter(({ run }) => run.fairKey !== 'noisy').length;
  while (quiet() < QUIET && taken.length < 1_000) taken.push(...(await store.due.take(wish)).claims);
  const last = taken.findLastIndex(({ run }) => run.fairKey !== 'noisy') + 1;
  const note = `runs that are taken until each of ${QUIET} tenants with one run has begun, behind 10,000 of one tenant`;
  return { what: `a noisy tenant, ${name}`, value: last, unit: 'runs', budget: 2 * QUIET, note };
}
