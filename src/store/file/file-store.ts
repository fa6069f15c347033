/// <reference lib="esnext.disposable" preserve="true" />
import { resolve } from 'node:path';
import type { Codec } from '../../codec/port.ts';
import { diskFiles, type FileSystem } from '../../files/file-system.ts';
import { OpenFiles } from '../../files/open-files.ts';
import { FolderSyncs, Syncs } from '../../files/syncs.ts';
import { type Clock, systemClock } from '../../values/clock.ts';
import { checkFlag, checkKeys, checkWord, type KnownKeys, kindOf } from '../../values/known-options.ts';
import type { StoredCommand } from '../commands.ts';
import { Encryption } from '../encoding/encryption.ts';
import { leaseClock } from '../lease-clock.ts';
import type {
  AppendingStore,
  ChangeStore,
  EventStore,
  HistoryStore,
  InboxOf,
  JournalStore,
  ListDueOptions,
  OutcomeStore,
  TakingStore,
} from '../port.ts';
import { withoutWrites } from '../read-only.ts';
import type { PartStore } from '../reading/record-part.ts';
import type {
  DueHeads,
  EndedHead,
  EndedPage,
  ListedHead,
  ListPage,
  MessageReader,
  StoreDriver,
  StoredTexts,
  StoreWrite,
  TakeDue,
  TakenHeads,
} from '../store-driver.ts';
import { storeFrom } from '../store-from.ts';
import type { ThreadStore } from '../thread-port.ts';
import { EndedFiles } from './ended.ts';
import { FileEvents } from './events.ts';
import { foldersIn } from './folders.ts';
import { InboxFiles } from './inboxes.ts';
import { PublishedFiles } from './journal/published.ts';
import { Lister } from './list.ts';
import { OutcomeFiles } from './outcomes.ts';
import { nameRun, WriteQueues } from './queue.ts';
import { Reader } from './reader.ts';
import type { RunFiles, RunName } from './run-files.ts';
import { StoreFolder } from './store-folder.ts';
import { FileThreads } from './threads.ts';
import { FileTopics } from './topics.ts';

export interface FileStoreOptions {
  /** The folder; created at the first write. It should contain nothing else. */
  readonly dir: string;
  /**
   * What a resolved save survives: `power` (the default) a loss of power, by one disk sync per group of writes;
   * `process` the death of the process.
   */
  readonly durability?: 'power' | 'process' | undefined;
  /** How long a call waits while another process writes to the same run, ms; default 10,000. */
  readonly busyTimeoutMs?: number | undefined;
  /** Encrypts the stored texts: see `encrypt`. */
  readonly codec?: Codec | undefined;
  /** For reading only: nothing is made, and each write is refused with UNSUPPORTED. Default `false`. */
  readonly readOnly?: boolean | undefined;
  /** For tests. All stores of one folder must then share it, because leases use it. */
  readonly clock?: Clock | undefined;
}

/** Appends, owns, carries commands and signals, lets runs rest, keeps outcomes, the records of ended runs and threads, has a journal. */
export interface FileStore
  extends AppendingStore,
    ChangeStore,
    EventStore,
    TakingStore,
    OutcomeStore,
    HistoryStore,
    JournalStore,
    PartStore,
    ThreadStore {
  /** Waits for the pending writes. Every later call is refused. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const optionKeys: KnownKeys<FileStoreOptions> = {
  dir: true,
  durability: true,
  busyTimeoutMs: true,
  codec: true,
  readOnly: true,
  clock: true,
};

/**
 * Stores records in a folder of plain files, for all processes of one machine. Each run has a folder with an append-only
 * journal, with a checksum for each line. Errors of opening it (StoreUnavailableError, CheckpointTooNewError for a newer
 * layout) come from the call that needed it.
 *
 * Writes to a run during a running write share the next disk sync. The store needs a file system with hard links, which many
 * network file systems lack.
 *
 * @throws {TypeError} for an unknown option, or one of the wrong type
 * @example const store = fileStore({ dir: 'runs' })
 */
export function fileStore(options: FileStoreOptions): FileStore {
  return fileStoreOn(diskFiles, options);
}

/**
 * Makes a file store on a given file system.
 * @param files the file system with the folder; tests pass one that fails
 * @internal
 */
export function fileStoreOn(files: FileSystem, options: FileStoreOptions): FileStore {
  checkKeys(options, optionKeys, { of: 'fileStore' });
  checkWord('fileStore: durability', options.durability, ['power', 'process']);
  if (typeof options.dir !== 'string')
    throw new TypeError(`fileStore: dir must be a string, not ${kindOf(options.dir)}`);
  checkFlag('fileStore: readOnly', options.readOnly);
  const { durability = 'power', busyTimeoutMs = 10_000, readOnly: isReadOnly = false, clock = systemClock } = options;
  const durable = { files, isSynced: durability === 'power', folders: new FolderSyncs(files) };
  const folders = foldersIn(resolve(options.dir));
  const outcomes = new OutcomeFiles(durable, folders, () => clock.now());
  const access = new StoreFolder(durable, folders, { waitMs: busyTimeoutMs, isReadOnly });
  const driver = new FileDriver(access, {
    durable,
    folders,
    outcomes,
    mail: new InboxFiles(durable, folders),
    published: new PublishedFiles(durable, folders),
    ended: new EndedFiles(durable, folders, () => clock.now()),
    leaseClock: leaseClock(clock),
    now: () => clock.now(),
    encryption: new Encryption(options.codec),
    syncs: new Syncs(() => performance.now()),
    kept: new OpenFiles(),
    known: new Map(),
    suspects: new Set(),
    written: { names: undefined },
  });
  const store = storeFrom(driver, { codec: options.codec, blobs: true, clock });
  return isReadOnly ? withoutWrites(store, `the store ${folders.dir}`) : store;
}

/** Journals with one lock and one sync for each group of writes to a run. */
class FileDriver implements StoreDriver {
  /** Further pages of a list use the results of the first one. */
  readonly runsPerPage = 500;
  readonly #access: StoreFolder;
  readonly #files: RunFiles;
  readonly #queues: WriteQueues;
  readonly #reader: Reader;
  readonly #lister: Lister;
  readonly #sweep: OutcomeSweep;
  #endedSweep: Promise<void> | undefined;
  readonly topics: FileTopics;
  readonly threads: FileThreads;
  readonly journal: FileEvents;

  constructor(access: StoreFolder, files: RunFiles) {
    this.#access = access;
    this.#files = files;
    this.#queues = new WriteQueues(access, files);
    this.#reader = new Reader(access, this.#queues, files);
    this.#lister = new Lister(access, this.#queues, files);
    this.topics = new FileTopics(access, this.#queues, files);
    this.threads = new FileThreads(access, this.#queues, files);
    this.journal = new FileEvents(access, this.#queues, files);
    this.#sweep = new OutcomeSweep(files.outcomes, this.#queues, () => this.topics.forgetExpired());
  }

  async write<T>(write: StoreWrite<T>, signal?: AbortSignal): Promise<T> {
    const refusal = write.kind === 'claim' ? await this.#reader.refusal(write) : undefined;
    if (refusal) return refusal.value;
    const run = nameRun(write.runId);
    if (write.kind === 'end' || write.kind === 'erase') return this.#last(run, write);
    const value = await this.#queues.add(run, (session) => session.perform(write), signal);
    if (write.kind === 'claim' || write.kind === 'keep') this.#sweep.begin();
    return value;
  }

  /** After the first one: a process that lives for less than a minute never comes to its sweep. */
  async #last<T>(run: RunName, write: StoreWrite<T>): Promise<T> {
    const value = await this.#queues.addAlone(run, (session) => session.perform(write));
    this.#endedSweep ??= this.#sweepEnded().then(nothing, nothing);
    return value;
  }

  load(runId: string, messages: MessageReader, signal?: AbortSignal): Promise<StoredTexts | null> {
    return this.#reader.load(runId, messages, { signal });
  }

  loadEnded(runId: string, messages: MessageReader, signal?: AbortSignal): Promise<StoredTexts | null> {
    return this.#reader.load(runId, messages, { signal, hasEnded: true });
  }

  listEnded(page: EndedPage): Promise<EndedHead[]> {
    return this.#reader.ended(page);
  }

  async forgetEnded({ dryRun }: { readonly dryRun: boolean }): Promise<number> {
    return dryRun ? (await this.#files.ended.expired()).length : this.#sweepEnded();
  }

  async #sweepEnded(): Promise<number> {
    const names = await this.#files.ended.expired();
    for (const name of names) {
      await this.#queues.addAlone({ runId: '', name }, () => this.#files.ended.forget(name));
    }
    return names.length;
  }

  list(page: ListPage): Promise<ListedHead[]> {
    return this.#lister.list(page);
  }

  listDue(page: ListDueOptions): Promise<DueHeads> {
    return this.#lister.due(page);
  }

  takeDue(take: TakeDue): Promise<TakenHeads> {
    return this.#lister.takeDue(take, this);
  }

  countResting(): Promise<number> {
    return this.#lister.countResting();
  }

  changeMark(): Promise<string> {
    return this.#access.changeMark();
  }

  outcome(runId: string): Promise<string | null> {
    return this.#reader.outcome(runId);
  }

  inbox(of: InboxOf): Promise<StoredCommand[]> {
    return this.#reader.inbox(of);
  }

  forgetOutcomes({ dryRun }: { readonly dryRun: boolean }): Promise<number> {
    return this.#sweep.all(dryRun);
  }

  async close(): Promise<void> {
    await this.#endedSweep;
    await this.#sweep.end();
    await this.topics.end();
    await this.threads.end();
    await this.#queues.end();
    this.#files.kept.close();
    await this.#access.close();
  }
}

/** Removes expired outcomes. Only one sweep runs at a time. */
class OutcomeSweep {
  readonly #outcomes: OutcomeFiles;
  readonly #queues: WriteQueues;
  readonly #forgetSignals: () => Promise<void>;
  #isBegun = false;
  #underWay: Promise<void> = Promise.resolve();

  constructor(outcomes: OutcomeFiles, queues: WriteQueues, forgetSignals: () => Promise<void>) {
    this.#outcomes = outcomes;
    this.#queues = queues;
    this.#forgetSignals = forgetSignals;
  }

  /** Starts the first sweep; returns at once. An outcome that could not be removed waits for the next minute. */
  begin(): void {
    if (this.#isBegun) return;
    this.#isBegun = true;
    this.#next().catch(() => {});
  }

  /**
   * Counts the outcomes that are past their time, and removes them.
   * @returns how many outcomes had expired; they are removed, unless they are only counted
   */
  async all(isOnlyCounted: boolean): Promise<number> {
    return isOnlyCounted ? this.#outcomes.countDue() : this.#next();
  }

  #next(): Promise<number> {
    const sweeping = this.#underWay.then(() => this.#sweep());
    this.#underWay = sweeping.then(nothing, nothing);
    return sweeping;
  }

  /** Waits for the running sweep. */
  async end(): Promise<void> {
    await this.#underWay;
  }

  async #sweep(): Promise<number> {
    let count = 0;
    await this.#forgetSignals();
    await this.#outcomes.eachDue(async (runIds) => {
      count += runIds.length;
      for (const runId of runIds) await this.#queues.add(nameRun(runId), (session) => session.forgetOutcome());
    });
    return count;
  }
}

function nothing(): void {}
