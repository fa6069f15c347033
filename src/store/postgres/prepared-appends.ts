import { hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { bundleOf } from '../encoding/piece-refs.ts';
import { messageRows, newPieces, tokensOfRow } from './message-rows.ts';
import type { PoolSession, Statement } from './pool.ts';
import { headChecksum } from './run-row.ts';
import type { Tables } from './schema.ts';
import type { SentWrite } from './write-statement.ts';

/*
 * Nearly all writes add one step to one record. Such a write is one of sixteen statements whose texts never change, with a plain
 * parameter for each value. The general statement, which accepts all changes of several runs, is built for each write, and
 * costs this process several times as much.
 */

/** The additions of a write to a record, besides its new head. */
interface Parts {
  readonly hasPieces: boolean;
  readonly hasMessages: boolean;
  readonly hasEvents: boolean;
  /** Passing events are deleted. */
  readonly drops: boolean;
}

const headColumns = {
  ...{ token: 'bigint', attempts: 'bigint', version: 'bigint', revision: 'bigint', updated_at: 'float8' },
  ...{ message_count: 'bigint', checksum: 'bigint', pieces: 'text', head: 'text' },
};

/** Adds to one record in PostgreSQL by small prepared statements: the way of most steps. */
export class Appends {
  readonly #tables: Tables;
  readonly #statements = new Map<number, Statement>();

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** Whether a change only adds to the existing record. */
  has({ change }: SentWrite): boolean {
    const { kind, seen, head, start, record, outcome, ttlMs, due, dueBefore, rows = [], journal } = change;
    const events = journal?.rows ?? [];
    if (events.length > 1 || events.some(({ isKept }) => !isKept)) return false;
    const isOther = kind !== 'put' || seen === null || start || outcome || ttlMs !== undefined;
    return (
      !isOther &&
      due === dueBefore &&
      change.definition === undefined &&
      change.pausedBy === undefined &&
      head !== undefined &&
      record !== undefined &&
      rows.length <= 1
    );
  }

  /**
   * Appends to a record in one prepared statement.
   * @returns whether it was written: false if the row has changed, or another transaction has locked it
   */
  async write(session: PoolSession, { change, token, record }: SentWrite): Promise<boolean> {
    const { runId, head, seen, attempts, journal } = change;
    if (!head || !record) return false;
    const pieces = newPieces(change);
    const [row] = messageRows(change, token);
    const { version, revision, updatedAt, messageCount } = head;
    const named = tokensOfRow([...record.pieces.values()]);
    const values: unknown[] = [Buffer.from(runId), seen, record.body, token, attempts, version, revision, updatedAt];
    values.push(messageCount, headChecksum(head, record), named, head.head);
    if (pieces.length > 0) {
      const bundled = bundleOf(pieces);
      values.push(crc32(bundled), bundled);
    }
    if (row) values.push(row.first, row.checksum, row.messages, row.pieces);
    const [events] = journal?.rows ?? [];
    if (events) values.push(events.place, crc32(events.text), events.text);
    const drops = journal?.dropTo !== undefined;
    if (drops) values.push(journal.dropTo);
    const parts = {
      hasPieces: pieces.length > 0,
      hasMessages: row !== undefined,
      hasEvents: events !== undefined,
      drops,
    };
    const statement = this.#statement(parts);
    return (await session.change(statement, values)) === 1;
  }

  #statement(parts: Parts): Statement {
    const { hasPieces, hasMessages, hasEvents, drops } = parts;
    const key = (hasPieces ? 1 : 0) + (hasMessages ? 2 : 0) + (hasEvents ? 4 : 0) + (drops ? 8 : 0);
    const known = this.#statements.get(key);
    if (known) return known;
    const text = appendText(this.#tables, parts);
    const statement = { text, name: `pawl_${hash('sha1', text)}` };
    this.#statements.set(key, statement);
    return statement;
  }
}

/**
 * The statement does not wait for another transaction's lock: the write looks again. It fails where the journal has a row of the
 * same place: looking for one in every step would add a record to the server's log.
 */
function appendText(tables: Tables, { hasPieces, hasMessages, hasEvents, drops }: Parts): string {
  const { runs, pieces, messages, journal, passing } = tables;
  let count = 0;
  const next = (type: string) => `$${++count}::${type}`;
  const nexts = (...types: string[]) => types.map(next).join(', ');
  const [runId, seen, body] = [next('bytea'), next('bigint'), next('bigint')];
  const token = `$${count + 1}::bigint`;
  const set = Object.entries(headColumns).map(([column, type]) => `${column} = ${next(type)}`);
  const parts = [
    `landed AS (SELECT FROM ${runs} WHERE run_id = ${runId} AND token = ${seen} AND body = ${body} FOR UPDATE SKIP LOCKED)`,
    ...(hasPieces
      ? [
          `pieces_put AS (INSERT INTO ${pieces} (body, bundle, checksum, bundled)
            SELECT ${body}, ${token}, ${nexts('bigint', 'text')} FROM landed)`,
        ]
      : []),
    ...(hasMessages
      ? [
          `messages_put AS (INSERT INTO ${messages} (body, first, checksum, messages, pieces)
            SELECT ${body}, ${nexts('bigint', 'bigint', 'text', 'text')} FROM landed)`,
        ]
      : []),
    ...(hasEvents
      ? [
          `journal_put AS (INSERT INTO ${journal} (run_id, place, checksum, entries)
            SELECT ${runId}, ${nexts('bigint', 'bigint', 'text')} FROM landed)`,
        ]
      : []),
    ...(drops
      ? [
          `passing_gone AS (DELETE FROM ${passing} p USING landed WHERE p.run_id = ${runId} AND p.place <= ${next('bigint')})`,
        ]
      : []),
  ];
  return `WITH ${parts.join(', ')} UPDATE ${runs} SET ${set.join(', ')} FROM landed WHERE run_id = ${runId}`;
}
