import { crc32 } from 'node:zlib';
import type { DamageKind } from '../../../src/testing/store-contract/store-contract.ts';
import type { PostgresServer } from '../../fixtures/postgres-server.ts';

export interface Damage {
  readonly schema: string;
  readonly runId: string;
  readonly kind: DamageKind;
}

/** Damages a stored run the way the contract asks for. */
export async function damageRun(server: PostgresServer, { schema, runId, kind }: Damage): Promise<void> {
  const runs = `"${schema}".runs`;
  const id = Buffer.from(runId);
  const [row] = await server.sql(`SELECT * FROM ${runs} WHERE run_id = $1`, id);
  if (!row) throw new Error(`no run ${runId}`);
  if (kind === 'corrupt') {
    const head = String(row.head).replace('"iteration"', '"iteratioN"');
    await server.sql(`UPDATE ${runs} SET head = $1 WHERE run_id = $2`, head, id);
    return;
  }
  // What a newer version would have written: its own number, and a checksum that is right.
  const place = `${row.body},999,${row.revision},${row.updated_at},${row.message_count}`;
  const checksum = crc32(String(row.head), crc32(place));
  await server.sql(`UPDATE ${runs} SET version = 999, checksum = $1 WHERE run_id = $2`, checksum, id);
}

/** Making a schema anew for each case would take longer than most cases. */
export async function emptyTables(server: PostgresServer, schema: string): Promise<void> {
  const tables = [
    'runs',
    'starts',
    'messages',
    'pieces',
    'outcomes',
    'commands',
    'waits',
    'signals',
    'journal',
    'passing',
    'threads',
    'thread_turns',
    'ended',
    'schedules',
    'limits',
  ];
  await server.sql(tables.map((table) => `DELETE FROM "${schema}".${table}`).join('; '));
}
