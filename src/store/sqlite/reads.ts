import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { CheckpointCorruptError } from '../../values/errors.ts';
import { isIntact } from '../encoding/checksum.ts';
import type { Cursor } from '../port.ts';
import type { ListedHead, MessageReader } from '../store-driver.ts';
import type { LeaseTable } from './leases.ts';
import { type HeadRow, headChecksum, KEYS_PER_RUN, MAX_MESSAGES } from './records.ts';

interface RunRow extends HeadRow {
  readonly no: number;
  readonly run_id: string;
  readonly meta: string;
  readonly meta_checksum: number;
  /** The head's; null when its row is missing. */
  readonly checksum: number | null;
  readonly attempts: number | null;
}

export interface LoadedRow extends RunRow {
  readonly extras: string | null;
  readonly extras_checksum: number;
}

interface ListedRow extends RunRow {
  /** The time of its last write; 0 if the row of its head is missing. */
  readonly at: number;
  readonly owner: string | null;
  readonly epoch: number | null;
  readonly expires_at: number;
  readonly boot: string;
}

interface MessageRow {
  readonly id: number;
  readonly checksum: number;
  readonly messages: string;
}

/** About how many characters of a transcript are read and parsed before the event loop gets its turn. */
const CHARS_PER_TURN = 2 ** 22;

const columns = `r.no, r.run_id, r.meta, r.meta_checksum, c.attempts, h.generation, h.version, h.revision,
  h.updated_at, h.message_count, h.checksum, h.head`;

/** Reads records and lists from SQLite: the queries of `load` and `listInterrupted`. */
export class Reads {
  readonly #leases: LeaseTable;
  readonly #run: StatementSync;
  readonly #generation: StatementSync;
  readonly #messages: StatementSync;
  readonly #page: StatementSync;

  constructor(db: DatabaseSync, leases: LeaseTable) {
    this.#leases = leases;
    this.#run = db.prepare(
      `SELECT ${columns}, r.extras, r.extras_checksum FROM runs r LEFT JOIN heads h ON h.no = r.no
       LEFT JOIN claims c ON c.run_id = r.run_id WHERE r.run_id = ?`,
    );
    this.#generation = db.prepare(
      'SELECT h.generation FROM runs r JOIN heads h ON h.no = r.no WHERE r.no = ? AND r.run_id = ?',
    );
    this.#messages = db.prepare('SELECT id, checksum, messages FROM messages WHERE id >= ? AND id < ? ORDER BY id');
    // Sorts only keys, and reads only the texts of the page.
    this.#page = db.prepare(
      `SELECT ${columns}, p.at, c.owner, c.epoch, c.expires_at, c.boot FROM (
         SELECT r.no, coalesce(h.updated_at, 0) AS at, r.run_id FROM runs r LEFT JOIN heads h ON h.no = r.no
         WHERE (coalesce(h.updated_at, 0), r.run_id) > (?, ?) ORDER BY 2, 3 LIMIT ?
       ) p JOIN runs r ON r.no = p.no LEFT JOIN heads h ON h.no = p.no LEFT JOIN claims c ON c.run_id = p.run_id
       ORDER BY p.at, p.run_id`,
    );
  }

  /** Reads the row of a run, without its messages. @throws {CheckpointCorruptError} */
  run(runId: string): LoadedRow | undefined {
    const row = this.#run.get(runId) as unknown as LoadedRow | undefined;
    if (!row) return undefined;
    checkTexts(row);
    checkText(row.extras ?? '', row.extras_checksum, 'extras');
    return row;
  }

  /** The texts of an open step that is stored beside its head. @throws {CheckpointCorruptError} */
  step({ no }: LoadedRow): string[] {
    const first = no * KEYS_PER_RUN + MAX_MESSAGES;
    const rows = this.#messages.all(first, (no + 1) * KEYS_PER_RUN) as unknown as MessageRow[];
    return rows.map(({ id, checksum, messages: text }, place) => {
      checkText(text, checksum, 'open step');
      if (id !== first + place) throw damaged('open step');
      return text;
    });
  }

  /** Returns whether a record is still the one that was read: it may have grown, but was not replaced or deleted. */
  isSame(row: LoadedRow): boolean {
    const found = this.#generation.get(row.no, row.run_id) as { generation: number } | undefined;
    return found?.generation === row.generation;
  }

  /**
   * Adds messages of a record to `messages`, up to the bound of one turn.
   * @throws {CheckpointCorruptError}
   */
  messages(row: LoadedRow, messages: MessageReader): void {
    const first = row.no * KEYS_PER_RUN;
    let size = 0;
    const rows = this.#messages.iterate(first + messages.count, first + row.message_count);
    for (const { id, checksum, messages: text } of rows as unknown as Iterable<MessageRow>) {
      if (id !== first + messages.count) break;
      checkText(text, checksum, `messages from ${messages.count} on`);
      messages.add(text);
      size += text.length;
      if (size > CHARS_PER_TURN) return;
    }
    if (messages.count !== row.message_count) {
      throw new CheckpointCorruptError(
        `this record is damaged: it has ${messages.count} of its ${row.message_count} messages`,
      );
    }
  }

  page(after: Cursor | undefined, limit: number): ListedHead[] {
    const from = [after?.updatedAt ?? Number.NEGATIVE_INFINITY, after?.runId ?? ''] as const;
    const rows = this.#page.all(...from, limit) as unknown as ListedRow[];
    return rows.map((row) => this.#listed(row));
  }

  #listed(row: ListedRow): ListedHead {
    const { run_id: runId, at: updatedAt, meta, head, owner, epoch, attempts } = row;
    const now = this.#leases.now();
    try {
      checkTexts(row);
    } catch (error) {
      return { runId, updatedAt, meta: '', head: '', now, error };
    }
    if (epoch === null || attempts === null) return { runId, updatedAt, meta, head, now };
    return { runId, updatedAt, meta, head, now, lease: this.#leases.toLease({ ...row, owner, epoch, attempts }) };
  }
}

function checkTexts(row: RunRow): void {
  if (row.checksum === null) throw damaged('head');
  checkText(row.meta, row.meta_checksum, 'meta');
  if (typeof row.head !== 'string' || headChecksum(row) !== row.checksum)
    throw new CheckpointCorruptError(wrongChecksum('head'));
}

function checkText(text: string, checksum: number, what: string): void {
  if (!isIntact(text, checksum)) throw new CheckpointCorruptError(wrongChecksum(what));
}

function wrongChecksum(what: string): string {
  return `this record is damaged: the checksum of its ${what} is wrong`;
}

function damaged(what: string): CheckpointCorruptError {
  return new CheckpointCorruptError(`this record is damaged: its ${what} is missing or not what it should be`);
}
