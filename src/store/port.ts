import type { RunCheckpoint } from '../record/checkpoint.ts';
import type { RunDelta } from '../record/delta.ts';
import type { InterruptedRun } from '../record/interrupted.ts';
import type { Command, SentCommand } from '../run/command.ts';
import type { JournalWrite } from '../run/journal/entry.ts';
import type { RunOutcome } from '../run/result.ts';
import type { JsonValue } from '../values/json.ts';
import type { DeliveryStore, Undelivered } from './deliveries/port.ts';
import type { DueStore, RestingStore } from './due-port.ts';
import type { HistoryStore } from './history-port.ts';
import type { JournalStore } from './journal-port.ts';
import type { LimitStore } from './limits/port.ts';
import type { ScheduleStore } from './schedules/port.ts';
import type { ThreadStore } from './thread-port.ts';

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
  /** Of `save` and `append`: events that become part of the run's journal in the same commit. Only a store with a journal reads it. */
  readonly events?: JournalWrite | undefined;
  /** Of the first record of a run: the key under which due runs are taken in turn. Only a store with the group `due` reads it. */
  readonly fairKey?: string | undefined;
  /** Of `save`: the run of this record had ended, and continues, so its journal stays. Only a store with the group `history` reads it. */
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
  /** Loads the record of a run that ended too: only a store with the group `history` has such records. Default `false`. */
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
   * `waiting`: lists the runs that rest, and no others; without it they are left out. A store without the group `due` lists all
   * runs in both cases.
   */
  readonly status?: 'waiting' | undefined;
  /** Only runs of this caller: a caller's list must not cost what all others have. A store may ignore it, and list all. */
  readonly callerId?: string | undefined;
}

/** What a store can do besides its own methods: each group is there as a whole, or not at all. */
export interface StoreGroups {
  /** Commands to runs of other processes. */
  readonly commands: CommandStore;
  /** Signals to runs that wait for them: needs `commands` and `due`. */
  readonly waits: WaitStore;
  /** The ends of runs, after their records. */
  readonly outcomes: OutcomeStore;
  /** Ends that no process has delivered: needs `outcomes`. */
  readonly deliveries: DeliveryStore;
  /** Records of runs that ended. */
  readonly history: HistoryStore;
  /** Runs that rest, and runs that are due. */
  readonly due: DueStore;
  /** Conversations. */
  readonly threads: ThreadStore;
  /** The events of runs. */
  readonly journal: JournalStore;
  /** Schedules, and the runs of their ticks. */
  readonly schedules: ScheduleStore;
  /** Turns of limited calls. */
  readonly limits: LimitStore;
}

/**
 * The four methods that make a store, and its groups. A stored record is a run to recover; a deleted one is a run that ended.
 * Writes of one run take effect in the order of the calls, even if a caller no longer waits for one.
 */
export interface CheckpointStore extends Partial<StoreGroups> {
  save(record: RunCheckpoint, options?: WriteOptions): Promise<void>;
  load(runId: string, options?: LoadOptions): Promise<RunCheckpoint | null>;
  delete(runId: string, options?: WriteOptions): Promise<void>;
  /** Ordered by `updatedAt`, then `runId`; a record that cannot be read is listed as quarantined. */
  listInterrupted(options?: ListOptions): Promise<readonly InterruptedRun[]>;
}

/** A store that writes only new messages. A revision that is already stored is a success, a gap a RevisionGapError. */
export interface AppendingStore extends CheckpointStore {
  append(delta: RunDelta, options?: WriteOptions): Promise<void>;
}

/** A store that checks who may write. `claim` works before a record exists; null = another owner holds a live claim. */
export interface OwningStore extends CheckpointStore {
  /** @throws {NEWER_DEPLOYMENT} if a higher deployment has claimed the run: nothing is counted. Only a store with the group `due` has it */
  claim(runId: string, owner: string, ttlMs: number, options?: ClaimOptions): Promise<Claim | null>;
  renew(claim: Claim, ttlMs: number): Promise<Claim>;
  release(claim: Claim, options?: ReleaseOptions): Promise<void>;
}

export interface KeepOptions extends WriteOptions {
  /** Marks the end as undelivered, in the same commit. Only a store with the group `deliveries` reads it. Absent: it is delivered. */
  readonly undelivered?: Undelivered | undefined;
}

/** Answers that are kept after the record is deleted, so that a repeated `start` returns them again. */
export interface OutcomeStore {
  /** @param untilMs wall clock, ms */
  keep(runId: string, outcome: RunOutcome, untilMs: number, options?: KeepOptions): Promise<void>;
  find(runId: string): Promise<RunOutcome | null>;
  /** Removes expired answers, which stores also do by themselves; with `dryRun` only counts them. @returns how many; 0 where only the store does it */
  forget(options?: { readonly dryRun?: boolean }): Promise<number>;
}

/** Commands to the process that works on a run, from any process. They are deleted with the record. */
export interface CommandStore {
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

/** A store with claims that carries commands. */
export interface ControlStore extends OwningStore {
  readonly commands: CommandStore;
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
 * Carries signals to runs that wait for a topic. A signal that finds a wait is an `answer` command in the inbox of
 * its run, and makes it due. In each order of `expect` and `signal` the run gets it.
 */
export interface WaitStore {
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

/** A store in which runs rest, and that carries signals to them. */
export interface EventStore extends RestingStore {
  readonly waits: WaitStore;
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
