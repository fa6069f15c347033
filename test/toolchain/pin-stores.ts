// Pins what today's stores write of runs whose process dies: `node -C pawl-source test/toolchain/pin-stores.ts v1 sqlite`. A version that
// is released is pinned once, and what is pinned is never written again: tests open copies of it for ever after.
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

const [version, kind] = process.argv.slice(2);
const folder = new URL(`../fixtures/stores/${version}/`, import.meta.url).pathname;
const work = mkdtempSync(join(tmpdir(), 'pawl-pin-'));

const { leaveRuns, PINNED_AT, recordsIn } = await import('../fixtures/pinned-runs.ts');
const { fixedWrites: writeFixed } = await import('../fixtures/fixed-writes.ts');
const { testClock } = await import('../../src/testing/test-clock.ts');
const clock = testClock(PINNED_AT);
const fixedWrites = (store: Parameters<typeof writeFixed>[0]) =>
  writeFixed(store, Number(version?.slice(1)) as Parameters<typeof writeFixed>[1]);

const pins: Record<string, () => Promise<void>> = { sqlite, postgres, records, runs };
const pin = pins[kind ?? ''];
if (!/^v\d+$/.test(version ?? '') || !pin) {
  console.error(`usage: pin-stores.ts v<version> ${Object.keys(pins).join(' | ')}`);
  process.exit(2);
}
mkdirSync(folder, { recursive: true });
await pin();
// The runs hang for ever: that is what they are pinned for.
process.exit(0);

/** A path of the fixtures that nothing stands at yet. */
function fresh(name: string): string {
  const path = join(folder, name);
  if (!existsSync(path)) return path;
  console.error(`${path} is pinned already: what a version wrote is never written again`);
  return process.exit(1);
}

/** A file of runs, as `pawl export` writes it. */
async function runs(): Promise<void> {
  const { exportedRuns } = await import('../lab/pinned-exports.ts');
  writeFileSync(fresh('runs.jsonl'), (await exportedRuns()).join(''));
}

async function sqlite(): Promise<void> {
  const target = fresh('runs.db');
  const { sqliteStore } = await import('../../src/store/sqlite/index.ts');
  const path = join(work, 'runs.db');
  await leaveRuns(sqliteStore({ path, clock }));
  // All that stands beside the file goes into it.
  const db = new DatabaseSync(path);
  // A file that no process has open has no mark.
  db.exec('DELETE FROM file_state; PRAGMA wal_checkpoint(TRUNCATE)');
  copyFileSync(path, target);
}

/** On the server that PAWL_TEST_POSTGRES_URL names, with the pg_dump that is found; its schemas are left to whoever owns it. */
async function postgres(): Promise<void> {
  const targets = { pinned_runs: fresh('postgres.sql'), pinned_writes: fresh('written-postgres.sql') };
  const url = process.env.PAWL_TEST_POSTGRES_URL ?? '';
  const { postgresStore } = await import('../../src/store/postgres/index.ts');
  const { Pool } = (await import('pg')).default;
  const pool = new Pool({ connectionString: url });
  await leaveRuns(postgresStore({ pool, schema: 'pinned_runs', clock }));
  await fixedWrites(postgresStore({ pool, schema: 'pinned_writes', clock }));
  for (const [schema, target] of Object.entries(targets)) {
    const flags = ['--inserts', '--no-owner', '--no-privileges', `--schema=${schema}`, url];
    const dump = execFileSync('pg_dump', flags, { encoding: 'utf8' });
    // Settings, comments and what only psql understands are of the version that dumped.
    const lines = dump.split('\n').filter((line) => !/^(--|SET |SELECT pg_catalog.set_config|\\|$)/.test(line));
    writeFileSync(target, `${lines.join('\n')}\n`);
  }
}

/** What every store must give of the pinned runs. */
async function records(): Promise<void> {
  const target = fresh('records.json');
  const { memoryStore } = await import('../../src/store/memory/memory-store.ts');
  const store = memoryStore();
  await leaveRuns(store);
  writeFileSync(target, `${JSON.stringify(await recordsIn(store), undefined, 2)}\n`);
}
