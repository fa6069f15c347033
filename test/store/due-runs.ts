import { DatabaseSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import type { PostgresServer } from '../fixtures/postgres-server.ts';

/* Many due runs, as stores have them: copies of the run `run`, which is stored. Saving each of them would take minutes. */

/** The copies: their ids, and the fair key of each. */
export interface Copies {
  readonly count: number;
  readonly fairKey: (i: number) => string;
}

const idOf = (i: number) => `run-${i}`;
const metaOf = (meta: string, i: number) => meta.replace('"run"', JSON.stringify(idOf(i)));

/** Adds copies of the stored run `run` to a SQLite file. */
export function addToSqlite(path: string, { count, fairKey }: Copies): void {
  const db = new DatabaseSync(path, { timeout: 5_000 });
  const run = db
    .prepare("SELECT * FROM runs JOIN heads USING (no) JOIN due USING (no) WHERE runs.run_id = 'run'")
    .get() as never as {
    readonly [column: string]: string & number;
  };
  const runs = db.prepare('INSERT INTO runs (no, run_id, meta_checksum, extras_checksum, meta) VALUES (?, ?, ?, ?, ?)');
  const heads = db.prepare('INSERT INTO heads VALUES (?, ?, ?, ?, ?, ?, ?, ?)');
  const due = db.prepare('INSERT INTO due (no, due_at, run_id, fair, agent) VALUES (?, 0, ?, ?, ?)');
  db.exec('BEGIN');
  for (let i = 0; i < count; i++) {
    const [no, meta] = [1_000 + i, metaOf(String(run.meta), i)];
    runs.run(no, idOf(i), crc32(meta), 0, meta);
    const { generation, version, revision, updated_at, message_count, head } = run as never as Record<string, number>;
    const columns = `${generation},${version},${revision},${updated_at},${message_count}`;
    const checksum = crc32(String(head), crc32(columns));
    heads.run(no, ...([generation, version, revision, updated_at, message_count, checksum, head] as number[]));
    due.run(no, idOf(i), fairKey(i), String(run.agent));
  }
  db.exec('COMMIT');
  db.exec('ANALYZE');
  db.close();
}

/** Adds copies of the stored run `run` to a schema of PostgreSQL. */
export async function addToPostgres(server: PostgresServer, schema: string, { count, fairKey }: Copies): Promise<void> {
  const [run] = await server.sql(
    `SELECT r.version, r.revision, r.updated_at, r.message_count, r.head, s.meta, s.extras_checksum FROM "${schema}".runs r
     JOIN "${schema}".starts s USING (body) WHERE run_id = 'run'`,
  );
  const { version, revision, updated_at: at, message_count: messages, head, meta } = run as Record<string, string>;
  for (let from = 0; from < count; from += 5_000) {
    const some = Array.from({ length: Math.min(5_000, count - from) }, (_, i) => from + i);
    const checksumOf = (i: number) =>
      crc32(head ?? '', crc32(`${1_000 + i},${version},${revision},${Number(at)},${messages}`));
    const metas = some.map((i) => metaOf(meta ?? '', i));
    await server.sql(
      `WITH copy AS (SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::text[])
           AS c (body, id, checksum, meta, meta_checksum, fair)),
         begun AS (INSERT INTO "${schema}".starts SELECT body, meta_checksum, 0, meta FROM copy)
       INSERT INTO "${schema}".runs (run_id, body, attempts, version, token, revision, updated_at, message_count, checksum, head, due_at, fair, agent)
       SELECT convert_to(id, 'UTF8'), c.body, r.attempts, r.version, c.body, r.revision, r.updated_at, r.message_count, c.checksum, r.head, 0, c.fair, r.agent
       FROM "${schema}".runs r, copy c WHERE r.run_id = 'run'`,
      ...[
        some.map((i) => 1_000 + i),
        some.map(idOf),
        some.map(checksumOf),
        metas,
        metas.map((text) => crc32(text)),
        some.map(fairKey),
      ],
    );
  }
  await server.sql(`ANALYZE "${schema}".runs`);
  await server.sql(`ANALYZE "${schema}".starts`);
}
