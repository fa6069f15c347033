import type { ParentCall, RunCheckpointMeta } from '../run/request.ts';
import type { RunCounts } from './counting/port.ts';
import type { Claim, ControlStore } from './port.ts';

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
  /** Of a parked run: the definition by which `take` found it. */
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
  /** For tests, wall clock, ms, as for `list`. */
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

/**
 * The runs of a store that rest: without a process, until a time or a command. Several processes take those that are due.
 *
 * The store keeps one time for each record (`dueAt`), beside its claim. The first record of a run makes it due (0), and so does
 * each record without open waits, so that a run whose process dies is due. `leave` sets the time, `send` makes it 0, `claim` and
 * `release` keep it. A parked record, or one of a host's machine, is never due.
 */
export interface DueStore {
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
  list(options: ListDueOptions): Promise<DueList>;
  /**
   * Finds due runs and claims them, in one commit where the store can: each process gets others. A claim counts an attempt and an
   * epoch, as `claim` does. Parked runs are taken by `definitions` only; hosted, damaged and ended ones never. The k-th due run of
   * each fair key is taken before the (k+1)-th of any; runs without a key share one. Keys have their turns: the next call continues
   * after the last key. Within a key runs are taken by `dueAt`, then by the UTF-8 bytes of the run id.
   */
  take(options: TakeDueOptions): Promise<TakenRuns>;
  /** When the live claim of a run ends, wall clock, ms; null = no live owner holds it. */
  heldUntil(runId: string): Promise<number | null>;
  /** The highest deployment that has claimed the run; null = none said its number, or the run has no record. */
  deploymentOf(runId: string): Promise<number | null>;
  /** How many runs rest: those that are due later, or only by a command. One that was given back does not. */
  countResting(): Promise<number>;
  /** Counts the runs by one read of an index, without reading their records. */
  countRuns(): Promise<RunCounts>;
}

/** A store with claims and commands, in which runs rest. */
export interface RestingStore extends ControlStore {
  readonly due: DueStore;
}
