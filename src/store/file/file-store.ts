/// <reference lib="esnext.disposable" preserve="true" />
import { resolve } from 'node:path';
import type { Codec } from '../../codec/port.ts';
import { FolderSyncs } from '../../files/atomic-write.ts';
import { diskFiles, type FileSystem } from '../../files/file-system.ts';
import { KeptFiles } from '../../files/kept-files.ts';
import { Syncs } from '../../files/syncs.ts';
import { checkRunId } from '../../run/identity.ts';
import { type Clock, systemClock } from '../../values/clock.ts';
import { checkKeys, checkWord, type KnownKeys, kindOf } from '../../values/known-options.ts';
import { dropEncoding } from '../../values/message.ts';
import { encodeCommand } from '../commands.ts';
import { encryptCutDelta, encryptCutRecord, Splitter } from '../encoding/blob-refs.ts';
import { encodeDelta, encodeOutcome, encodeRecord } from '../encoding/encode.ts';
import { Encryption } from '../encoding/encryption.ts';
import { leaseClock } from '../lease-clock.ts';
import type { AppendingStore, ControlStore, OutcomeStore } from '../port.ts';
import { Access } from './access.ts';
import { foldersIn } from './folders.ts';
import { Lister } from './list.ts';
import { MailFiles } from './mail.ts';
import { OutcomeFiles } from './outcomes.ts';
import { nameRun, WriteQueues } from './queue.ts';
import { Reader } from './reader.ts';
import type { RunFiles } from './run.ts';
import { OutcomeSweep } from './sweep.ts';
import * as writes from './writes.ts';

export interface FileStoreOptions {
  /** The folder; made at the first write. Nothing else should be in it. */
  readonly dir: string;
  /**
   * What a save that has resolved survives: `power` (the default) the loss of power, by one disk sync per group of writes;
   * `process` the death of the process.
   */
  readonly durability?: 'power' | 'process' | undefined;
  /** How long a call waits while another process writes to the same run, ms; default 10,000. */
  readonly busyTimeoutMs?: number | undefined;
  /** Encrypts what is stored: see `encrypt`. */
  readonly codec?: Codec | undefined;
  /** For tests. All stores of one folder must then share it, because leases are measured by it. */
  readonly clock?: Clock | undefined;
}

/** Appends, owns, carries commands, and keeps outcomes. */
export interface FileStore extends AppendingStore, ControlStore, OutcomeStore {
  /** Waits for the writes that were asked for. Every later call is refused. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const optionKeys: KnownKeys<FileStoreOptions> = {
  dir: true,
  durability: true,
  busyTimeoutMs: true,
  codec: true,
  clock: true,
};

/**
 * Records in a folder of plain files, for all processes of one machine: a folder a run, with a journal that grows by what
 * is new, checked line by line. Errors of opening it (StoreUnavailableError, CheckpointTooNewError for a newer layout)
 * come from the call that needed it.
 *
 * Writes to a run that are asked for while one is under way share the next disk sync. Needs a file system with hard links,
 * which network file systems often lack.
 *
 * @throws {TypeError} for an unknown option, or one of the wrong type
 * @example const store = fileStore({ dir: 'runs' })
 */
export function fileStore(options: FileStoreOptions): FileStore {
  return fileStoreOn(diskFiles, options);
}

/** @internal @param files where the folder is; tests give one that fails */
export function fileStoreOn(files: FileSystem, options: FileStoreOptions): FileStore {
  checkKeys(options, optionKeys, { of: 'fileStore' });
  checkWord('fileStore: durability', options.durability, ['power', 'process']);
  if (typeof options.dir !== 'string')
    throw new TypeError(`fileStore: dir must be a string, not ${kindOf(options.dir)}`);
  const { durability = 'power', busyTimeoutMs = 10_000, clock = systemClock } = options;
  const durable = { files, isSynced: durability === 'power', folders: new FolderSyncs(files) };
  const folders = foldersIn(resolve(options.dir));
  const encryption = new Encryption(options.codec);
  const outcomes = new OutcomeFiles(durable, folders, () => clock.now());
  const access = new Access(durable, folders, busyTimeoutMs);
  const shared: RunFiles = {
    durable,
    folders,
    outcomes,
    mail: new MailFiles(durable, folders),
    leaseClock: leaseClock(clock),
    encryption,
    syncs: new Syncs(() => performance.now()),
    kept: new KeptFiles(),
    known: new Map(),
    suspects: new Set(),
    written: { names: undefined },
  };
  const queues = new WriteQueues(access, shared);
  const reader = new Reader(access, queues, shared);
  const lister = new Lister(access, queues, shared);
  const sweep = new OutcomeSweep(outcomes, queues, clock);
  const close = async () => {
    await sweep.end();
    await queues.end();
    shared.kept.close();
    await access.close();
  };
  // Own functions rather than methods: hosts and tests wrap a store by spreading it.
  return {
    forgetOutcomes: async ({ dryRun = false } = {}) => sweep.all(dryRun),
    ...recordWrites(queues, sweep, { splitter: new Splitter(), encryption }),
    ...ownership(queues, reader, sweep),
    ...control(queues, reader, encryption),
    load: async (runId, { signal } = {}) => reader.load(checkRunId(runId), signal),
    listInterrupted: async (list = {}) => lister.list(list),
    outcome: async (runId) => reader.outcome(checkRunId(runId)),
    close,
    [Symbol.asyncDispose]: close,
  };
}

function recordWrites(
  queues: WriteQueues,
  sweep: OutcomeSweep,
  { splitter, encryption }: { readonly splitter: Splitter; readonly encryption: Encryption },
): Pick<FileStore, 'save' | 'append' | 'delete' | 'keepOutcome'> {
  return {
    save: async (record, { claim, signal } = {}) => {
      signal?.throwIfAborted();
      const cut = splitter.split(encodeRecord(record), record, { isContinued: false });
      const encoded = encryptCutRecord(cut, encryption);
      const run = nameRun(encoded.runId);
      await queues.add(run, (session) => writes.saveRecord(session, encoded, claim), signal);
      record.messages.forEach(dropEncoding);
    },
    append: async (delta, { claim, signal } = {}) => {
      signal?.throwIfAborted();
      const cut = splitter.split(encodeDelta(delta), delta.head, { isContinued: true });
      const encoded = encryptCutDelta(cut, encryption);
      const run = nameRun(encoded.runId);
      await queues.add(run, (session) => writes.appendDelta(session, encoded, claim), signal);
      delta.messages.forEach(dropEncoding);
    },
    delete: async (runId, { claim, signal } = {}) => {
      signal?.throwIfAborted();
      const run = nameRun(checkRunId(runId));
      await queues.add(run, (session) => writes.deleteRun(session, claim), signal);
      splitter.forget(runId);
    },
    keepOutcome: async (runId, outcome, untilMs, { claim, signal } = {}) => {
      signal?.throwIfAborted();
      const run = nameRun(checkRunId(runId));
      const kept = { text: encryption.seal(encodeOutcome(outcome), runId, 'outcome'), untilMs };
      await queues.add(run, (session) => writes.keepOutcome(session, kept, claim), signal);
      sweep.begin();
    },
  };
}

function control(
  queues: WriteQueues,
  reader: Reader,
  encryption: Encryption,
): Pick<FileStore, 'send' | 'inbox' | 'acknowledge'> {
  return {
    send: async (runId, command) => {
      const run = nameRun(checkRunId(runId));
      const text = encryption.seal(encodeCommand(command), runId, 'command');
      await queues.add(run, (session) =>
        writes.sendCommand(session, { runId, id: command.id, kind: command.kind, text }),
      );
    },
    inbox: async (of) => reader.inbox(of),
    acknowledge: async (claim, ids) =>
      queues.add(nameRun(claim.runId), (session) => writes.acknowledge(session, claim, ids)),
  };
}

function ownership(
  queues: WriteQueues,
  reader: Reader,
  sweep: OutcomeSweep,
): Pick<FileStore, 'claim' | 'renew' | 'release'> {
  return {
    claim: async (runId, owner, ttlMs) => {
      const run = nameRun(checkRunId(runId));
      if (await reader.isHeldByOther(runId, owner)) return null;
      const claim = await queues.add(run, (session) => writes.claimRun(session, { owner, ttlMs }));
      sweep.begin();
      return claim;
    },
    renew: async (claim, ttlMs) =>
      queues.add(nameRun(claim.runId), (session) => writes.renewClaim(session, claim, ttlMs)),
    release: async (claim, options) =>
      queues.add(nameRun(claim.runId), (session) => writes.releaseClaim(session, claim, options)),
  };
}
