/// <reference lib="esnext.disposable" preserve="true" />
import type { Codec } from '../../codec/port.ts';
import { checkRunId } from '../../run/identity.ts';
import { type Clock, systemClock } from '../../values/clock.ts';
import { RecordTooLargeError } from '../../values/errors.ts';
import { checkKeys, type KnownKeys } from '../../values/known-options.ts';
import { dropEncoding } from '../../values/message.ts';
import { encodeCommand } from '../commands.ts';
import { encryptCutDelta, encryptCutRecord, Splitter } from '../encoding/blob-refs.ts';
import { encodeDelta, encodeOutcome, encodeRecord } from '../encoding/encode.ts';
import { Encryption } from '../encoding/encryption.ts';
import type { AppendingStore, ControlStore, OutcomeStore, WriteOptions } from '../port.ts';
import * as changes from './changes.ts';
import type { PostgresPool } from './pool.ts';
import { type Job, WriteQueue } from './queue.ts';
import { Reader } from './reader.ts';
import { withoutColumns } from './rows.ts';
import { Server } from './server.ts';
import { serverTimes } from './state.ts';
import { Writer } from './writer.ts';

export interface PostgresStoreOptions {
  /** A pool of `pg`, which the host makes, sizes and ends. The store uses up to six of its connections at a time. */
  readonly pool: PostgresPool;
  /** The schema of its tables; created at the first use. Default: `pawl`. */
  readonly schema?: string | undefined;
  /** How long a call is retried, over new connections, before it is refused with STORE_UNAVAILABLE, ms; default 10,000. */
  readonly timeoutMs?: number | undefined;
  /** Encrypts the stored texts: see `encrypt`. */
  readonly codec?: Codec | undefined;
  /** For tests. All stores of one schema must then share it, because leases use it instead of the server's clock. */
  readonly clock?: Clock | undefined;
}

const optionKeys: KnownKeys<PostgresStoreOptions> = {
  pool: true,
  schema: true,
  timeoutMs: true,
  codec: true,
  clock: true,
};

/** PostgreSQL accepts no statement of 2^30 bytes. */
const MAX_BYTES = 1_000_000_000;

/** Appends, owns, carries commands, and keeps outcomes. */
export interface PostgresStore extends AppendingStore, ControlStore, OutcomeStore {
  /** Waits for the pending writes. Every later call is refused. The pool stays open: it belongs to the host. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Stores records in a PostgreSQL database (13 or later), for any number of hosts. The first use creates the tables, or updates
 * them to the layout of this version; an error of that (STORE_UNAVAILABLE, or CHECKPOINT_TOO_NEW for a newer layout) comes
 * from the call that needed it.
 *
 * Writes of one turn of the event loop share one statement. A connection that breaks, a server that restarts, or an answer
 * that never arrives leads to a retry over another connection, which recognises writes that were stored. Leases use the
 * server's clock.
 *
 * @throws {TypeError} for an unknown option, an invalid schema name, or a value that is not a pool
 * @example const store = postgresStore({ pool: new Pool({ connectionString: process.env.DATABASE_URL }) })
 */
export function postgresStore(options: PostgresStoreOptions): PostgresStore {
  checkKeys(options, optionKeys, { of: 'postgresStore' });
  const { pool, schema = 'pawl', timeoutMs = 10_000, clock = systemClock } = options;
  if (typeof pool?.connect !== 'function') throw new TypeError('postgresStore needs a pool: a Pool of pg');
  if (!(timeoutMs > 0)) throw new TypeError(`timeoutMs must be above 0, not ${timeoutMs}`);
  const encryption = new Encryption(options.codec);
  const server = new Server({ pool, schema, times: serverTimes(clock), encryption });
  const writer = new Writer(server);
  const queue = new WriteQueue((...group) => writer.perform(...group), timeoutMs);
  const reader = new Reader(server, queue, timeoutMs);
  const close = async () => {
    await queue.settled();
    server.close();
  };
  // Own functions rather than methods: hosts and tests wrap a store by spreading it.
  return {
    ...recordWrites(queue, { splitter: new Splitter(), encryption }),
    ...ownership(queue),
    ...reading(reader),
    ...control(reader, encryption),
    close,
    [Symbol.asyncDispose]: close,
  };
}

function recordWrites(
  queue: WriteQueue,
  { splitter, encryption }: { readonly splitter: Splitter; readonly encryption: Encryption },
): Pick<PostgresStore, 'save' | 'append' | 'delete' | 'keepOutcome'> {
  const add = (write: Pick<Job, 'runId' | 'size' | 'decide'>, { claim, signal }: WriteOptions) =>
    queue.add({ ...write, hasClaim: claim !== undefined, signal });
  return {
    save: async (record, options = {}) => {
      options.signal?.throwIfAborted();
      const cut = splitter.split(encodeRecord(record), record, { isContinued: false });
      const encoded = withoutColumns(encryptCutRecord(cut, encryption));
      const { runId, head, meta, extras, rows, pieces } = encoded;
      const size = sizeOf(runId, [head, meta, extras ?? '', ...textsOf(rows), ...textsOf(pieces)]);
      await add({ runId, size, decide: changes.saveRecord(encoded, options.claim) }, options);
      record.messages.forEach(dropEncoding);
    },
    append: async (delta, options = {}) => {
      options.signal?.throwIfAborted();
      const cut = splitter.split(encodeDelta(delta), delta.head, {
        isContinued: true,
      });
      const encoded = withoutColumns(encryptCutDelta(cut, encryption));
      const { runId, head, rows, pieces } = encoded;
      const size = sizeOf(runId, [head, ...textsOf(rows), ...textsOf(pieces)]);
      await add({ runId, size, decide: changes.appendDelta(encoded, options.claim) }, options);
      delta.messages.forEach(dropEncoding);
    },
    delete: async (runId, options = {}) => {
      options.signal?.throwIfAborted();
      await add({ runId: checkRunId(runId), size: 0, decide: changes.deleteRun(runId, options.claim) }, options);
      splitter.forget(runId);
    },
    keepOutcome: async (runId, outcome, untilMs, options = {}) => {
      options.signal?.throwIfAborted();
      const kept = {
        runId: checkRunId(runId),
        text: encryption.seal(encodeOutcome(outcome), runId, 'outcome'),
        untilMs,
      };
      const size = sizeOf(runId, [kept.text]);
      await add({ runId, size, decide: changes.keepOutcome(kept, options.claim) }, options);
    },
  };
}

function ownership(queue: WriteQueue): Pick<PostgresStore, 'claim' | 'renew' | 'release'> {
  const own = { size: 0, signal: undefined };
  return {
    claim: async (runId, owner, ttlMs) => {
      const decide = changes.claimRun(checkRunId(runId), owner, ttlMs);
      return queue.add({ ...own, runId, decide, hasClaim: false });
    },
    renew: async (claim, ttlMs) => {
      const decide = changes.renewClaim(claim, ttlMs);
      return queue.add({ ...own, runId: claim.runId, decide, hasClaim: true });
    },
    release: async (claim, options) => {
      const decide = changes.releaseClaim(claim, options);
      return queue.add({ ...own, runId: claim.runId, decide, hasClaim: true });
    },
  };
}

function control(reader: Reader, encryption: Encryption): Pick<PostgresStore, 'send' | 'inbox' | 'acknowledge'> {
  return {
    send: async (runId, command) => {
      const text = encryption.seal(encodeCommand(command), runId, 'command');
      await reader.send({ runId: checkRunId(runId), id: command.id, kind: command.kind, text });
    },
    inbox: async (of) => reader.inbox(of),
    acknowledge: async (claim, ids) => reader.acknowledge(claim, ids),
  };
}

function reading(reader: Reader): Pick<PostgresStore, 'load' | 'listInterrupted' | 'outcome' | 'forgetOutcomes'> {
  return {
    load: async (runId, { signal } = {}) => reader.load(checkRunId(runId), signal),
    listInterrupted: async (options = {}) => reader.list(options),
    forgetOutcomes: async ({ dryRun = false } = {}) => reader.forgetOutcomes(dryRun),
    outcome: async (runId) => reader.outcome(checkRunId(runId)),
  };
}

const textsOf = (parts: readonly { readonly text: string }[]) => parts.map(({ text }) => text);

/** The characters of a write. @throws {RecordTooLargeError} if PostgreSQL cannot accept them in one statement */
function sizeOf(runId: string, texts: readonly string[]): number {
  const size = texts.reduce((sum, text) => sum + text.length, 0);
  if (size <= MAX_BYTES / 3) return size;
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (bytes <= MAX_BYTES) return size;
  throw new RecordTooLargeError(`run ${runId}: a write of ${bytes} bytes; PostgreSQL takes up to ${MAX_BYTES} at once`);
}
