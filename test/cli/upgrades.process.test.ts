import { readFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { postgresStore } from 'pawl/stores/postgres';
import { sqliteStore } from 'pawl/stores/sqlite';
import { describe, expect, test } from 'vitest';
import { RECORD_VERSION } from '../../src/record/checkpoint.ts';
import { copyOfPinned, freshFolder, pinnedVersions } from '../fixtures/pinned-stores.ts';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { emptyFolder, pawl } from './pawl.ts';

const page = readFileSync(fileURLToPath(new URL('../../docs/operations.md', import.meta.url)), 'utf8');
const server = postgresServer(['fsync=off']);

/** The newest row of the table of versions. */
const [, records, written, sqlite, postgres] =
  page.match(/\| 0\.1\.0 \| 1 to (\d+) \| (\d+) \| 1 to (\d+) \| 1 to (\d+) \|/)?.map(Number) ?? [];

function layoutOf(path: string): unknown {
  const db = new DatabaseSync(path, { readOnly: true });
  const { user_version: layout } = db.prepare('PRAGMA user_version').get() as { user_version: number };
  db.close();
  return layout;
}

describe('an upgrade', () => {
  test.for(pinnedVersions)(
    '`pawl doctor` leaves a store of an older layout as it is, and says so: version %s (operations 19)',
    async (version) => {
      const path = copyOfPinned('runs.db', version);
      const before = layoutOf(path);
      const { code, stderr } = await pawl(['doctor', '--store', path], { cwd: emptyFolder() });
      expect(code).toBe(2);
      expect(stderr).toContain('the first process that writes to it updates it');
      expect(layoutOf(path)).toBe(before);
      await pawl(['list', '--store', path], { cwd: emptyFolder() });
      expect(layoutOf(path)).toBe(sqlite);
      expect((await pawl(['doctor', '--store', path], { cwd: emptyFolder() })).code).not.toBe(2);
    },
  );

  test('is on its page with the versions of records and the layouts of this Pawl (operations 19)', async () => {
    expect([records, written]).toEqual([RECORD_VERSION, RECORD_VERSION]);
    const path = `${freshFolder()}/runs.db`;
    await using store = sqliteStore({ path });
    await store.listInterrupted();
    await store.claim('run', 'owner', 1_000);
    expect(layoutOf(path)).toBe(sqlite);
  });

  test.skipIf(whyNoPostgres)('is on its page with the layout of this Pawl in PostgreSQL (operations 19)', async () => {
    const schema = server.freshSchema();
    const store = postgresStore({ pool: server.pool(), schema });
    await store.listInterrupted();
    const [found] = await server.sql(`SELECT layout FROM ${schema}.layouts`);
    expect(Number(found?.layout)).toBe(postgres);
  });
});
