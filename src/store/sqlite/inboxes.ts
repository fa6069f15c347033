import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { isInboxFull, MAX_WAITING, placesFor, type SentCommand } from '../../run/command.ts';
import { PawlError } from '../../values/errors.ts';
import { type CommandToSend, decodeCommand, refuseFull, refuseLarge } from '../commands.ts';
import { isIntact } from '../encoding/checksum.ts';
import type { Encryption } from '../encoding/encryption.ts';
import type { InboxOf } from '../port.ts';

interface CommandRow {
  readonly run_id: string;
  readonly checksum: number;
  readonly command: string;
}

/** The rows of `commands`: most of the time there are none. */
export class InboxTable {
  readonly #encryption: Encryption;
  readonly #find: StatementSync;
  readonly #count: StatementSync;
  readonly #insert: StatementSync;
  readonly #ofRun: StatementSync;
  readonly #ofOwner: StatementSync;
  readonly #forget: StatementSync;
  readonly #remove: StatementSync;

  constructor(db: DatabaseSync, encryption: Encryption) {
    this.#encryption = encryption;
    this.#find = db.prepare('SELECT 1 FROM commands WHERE run_id = ? AND command_id = ?');
    this.#count = db.prepare(
      'SELECT count(*) AS count, total(length(command)) AS chars FROM commands WHERE run_id = ?',
    );
    this.#insert = db.prepare('INSERT INTO commands (run_id, command_id, checksum, command) VALUES (?, ?, ?, ?)');
    const columns = 'SELECT c.run_id, c.checksum, c.command FROM commands c';
    this.#ofRun = db.prepare(`${columns} WHERE c.run_id = ? ORDER BY c.no LIMIT ${MAX_WAITING}`);
    this.#ofOwner = db.prepare(
      `${columns} JOIN claims l ON l.run_id = c.run_id WHERE l.owner = ? ORDER BY c.no LIMIT ${MAX_WAITING}`,
    );
    this.#forget = db.prepare('DELETE FROM commands WHERE run_id = ? AND command_id = ?');
    this.#remove = db.prepare('DELETE FROM commands WHERE run_id = ?');
  }

  /** @throws {UndeliveredError} */
  put({ runId, id, text, kind }: CommandToSend): void {
    if (this.#find.get(runId, id)) return;
    const { count, chars } = this.#count.get(runId) ?? {};
    if (Number(count) >= placesFor(kind)) throw refuseFull(runId);
    if (isInboxFull(Number(chars), text, kind)) throw refuseLarge(runId, Number(chars));
    this.#insert.run(runId, id, crc32(text), text);
  }

  /** A damaged command is as good as never sent: it must not keep the others from their runs. */
  read(of: InboxOf): SentCommand[] {
    const rows = 'owner' in of ? this.#ofOwner.all(of.owner) : this.#ofRun.all(of.runId);
    return (rows as unknown as CommandRow[]).flatMap((row) => this.#sent(row));
  }

  #sent({ run_id: runId, checksum, command }: CommandRow): SentCommand[] {
    if (!isIntact(command, checksum)) return [];
    try {
      return [{ runId, command: decodeCommand(this.#encryption.open(command, runId, 'command')) }];
    } catch (error) {
      if (error instanceof PawlError) return [];
      throw error;
    }
  }

  forget(runId: string, ids: readonly string[]): void {
    for (const id of ids) this.#forget.run(runId, id);
  }

  remove(runId: string): void {
    this.#remove.run(runId);
  }
}
