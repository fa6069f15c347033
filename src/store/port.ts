import type { RunCheckpoint } from '../record/checkpoint.ts';
import type { RunDelta } from '../record/delta.ts';
import type { InterruptedRun } from '../record/interrupted.ts';
import type { KeptRun } from '../record/kept-run.ts';
import type { DayTotals, TotalsRange } from '../record/totals.ts';
import type { UsedByEnd } from '../run/attempt.ts';
import type { Command, SentCommand } from '../run/command.ts';
import type { JournalEntry, JournalWrite } from '../run/journal/entry.ts';
import type { ParentCall, RunCheckpointMeta } from '../run/request.ts';
import type { RunOutcome } from '../run/result.ts';
import type { JsonValue } from '../values/json.ts';
import type { Delivering, Undelivered } from './deliveries/port.ts';
import type { LimitStore } from './limits/port.ts';
import type { ScheduleStore } from './schedules/port.ts';
import type { BegunTurn, TurnEnd } from './thread-port.ts';

/** The right to write a run's record: the owner with the highest epoch has it. `attempts` counts starts without progress. */
export type Claim = {
  readonly runId: string;
  readonly owner: string;
  readonly epoch: number;
  readonly attempts: number;
};

export interface WriteOptions {
  /** Refuse the write (LeaseLostError) if this is no longer the newest claim. */
  readonly claim?: Claim | undefined;
  /** Already aborted = reject and write nothing. */
  readonly signal?: AbortSignal | undefined;
  /** Of `save` and `append`: events that become part of the run's journal in the same commit. Only a JournalStore reads it. */
  readonly events?: JournalWrite | undefined;
  /** Of the first record of a run: the key under which due runs are taken in turn. Only a TakingStore reads it. */
  readonly fairKey?: string | undefined;
  /** Of `save`: the run of this record had ended, and continues, so its journal stays. Only a HistoryStore reads it. */
  readonly reopens?: boolean | undefined;
}

export interface ClaimOptions {
  /**
   * The number of the deployment that claims the run. The store keeps the highest one beside the claim, as long as the run has a
   * record or a claim. Absent: it is not compared, and the kept one stays.
   */
  readonly deployment?: number | undefined;
}

export interface ReleaseOptions {
  /** The run's new count of attempts: the start that the claim counted did not happen. */
  readonly attempts?: number | undefined;
  /**
   * The record cannot be read, and why. From then on it is listed as quarantined with this reason, `claim` and `append` throw
   * it as a CheckpointCorruptError, and nothing of it is written. A `save` of the whole record makes it an ordinary one again.
   */
  readonly damage?: string | undefined;
}

export interface LoadOptions {
  readonly signal?: AbortSignal | undefined;
  /** Loads the record of a run that ended too: only a `HistoryStore` has such records. Default `false`. */
  readonly ended?: boolean | undefined;
  /** `false`: without the messages; the record then has an empty list of them, and must not be saved. A store may ignore it. */
  readonly messages?: false | undefined;
}

/** The last entry of a page; the next page begins after it. */
export type Cursor = { readonly updatedAt: number; readonly runId: string };
export interface ListOptions {
  readonly after?: Cursor;
  readonly limit?: number;
  readonly signal?: AbortSignal;
  /**
   * `waiting`: lists the runs that rest, and no others; without it a `DueStore` leaves them out. A store without `leave` lists
   * all runs in both cases.
   */
  readonly status?: 'waiting' | undefined;
  /** Only runs of this caller: a caller's list must not cost what all others have. A store may ignore it, and list all. */
  readonly callerId?: string | undefined;
}

/** What a store can do besides its own methods: each group is there as a whole, or not at all. */
export interface StoreGroups {
  /** Schedules, and the runs of their ticks. */
  readonly schedules: ScheduleStore;
  /** Turns of limited calls. */
  readonly limits: LimitStore;
}

/**
 * The four methods that make a store, and its groups. A stored record is a run to recover; a deleted one is a run that ended.
 * Writes of one run take effect in the order of the calls, even if a caller no longer waits for one.
 */
export interface CheckpointStore extends PartialGroups {
  save(record: RunCheckpoint, options?: WriteOptions): Promise<void>;
  load(runId: string, options?: LoadOptions): Promise<RunCheckpoint | null>;
  delete(runId: string, options?: WriteOptions): Promise<void>;
  /** Ordered by `updatedAt`, then `runId`; a record that cannot be read is listed as quarantined. */
  listInterrupted(options?: ListOptions): Promise<readonly InterruptedRun[]>;
}

type PartialGroups = { readonly [Group in keyof StoreGroups]?: StoreGroups[Group] | undefined };

/** A store that writes only new messages. A revision that is already stored is a success, a gap a RevisionGapError. */
export interface AppendingStore extends CheckpointStore {
  append(delta: RunDelta, options?: WriteOptions): Promise<void>;
}

/** A store that checks who may write. `claim` works before a record exists; null = another owner holds a live claim. */
export interface OwningStore extends CheckpointStore {
  /** @throws {NEWER_DEPLOYMENT} if a higher deployment has claimed the run: nothing is counted. Only a TakingStore has it */
  claim(runId: string, owner: string, ttlMs: number, options?: ClaimOptions): Promise<Claim | null>;
  renew(claim: Claim, ttlMs: number): Promise<Claim>;
  release(claim: Claim, options?: ReleaseOptions): Promise<void>;
}

export interface KeepOptions extends WriteOptions {
  /** Marks the end as undelivered, in the same commit. Only a DeliveryStore reads it. Absent: it is delivered. */
  readonly undelivered?: Undelivered | undefined;
}

/** A store that keeps answers after the record is deleted, so that a repeated `start` returns them again. */
export interface OutcomeStore extends CheckpointStore {
  /** @param untilMs wall clock, ms */
  keepOutcome(runId: string, outcome: RunOutcome, untilMs: number, options?: KeepOptions): Promise<void>;
  outcome(runId: string): Promise<RunOutcome | null>;
  /** Removes expired answers, which stores also do by themselves; with `dryRun` only counts them. @returns how many */
  forgetOutcomes?(options?: { readonly dryRun?: boolean }): Promise<number>;
}

/** A store that knows which ends no process has delivered yet. */
export interface DeliveryStore extends OutcomeStore, Delivering {}

/** A store that carries commands to the process that works on a run, from any process. They are deleted with the record. */
export interface ControlStore extends OwningStore {
  /**
   * Stores a command for a run. If one with the same `id` waits already, the call succeeds.
   * @throws {RUN_NOT_FOUND} if there is no record of it @throws {UNDELIVERED} if 1,000 wait already
   */
  send(runId: string, command: Command): Promise<void>;
  /** The commands that wait for one run, or for the runs that `owner` has claimed: the oldest first, up to 1,000. */
  inbox(of: InboxOf): Promise<readonly SentCommand[]>;
  /** Removes commands from the run's inbox. @throws {LEASE_LOST} if this is no longer the newest claim */
  acknowledge(claim: Claim, ids: readonly string[]): Promise<void>;
}

export interface LeaveOptions {
  /** When the run continues if no command comes before, wall clock, ms; a past time: at once. Absent: only a command wakes it. */
  readonly dueAt?: number | undefined;
  /** The highest `seq` of the commands that the run has read; 0 = it has seen none. */
  readonly readUpTo: number;
  /** The run's new count of attempts, as for `release`. */
  readonly attempts?: number | undefined;
  /** A process that cannot continue the run gives it back: until `dueAt` it is listed, and taken only by its name. */
  readonly givenBack?: boolean | undefined;
}

export interface ListDueOptions {
  /** At most this many runs. */
  readonly limit: number;
  /** The last run of the page before. */
  readonly after?: Pick<DueRun, 'dueAt' | 'runId'> | undefined;
  /** For tests, wall clock, ms. Default: the store's own clock. A store on a server ignores it: its hosts may disagree. */
  readonly now?: number | undefined;
}

/** A run that waits for a process. */
export interface DueRun {
  readonly runId: string;
  /** Since when, wall clock, ms; 0 = since its process is gone, or since a command came. */
  readonly dueAt: number;
  readonly attempts: number;
  readonly meta: RunCheckpointMeta;
  /** The call that began the run; absent = a host did. */
  readonly parent?: ParentCall;
  /** The run's key for `fullKeys`: an opaque text where the store has a codec. Absent: it has none. */
  readonly fairKey?: string;
  /** Of a parked run: the definition by which `takeDue` found it. */
  readonly definition?: string;
}

export interface DueList {
  /** The store's wall clock at the read, ms. */
  readonly now: number;
  /** By `dueAt`, then by the UTF-8 bytes of the run id. */
  readonly runs: readonly DueRun[];
  /** When the next run after `now` is due, ms; absent = none is. */
  readonly nextAt?: number;
}

/**
 * A store in which runs rest: without a process, until a time or a command.
 * The store keeps one time for each record (`dueAt`), beside its claim. The first record of a run makes it due (0), and so does
 * each record without open waits, so that a run whose process dies is due. `leave` sets the time, `send` makes it 0, `claim` and
 * `release` keep it. A parked record, or one of a host's machine, is never due.
 */
export interface DueStore extends ControlStore {
  /**
   * Releases a run that waits: from now on `dueAt` or a command wakes it.
   * @returns false, and changes nothing, if its inbox holds a command after `readUpTo`: the run must read it first
   * @throws {LEASE_LOST} if this is no longer the newest claim
   */
  leave(claim: Claim, options: LeaveOptions): Promise<boolean>;
  /**
   * The runs that are due by the store's clock and that no live owner holds. Parked and unreadable ones are never listed. One
   * that is listed may have an owner by now: claim it. Fewer than `limit` = there are no more.
   */
  listDue(options: ListDueOptions): Promise<DueList>;
  /** How many runs rest: those that are due later, or only by a command. One that was given back does not. */
  countResting(): Promise<number>;
}

export interface TakeDueOptions {
  /** Who claims the runs, and for how long, ms. */
  readonly owner: string;
  readonly ttlMs: number;
  /** At most this many runs, and at most 1,000; 0 only asks when to take. */
  readonly limit: number;
  /** Only these runs; one of them that was given back is taken before its time. At most 1,000. Absent: all. */
  readonly runIds?: readonly string[] | undefined;
  /** Only runs of these agents. Absent: of all. */
  readonly agentIds?: readonly string[] | undefined;
  /** Also runs parked with DEFINITION_CHANGED that an agent of one of these definitions can continue: digests of executors. */
  readonly definitions?: readonly string[] | undefined;
  /** No runs with these keys, as `DueRun.fairKey` has them. */
  readonly fullKeys?: readonly string[] | undefined;
  /** The number of the deployment that claims: runs that a higher one has claimed are left alone. */
  readonly version?: number | undefined;
  /** For tests, wall clock, ms, as for `listDue`. */
  readonly now?: number | undefined;
}

/** A due run, and its claim. */
export type TakenRun = Claim & { readonly run: DueRun };

export interface TakenRuns {
  /** The store's wall clock, ms. */
  readonly now: number;
  readonly claims: readonly TakenRun[];
  /** When to take again at the earliest, ms: at once if it is not after `now`. Absent: no run is due later. */
  readonly nextAt?: number;
}

/** A store from which several processes take due runs: each of them gets others. */
export interface TakingStore extends DueStore {
  /**
   * Finds due runs and claims them, in one commit where the store can. A claim counts an attempt and an epoch, as `claim` does.
   * Parked runs are taken by `definitions` only; hosted, damaged and ended ones never. The k-th due run of each fair key is taken
   * before the (k+1)-th of any; runs without a key share one. Keys have their turns: the next call continues after the last key.
   * Within a key runs are taken by `dueAt`, then by the UTF-8 bytes of the run id.
   */
  takeDue(options: TakeDueOptions): Promise<TakenRuns>;
  /** When the live claim of a run ends, wall clock, ms; null = no live owner holds it. */
  heldUntil(runId: string): Promise<number | null>;
}

/** A signal to the runs that wait for its topic. */
export interface Signal {
  /** 64 hexadecimal digits. */
  readonly topic: string;
  /** A signal with the same id in the same topic counts once, until `untilMs`. */
  readonly id: string;
  readonly value: JsonValue;
  /** How long it is kept if no run waits for it, wall clock, ms. */
  readonly untilMs: number;
  /** The run that got this very signal, and gives it back because its wait had closed. Any other run changes nothing. */
  readonly from?: string | undefined;
  /** When the store first took it, wall clock, ms: a run that gives it back says so. Default: now. */
  readonly sentAt?: number | undefined;
}

/**
 * A store that carries signals to runs that wait for a topic. A signal that finds a wait is an `answer` command in the inbox of
 * its run, and makes it due. In each order of `expect` and `signal` the run gets it.
 */
export interface EventStore extends DueStore {
  /**
   * Adds a wait of a run for a topic; null withdraws it. A wait that is there already stays in its place. The oldest kept
   * signal of the topic is delivered at once. Waits are removed with their record.
   * @throws {LEASE_LOST} if this is no longer the newest claim
   */
  expect(claim: Claim, wait: { readonly waitId: string; readonly topic: string | null }): Promise<void>;
  /**
   * Delivers a signal to the oldest wait of its topic, or keeps it for the next one.
   * @returns the run that got it; none = it is kept
   * @throws {UNDELIVERED} if 1,000 are kept already, or the inbox of the run is full
   */
  signal(signal: Signal): Promise<{ readonly to?: string }>;
}

/** How the end of a run is stored. */
export interface EndOptions {
  /** The kept outcome. Its `run` is what `listEnded` shows of the run. */
  readonly outcome: RunOutcome;
  /** How long the ended record is kept, wall clock, ms; Infinity = until it is erased or replaced. */
  readonly keepUntil: number;
  /** How long `outcome` returns the outcome, wall clock, ms. Default: as long as the record. 0 = never. */
  readonly outcomeUntil?: number | undefined;
  /** Marks the end as undelivered, in the same commit. Only a DeliveryStore reads it. Absent: it is delivered. */
  readonly undelivered?: Undelivered | undefined;
  /** Adds the run to the totals of its day, in the same commit. Only a store with `totals` reads it. */
  readonly isCounted?: boolean | undefined;
  /** What an earlier end of the run has added to the totals: it was retried. */
  readonly counted?: UsedByEnd | undefined;
  /** The run is a turn of a thread: its messages become those of the thread, and the next turn begins. */
  readonly turn?: TurnEnd | undefined;
}

/** What the commit that ended a run did besides. */
export interface Ended {
  /** The turn that it began; absent = none. */
  readonly admitted?: BegunTurn;
}

export interface ListEndedOptions {
  /** At most this many runs. */
  readonly limit: number;
  /** The last run of the page before. */
  readonly after?: EndedCursor | undefined;
  /** Only runs of this agent. */
  readonly agentId?: string | undefined;
  /** Only runs of this caller. */
  readonly callerId?: string | undefined;
}

/** The last entry of a page of ended runs; the next page has those that ended before it. */
export type EndedCursor = { readonly endedAt: number; readonly runId: string };

/**
 * A store that keeps the records of runs that ended. A kept record is no run to recover: `listInterrupted`, `claim`, `listDue`,
 * `send` and `load` do not see it, unless `load` is asked with `ended`. It is deleted when its time is over, and a `save` under
 * its id replaces it, with its journal unless it `reopens` the run.
 */
export interface HistoryStore extends OwningStore, OutcomeStore {
  /**
   * Ends a run, in one commit: keeps its outcome and its record, releases its claim, removes its commands. No message is
   * written again. A repeated call with the same claim changes nothing.
   * @throws {LEASE_LOST} if this is no longer the newest claim
   */
  end(claim: Claim, options: EndOptions): Promise<Ended>;
  /** The kept records of runs that ended: the newest end first, then by run id. Fewer than `limit` = there are no more. */
  listEnded(options: ListEndedOptions): Promise<readonly KeptRun[]>;
  /**
   * Removes all that is stored of a run that ended: its record, its outcome, its commands. A run of which nothing is stored is no
   * error.
   * @throws {RUN_OWNED_ELSEWHERE} while an owner holds it @throws {RUN_NOT_ENDED} if it has not ended
   */
  erase(runId: string): Promise<void>;
  /** Removes the kept records whose time is over, which stores also do by themselves; with `dryRun` only counts them. @returns how many */
  forgetEnded?(options?: { readonly dryRun?: boolean }): Promise<number>;
  /** The totals of the counted runs by day and status, in this order. They outlive the runs. */
  totals?(range?: TotalsRange): Promise<readonly DayTotals[]>;
}

export interface ReadEventsOptions {
  /** The `next` of the page before; 0 or absent = from the first entry. */
  readonly after?: number | undefined;
  /** About how many entries: those of one write come together. */
  readonly limit: number;
  /** Begins with the newest writes, about so many, if they come after `after`. A store may ignore it. */
  readonly newest?: number | undefined;
}

/** A page of a run's journal. */
export interface JournalPage {
  /** By their places. Content that only the record holds is filled in; an entry whose content is gone is left out. */
  readonly entries: readonly JournalEntry[];
  /** Where the next page begins. Equal to `after`: there is nothing newer yet. */
  readonly next: number;
}

/** A store with a journal: the events of a run, for readers in any process. It is removed with the record. */
export interface JournalStore extends OwningStore {
  /**
   * Adds entries that no save waits for. They need not survive a loss of power. An entry with the place of an earlier one
   * replaces it.
   * @throws {LEASE_LOST} if this is no longer the newest claim
   */
  publish(
    runId: string,
    entries: readonly JournalEntry[],
    options: { readonly claim: Claim; readonly signal?: AbortSignal | undefined },
  ): Promise<void>;
  /** Reads a page of a run's journal; null if there is no record of the run. @throws {CHECKPOINT_CORRUPT} */
  readEvents(runId: string, options: ReadEventsOptions): Promise<JournalPage | null>;
}

/** A store that tells cheaply that nothing has changed, so that readers need not list it again. */
export interface ChangeStore extends CheckpointStore {
  /**
   * A text to compare with an earlier one: if they are equal, no write to any run was made between them, by any process. Different
   * ones promise nothing. A claim whose time is over, and an owner that died, are no writes.
   */
  changeMark(): Promise<string>;
}

export type InboxOf = { readonly owner: string } | { readonly runId: string };
