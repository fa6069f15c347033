import { setImmediate as nextTurn } from 'node:timers/promises';
import { CheckpointCorruptError, StoreUnavailableError } from '../../values/errors.ts';
import type { CommandToSend } from '../commands.ts';
import { isFree } from '../cursor.ts';
import type { ListDueOptions } from '../due-port.ts';
import { isIntact } from '../encoding/checksum.ts';
import type { DueHeads, ForgetOptions, ListedHead, ListPage, MessageReader, StoredTexts } from '../store-driver.ts';
import { countExpired, removeExpired } from './ended.ts';
import { sendRow } from './inboxes.ts';
import type { PoolSession } from './pool.ts';
import {
  isSame,
  type ReadRow,
  readDue,
  readEndedRun,
  readMessages,
  readPage,
  readRunRow,
  textsOfRow,
} from './run-queries.ts';
import { hexOf } from './run-row.ts';
import type { Server } from './server.ts';
import { joinTotals } from './totals/totals.ts';
import type { WriteQueue } from './write-queue.ts';

/**
 * Most reads, and commands, that run at once. More wait here, where waiting is not an error, and leave the host's pool to
 * others.
 */
const MAX_READS = 4;

/** Most expired outcomes that one statement removes. */
const FORGOTTEN_AT_ONCE = 500;

/** A command is not retried longer than this, ms: its run remembers it for twice as long, even if it is repeated. */
const MAX_SEND_MS = 30_000;

/** Bounds the reads of a record that is replaced during each read. */
const MAX_LOADS = 20;

/** Loads and lists runs in PostgreSQL. It waits for the earlier writes, and reads large texts in parts. */
export class Reader {
  readonly #server: Server;
  readonly #queue: WriteQueue;
  readonly #waitMs: number;
  readonly #waiting: (() => void)[] = [];
  #underWay = 0;
  /** The error of the last read, if it failed. */
  #failure: unknown;

  /** @param waitMs how long one read of the server is retried */
  constructor(server: Server, queue: WriteQueue, waitMs: number) {
    this.#server = server;
    this.#queue = queue;
    this.#waitMs = waitMs;
  }

  /** Loads a record. @param options.hasEnded only that of a run that ended; default: only that of any other */
  async load(
    runId: string,
    messages: MessageReader,
    { signal, hasEnded = false }: { readonly signal?: AbortSignal | undefined; readonly hasEnded?: boolean } = {},
  ): Promise<StoredTexts | null> {
    const read = hasEnded ? readEndedRun : readRunRow;
    await this.#queue.settle(runId);
    for (let loads = 0; loads < MAX_LOADS; loads++) {
      signal?.throwIfAborted();
      messages.keep(0);
      const stored = await this.insist((session) => read(session, this.#server, runId));
      if (!stored) return null;
      const texts = textsOfRow(stored);
      if (await this.#hasRead(stored, { messages, signal })) return texts;
    }
    throw new StoreUnavailableError(
      `run ${runId}: its record was replaced each time while it was read; try again later`,
    );
  }

  /** Removes the kept records whose time is over, or only counts them. @returns how many */
  async forgetEnded({ dryRun, limit = Number.POSITIVE_INFINITY }: ForgetOptions): Promise<number> {
    if (dryRun) return this.insist((session) => countExpired(session, this.#server));
    await this.insist((session) => joinTotals(session, this.#server.tables));
    for (let count = 0; ; ) {
      const removed = await this.insist((session) => removeExpired(session, this.#server));
      count += removed;
      if (removed === 0 || count >= limit) return count;
    }
  }

  async list({ signal, ...page }: ListPage): Promise<ListedHead[]> {
    await this.#queue.settle();
    signal?.throwIfAborted();
    const runs = await this.insist((session) => readPage(session, this.#server, page));
    return runs.map(listedHead);
  }

  async due({ limit, after }: ListDueOptions): Promise<DueHeads> {
    await this.#queue.settle();
    const heads: ListedHead[] = [];
    for (let from = after; ; ) {
      const page = await this.insist((session) => readDue(session, this.#server, { after: from, limit }));
      const { now, nextAt, runs } = page;
      for (const head of runs.map(listedHead)) if (heads.length < limit && isFree(head)) heads.push(head);
      const last = runs.at(-1);
      if (!last || runs.length < limit || heads.length === limit) return { now, heads, nextAt };
      from = { dueAt: last.due ?? 0, runId: last.runId };
    }
  }

  async outcome(runId: string): Promise<string | null> {
    await this.#queue.settle(runId);
    const { tables, times } = this.#server;
    const now = times.wall();
    const [row] = await this.insist(async (session) => {
      const id = hexOf(runId);
      const rows = await session.query(
        `SELECT until, checksum, outcome FROM ${tables.outcomes} WHERE run_id = pg_catalog.decode($1, 'hex')`,
        [id],
      );
      // An expired outcome counts as removed, and stays so if the clock is set back.
      if (rows[0] && Number(rows[0].until) <= now) {
        const forget = `DELETE FROM ${tables.outcomes} WHERE run_id = pg_catalog.decode($1, 'hex') AND until <= $2::pg_catalog.float8`;
        if (!this.#server.isReadOnly) await session.query(forget, [id, now]);
        return [];
      }
      return rows;
    });
    if (!row) return null;
    if (isIntact(row.outcome, row.checksum)) return row.outcome;
    throw new CheckpointCorruptError(`the kept outcome of run ${runId} is damaged: its checksum is wrong`);
  }

  /**
   * Counts the outcomes that are past their time, and removes them.
   * @returns how many outcomes had expired; they are removed, unless they are only counted
   */
  async forgetOutcomes({ dryRun, limit = Number.POSITIVE_INFINITY }: ForgetOptions): Promise<number> {
    const { tables, times } = this.#server;
    const now = times.wall();
    const due = `FROM ${tables.outcomes} WHERE until <= $1::pg_catalog.float8`;
    if (dryRun) {
      const [row] = await this.insist((session) => session.query(`SELECT pg_catalog.count(*) AS count ${due}`, [now]));
      return Number(row?.count);
    }
    const gone = `SELECT signal FROM ${tables.signals} WHERE until <= $1::pg_catalog.float8 LIMIT ${FORGOTTEN_AT_ONCE}`;
    const forgetSignals = `DELETE FROM ${tables.signals} WHERE signal IN (${gone} FOR UPDATE SKIP LOCKED)`;
    await this.insist((session) => session.query(forgetSignals, [now]));
    const old = `SELECT run_id, outcome_id FROM ${tables.deliveries} WHERE until <= $1::pg_catalog.float8 LIMIT ${FORGOTTEN_AT_ONCE}`;
    const forgetMarks = `DELETE FROM ${tables.deliveries} WHERE (run_id, outcome_id) IN (${old} FOR UPDATE SKIP LOCKED)`;
    await this.insist((session) => session.query(forgetMarks, [now]));
    const some = `SELECT run_id ${due} LIMIT ${FORGOTTEN_AT_ONCE} FOR UPDATE SKIP LOCKED`;
    const forget = `DELETE FROM ${tables.outcomes} WHERE run_id IN (${some}) RETURNING 1 AS gone`;
    for (let count = 0; ; ) {
      const { length } = await this.insist((session) => session.query(forget, [now]));
      count += length;
      if (length < FORGOTTEN_AT_ONCE || count >= limit) return count;
    }
  }

  /** These write, but change no record: they need not wait for writes that do. */
  async send(command: CommandToSend): Promise<void> {
    await this.#queue.settle(command.runId);
    let sent = 0;
    const attempt = (session: PoolSession) => sendRow(session, this.#server, { command, isAgain: sent++ > 0 });
    await this.insist(attempt, Math.min(this.#waitMs, MAX_SEND_MS));
  }

  /** Returns false if the record was replaced or deleted meanwhile. A record that only grew is read in its former state. */
  async #hasRead(
    stored: ReadRow,
    { messages, signal }: { readonly messages: MessageReader; readonly signal: AbortSignal | undefined },
  ): Promise<boolean> {
    const count = Number(stored.row.message_count);
    while (messages.count < count) {
      const isMore = await this.insist((session) => readMessages(session, this.#server, { stored, messages }));
      if (!isMore) {
        if (!(await this.insist((session) => isSame(session, this.#server, stored)))) return false;
        break;
      }
      await nextTurn(undefined, { signal });
    }
    if (messages.count === count) return true;
    throw new CheckpointCorruptError(`this record is damaged: it has ${messages.count} of its ${count} messages`);
  }

  /** As `insist`, once this process has made the writes of a run that came before; of all runs, if none is named. */
  async afterWrites<T>(work: (session: PoolSession) => Promise<T>, runId?: string): Promise<T> {
    await this.#queue.settle(runId);
    return this.insist(work);
  }

  /** Runs a piece of work that may be done twice, and retries it. Only a few run at once. @param ms how long it is retried */
  async insist<T>(work: (session: PoolSession) => Promise<T>, ms = this.#waitMs): Promise<T> {
    const until = performance.now() + ms;
    while (this.#underWay >= MAX_READS) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#underWay += 1;
    try {
      const left = until - performance.now();
      // If the server is down, the waiting reads must not each wait for it again, one after the other.
      if (left <= 0 && this.#failure !== undefined) throw this.#failure;
      const answer = await this.#server.insist(left, work);
      this.#failure = undefined;
      return answer;
    } catch (error) {
      this.#failure = error instanceof StoreUnavailableError ? error : undefined;
      throw error;
    } finally {
      this.#underWay -= 1;
      this.#waiting.shift()?.();
    }
  }
}

/** Returns the entry of a row in a list of runs; one with a wrong checksum has the error. */
export function listedHead(stored: ReadRow): ListedHead {
  const { runId, updatedAt, lease, due, now, row } = stored;
  const place = { due, fair: row.fair ?? '', agent: row.agent ?? '' };
  try {
    return { ...textsOfRow(stored), runId, updatedAt, lease, now, ...place };
  } catch (error) {
    return { runId, updatedAt, meta: '', head: '', lease, now, ...place, error };
  }
}
