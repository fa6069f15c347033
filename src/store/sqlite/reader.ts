import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { isBusy, isDamage, isIoError, storeError } from '../../sqlite/errors.ts';
import { backoffMs, lockBackoff } from '../../values/backoff.ts';
import { CheckpointCorruptError } from '../../values/errors.ts';
import type { JournalRow } from '../encoding/stored-journal.ts';
import type { TurnQuery, TurnRow } from '../rules/thread-rows.ts';
import type { MessageRange, MessageReader, PartReader, RowsPage, StoredPart, StoredTexts } from '../store-driver.ts';
import type { RunDatabase, Statements } from './connection.ts';
import type { QueueOptions, WriteQueue } from './queue.ts';
import type { LoadedRow } from './reads.ts';

/** Loads and lists runs in SQLite. It waits for the earlier writes, and lets the event loop run while it reads large texts. */
export class Reader {
  readonly #database: RunDatabase;
  readonly #queue: WriteQueue;
  readonly #options: QueueOptions;

  constructor(database: RunDatabase, queue: WriteQueue, options: QueueOptions) {
    this.#database = database;
    this.#queue = queue;
    this.#options = options;
  }

  /** Loads a record. @param options.hasEnded loads only that of a run that ended; default: only that of any other */
  async load(
    runId: string,
    messages: MessageReader,
    { signal, hasEnded }: { readonly signal?: AbortSignal | undefined; readonly hasEnded?: boolean } = {},
  ): Promise<StoredTexts | null> {
    await this.#queue.idle();
    for (; ; messages.keep(0)) {
      const found = await this.#read(({ reads }) => {
        const row = reads.run(runId, hasEnded);
        if (row) reads.messages(row, messages);
        return row && { row, step: reads.step(row) };
      });
      if (!found) return null;
      const { row, step } = found;
      if (!(await this.#readRest(row, { messages, signal }))) continue;
      return { meta: row.meta, head: row.head, extras: row.extras, step, attempts: row.attempts ?? undefined };
    }
  }

  /** The rows of a journal, also of a run that ended. */
  journal(runId: string, page: RowsPage): Promise<readonly JournalRow[] | null> {
    return this.afterWrites(({ tables, reads }) => {
      const no = reads.numberOf(runId);
      return no === undefined ? null : tables.journals.read(no, page);
    });
  }

  content(runId: string, range: MessageRange, row: PartReader): Promise<StoredPart | null> {
    return this.afterWrites(({ reads }) => {
      const live = reads.run(runId);
      const found = live ?? reads.run(runId, true);
      if (!found) return null;
      reads.part(found, range, row);
      const { meta, head, message_count: messageCount } = found;
      const part = { meta, head, messageCount, step: reads.step(found), hasEnded: live === undefined };
      return { ...part, attempts: found.attempts ?? undefined };
    });
  }

  turns(threads: readonly string[], query: TurnQuery): Promise<TurnRow[] | null> {
    return this.afterWrites(({ tables }) => {
      const found = tables.threads.find(threads);
      return found ? tables.threads.turns(found.no, query) : null;
    });
  }

  async outcome(runId: string): Promise<string | null> {
    const found = await this.afterWrites(({ tables }) => tables.outcomes.read(runId));
    if (found !== 'expired') return found?.text ?? null;
    if (!this.#options.isReadOnly) await this.#queue.add((tables) => tables.outcomes.remove(runId));
    return null;
  }

  /** False if the record was replaced or deleted meanwhile. A record that only grew is read in its former state. */
  async #readRest(
    row: LoadedRow,
    { messages, signal }: { readonly messages: MessageReader; readonly signal: AbortSignal | undefined },
  ): Promise<boolean> {
    while (messages.count < row.message_count) {
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

  /** Reads once this process has made the writes that came before. */
  async afterWrites<T>(work: (statements: Statements) => T): Promise<T> {
    await this.#queue.idle();
    return this.#read(work);
  }

  async #read<T>(work: (statements: Statements) => T): Promise<T> {
    const latest = performance.now() + this.#options.busyTimeoutMs;
    for (let retries = 1; ; retries++) {
      try {
        return this.#database.get().transaction('read', work);
      } catch (error) {
        if (!isBusy(error) || performance.now() >= latest) throw this.#seen(error);
      }
      await sleep(backoffMs(retries, lockBackoff));
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
