import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { RunCheckpoint } from '../../record/checkpoint.ts';
import type { InterruptedRun } from '../../record/interrupted.ts';
import type { SentCommand } from '../../run/command.ts';
import type { RunOutcome } from '../../run/result.ts';
import { CheckpointCorruptError } from '../../values/errors.ts';
import { decodeRecord } from '../encoding/encode.ts';
import type { InboxOf, ListOptions } from '../port.ts';
import type { RunDatabase, Statements } from './connection.ts';
import { isBusy, isDamage, isIoError, storeError } from './errors.ts';
import { backoffMs, type QueueOptions, type WriteQueue } from './queue.ts';
import type { LoadedRow } from './reads.ts';

/** A list reads this many runs in one turn of the event loop. */
const RUNS_PER_TURN = 500;

/** Loads and lists. It waits for the writes before it, and lets the event loop go on while it reads what is large. */
export class Reader {
  readonly #database: RunDatabase;
  readonly #queue: WriteQueue;
  readonly #options: QueueOptions;

  constructor(database: RunDatabase, queue: WriteQueue, options: QueueOptions) {
    this.#database = database;
    this.#queue = queue;
    this.#options = options;
  }

  async load(runId: string, signal?: AbortSignal): Promise<RunCheckpoint | null> {
    signal?.throwIfAborted();
    await this.#queue.idle();
    for (;;) {
      const messages: unknown[] = [];
      const row = await this.#read(({ reads }) => {
        const found = reads.run(runId);
        if (found) reads.messages(found, messages);
        return found;
      });
      if (!row) return null;
      if (await this.#readRest(row, { messages, signal })) {
        return decodeRecord({ ...row, runId, messages }, row.attempts ?? undefined);
      }
    }
  }

  async list({ after, limit = Number.POSITIVE_INFINITY, signal }: ListOptions): Promise<InterruptedRun[]> {
    signal?.throwIfAborted();
    await this.#queue.idle();
    const listed: InterruptedRun[] = [];
    for (let from = after; listed.length < limit; ) {
      const most = Math.min(RUNS_PER_TURN, limit - listed.length);
      const page = await this.#read(({ reads }) => reads.page(from, most));
      listed.push(...page.runs);
      if (page.runs.length < most) break;
      from = page.last;
      await nextTurn(undefined, { signal });
    }
    return listed;
  }

  async inbox(of: InboxOf): Promise<SentCommand[]> {
    await this.#queue.idle();
    return this.#read(({ tables }) => tables.inboxes.read(of));
  }

  async outcome(runId: string): Promise<RunOutcome | null> {
    await this.#queue.idle();
    const found = await this.#read(({ tables }) => tables.outcomes.read(runId));
    if (found !== 'expired') return found;
    await this.#queue.add((tables) => tables.outcomes.forgetExpired());
    return null;
  }

  /** False when the record was replaced or deleted under our eyes. A record that only grew is read as it was. */
  async #readRest(
    row: LoadedRow,
    { messages, signal }: { messages: unknown[]; signal: AbortSignal | undefined },
  ): Promise<boolean> {
    while (messages.length < row.message_count) {
      await nextTurn(undefined, { signal });
      const isSame = await this.#read(({ reads }) => {
        if (!reads.isSame(row)) return false;
        reads.messages(row, messages);
        return true;
      });
      if (!isSame) return false;
    }
    return true;
  }

  async #read<T>(work: (statements: Statements) => T): Promise<T> {
    const latest = performance.now() + this.#options.busyTimeoutMs;
    for (let retries = 1; ; retries++) {
      try {
        return this.#database.get().transaction('read', work);
      } catch (error) {
        if (!isBusy(error) || performance.now() >= latest) throw this.#seen(error);
      }
      await sleep(backoffMs(retries));
    }
  }

  #seen(error: unknown): unknown {
    if (isIoError(error)) this.#database.drop();
    if (!isDamage(error)) return storeError(error, this.#options.path);
    return new CheckpointCorruptError(
      `pages of ${this.#options.path} are damaged; copy the file before anything else`,
      {
        cause: error,
      },
    );
  }
}
