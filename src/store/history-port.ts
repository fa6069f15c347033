import type { KeptRun } from '../record/kept-run.ts';
import type { DayTotals, TotalsRange } from '../record/totals.ts';
import type { UsedByEnd } from '../run/attempt.ts';
import type { RunOutcome } from '../run/result.ts';
import type { Undelivered } from './deliveries/port.ts';
import type { Claim, OutcomeStore, OwningStore } from './port.ts';
import type { BegunTurn, TurnEnd } from './thread-port.ts';

/** How the end of a run is stored. */
export interface EndOptions {
  /** The kept outcome. Its `run` is what `list` shows of the run. */
  readonly outcome: RunOutcome;
  /** How long the ended record is kept, wall clock, ms; Infinity = until it is erased or replaced. */
  readonly keepUntil: number;
  /** How long `outcomes.find` returns the outcome, wall clock, ms. Default: as long as the record. 0 = never. */
  readonly outcomeUntil?: number | undefined;
  /** Marks the end as undelivered, in the same commit. Only a store with the group `deliveries` reads it. Absent: it is delivered. */
  readonly undelivered?: Undelivered | undefined;
  /** Adds the run to the totals of its day, in the same commit. */
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
 * The records of runs that ended. A kept record is no run to recover: `listInterrupted`, `claim`, `due.list`, `send` and `load` do
 * not see it, unless `load` is asked with `ended`. It is deleted when its time is over, and a `save` under its id replaces it, with
 * its journal unless it `reopens` the run.
 */
export interface HistoryStore {
  /**
   * Ends a run, in one commit: keeps its outcome and its record, releases its claim, removes its commands. No message is
   * written again. A repeated call with the same claim changes nothing.
   * @throws {LEASE_LOST} if this is no longer the newest claim
   */
  end(claim: Claim, options: EndOptions): Promise<Ended>;
  /** The kept records of runs that ended: the newest end first, then by run id. Fewer than `limit` = there are no more. */
  list(options: ListEndedOptions): Promise<readonly KeptRun[]>;
  /**
   * Removes all that is stored of a run that ended: its record, its outcome, its commands. A run of which nothing is stored is no
   * error.
   * @throws {RUN_OWNED_ELSEWHERE} while an owner holds it @throws {RUN_NOT_ENDED} if it has not ended
   */
  erase(runId: string): Promise<void>;
  /** Removes the kept records whose time is over, which stores also do by themselves; with `dryRun` only counts them. @returns how many */
  forget(options?: { readonly dryRun?: boolean }): Promise<number>;
  /** The totals of the counted runs by day and status, in this order. They outlive the runs. */
  totals(range?: TotalsRange): Promise<readonly DayTotals[]>;
}

/** A store with claims and outcomes that keeps the records of runs that ended. */
export interface KeepingStore extends OwningStore {
  readonly outcomes: OutcomeStore;
  readonly history: HistoryStore;
}
