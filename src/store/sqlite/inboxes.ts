import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { MAX_WAITING } from '../../run/command.ts';
import { DAMAGED_TEXT, type StoredCommand } from '../commands.ts';
import { isIntact } from '../encoding/checksum.ts';
import type { InboxOf } from '../port.ts';
import type { InboxFacts } from '../rules/decision.ts';

interface CommandRow {
  readonly run_id: string;
  readonly command_id: string;
  readonly checksum: number;
  readonly command: string;
  readonly no: number;
  readonly sent_at: number | null;
}

/** The inboxes of runs in SQLite: the rows of `commands`. */
export class InboxTable {
  readonly #find: StatementSync;
  readonly #count: StatementSync;
  readonly #insert: StatementSync;
  readonly #ofRun: StatementSync;
  readonly #ofOwner: StatementSync;
  readonly #forget: StatementSync;
  readonly #remove: StatementSync;

  readonly #now: () => number;

  constructor(db: DatabaseSync, now: () => number) {
    this.#now = now;
    this.#find = db.prepare('SELECT 1 FROM commands WHERE run_id = ? AND command_id = ?');
    this.#count = db.prepare(
      'SELECT count(*) AS count, total(length(command)) AS chars, max(no) AS newest FROM commands WHERE run_id = ?',
    );
    this.#insert = db.prepare(
      'INSERT INTO commands (run_id, command_id, checksum, command, sent_at) VALUES (?, ?, ?, ?, ?)',
    );
    const columns = 'SELECT c.run_id, c.command_id, c.checksum, c.command, c.no, c.sent_at FROM commands c';
    this.#ofRun = db.prepare(`${columns} WHERE c.run_id = ? ORDER BY c.no LIMIT ${MAX_WAITING}`);
    this.#ofOwner = db.prepare(
      `${columns} JOIN claims l ON l.run_id = c.run_id WHERE l.owner = ? ORDER BY c.no LIMIT ${MAX_WAITING}`,
    );
    this.#forget = db.prepare('DELETE FROM commands WHERE run_id = ? AND command_id = ?');
    this.#remove = db.prepare('DELETE FROM commands WHERE run_id = ?');
  }

  facts(runId: string): InboxFacts {
    const { count, chars, newest } = this.#count.get(runId) ?? {};
    const numbers = { size: Number(count), chars: Number(chars), newest: Number(newest ?? 0) };
    return { ...numbers, has: (id) => this.has(runId, id) };
  }

  /** Returns whether a command of this id waits. */
  has(runId: string, id: string): boolean {
    return this.#find.get(runId, id) !== undefined;
  }

  put({ runId, id, text }: StoredCommand): void {
    this.#insert.run(runId, id, crc32(text), text, this.#now());
  }

  /** A damaged command counts as never sent: it must not block the others. */
  read(of: InboxOf): StoredCommand[] {
    const rows = ('owner' in of ? this.#ofOwner.all(of.owner) : this.#ofRun.all(of.runId)) as unknown as CommandRow[];
    return rows.map(({ run_id: runId, command_id: id, checksum, command, no: seq, sent_at: at }) => {
      const text = isIntact(command, checksum) ? command : DAMAGED_TEXT;
      return { runId, id, text, seq, sentAt: at ?? undefined };
    });
  }

  forget(runId: string, ids: readonly string[]): void {
    for (const id of ids) this.#forget.run(runId, id);
  }

  remove(runId: string): void {
    this.#remove.run(runId);
  }
}
