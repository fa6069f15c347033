import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import type { RestingStore, TakenRun } from '../../src/store/due-port.ts';
import { type PostgresPool, postgresStore } from '../../src/store/postgres/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { sampleRecord } from '../../src/testing/store-contract/records.ts';
import { torture } from '../crash/random.ts';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { addToPostgres, addToSqlite, type Copies } from './due-runs.ts';
import { freshPath } from './sqlite/files.ts';

const server = postgresServer(['fsync=off']);
/** 100,000 under torture. */
const DUE = 10_000 * torture;
const KEYS = 1_000;
/** One run of each of 50 keys behind 10,000 of one. */
const noisy: Copies = { count: 10_050, fairKey: (i) => (i < 10_000 ? 'noisy' : `tenant-${i % 50}`) };
const spread: Copies = { count: DUE, fairKey: (i) => `key-${i % KEYS}` };
const limit = { timeout: 180_000 * torture };
const wish = { owner: 'me', ttlMs: 600_000, limit: 16 };

async function openSqlite(copies: Copies) {
  const path = freshPath();
  const store = sqliteStore({ path, durability: 'process' });
  await store.save(sampleRecord('run'), { fairKey: copies.fairKey(0) });
  addToSqlite(path, copies);
  return { store, path };
}

async function openPostgres(copies: Copies, pool: PostgresPool = server.pool()) {
  const schema = server.freshSchema();
  const store = postgresStore({ pool, schema });
  await store.save(sampleRecord('run'), { fairKey: copies.fairKey(0) });
  await addToPostgres(server, schema, copies);
  return store;
}

/** The time of a call that nothing disturbs, ms: the eighth of 41. Others take the machine away at times. */
async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < 41; i++) {
    const begun = performance.now();
    await work();
    times.push(performance.now() - begun);
  }
  return times.sort((a, b) => a - b)[7] as number;
}

/** How many runs of quiet keys are among the first 100 that are taken. */
async function quietAmong100(store: RestingStore, lot: number): Promise<number> {
  const taken: TakenRun[] = [];
  while (taken.length < 100)
    taken.push(...(await store.due.take({ ...wish, limit: Math.min(lot, 100 - taken.length) })).claims);
  await Promise.all(taken.map((claim) => store.release(claim)));
  return taken.filter(({ run }) => run.fairKey !== 'noisy').length;
}

async function expectTurns(store: RestingStore): Promise<void> {
  const { claims } = await store.due.take(wish);
  expect(new Set(claims.map(({ run }) => run.fairKey)).size).toBe(16);
  for (const claim of claims) await store.release(claim);
}

/** A pool that notes the statements which take runs. */
function noting(pool: PostgresPool) {
  const statements: { readonly text: string; readonly values: unknown[] }[] = [];
  const known = new WeakSet<object>();
  const connect = async () => {
    const client = await pool.connect();
    if (known.has(client)) return client;
    known.add(client);
    const query = client.query.bind(client);
    client.query = (asked) => {
      if (asked.text.includes('SKIP LOCKED') && asked.text.includes('last_turn'))
        statements.push({ text: asked.text, values: asked.values ?? [] });
      return query(asked);
    };
    return client;
  };
  const noted: PostgresPool = { connect, on: pool.on.bind(pool), removeListener: pool.removeListener.bind(pool) };
  return { statements, noted };
}

describe(`with ${DUE} due runs of ${KEYS} keys`, () => {
  test('SQLite takes runs by its index of keys, and scans no table (engine 17, 44)', limit, async () => {
    const prepare = DatabaseSync.prototype.prepare;
    const texts = new Set<string>();
    DatabaseSync.prototype.prepare = function noted(text, ...rest) {
      if (/\bFROM due\b.* INDEXED BY/.test(text)) texts.add(text);
      return prepare.call(this, text, ...rest);
    };
    const { store, path } = await openSqlite(spread);
    // The statements are made when runs are first taken.
    await expectTurns(store).finally(() => {
      DatabaseSync.prototype.prepare = prepare;
    });
    const db = new DatabaseSync(path);
    const plans = [...texts].flatMap((text) =>
      db
        .prepare(`EXPLAIN QUERY PLAN ${text}`)
        .all()
        .map(({ detail }) => String(detail)),
    );
    db.close();
    expect(plans.filter((detail) => detail.includes('due_turns')).length).toBeGreaterThanOrEqual(3);
    expect(plans.filter((detail) => /^SCAN (due|d)\b/.test(detail) && !detail.includes('INDEX'))).toEqual([]);
    if (torture > 1) expect(await timeOf(() => store.due.take(wish))).toBeLessThan(5);
    await store.close();
  });

  test.skipIf(whyNoPostgres)('so does PostgreSQL, in one statement a call (engine 16, 17, 44)', limit, async () => {
    const { statements, noted } = noting(server.pool());
    await using store = await openPostgres(spread, noted);
    await expectTurns(store);
    await store.due.take({ ...wish, limit: 1 });
    // The first call finds out that there are many.
    expect(statements).toHaveLength(3);
    for (const { text, values } of statements) {
      const plan = (await server.sql(`EXPLAIN ${text}`, ...values)).map((row) => Object.values(row)[0]).join('\n');
      const isOfMany = text.includes('RECURSIVE');
      if (isOfMany) expect(plan).toContain('runs_fair_due_at_run_id_agent_idx');
      // A table of 10,000 small rows is read as fast as 512 places of it are found.
      if (isOfMany || torture > 1) expect(plan).not.toMatch(/Seq Scan on (runs|starts)/);
    }
    if (torture > 1) expect(await timeOf(() => store.due.take(wish))).toBeLessThan(5);
  });
});

describe('with 10,000 due runs of one key, and one of each of 50 keys', () => {
  test('SQLite takes the 50 within the first 100, one or 16 a call (engine 44)', limit, async () => {
    const { store } = await openSqlite(noisy);
    expect([await quietAmong100(store, 1), await quietAmong100(store, 16)]).toEqual([50, 50]);
    await store.close();
  });

  test.skipIf(whyNoPostgres)('so does PostgreSQL (engine 44)', limit, async () => {
    await using store = await openPostgres(noisy);
    expect([await quietAmong100(store, 1), await quietAmong100(store, 16)]).toEqual([50, 50]);
  });
});

/** The rows of `runs` that a statement looks at: EXPLAIN executes it. */
async function visitedRows({ text, values }: { readonly text: string; readonly values: unknown[] }): Promise<number> {
  const [row = {}] = await server.sql(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, ...values);
  const of = (node: PlanNode): number => {
    const { 'Actual Loops': loops = 0, 'Actual Rows': rows = 0, 'Rows Removed by Filter': removed = 0 } = node;
    const own = node['Relation Name'] === 'runs' && /Scan$/.test(node['Node Type']) ? loops * (rows + removed) : 0;
    return own + (node.Plans ?? []).reduce((sum, below) => sum + of(below), 0);
  };
  const plans = Object.values(row)[0] as readonly { readonly Plan: PlanNode }[] | string;
  const [first] = typeof plans === 'string' ? JSON.parse(plans) : plans;
  return of(first.Plan);
}

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows'?: number;
  readonly 'Actual Loops'?: number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

describe('a process with 10,000 due runs of other agents before its own', () => {
  const agentIds = [sampleRecord('run').meta.agentId, 'unused'];
  /** The first ones are of other agents. */
  const other = (own: number): Copies => ({ count: 10_000 + own, fairKey: (i) => `key-${i % 10}` });

  test.skipIf(whyNoPostgres).for([
    ['few', 20, 200],
    ['many', 600, 3_000],
  ] as const)('visits only the rows of its own in PostgreSQL, be they %s (engine 44)', limit, async ([, own, most]) => {
    const { statements, noted } = noting(server.pool());
    const schema = server.freshSchema();
    await using store = postgresStore({ pool: noted, schema });
    await store.save(sampleRecord('run'));
    await addToPostgres(server, schema, other(own));
    await server.sql(
      `UPDATE "${schema}".runs SET agent = 'another' WHERE body IN (SELECT body FROM "${schema}".runs ORDER BY body LIMIT 10000)`,
    );
    await server.sql(`VACUUM ANALYZE "${schema}".runs`);
    const { claims } = await store.due.take({ ...wish, agentIds, definitions: ['one', 'two'] });
    expect(claims).toHaveLength(16);
    expect(statements).toHaveLength(own > 512 ? 2 : 1);
    for (const { text, values } of statements) {
      const plan = (await server.sql(`EXPLAIN ${text}`, ...values)).map((row) => Object.values(row)[0]).join('\n');
      const ways = [...plan.matchAll(/Scan using (runs_\w+) on runs/g)].map(([, index]) => index);
      const others = ways.filter((way) => !/^runs_(agent|definition|pkey)/.test(String(way)));
      // When the next run is due is read from the index of times.
      expect(others).toEqual(['runs_due_at_run_id_idx']);
    }
    for (const statement of statements) expect(await visitedRows(statement)).toBeLessThan(most);
  });

  test('finds its own in SQLite by an index that begins with the agent (engine 44)', async () => {
    const prepare = DatabaseSync.prototype.prepare;
    const texts = new Set<string>();
    DatabaseSync.prototype.prepare = function noted(text, ...rest) {
      const statement = prepare.call(this, text, ...rest);
      for (const method of ['get', 'all', 'iterate'] as const) {
        const call = statement[method].bind(statement) as (...args: unknown[]) => never;
        statement[method] = (...args: unknown[]) => {
          if (/\bFROM due\b/.test(text)) texts.add(text);
          return call(...args);
        };
      }
      return statement;
    };
    const { store, path } = await openSqlite(other(600));
    const db = new DatabaseSync(path);
    db.exec("UPDATE due SET agent = 'another' WHERE no >= 1000 AND no < 11000");
    texts.clear();
    // The statements are made when runs are first taken.
    const taking = store.due.take({ ...wish, agentIds, definitions: ['one', 'two'] });
    const { claims } = await taking.finally(() => {
      DatabaseSync.prototype.prepare = prepare;
    });
    expect(claims).toHaveLength(16);
    const ofRuns = [...texts].filter((text) => !/WHERE (d\.)?no = /.test(text));
    expect(ofRuns.length).toBeGreaterThanOrEqual(6);
    const plans = ofRuns.flatMap((text) => db.prepare(`EXPLAIN QUERY PLAN ${text}`).all());
    db.close();
    const ways = plans.map(({ detail }) => String(detail)).filter((detail) => /\b(due|d) USING/.test(detail));
    expect(ways.filter((way) => !/\((agent|definition)=\?/.test(way) && !way.includes('(due_at>?)'))).toEqual([]);
    await store.close();
  });
});

describe.skipIf(whyNoPostgres)('a process that finds nothing due in PostgreSQL', () => {
  test('asks one statement, which changes nothing (engine 44)', async () => {
    const { statements, noted } = noting(server.pool());
    const schema = server.freshSchema();
    await using store = postgresStore({ pool: noted, schema });
    await store.save(sampleRecord('run'));
    expect(await store.claim('run', 'me', 600_000)).not.toBe(null);
    const before = await server.sql(`SELECT xmin, xmax, ctid FROM "${schema}".runs`);
    expect((await store.due.take(wish)).claims).toEqual([]);
    expect(statements).toHaveLength(1);
    expect(await server.sql(`SELECT xmin, xmax, ctid FROM "${schema}".runs`)).toEqual(before);
  });
});
