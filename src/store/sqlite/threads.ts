import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { DAMAGED_TEXT } from '../commands.ts';
import { isIntact } from '../encoding/checksum.ts';
import type { RecordFacts } from '../rules/decision.ts';
import type { ThreadChange, ThreadFacts, ThreadRow, TurnQuery, TurnRow, TurnState } from '../rules/thread-rows.ts';
import type { ForkWrite, ListedThread, StoreWrite, ThreadPage, ThreadWrite } from '../store-driver.ts';
import { type DecidedWrite, decideWrite, type Made, makeDecided, type Tables } from './writes.ts';

interface StoredThread {
  readonly no: number;
  readonly thread: string;
  readonly caller: string;
  readonly updated_at: number;
  readonly turns: number;
  readonly length: number;
  readonly rewinds: number;
  readonly checksum: number;
  readonly content: string;
}

interface StoredTurn {
  readonly message: string;
  readonly state: TurnState;
  readonly place: number;
  readonly run_id: string;
  readonly first: number;
  readonly count: number;
  readonly checksum: number;
  readonly content: string;
  readonly compaction: string | null;
}

const turnColumns = 't.message, t.state, t.place, t.run_id, t.first, t.count, t.checksum, t.content, t.compaction';
const begun = `t.state IN ('live', 'ended')`;
const waiting = `t.state IN ('queued', 'steered')`;
/** Of one run the messages that it has taken come before the run. */
const newestFirst = `t.place DESC, t.state = 'taken' DESC`;

/** The conditions of the queries, after `FROM thread_turns t WHERE t.thread = ?`. */
const queries: { readonly [Kind in TurnQuery['kind']]: string } = {
  begun: `AND ${begun} AND t.place >= ? ORDER BY t.place LIMIT ?`,
  newest: `AND ${begun} ORDER BY ${newestFirst} LIMIT ?`,
  last: `AND NOT ${waiting} AND t.place >= ? ORDER BY ${newestFirst} LIMIT ?`,
  waiting: `AND ${waiting} LIMIT ?`,
  message: 'AND t.message IN (SELECT value FROM json_each(?))',
  run: `AND t.state <> 'taken' AND t.run_id = ?`,
  at: `AND ${begun} AND t.first <= ? ORDER BY t.place DESC LIMIT 1`,
  compacted: `AND t.state = 'ended' AND t.compaction IS NOT NULL AND t.first + t.count <= ? ORDER BY t.place DESC LIMIT 1`,
};

/** The rows of `threads` and `thread_turns`. Callers hold the transaction. */
export class ThreadTables {
  readonly #find: StatementSync;
  readonly #insert: StatementSync;
  readonly #update: StatementSync;
  readonly #remove: StatementSync;
  readonly #live: StatementSync;
  readonly #next: StatementSync;
  readonly #steered: StatementSync;
  readonly #queue: StatementSync;
  readonly #isUsed: StatementSync;
  readonly #hasOther: StatementSync;
  readonly #queued: StatementSync;
  readonly #putTurn: StatementSync;
  readonly #removeTurn: StatementSync;
  readonly #fork: StatementSync;
  readonly #page: { readonly [Kind in 'all' | 'ofCaller' | 'heldUp']: StatementSync };
  readonly #turns: { readonly [Kind in TurnQuery['kind']]: StatementSync };

  constructor(db: DatabaseSync) {
    const turns = (rest: string) => db.prepare(`SELECT ${turnColumns} FROM thread_turns t WHERE t.thread = ? ${rest}`);
    this.#find = db.prepare('SELECT * FROM threads WHERE thread IN (SELECT value FROM json_each(?)) LIMIT 1');
    this.#insert = db.prepare(
      `INSERT INTO threads (thread, caller, updated_at, turns, length, rewinds, checksum, content)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#update = db.prepare('UPDATE threads SET updated_at = ?, turns = ?, length = ?, rewinds = ? WHERE no = ?');
    this.#remove = db.prepare('DELETE FROM threads WHERE no = ?');
    this.#live = turns(`AND t.state = 'live' LIMIT 1`);
    this.#next = turns(`AND t.state = 'queued' ORDER BY t.place LIMIT 1`);
    this.#steered = turns(`AND t.state = 'steered' ORDER BY t.place`);
    this.#queue = db.prepare(
      `SELECT count(*) AS count, coalesce(min(place), 0) AS lowest, coalesce(max(place), 0) AS highest
       FROM thread_turns t WHERE t.thread = ? AND ${waiting}`,
    );
    this.#isUsed = db.prepare('SELECT 1 FROM thread_turns WHERE run_id = ? LIMIT 1');
    this.#hasOther = db.prepare('SELECT 1 FROM thread_turns WHERE run_id = ? AND thread <> ? LIMIT 1');
    this.#queued = db.prepare(
      `SELECT ${turnColumns} FROM thread_turns t WHERE t.run_id = ? AND t.state = 'queued' LIMIT 1`,
    );
    this.#putTurn = db.prepare(
      `INSERT INTO thread_turns (thread, message, state, place, run_id, first, count, checksum, content, compaction)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (thread, message) DO UPDATE SET state = excluded.state, place = excluded.place, run_id = excluded.run_id,
         first = excluded.first, count = excluded.count, checksum = excluded.checksum, content = excluded.content,
         compaction = excluded.compaction`,
    );
    this.#removeTurn = db.prepare('DELETE FROM thread_turns WHERE thread = ? AND message = ?');
    this.#fork = db.prepare(
      `INSERT INTO thread_turns (thread, message, state, place, run_id, first, count, checksum, content, compaction)
       SELECT ?, message, state, place, run_id, first, count, checksum, content, compaction
       FROM thread_turns WHERE thread = ? AND state IN ('ended', 'taken') AND place < ?`,
    );
    const listed = `SELECT h.*,
         (SELECT t.run_id FROM thread_turns t WHERE t.thread = h.no AND t.state = 'live') AS live,
         (SELECT count(*) FROM thread_turns t WHERE t.thread = h.no AND ${waiting}) AS queued FROM threads h`;
    const rest = '(h.updated_at, h.thread) < (?, ?) ORDER BY h.updated_at DESC, h.thread DESC LIMIT ?';
    this.#page = {
      all: db.prepare(`${listed} WHERE ${rest}`),
      heldUp: db.prepare(
        `${listed} WHERE queued > 0 AND h.no IN (SELECT t.thread FROM due d
           JOIN thread_turns t ON t.run_id = d.run_id AND t.state = 'live' WHERE d.due_at IS NULL) AND ${rest}`,
      ),
      ofCaller: db.prepare(`${listed} WHERE h.caller IN (SELECT value FROM json_each(?)) AND ${rest}`),
    };
    this.#turns = Object.fromEntries(Object.entries(queries).map(([kind, query]) => [kind, turns(query)])) as never;
  }

  find(threads: readonly string[]): { readonly no: number; readonly row: ThreadRow } | undefined {
    const found = this.#find.get(JSON.stringify(threads)) as StoredThread | undefined;
    return found && { no: found.no, row: threadRow(found) };
  }

  turns(no: number, query: TurnQuery): TurnRow[] {
    const { kind, ...given } = query;
    const values = Object.values(given).map(
      (value): SQLInputValue => (Array.isArray(value) ? JSON.stringify(value) : (value as never)),
    );
    return (this.#turns[kind].all(no, ...values) as unknown as StoredTurn[]).map(turnRow);
  }

  /** The queued turn of a run, in any thread. */
  queued(runId: string): TurnRow | undefined {
    const row = this.#queued.get(runId) as unknown as StoredTurn | undefined;
    return row && turnRow(row);
  }

  /** The facts of a thread, each read when a decision uses it. */
  facts(
    no: number | undefined,
    thread: ThreadRow | null,
    messages: readonly string[],
  ): Omit<ThreadFacts, 'hasRecord' | 'isKnown'> {
    const one = (statement: StatementSync): TurnRow | null => {
      const row = no === undefined ? undefined : (statement.get(no) as unknown as StoredTurn | undefined);
      return row ? turnRow(row) : null;
    };
    const tables = this;
    return {
      thread,
      get turn() {
        return no === undefined || messages.length === 0
          ? null
          : (tables.turns(no, { kind: 'message', messages })[0] ?? null);
      },
      get live() {
        return one(tables.#live);
      },
      get next() {
        return one(tables.#next);
      },
      get steered() {
        return no === undefined ? [] : (tables.#steered.all(no) as unknown as StoredTurn[]).map(turnRow);
      },
      get queue() {
        const found = no === undefined ? undefined : tables.#queue.get(no);
        return (found as ThreadFacts['queue'] | undefined) ?? { count: 0, lowest: 0, highest: 0 };
      },
    };
  }

  /** Whether a run is a turn of any thread, or of another one than this. */
  isTurn(runId: string, otherThan?: number): boolean {
    const found = otherThan === undefined ? this.#isUsed.get(runId) : this.#hasOther.get(runId, otherThan);
    return found !== undefined;
  }

  put(row: ThreadRow, no: number | undefined): number {
    const { thread, caller, updatedAt, turns, length, rewinds, text } = row;
    if (no !== undefined) {
      this.#update.run(updatedAt, turns, length, rewinds, no);
      return no;
    }
    return Number(
      this.#insert.run(thread, caller, updatedAt, turns, length, rewinds, crc32(text), text).lastInsertRowid,
    );
  }

  change(no: number, { turns = [], remove = [] }: ThreadChange): void {
    for (const message of remove) this.#removeTurn.run(no, message);
    for (const turn of turns) {
      const { message, state, order, runId, first, count, text, compaction } = turn;
      this.#putTurn.run(
        no,
        message,
        state,
        order,
        runId,
        first,
        count,
        crc32(text, crc32(compaction ?? '')),
        text,
        compaction,
      );
    }
  }

  remove(no: number): void {
    this.#remove.run(no);
  }

  share(from: number, to: number, turns: number): void {
    this.#fork.run(to, from, turns);
  }

  list({ callers, after, heldUp, limit }: ThreadPage): ListedThread[] {
    const at = [after?.updatedAt ?? Number.POSITIVE_INFINITY, after?.thread ?? '', limit] as const;
    const others = heldUp ? this.#page.heldUp : this.#page.all;
    const rows = callers ? this.#page.ofCaller.all(JSON.stringify(callers), ...at) : others.all(...at);
    return (rows as unknown as (StoredThread & { live: string | null; queued: number })[]).map((row) => ({
      ...threadRow(row),
      live: row.live ?? undefined,
      queued: row.queued,
    }));
  }
}

/** A damaged text cannot be opened: the codec, or the parser, says so. */
function threadRow({ updated_at: updatedAt, content, checksum, ...row }: StoredThread): ThreadRow {
  const { thread, caller, turns, length, rewinds } = row;
  const text = isIntact(content, checksum) ? content : DAMAGED_TEXT;
  return { thread, caller, updatedAt, turns, length, rewinds, text };
}

function turnRow({ message, state, place: order, run_id: runId, first, count, ...row }: StoredTurn): TurnRow {
  const { content, compaction, checksum } = row;
  const isWhole = crc32(content, crc32(compaction ?? '')) === checksum;
  const texts = isWhole ? { text: content, compaction } : { text: DAMAGED_TEXT, compaction: null };
  return { message, runId, state, order, first, count, ...texts };
}

/** A write to a thread that was made, with the writes to runs. */
interface MadeThread<T> {
  readonly value: T;
  readonly made: readonly Made<unknown>[];
}

/** Makes a write to a thread, and those to its runs, inside a transaction that others may share. */
export function writeThread<T>(tables: Tables, { threads, messages, end, decide }: ThreadWrite<T>): MadeThread<T> {
  const found = tables.threads.find(threads);
  const ending = end && decideWrite(tables, end);
  const facts: ThreadFacts = Object.assign(
    Object.create(tables.threads.facts(found?.no, found?.row ?? null, messages)) as ThreadFacts,
    { hasRecord: (runId: string) => isStored(tables, runId), isKnown: (runId: string) => isKnown(tables, runId) },
  );
  const { value, change } = decide(facts, endedIn(ending));
  const writes = [...(change?.writes ?? []), ...toErase(tables, change, found?.no)];
  const decided = [...(ending ? [ending] : []), ...writes.map((write) => decideWrite(tables, write))];
  const made = decided.map((each) => makeDecided(tables, each));
  if (change) changeThread(tables, change, found?.no);
  return { value, made };
}

function changeThread({ threads }: Tables, change: ThreadChange, found: number | undefined): void {
  const { thread } = change;
  if (thread === 'remove') {
    if (found !== undefined) threads.remove(found);
    return;
  }
  const no = thread ? threads.put(thread, found) : found;
  if (no !== undefined) threads.change(no, change);
}

function endedIn(ending: DecidedWrite<unknown> | undefined): RecordFacts | undefined {
  if (!ending?.change) return undefined;
  const { record } = ending.facts;
  return record && record !== 'unreadable' ? record : { version: 0, revision: 0, messageCount: 0 };
}

function toErase(
  { threads }: Tables,
  { erase = [] }: ThreadChange<StoreWrite<unknown>> = {},
  no: number | undefined,
): StoreWrite<unknown>[] {
  return erase.filter(({ runId }) => no !== undefined && !threads.isTurn(runId, no));
}

function isStored({ records }: Tables, runId: string): boolean {
  return records.find(runId) !== undefined;
}

function isKnown(tables: Tables, runId: string): boolean {
  const { records, outcomes, threads } = tables;
  const isStored = records.find(runId) !== undefined || records.findEnded(runId) !== undefined;
  return isStored || outcomes.epoch(runId) > 0 || threads.isTurn(runId);
}

/** Makes a fork inside a transaction that others may share. */
export function forkThread({ threads: tables }: Tables, { threads, newThreads, decide }: ForkWrite): void {
  const source = tables.find(threads);
  const row = decide(source?.row ?? null, tables.find(newThreads)?.row ?? null);
  if (row && source) tables.share(source.no, tables.put(row, undefined), row.turns);
}
