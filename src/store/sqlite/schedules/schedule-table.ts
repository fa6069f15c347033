import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { DAMAGED_TEXT } from '../../commands.ts';
import { isIntact } from '../../encoding/checksum.ts';
import type { ScheduleRow } from '../../store-driver.ts';

interface StoredRow {
  readonly id: string;
  readonly revision: number;
  readonly checksum: number;
  readonly content: string;
}

/** The rows of `schedules` in SQLite. Callers hold the transaction. */
export class ScheduleTable {
  readonly #all: StatementSync;
  readonly #find: StatementSync;
  readonly #put: StatementSync;

  constructor(db: DatabaseSync) {
    this.#all = db.prepare('SELECT * FROM schedules ORDER BY id');
    this.#find = db.prepare('SELECT * FROM schedules WHERE id = ?');
    this.#put = db.prepare('INSERT OR REPLACE INTO schedules (id, revision, checksum, content) VALUES (?, ?, ?, ?)');
  }

  list(): ScheduleRow[] {
    return (this.#all.all() as unknown as StoredRow[]).map(rowOf);
  }

  find(id: string): ScheduleRow | null {
    const row = this.#find.get(id) as unknown as StoredRow | undefined;
    return row ? rowOf(row) : null;
  }

  put({ id, revision, text }: ScheduleRow): void {
    this.#put.run(id, revision, crc32(text), text);
  }
}

function rowOf({ id, revision, checksum, content }: StoredRow): ScheduleRow {
  return { id, revision, text: isIntact(content, checksum) ? content : DAMAGED_TEXT };
}
