import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { KeyMismatchError, RecordTooLargeError } from '../../values/errors.ts';
import type { Due } from '../due.ts';
import type { EncodedHead } from '../encoding/encode.ts';
import type { Encryption, MessageRow } from '../encoding/encryption.ts';
import type { Filed } from '../encoding/filed.ts';
import { type StepTexts, withoutStep } from '../encoding/step-texts.ts';
import type { StoredBody } from '../encoding/stored-body.ts';
import type { Change } from '../rules/decision.ts';
import type { KnownRuns, Stored } from './known-runs.ts';

/**
 * How many keys of `messages` a run has: a key is `no * 2^24 + index`. With `no` below 2^29 it stays exact in a JavaScript
 * number.
 */
export const KEYS_PER_RUN = 2 ** 24;

/** The most messages of a run in SQLite: the last 2^20 keys are for the texts of a large open step. */
export const MAX_MESSAGES = KEYS_PER_RUN - 2 ** 20;

/** About how many bytes of messages one transaction removes: overwriting them takes some 10 ms for each megabyte. */
const MAX_REMOVED = 2 ** 20;

/** How many messages are measured together before a piece is removed: most records have fewer. */
const MEASURED = 1_000;

/** The tables of journals: their rows belong to the number of a record. */
const journals = ['journal', 'passing'];

/** The number of no record: a journal has it while its record is replaced by one with another number. */
const NO_RUN = 0;

/** A head with everything that its checksum covers. */
export interface HeadRow {
  readonly generation: number;
  readonly version: number;
  readonly revision: number;
  readonly updated_at: number;
  readonly message_count: number;
  readonly head: string;
}

/** Under what a run is found. */
interface FiledRow {
  readonly fair: string;
  readonly agent: string;
  readonly caller: string | null;
}

/** The known facts of a record whose head exists. */
export type WholeRecord = { readonly [K in keyof Omit<Stored, 'due_at'>]: NonNullable<Stored[K]> } & Pick<
  Stored,
  'due_at'
>;

/**
 * Computes the checksum of a head's row in SQLite. It also covers the columns: a flipped bit in a count is damage like one
 * in the text.
 */
export function headChecksum(row: HeadRow): number {
  const columns = `${row.generation},${row.version},${row.revision},${row.updated_at},${row.message_count}`;
  return crc32(row.head, crc32(columns));
}

/** Writes records to SQLite: the rows of `runs`, `heads` and `messages`. Callers hold the transaction. */
export class RecordTable {
  readonly #encryption: Encryption;
  readonly #known: KnownRuns;
  readonly #find: StatementSync;
  readonly #readHead: StatementSync;
  readonly #insertRun: StatementSync;
  readonly #updateRun: StatementSync;
  readonly #putHead: StatementSync;
  readonly #updateHead: StatementSync;
  readonly #insertMessages: StatementSync;
  readonly #putMessage: StatementSync;
  readonly #deletes: readonly StatementSync[];
  readonly #deletesOfJournal: readonly StatementSync[];
  readonly #renumber: readonly StatementSync[];
  readonly #deleteMessages: StatementSync;
  readonly #sizes: StatementSync;
  readonly #total: StatementSync;
  readonly #hasRun: StatementSync;
  readonly #nextNo: StatementSync;
  readonly #insertDue: StatementSync;
  readonly #findFiled: StatementSync;
  readonly #updateFiled: StatementSync;
  readonly #updateDue: StatementSync;
  readonly #updateDefinition: StatementSync;
  readonly #updatePause: StatementSync;
  readonly #deleteDue: StatementSync;
  readonly #deleteEnded: StatementSync;

  constructor(db: DatabaseSync, encryption: Encryption, known: KnownRuns) {
    this.#encryption = encryption;
    this.#known = known;
    this.#find = db.prepare(
      `SELECT r.no, h.generation, h.version, h.revision, h.message_count, EXISTS (SELECT 1 FROM messages m
         WHERE m.id >= r.no * ${KEYS_PER_RUN} + ${MAX_MESSAGES} AND m.id < (r.no + 1) * ${KEYS_PER_RUN}) AS has_step,
         (SELECT due_at FROM due d WHERE d.no = r.no) AS due_at,
         EXISTS (SELECT 1 FROM ended e WHERE e.no = r.no) AS has_ended
       FROM runs r LEFT JOIN heads h ON h.no = r.no WHERE r.run_id = ?`,
    );
    this.#readHead = db.prepare(
      `SELECT h.head FROM runs r JOIN heads h ON h.no = r.no
       WHERE r.run_id = ? AND NOT EXISTS (SELECT 1 FROM ended e WHERE e.no = r.no)`,
    );
    this.#insertRun = db.prepare(
      // A number is reused only if no messages of a removed record have it.
      `INSERT INTO runs (no, meta_checksum, extras_checksum, meta, extras, run_id)
       SELECT 1 + max(coalesce((SELECT max(no) FROM runs), 0), coalesce((SELECT max(id) FROM messages), 0) / ${KEYS_PER_RUN}),
         ?, ?, ?, ?, ?`,
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
    this.#putMessage = db.prepare(
      `INSERT INTO messages (id, checksum, messages) VALUES (?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET checksum = excluded.checksum, messages = excluded.messages`,
    );
    this.#deleteMessages = db.prepare('DELETE FROM messages WHERE id >= ? AND id < ?');
    this.#sizes = db.prepare(
      'SELECT id, octet_length(messages) AS size FROM messages WHERE id >= ? AND id < ? ORDER BY id',
    );
    this.#total = db.prepare(
      `SELECT count(*) AS count, total(size) AS size
       FROM (SELECT octet_length(messages) AS size FROM messages WHERE id >= ? AND id < ? LIMIT ${MEASURED})`,
    );
    this.#hasRun = db.prepare('SELECT 1 FROM runs WHERE no = ?');
    this.#nextNo = db.prepare(`SELECT min(id) / ${KEYS_PER_RUN} AS no FROM messages WHERE id >= ? * ${KEYS_PER_RUN}`);
    this.#insertDue = db.prepare('INSERT INTO due (no, due_at, run_id, fair, agent, caller) VALUES (?, ?, ?, ?, ?, ?)');
    this.#findFiled = db.prepare('SELECT fair, agent, caller FROM due WHERE no = ?');
    this.#updateFiled = db.prepare('UPDATE due SET fair = ?, agent = ?, caller = ? WHERE no = ?');
    this.#updateDue = db.prepare('UPDATE due SET due_at = ? WHERE no = ?');
    this.#updateDefinition = db.prepare('UPDATE due SET definition = ? WHERE no = ?');
    this.#updatePause = db.prepare('UPDATE due SET paused_by = ? WHERE no = ?');
    this.#deleteDue = db.prepare('DELETE FROM due WHERE no = ?');
    this.#deleteEnded = db.prepare('DELETE FROM ended WHERE no = ?');
    this.#deletes = ['runs', 'heads', 'due'].map((table) => db.prepare(`DELETE FROM ${table} WHERE no = ?`));
    this.#deletesOfJournal = journals.map((table) => db.prepare(`DELETE FROM ${table} WHERE no = ?`));
    this.#renumber = journals.map((table) => db.prepare(`UPDATE ${table} SET no = ? WHERE no = ?`));
  }

  /** The record of a run that has not ended. */
  find(runId: string): Stored | undefined {
    const stored = this.#findAny(runId);
    return stored?.has_ended === 1 ? undefined : stored;
  }

  /** The number of the kept record of a run that ended. */
  findEnded(runId: string): number | undefined {
    const stored = this.#findAny(runId);
    return stored?.has_ended === 1 ? stored.no : undefined;
  }

  #findAny(runId: string): Stored | undefined {
    const known = this.#known.record(runId);
    if (known !== undefined) return known ?? undefined;
    const stored = this.#find.get(runId) as unknown as Stored | undefined;
    this.#known.putRecord(runId, stored ?? null);
    return stored;
  }

  /** The attempts in a record; 0 if it is damaged. @throws {KEY_MISMATCH} */
  attempts(runId: string): number {
    const row = this.#readHead.get(runId) as { head: string } | undefined;
    try {
      return row
        ? Number(JSON.parse(withoutStep(this.#encryption.open(row.head, runId, 'head'))).attempts ?? 0) || 0
        : 0;
    } catch (error) {
      if (error instanceof KeyMismatchError) throw error;
      return 0;
    }
  }

  /**
   * Writes a whole record, in place of the existing one.
   * @param how `filed`: under what its run is found from now on; absent: as before. `keepsJournal`: of the same run, which had ended
   * @returns the number of the former record, if `removeRest` must be called with it
   */
  put(
    record: StoredBody,
    stored: Stored | undefined,
    { filed, keepsJournal }: Pick<Change, 'filed' | 'keepsJournal'> = {},
  ): number | undefined {
    const { messageCount, rows } = record;
    const { meta = '', extras = null } = record.start ?? {};
    checkCount(record);
    const place = this.#filedAfter(stored, filed);
    const ended = stored ? undefined : this.findEnded(record.runId);
    const former = stored?.no ?? ended;
    const rest = former !== undefined && this.#removePiece(former) ? former : undefined;
    // The record gets another number: its journal follows.
    const moved = ended === undefined ? rest : keepsJournal ? ended : undefined;
    if (moved !== undefined) this.#renumberJournal(moved, NO_RUN);
    if (rest !== undefined) this.#removeRecord(rest);
    if (ended !== undefined) this.#removeEnded(ended);
    const run = [crc32(meta), crc32(extras ?? ''), meta, extras] as const;
    const known = rest === undefined ? stored?.no : undefined;
    if (known !== undefined) this.#updateRun.run(...run, known);
    const no = known ?? Number(this.#insertRun.run(...run, record.runId).lastInsertRowid);
    const due_at = stored ? stored.due_at : 0;
    const { fair, agent, caller } = place;
    if (known === undefined) this.#insertDue.run(no, due_at, record.runId, fair, agent, caller);
    else if (place.isNew) this.#updateFiled.run(fair, agent, caller, no);
    if (moved !== undefined) this.#renumberJournal(NO_RUN, no);
    // Distinguishes whole saves: a long load sees by it that the record was replaced meanwhile.
    const generation = Math.floor(Math.random() * 2 ** 48);
    this.#putHead.run(...headValues(record, { generation, message_count: messageCount }), no);
    this.#putMessages(no, rows);
    this.#putStep(no, record.step);
    this.#knowNow(record, { no, generation, due_at });
    return rest;
  }

  #filedAfter(stored: Stored | undefined, filed: Filed | undefined): FiledRow & { readonly isNew: boolean } {
    const before = stored && (this.#findFiled.get(stored.no) as unknown as FiledRow | undefined);
    const fair = filed?.fair ?? before?.fair ?? '';
    const { agent, caller } = filed ?? before ?? { agent: '', caller: null };
    return { fair, agent, caller, isNew: before?.fair !== fair || before.agent !== agent || before.caller !== caller };
  }

  /** Adds new messages. `runs` stays unchanged. */
  append(delta: StoredBody, { no, generation, has_step, due_at }: WholeRecord): void {
    const { messageCount, rows, step } = delta;
    checkCount(delta);
    this.#updateHead.run(...headValues(delta, { generation, message_count: messageCount }), no);
    this.#putMessages(no, rows);
    if (has_step === 1 && (!step || step.isWhole)) this.#removeKeys(no, MAX_MESSAGES);
    this.#putStep(no, step);
    this.#knowNow(delta, { no, generation, due_at });
  }

  /** Stores when the run of a record is due. */
  setDue(runId: string, due_at: Due): void {
    const stored = this.find(runId);
    if (!stored) return;
    this.#updateDue.run(due_at, stored.no);
    this.#known.putRecord(runId, { ...stored, due_at });
  }

  /** Stores the definition by which a parked run is found; empty = none. */
  setDefinition(runId: string, definition: string): void {
    const stored = this.find(runId);
    if (stored) this.#updateDefinition.run(definition === '' ? null : definition, stored.no);
  }

  /** Stores why a run is not due. */
  setPause(runId: string, pausedBy: string): void {
    const stored = this.find(runId);
    if (stored) this.#updatePause.run(pausedBy, stored.no);
  }

  /**
   * Removes the record of a run, with the first of its messages.
   * @returns its number, if `removeRest` must be called with it: the record is removed, some of its messages are not
   */
  remove(runId: string, { no }: Stored): number | undefined {
    this.#removeRun(no);
    this.#known.forget(runId);
    return this.#removePiece(no) ? no : undefined;
  }

  /** Marks the record of a run that ends. Lists and the search for due runs find a run by its row in `due`. */
  end(runId: string, { no }: Stored): void {
    this.#deleteDue.run(no);
    this.#known.forget(runId);
  }

  /** Removes the kept record of a run that ended, as `remove` does. */
  removeEnded(runId: string, no: number): number | undefined {
    this.#removeEnded(no);
    this.#known.forget(runId);
    return this.#removePiece(no) ? no : undefined;
  }

  #removeEnded(no: number): void {
    this.#removeRun(no);
    this.#deleteEnded.run(no);
  }

  /** Removes some of the messages of a removed record. @returns whether there are more */
  removeRest(no: number): boolean {
    return this.#hasRun.get(no) === undefined && this.#removePiece(no);
  }

  /** Numbers from `from` on whose messages have no record: the process that removed it died. @returns where to continue */
  findRest(from: number, limit: number): { readonly found: readonly number[]; readonly next: number | undefined } {
    const found: number[] = [];
    let next = from;
    for (let i = 0; i < limit; i++) {
      const { no } = this.#nextNo.get(next) as { no: number | null };
      if (no === null) return { found, next: undefined };
      if (this.#hasRun.get(no) === undefined) found.push(no);
      next = no + 1;
    }
    return { found, next };
  }

  #removeRun(no: number): void {
    this.#removeRecord(no);
    for (const statement of this.#deletesOfJournal) statement.run(no);
  }

  #removeRecord(no: number): void {
    for (const statement of this.#deletes) statement.run(no);
  }

  #renumberJournal(from: number, to: number): void {
    for (const statement of this.#renumber) statement.run(to, from);
  }

  /** Deletes a bounded part of the messages of a removed record. @returns whether there are more */
  #removePiece(no: number): boolean {
    const end = this.#endOfPiece(no);
    this.#deleteMessages.run(no * KEYS_PER_RUN, end ?? (no + 1) * KEYS_PER_RUN);
    return end !== undefined;
  }

  /** The first key that stays when a piece is removed; undefined = nothing stays. */
  #endOfPiece(no: number): number | undefined {
    const keys = [no * KEYS_PER_RUN, (no + 1) * KEYS_PER_RUN] as const;
    // One row in place of one for each message, which would cost as much as removing it.
    const { count, size: total } = this.#total.get(...keys) as { count: number; size: number };
    if (count < MEASURED && total <= MAX_REMOVED) return undefined;
    let left = MAX_REMOVED;
    for (const row of this.#sizes.iterate(...keys)) {
      const { id, size } = row as { id: number; size: number };
      if (left <= 0) return id;
      left -= size;
    }
    return undefined;
  }

  #knowNow(
    { runId, version, revision, messageCount, step }: StoredBody,
    { no, generation, due_at }: Pick<Stored, 'no' | 'due_at'> & { readonly generation: number },
  ): void {
    const has_step = step ? 1 : 0;
    const rest = { message_count: messageCount, has_step, due_at, has_ended: 0 };
    this.#known.putRecord(runId, { no, generation, version, revision, ...rest });
  }

  #removeKeys(no: number, from = 0): void {
    this.#deleteMessages.run(no * KEYS_PER_RUN + from, (no + 1) * KEYS_PER_RUN);
  }

  #putStep(no: number, step: StepTexts | undefined): void {
    const first = no * KEYS_PER_RUN + MAX_MESSAGES;
    for (const { place, text } of step?.texts ?? []) this.#putMessage.run(first + place, crc32(text), text);
  }

  #putMessages(no: number, rows: readonly MessageRow[]): void {
    for (const { first, text } of rows) this.#insertMessages.run(no * KEYS_PER_RUN + first, crc32(text), text);
  }
}

function checkCount({ messageCount: count, step }: StoredBody): void {
  if (step && step.count > KEYS_PER_RUN - MAX_MESSAGES)
    throw new RecordTooLargeError(`a message of a record has up to ${KEYS_PER_RUN - MAX_MESSAGES - 1} tool calls`);
  if (count <= MAX_MESSAGES) return;
  throw new RecordTooLargeError(`a record holds up to ${MAX_MESSAGES} messages, this one would have ${count}`);
}

type HeadValues = [number, number, number, number, number, string, number];

function headValues(encoded: EncodedHead, place: { generation: number; message_count: number }): HeadValues {
  const { version, revision, updatedAt, head } = encoded;
  const row = { version, revision, updated_at: updatedAt, head, ...place };
  return [place.generation, version, revision, updatedAt, place.message_count, head, headChecksum(row)];
}
