import type { TotalsRange, TotalsRow } from '../record/totals.ts';
import type { CommandToSend, StoredCommand } from './commands.ts';
import type { RunCounts } from './counting/port.ts';
import type { DeliveryDriver } from './deliveries/deliveries.ts';
import type { Due } from './due.ts';
import type { ListDueOptions } from './due-port.ts';
import type { StoredPieces } from './encoding/piece-refs.ts';
import type { StoredBody } from './encoding/stored-body.ts';
import type { JournalRow } from './encoding/stored-journal.ts';
import type { EndedCursor } from './history-port.ts';
import type { LimitDriver } from './limits/buckets.ts';
import type { Claim, Cursor, InboxOf } from './port.ts';
import type { Decide, RecordFacts } from './rules/decision.ts';
import type { Lease } from './rules/lease.ts';
import type { ThreadDecision, ThreadFacts, ThreadRow, TurnQuery, TurnRow } from './rules/thread-rows.ts';
import type { WaitDriver } from './topics.ts';

/** What a driver removes whose time is over. `storeFrom` asks for it once a minute, with a limit. */
export interface ForgetOptions {
  /** Nothing is removed: it is only counted. */
  readonly dryRun: boolean;
  /** Remove about so many rows of each kind, and leave the rest. Absent: all. */
  readonly limit?: number | undefined;
}

/**
 * The work of a store of its own: read facts, make changes, and return stored texts. `storeFrom` makes a store of it.
 *
 * Every method waits for the earlier writes. Texts are opaque: with a codec they are encrypted.
 */
export interface StoreDriver {
  /**
   * Makes one write. The driver reads the facts of the run, asks `decide` for the change, makes all of it or nothing, and
   * resolves to the answer once the change is durable. Between the facts and the change no other writer may change the run:
   * use a lock, a transaction, or a comparison that is repeated if it fails.
   *
   * Writes of one run take effect in the order of the calls. An error of `decide` rejects this write alone.
   * @param signal aborted before the decision = rejects with its reason, and changes nothing
   */
  write<T>(write: StoreWrite<T>, signal?: AbortSignal): Promise<T>;
  /**
   * Reads a record; null if there is none. Passes the messages to `messages`, row by row, in order.
   * @throws {CHECKPOINT_CORRUPT} if it is damaged
   */
  load(runId: string, messages: MessageReader, signal?: AbortSignal): Promise<StoredTexts | null>;
  /** The runs with a record, by `updatedAt`, then by the UTF-8 bytes of the run id: those after `after`, up to `limit`. */
  list(page: ListPage): Promise<readonly ListedHead[]>;
  /** The inboxes of runs: `change.send` and `change.forget` of a write change them. */
  readonly commands: CommandDriver;
  /** The kept outcomes: `change.keep` of a write is one. */
  readonly outcomes: OutcomeDriver;
  /** Records of runs that ended. A driver that has it makes `change.end` and `change.erase`. */
  readonly history?: HistoryDriver;
  /** Runs that rest, and runs that are due. A driver that has it gives the facts `due` and `inbox.newest`, also for commands that `commands.send` stores. */
  readonly due?: DueDriver;
  /** See `ChangeStore`. */
  changeMark?(): Promise<string>;
  /** The ends that no process has delivered: `change.deliver` and `change.delivered` of a write mark them. */
  readonly deliveries?: DeliveryDriver;
  /** What runs wait for, and early signals: needs `due`. */
  readonly waits?: WaitDriver;
  /** The journals of runs: `body.journal` of a write goes there in its commit. */
  readonly journal?: JournalDriver;
  /** Conversations of several runs: needs `history` and `due`. */
  readonly threads?: ThreadDriver;
  /** What is kept of schedules: needs `due`. */
  readonly schedules?: ScheduleDriver;
  /** The turns of limited calls. */
  readonly limits?: LimitDriver;
  /** Waits for the pending writes, and refuses every later call. */
  close?(): Promise<void>;
  /** Whether an owner is certainly dead. Default: a dead process of this machine, if the executor named the owner. */
  isDead?(owner: string): boolean;
  /** A list is read in pages of at most this many runs, with a turn of the event loop between. Default: in one page. */
  readonly runsPerPage?: number;
}

/** The inboxes of a driver's runs. */
export interface CommandDriver {
  /** The commands that wait for a run, or for the runs that an owner has claimed: the oldest first. */
  inbox(of: InboxOf): Promise<readonly StoredCommand[]>;
  /** Replaces a `write` with the decision `sendCommand`. */
  send?(command: CommandToSend): Promise<void>;
  /** Replaces a `write` with the decision `acknowledge`. @throws {LEASE_LOST} */
  acknowledge?(claim: Claim, ids: readonly string[]): Promise<void>;
}

/** The kept outcomes of a driver. One whose time is over counts as removed. */
export interface OutcomeDriver {
  /** The text of a kept outcome; null if there is none. @throws {CHECKPOINT_CORRUPT} */
  find(runId: string): Promise<string | null>;
  /** Removes expired outcomes, or only counts them. Absent: the driver removes them with other calls. @returns how many */
  forget?(options: ForgetOptions): Promise<number>;
}

/** The records of runs that ended. One whose time is over counts as removed. */
export interface HistoryDriver {
  /** As `load` of the driver, until the time of the record is over. @throws {CHECKPOINT_CORRUPT} if it is damaged */
  load(runId: string, messages: MessageReader, signal?: AbortSignal): Promise<StoredTexts | null>;
  /** The newest end first, then by the UTF-8 bytes of the run id. */
  list(page: EndedPage): Promise<readonly EndedHead[]>;
  /** Removes the records whose time is over, or only counts them. @returns how many */
  forget(options: ForgetOptions): Promise<number>;
  /** The totals of days, in any order: `change.end.totals` is added to them in the commit of the end. */
  totals(range: TotalsRange): Promise<readonly TotalsRow[]>;
}

/** The runs of a driver that rest, and that are due. It keeps `change.due`, `filed`, `definition` and `pausedBy`, and `deployment` beside the lease. */
export interface DueDriver {
  /** The runs that are due by the driver's clock and that no live owner holds. */
  list(page: ListDueOptions): Promise<DueHeads>;
  /** Finds due runs and claims them, each with the decision `take.decide`: see `takeAmong`. */
  take(take: TakeDue): Promise<TakenHeads>;
  /** How many runs rest. */
  countResting(): Promise<number>;
  /** `countAmong` counts runs that are read one by one. */
  countRuns(): Promise<RunCounts>;
}

/** Which rows of a journal are read. */
export interface RowsPage {
  readonly after: number;
  readonly limit: number;
  /** The page begins with the newest kept rows, about so many, if they come after `after`. A driver may ignore it. */
  readonly newest?: number | undefined;
}

/** The journals of a store. A row belongs to the record of its run, and is removed with it. */
export interface JournalDriver {
  /** Checks the claim, and adds rows. It need not wait for the disk. A row with the key of another one replaces it. @throws {LEASE_LOST} */
  publish(write: { readonly claim: Claim; readonly rows: readonly JournalRow[] }, signal?: AbortSignal): Promise<void>;
  /** The rows after a place, in the order of places, up to `limit`; null without a record of the run. */
  read(runId: string, page: RowsPage): Promise<readonly JournalRow[] | null>;
  /**
   * Reads the head of a record, its open step, and those rows of messages that hold messages `from` to `to` (excluded); null
   * without a record.
   * @param row gets each row, with the index of its first message
   */
  content(runId: string, range: MessageRange, row: PartReader): Promise<StoredPart | null>;
}

/** The head of a record, with its open step. */
export interface StoredPart extends Pick<StoredTexts, 'head' | 'pieces' | 'step' | 'attempts'> {
  /** Without it, `load` reads the whole record also where no messages are wanted. */
  readonly meta?: string | undefined;
  /** It is the kept record of a run that ended. */
  readonly hasEnded?: boolean | undefined;
  readonly messageCount: number;
}

export interface MessageRange {
  readonly from: number;
  readonly to: number;
}

/** Gets rows one after the other. What returns false wants no further one; a driver may give it the rest all the same. */
export type PartReader = (first: number, text: string, pieces?: StoredPieces) => boolean;

/** A write to one run. */
export interface StoreWrite<T = unknown> {
  readonly runId: string;
  /** The kind of the write. Drivers may ignore it; one may, for example, refuse a claim without a lock. */
  readonly kind: WriteKind;
  /** May be called several times, and decides each time from the present facts alone. */
  readonly decide: Decide<T>;
  /** The body that a change of the record stores. */
  readonly body?: StoredBody;
  /** Characters of the texts to store. */
  readonly size: number;
  /** The write names its claim: the last state that the driver wrote for this run is most likely unchanged. */
  readonly hasClaim: boolean;
  /** The command that a write of the kind `send` stores. */
  readonly command?: CommandToSend | undefined;
}

export type WriteKind =
  | 'save'
  | 'append'
  | 'delete'
  | 'keep'
  | 'claim'
  | 'renew'
  | 'release'
  | 'leave'
  | 'end'
  | 'erase'
  | 'deliver'
  | 'send'
  | 'acknowledge';

/** The texts of a stored record, as bodies gave them. */
export interface StoredTexts {
  readonly meta: string;
  readonly head: string;
  readonly extras: string | null;
  /** The large parts that the head names. */
  readonly pieces?: StoredPieces | undefined;
  /** The texts of the open step that is stored beside the head. */
  readonly step?: readonly string[] | undefined;
  /** The attempts of the lease; absent without a lease. */
  readonly attempts?: number | undefined;
}

/** Receives the stored rows of a transcript. */
export interface MessageReader {
  /** The number of its messages. */
  readonly count: number;
  /**
   * Adds a row: the messages from `count` on.
   * @param pieces the large parts that the row names
   * @throws {CHECKPOINT_CORRUPT} if it is not what was stored
   */
  add(text: string, pieces?: StoredPieces): void;
  /** Keeps only the first `count` messages; 0 = the record was replaced meanwhile, and is read again. */
  keep(count: number): void;
}

export interface ListPage {
  readonly after: Cursor | undefined;
  /** `Infinity`: all of them. */
  readonly limit: number;
  readonly signal: AbortSignal | undefined;
  /** True: only the runs that rest (see `isResting`); false: only the others. A driver without `due` lists all. */
  readonly resting?: boolean | undefined;
  /** Only those with one of these callers, as `change.filed` had them, and those without one. A driver may list all. */
  readonly callers?: readonly string[] | undefined;
}

/** A record without its messages, for a list. */
export interface ListedHead extends Cursor {
  readonly meta: string;
  readonly head: string;
  readonly pieces?: StoredPieces | undefined;
  readonly lease?: Lease | undefined;
  /** The lease clock at the read of the lease, ms. */
  readonly now: number;
  /** When the run is due; absent = unknown. */
  readonly due?: Due | undefined;
  /** As `change.filed` had them; absent or empty = unknown, or none. */
  readonly agent?: string | undefined;
  readonly caller?: string | null | undefined;
  readonly fair?: string | undefined;
  /** As `change.definition` had it; absent = unknown. */
  readonly definition?: string | undefined;
  /** Why the record cannot be read: the run is listed as quarantined. */
  readonly error?: unknown;
}

/** Which runs that ended a driver lists. */
export interface EndedPage {
  readonly after: EndedCursor | undefined;
  readonly limit: number;
  /** Only those with one of these agents, or callers, as `change.end` had them, and those with null. Absent: all. */
  readonly agents?: readonly string[] | undefined;
  readonly callers?: readonly string[] | undefined;
}

/** The entry of a run that ended, as it is stored. */
export interface EndedHead extends EndedCursor {
  readonly text: string;
  /** Why the entry cannot be read. */
  readonly error?: unknown;
}

/** A page of due runs as a driver reads it. */
export interface DueHeads {
  /** Wall clock, ms. */
  readonly now: number;
  /** By `due`, then by the UTF-8 bytes of the run id. */
  readonly heads: readonly ListedHead[];
  /** When the next run after `now` is due, ms; absent = unknown, or none is. */
  readonly nextAt?: number | undefined;
}

/** A wish for due runs, as a driver gets it. */
export interface TakeDue {
  readonly owner: string;
  readonly ttlMs: number;
  /** At most this many runs; 0 = only `nextAt` is asked for. */
  readonly limit: number;
  /** Only these runs, and also those among them that were given back: see `isTimeToTake`. Absent: all that are due. */
  readonly runIds?: ReadonlySet<string> | undefined;
  /** The wall clock, ms, instead of the driver's own. A driver on a server ignores it. */
  readonly now?: number | undefined;
  /** Only runs with one of these agents, as `change.filed` had them, and those with none. Absent: of all. */
  readonly agents?: readonly string[] | undefined;
  /** No runs with these fair keys, as `change.filed` had them. */
  readonly fullKeys: readonly string[];
  /** No runs that a higher deployment has claimed. */
  readonly deployment?: number | undefined;
  /**
   * Also runs that are never due and that were parked for one of these definitions, as `change.definition` had them. A driver that
   * does not keep them may offer all that are never due: `isTakeable` knows.
   */
  readonly definitions?: readonly string[] | undefined;
  /** The key of the run that this store took last: the next key has its turn. Absent: any key has. A driver may know better. */
  readonly after?: string | undefined;
  /** Returns whether the record of a run can be read, and its run may be taken. Asked before the claim, or a claim is given back. */
  isTakeable(head: ListedHead): boolean;
  /** The decision that claims a run. @param now the driver's wall clock, ms @param isParked it was found by its definition */
  decide(runId: string, now: number, isParked?: boolean): Decide<Claim | null>;
}

/** A run that a driver took: its head, and its claim. */
export interface TakenHead {
  readonly head: ListedHead;
  readonly claim: Claim;
}

/** What a driver took. */
export interface TakenHeads {
  /** Wall clock, ms. */
  readonly now: number;
  readonly taken: readonly TakenHead[];
  /** When the next run is due, ms: `now` if others are. */
  readonly nextAt?: number | undefined;
}

/** A write to a thread. */
export interface ThreadWrite<T> {
  /** What the thread may be stored under: with a rotated key there are several. */
  readonly threads: readonly string[];
  /** What the message may be stored under; empty: the write names none. */
  readonly messages: readonly string[];
  /** The end of a run, decided before the thread and made in the same commit. */
  readonly end?: StoreWrite<unknown> | undefined;
  /**
   * Decides from the facts; may be called several times. An error rejects the write, and changes nothing.
   * @param ended the record of the run that ends; undefined: nothing ends, because it has ended before
   */
  decide(facts: ThreadFacts, ended: RecordFacts | undefined): ThreadDecision<T, StoreWrite<unknown>>;
}

/** A page of threads. */
export interface ThreadPage {
  /** What the threads of a caller may be stored under; absent = all. */
  readonly callers?: readonly string[] | undefined;
  /** The last thread of the page before. */
  readonly after?: { readonly updatedAt: number; readonly thread: string } | undefined;
  /** Only those in which messages wait. A driver may leave out those whose live run is due at some time. */
  readonly heldUp?: boolean | undefined;
  readonly limit: number;
}

/** A thread in a page. */
export interface ListedThread extends ThreadRow {
  readonly live: string | undefined;
  readonly queued: number;
}

/** A fork: the row of the new thread, and the begun turns that it shares. */
export interface ForkWrite {
  readonly threads: readonly string[];
  /** What the new thread may be stored under. */
  readonly newThreads: readonly string[];
  /** Decides from the facts of the source. The new thread gets the turns below `turns`. */
  decide(source: ThreadRow | null, found: ThreadRow | null): ThreadRow | undefined;
}

/** The threads of a store. Each method is atomic. */
export interface ThreadDriver {
  write<T>(write: ThreadWrite<T>): Promise<T>;
  fork(write: ForkWrite): Promise<void>;
  /** Null: there is no such thread. */
  turns(threads: readonly string[], query: TurnQuery): Promise<readonly TurnRow[] | null>;
  /** The queued turn of a run, in any thread; null: there is none. */
  findQueued(runId: string): Promise<TurnRow | null>;
  /** Ordered by `updatedAt`, then by `thread`, the highest first. */
  list(page: ThreadPage): Promise<readonly ListedThread[]>;
}

/** What is kept of a schedule. */
export interface ScheduleRow {
  readonly id: string;
  /** Counts its writes, from 1. */
  readonly revision: number;
  /** The rest of it; with a codec it is encrypted. */
  readonly text: string;
}

/** A write of a schedule, and of the run that begins with it. */
export interface ScheduleWrite {
  readonly row: ScheduleRow;
  readonly run?: StoreWrite<void> | undefined;
}

/** The schedules of a store. Each method is atomic. */
export interface ScheduleDriver {
  /** All of them. One that is damaged has an empty text. */
  list(): Promise<readonly ScheduleRow[]>;
  /** Reads the stored row, and makes what `noteRow` decides, in one commit. @returns its `isNoted` */
  write(write: ScheduleWrite): Promise<boolean>;
}
