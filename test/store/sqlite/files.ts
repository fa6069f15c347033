import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { afterAll } from 'vitest';
import type { DamageKind } from '../../../src/testing/store-contract/store-contract.ts';

const folders: string[] = [];

afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A path for a database in a folder of its own, which goes when the tests of the file are over. */
export function freshPath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-store-'));
  folders.push(folder);
  return join(folder, 'runs.db');
}

/** Runs SQL on a store's file behind its back. */
export function sql(path: string, text: string, ...values: SQLInputValue[]): Record<string, unknown>[] {
  const db = new DatabaseSync(path, { timeout: 5_000 });
  try {
    return db.prepare(text).all(...values);
  } finally {
    db.close();
  }
}

/** Damages a stored run the way the contract asks for. */
export function damageRun(path: string, runId: string, kind: DamageKind): void {
  const [row] = sql(path, 'SELECT h.* FROM heads h JOIN runs r ON r.no = h.no WHERE r.run_id = ?', runId);
  if (!row) throw new Error(`no run ${runId}`);
  if (kind === 'corrupt') {
    sql(
      path,
      'UPDATE heads SET head = ? WHERE no = ?',
      String(row.head).replace('"iteration"', '"iteratioN"'),
      Number(row.no),
    );
    return;
  }
  // What a newer version would have written: its own number, and a checksum that is right.
  const head = String(row.head).replace(/"version":\d+/, '"version":999');
  const columns = `${row.generation},999,${row.revision},${row.updated_at},${row.message_count}`;
  const checksum = crc32(head, crc32(columns));
  sql(path, 'UPDATE heads SET head = ?, version = 999, checksum = ? WHERE no = ?', head, checksum, Number(row.no));
}
