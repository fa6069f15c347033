import { join } from 'node:path';
import { postgresStore } from 'pawl/stores/postgres';
import { sqliteStore } from 'pawl/stores/sqlite';
import pg from 'pg';

/** The store that services share: on PostgreSQL if there is a URL, else a file in their folder. */
export function sharedStore({ folder, url }: { readonly folder: string; readonly url?: string | undefined }) {
  if (!url) return sqliteStore({ path: join(folder, 'runs.db') });
  const pool = new pg.Pool({ connectionString: url, max: 8 });
  pool.on('error', () => {});
  return postgresStore({ pool, schema: 'restate' });
}
