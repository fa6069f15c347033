import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { KeyMismatchError, RecordTooLargeError } from '../../values/errors.ts';
import type { EncodedHead, EncodedRecord } from '../encoding/encode.ts';
import type { MessageRow, MessageRows, SealedDelta } from '../encoding/encryption.ts';
import type { Sealing } from '../encoding/sealing.ts';
import type { KnownRuns, Stored } from './known.ts';

/** A key of `messages` is `no * 2^24 + index`. With `no` below 2^29 it stays exact in a JavaScript number. */
export const KEYS_PER_RUN = 2 ** 24;

/** A head with everything that its checksum covers. */
export interface HeadRow {
  readonly generation: number;
  readonly version: number;
  readonly revision: number;
  readonly updated_at: number;
  readonly message_count: number;
  readonly head: string;
}

/** Covers the columns too: a flipped bit in a count is damage like one in the text. */
export function headChecksum(row: HeadRow): number {
  const columns = `${row.generation},${row.version},${row.revision},${row.updated_at},${row.message_count}`;
  return crc32(row.head, crc32(columns));
}

/** The writes to `runs`, `heads` and `messages`. Whoever calls holds the transaction. */
export class RecordTable {
  readonly #sealing: Sealing;
  readonly #known: KnownRuns;
  readonly #find: StatementSync;
  readonly #readHead: StatementSync;
  readonly #insertRun: StatementSync;
  readonly #updateRun: StatementSync;
  readonly #putHead: StatementSync;
  readonly #updateHead: StatementSync;
  readonly #insertMessages: StatementSync;
  readonly #deletes: readonly StatementSync[];
  readonly #deleteMessages: StatementSync;

  constructor(db: DatabaseSync, sealing: Sealing, known: KnownRuns) {
    this.#sealing = sealing;
    this.#known = known;
    this.#find = db.prepare(
      'SELECT r.no, h.generation, h.version, h.revision, h.message_count FROM runs r LEFT JOIN heads h ON h.no = r.no WHERE r.run_id = ?',
    );
    this.#readHead = db.prepare('SELECT h.head FROM runs r JOIN heads h ON h.no = r.no WHERE r.run_id = ?');
    this.#insertRun = db.prepare(
      'INSERT INTO runs (meta_checksum, extras_checksum, meta, extras, run_id) VALUES (?, ?, ?, ?, ?)',
    );
    this.#updateRun = db.prepare(
      'UPDATE runs SET meta_checksum = ?, extras_checksum = ?, meta = ?, extras = ? WHERE no = ?',
    );
    this.#putHead = db.prepare(
      'INSERT OR REPLACE INTO heads (generation, version, revision, updated_at, message_count, head, checksum, no) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
    );
    this.#updateHead = db.prepare(
      'UPDATE heads SET generation = ?, version = ?, revision = ?, updated_at = ?, message_count = ?, head = ?, checksum = ? WHERE no = ?',
    );
    this.#insertMessages = db.prepare('INSERT INTO messages (id, checksum, messages) VALUES (?, ?, ?)');
    this.#deleteMessages = db.prepare('DELETE FROM messages WHERE id >= ? AND id < ?');
    this.#deletes = ['runs', 'heads'].map((table) => db.prepare(`DELETE FROM ${table} WHERE no = ?`));
  }

  find(runId: string): Stored | undefined {
    const known = this.#known.record(runId);
    if (known !== undefined) return known ?? undefined;
    const stored = this.#find.get(runId) as unknown as Stored | undefined;
    this.#known.putRecord(runId, stored ?? null);
    return stored;
  }

  /** The attempts that a record counts; 0 where it is damaged. @throws {KeyMismatchError} */
  attempts(runId: string): number {
    const row = this.#readHead.get(runId) as { head: string } | undefined;
    try {
      return row ? Number(JSON.parse(this.#sealing.open(row.head, runId, 'head')).attempts ?? 0) || 0 : 0;
    } catch (error) {
      if (error instanceof KeyMismatchError) throw error;
      return 0;
    }
  }

  /** Writes a whole record, in the place of the one that is there. */
  put(record: EncodedRecord & MessageRows, stored: Stored | undefined): void {
    const { meta, extras, messageCount, rows } = record;
    checkCount(messageCount);
    const run = [crc32(meta), crc32(extras ?? ''), meta, extras] as const;
    if (stored) {
      this.#updateRun.run(...run, stored.no);
      this.#removeMessages(stored.no);
    }
    const no = stored?.no ?? Number(this.#insertRun.run(...run, record.runId).lastInsertRowid);
    // Tells one whole save from another: a long load sees by it that the record was replaced under its eyes.
    const generation = Math.floor(Math.random() * 2 ** 48);
    this.#putHead.run(...headValues(record, { generation, message_count: messageCount }), no);
    this.#putMessages(no, rows);
    this.#knowNow(record, { no, generation });
  }

  /** Adds what is new. `runs` stays as it is. */
  append(delta: SealedDelta, { no, generation }: { readonly no: number; readonly generation: number }): void {
    const { messageCount, rows } = delta;
    checkCount(messageCount);
    this.#updateHead.run(...headValues(delta, { generation, message_count: messageCount }), no);
    this.#putMessages(no, rows);
    this.#knowNow(delta, { no, generation });
  }

  remove(runId: string, { no }: Stored): void {
    for (const statement of this.#deletes) statement.run(no);
    this.#removeMessages(no);
    this.#known.forget(runId);
  }

  #knowNow(
    { runId, version, revision, messageCount }: EncodedHead & MessageRows,
    { no, generation }: { readonly no: number; readonly generation: number },
  ): void {
    this.#known.putRecord(runId, { no, generation, version, revision, message_count: messageCount });
  }

  #removeMessages(no: number): void {
    this.#deleteMessages.run(no * KEYS_PER_RUN, (no + 1) * KEYS_PER_RUN);
  }

  #putMessages(no: number, rows: readonly MessageRow[]): void {
    for (const { first, text } of rows) this.#insertMessages.run(no * KEYS_PER_RUN + first, crc32(text), text);
  }
}

function checkCount(count: number): void {
  if (count <= KEYS_PER_RUN) return;
  throw new RecordTooLargeError(`a record holds up to ${KEYS_PER_RUN} messages, this one would have ${count}`);
}

type HeadValues = [number, number, number, number, number, string, number];

function headValues(encoded: EncodedHead, place: { generation: number; message_count: number }): HeadValues {
  const { version, revision, updatedAt, head } = encoded;
  const row = { version, revision, updated_at: updatedAt, head, ...place };
  return [place.generation, version, revision, updatedAt, place.message_count, head, headChecksum(row)];
}
