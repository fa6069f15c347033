/// <reference lib="esnext.disposable" preserve="true" />

import { resolve } from 'node:path';
import type { Codec } from '../../codec/port.ts';
import { checkRunId } from '../../run/identity.ts';
import { type Clock, systemClock } from '../../values/clock.ts';
import { checkKeys, checkWord, type KnownKeys, kindOf } from '../../values/known-options.ts';
import { dropEncoding } from '../../values/message.ts';
import { encodeCommand } from '../commands.ts';
import { encodeDelta, encodeOutcome, encodeRecord } from '../encoding/encode.ts';
import { Encryption, encryptDelta, encryptRecord } from '../encoding/encryption.ts';
import { StepSplitter } from '../encoding/step-texts.ts';
import { leaseClock } from '../lease-clock.ts';
import type { AppendingStore, ControlStore, OutcomeStore } from '../port.ts';
import { runDatabase } from './connection.ts';
import { WriteQueue } from './queue.ts';
import { Reader } from './reader.ts';
import { Removals } from './removals.ts';
import * as writes from './writes.ts';

export interface SqliteStoreOptions {
  /** The file; made, with its folder, at the first use. */
  readonly path: string;
  /**
   * What a save that has resolved survives: `power` (the default) the loss of power, by one disk sync per commit;
   * `process` the death of the process.
   */
  readonly durability?: 'power' | 'process' | undefined;
  /** How long a call waits while another process holds the lock, ms; default 10,000. The event loop goes on meanwhile. */
  readonly busyTimeoutMs?: number | undefined;
  /** Encrypts what is stored: see `encrypt`. */
  readonly codec?: Codec | undefined;
  /** For tests. All stores of one file must then share it, because leases are measured by it. */
  readonly clock?: Clock | undefined;
}

/** Appends, owns, carries commands, and keeps outcomes. */
export interface SqliteStore extends AppendingStore, ControlStore, OutcomeStore {
  /** Waits for the writes that were asked for, and closes the file. Every later call is refused. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const optionKeys: KnownKeys<SqliteStoreOptions> = {
  path: true,
  durability: true,
  busyTimeoutMs: true,
  codec: true,
  clock: true,
};

/**
 * Records in one SQLite file, for all processes of one machine. It is opened at the first use, so that an error of
 * opening it (StoreUnavailableError, or CheckpointTooNewError for a newer layout) comes from the call that needed it.
 *
 * Writes that are asked for in one turn of the event loop share a commit. Do not put the file on a network file system.
 *
 * @throws {TypeError} for an unknown option, or one of the wrong type
 * @example const store = sqliteStore({ path: 'runs.db' })
 */
export function sqliteStore(options: SqliteStoreOptions): SqliteStore {
  checkKeys(options, optionKeys, { of: 'sqliteStore' });
  checkWord('sqliteStore: durability', options.durability, ['power', 'process']);
  if (typeof options.path !== 'string')
    throw new TypeError(`sqliteStore: path must be a string, not ${kindOf(options.path)}`);
  const { durability = 'power', busyTimeoutMs = 10_000, clock = systemClock } = options;
  const path = options.path === ':memory:' ? options.path : resolve(options.path);
  const encryption = new Encryption(options.codec);
  const database = runDatabase({ path, durability, leaseClock: leaseClock(clock), now: () => clock.now(), encryption });
  const queue = new WriteQueue(database, { path, busyTimeoutMs });
  const removals = new Removals(database, queue, clock);
  const close = async () => {
    await queue.idle();
    await removals.end();
    await queue.idle();
    database.close();
  };
  // Own functions rather than methods: hosts and tests wrap a store by spreading it.
  return {
    forgetOutcomes: async ({ dryRun = false } = {}) =>
      dryRun ? queue.add(({ outcomes }) => outcomes.countExpired()) : removals.forgetOutcomes(),
    ...recordWrites(queue, encryption, removals),
    ...ownership(queue, removals),
    ...control(queue, encryption, removals),
    ...reading(new Reader(database, queue, { path, busyTimeoutMs })),
    close,
    [Symbol.asyncDispose]: close,
  };
}

function recordWrites(
  queue: WriteQueue,
  encryption: Encryption,
  removals: Removals,
): Pick<SqliteStore, 'save' | 'append' | 'delete' | 'keepOutcome'> {
  const splitter = new StepSplitter();
  return {
    save: async (record, { claim, signal } = {}) => {
      signal?.throwIfAborted();
      const encoded = encryptRecord(encodeRecord(record, splitter), encryption);
      const rest = await queue.add((tables) => writes.saveRecord(tables, encoded, claim), signal);
      if (rest !== undefined) removals.happened(rest);
      record.messages.forEach(dropEncoding);
    },
    append: async (delta, { claim, signal } = {}) => {
      signal?.throwIfAborted();
      const encoded = encryptDelta(encodeDelta(delta, splitter), encryption);
      // It stands in the rows now. Should the write fail, the next one encodes it again.
      delta.messages.forEach(dropEncoding);
      await queue.add((tables) => writes.appendDelta(tables, encoded, claim), signal);
    },
    delete: async (runId, { claim, signal } = {}) => {
      signal?.throwIfAborted();
      checkRunId(runId);
      removals.happened(await queue.add((tables) => writes.deleteRun(tables, runId, claim), signal));
    },
    keepOutcome: async (runId, outcome, untilMs, { claim, signal } = {}) => {
      signal?.throwIfAborted();
      const kept = {
        runId: checkRunId(runId),
        text: encryption.seal(encodeOutcome(outcome), runId, 'outcome'),
        untilMs,
      };
      await queue.add((tables) => writes.keepOutcome(tables, kept, claim), signal);
      removals.begin();
    },
  };
}

function ownership(queue: WriteQueue, removals: Removals): Pick<SqliteStore, 'claim' | 'renew' | 'release'> {
  return {
    claim: async (runId, owner, ttlMs) => {
      const wish = { runId: checkRunId(runId), owner, ttlMs };
      const claim = await queue.add((tables) => writes.claimRun(tables, wish));
      removals.begin();
      return claim;
    },
    renew: async (claim, ttlMs) => queue.add((tables) => writes.renewClaim(tables, claim, ttlMs)),
    release: async (claim, options) => queue.add((tables) => writes.releaseClaim(tables, claim, options)),
  };
}

function control(
  queue: WriteQueue,
  encryption: Encryption,
  removals: Removals,
): Pick<SqliteStore, 'send' | 'acknowledge'> {
  return {
    send: async (runId, command) => {
      const wish = {
        runId: checkRunId(runId),
        id: command.id,
        kind: command.kind,
        text: encryption.seal(encodeCommand(command), runId, 'command'),
      };
      await queue.add((tables) => writes.sendCommand(tables, wish));
    },
    acknowledge: async (claim, ids) => {
      await queue.add((tables) => writes.acknowledge(tables, claim, ids));
      removals.happened();
    },
  };
}

function reading(reader: Reader): Pick<SqliteStore, 'load' | 'listInterrupted' | 'outcome' | 'inbox'> {
  return {
    load: async (runId, { signal } = {}) => reader.load(checkRunId(runId), signal),
    listInterrupted: async (options = {}) => reader.list(options),
    outcome: async (runId) => reader.outcome(checkRunId(runId)),
    inbox: async (of) => reader.inbox(of),
  };
}
