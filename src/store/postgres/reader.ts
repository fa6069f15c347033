import { setImmediate as nextTurn } from 'node:timers/promises';
import type { RunCheckpoint } from '../../record/checkpoint.ts';
import { type InterruptedRun, interruptedRun, quarantinedRun } from '../../record/interrupted.ts';
import type { SentCommand } from '../../run/command.ts';
import type { RunOutcome } from '../../run/result.ts';
import { CheckpointCorruptError, StoreUnavailableError } from '../../values/errors.ts';
import type { CommandToSend } from '../commands.ts';
import { isIntact } from '../encoding/checksum.ts';
import { decodeHead, decodeRecord, parseStored } from '../encoding/encode.ts';
import type { Encryption } from '../encoding/encryption.ts';
import { isHeld, type Lease, refuseDamaged } from '../lease.ts';
import type { Claim, InboxOf, ListOptions } from '../port.ts';
import { acknowledge, readInbox, send } from './inboxes.ts';
import type { Session } from './pool.ts';
import type { WriteQueue } from './queue.ts';
import { isSame, readMessages, readPage, readRun, type StoredRun, textsOf } from './reads.ts';
import type { Server } from './server.ts';
import { hexOf } from './state.ts';

/**
 * Most reads, and commands, that run at once. More wait here, where waiting is not an error, and leave the host's pool to
 * others.
 */
const MAX_READS = 4;

/** A list reads this many runs at a time. */
const RUNS_PER_PAGE = 500;

/** Most expired outcomes that one statement removes. */
const FORGOTTEN_AT_ONCE = 1_000;

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

  async load(runId: string, signal?: AbortSignal): Promise<RunCheckpoint | null> {
    signal?.throwIfAborted();
    await this.#queue.settled(runId);
    for (let loads = 0; loads < MAX_LOADS; loads++) {
      signal?.throwIfAborted();
      const stored = await this.#read((session) => readRun(session, this.#server, runId));
      if (!stored) return null;
      const texts = textsOf(stored, this.#server.encryption);
      const messages = await this.#messages(stored, signal);
      if (messages) return decodeRecord({ runId, ...texts, messages }, stored.lease?.attempts);
    }
    throw new StoreUnavailableError(
      `run ${runId}: its record was replaced each time while it was read; try again later`,
    );
  }

  async list({ after, limit = Number.POSITIVE_INFINITY, signal }: ListOptions): Promise<InterruptedRun[]> {
    signal?.throwIfAborted();
    await this.#queue.settled();
    const listed: InterruptedRun[] = [];
    for (let from = after; listed.length < limit; ) {
      signal?.throwIfAborted();
      const page = { after: from, limit: Math.min(RUNS_PER_PAGE, limit - listed.length) };
      const runs = await this.#read((session) => readPage(session, this.#server, page));
      const owners = new Map<string, boolean>();
      for (const run of runs) listed.push(listedRun(run, owners, this.#server.encryption));
      if (runs.length < page.limit) break;
      from = runs.at(-1);
    }
    return listed;
  }

  async outcome(runId: string): Promise<RunOutcome | null> {
    await this.#queue.settled(runId);
    const { tables, times } = this.#server;
    const now = times.wall();
    const [row] = await this.#read(async (session) => {
      const id = hexOf(runId);
      const rows = await session.query(
        `SELECT until, checksum, outcome FROM ${tables.outcomes} WHERE run_id = decode($1, 'hex')`,
        [id],
      );
      // An expired outcome counts as removed, and stays so if the clock is set back.
      if (rows[0] && Number(rows[0].until) <= now) {
        const forget = `DELETE FROM ${tables.outcomes} WHERE run_id = decode($1, 'hex') AND until <= $2::float8`;
        await session.query(forget, [id, now]);
        return [];
      }
      return rows;
    });
    if (!row) return null;
    const text = row.outcome ?? '';
    const open = () => this.#server.encryption.open(text, runId, 'outcome');
    if (isIntact(text, row.checksum)) return parseStored(open(), 'outcome') as RunOutcome;
    throw new CheckpointCorruptError(`the kept outcome of run ${runId} is damaged: its checksum is wrong`);
  }

  /**
   * Counts the outcomes that are past their time, and removes them.
   * @returns how many outcomes had expired; they are removed, unless they are only counted
   */
  async forgetOutcomes(isOnlyCounted: boolean): Promise<number> {
    const { tables, times } = this.#server;
    const now = times.wall();
    const due = `FROM ${tables.outcomes} WHERE until <= $1::float8`;
    if (isOnlyCounted) {
      const [row] = await this.#read((session) => session.query(`SELECT count(*) AS count ${due}`, [now]));
      return Number(row?.count);
    }
    const some = `SELECT run_id ${due} LIMIT ${FORGOTTEN_AT_ONCE} FOR UPDATE SKIP LOCKED`;
    const forget = `DELETE FROM ${tables.outcomes} WHERE run_id IN (${some}) RETURNING 1 AS gone`;
    for (let count = 0; ; ) {
      const { length } = await this.#read((session) => session.query(forget, [now]));
      count += length;
      if (length < FORGOTTEN_AT_ONCE) return count;
    }
  }

  async inbox(of: InboxOf): Promise<SentCommand[]> {
    if ('runId' in of) await this.#queue.settled(of.runId);
    return this.#read((session) => readInbox(session, this.#server, of));
  }

  /** These two write, but change no record: they need not wait for writes that do. */
  async send(command: CommandToSend): Promise<void> {
    await this.#queue.settled(command.runId);
    let sent = 0;
    const attempt = (session: Session) => send(session, this.#server.tables, { command, isAgain: sent++ > 0 });
    await this.#read(attempt, Math.min(this.#waitMs, MAX_SEND_MS));
  }

  async acknowledge(claim: Claim, ids: readonly string[]): Promise<void> {
    await this.#queue.settled(claim.runId);
    await this.#read((session) => acknowledge(session, this.#server.tables, { claim, ids }));
  }

  /** Undefined if the record was replaced or deleted meanwhile. A record that only grew is read in its former state. */
  async #messages(stored: StoredRun, signal: AbortSignal | undefined): Promise<unknown[] | undefined> {
    const messages: unknown[] = [];
    const { row } = stored;
    const count = Number(row.message_count);
    while (messages.length < count) {
      const isMore = await this.#read((session) => readMessages(session, this.#server, { stored, messages }));
      if (!isMore) {
        if (!(await this.#read((session) => isSame(session, this.#server, stored)))) return undefined;
        break;
      }
      await nextTurn(undefined, { signal });
    }
    if (messages.length === count) return messages;
    throw new CheckpointCorruptError(`this record is damaged: it has ${messages.length} of its ${count} messages`);
  }

  async #read<T>(work: (session: Session) => Promise<T>, ms = this.#waitMs): Promise<T> {
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

/**
 * The line of a row in a list of runs.
 * @param owners whether an owner is alive takes a system call; once for each is enough for a page
 */
function listedRun(stored: StoredRun, owners: Map<string, boolean>, encryption: Encryption): InterruptedRun {
  const { runId, updatedAt, lease, now } = stored;
  try {
    const { meta, head } = textsOf(stored, encryption);
    refuseDamaged(lease);
    return interruptedRun(decodeHead({ runId, meta, head }, lease?.attempts), liveOwner(lease, now, owners));
  } catch (error) {
    return quarantinedRun({ runId, updatedAt }, error);
  }
}

function liveOwner(lease: Lease | undefined, now: number, owners: Map<string, boolean>): string | undefined {
  if (!lease || lease.owner === null || lease.expiresAt <= now) return undefined;
  const isLive = owners.get(lease.owner) ?? isHeld(lease, now);
  owners.set(lease.owner, isLive);
  return isLive ? lease.owner : undefined;
}
