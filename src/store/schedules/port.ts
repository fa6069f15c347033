import type { RunCheckpoint } from '../../record/checkpoint.ts';
import type { Person } from '../../run/waits/wait.ts';

/** When a schedule has its ticks: `cron` or `every`. */
export interface ScheduleTimes {
  /** Five or six fields; with six the first one is the second. */
  readonly cron?: string | undefined;
  /** An interval, for example `15m`: its ticks are the multiples since 1970-01-01T00:00Z. */
  readonly every?: string | undefined;
  /** The zone in which `cron` is read; absent = UTC. */
  readonly timeZone?: string | undefined;
}

/** Ticks of a schedule that began no run. */
export interface TickCount {
  readonly count: number;
  /** The last of them, wall clock, ms. */
  readonly lastAt?: number | undefined;
}

/** What a store keeps of a schedule. Times are wall clock, ms. */
export interface StoredSchedule extends ScheduleTimes {
  readonly id: string;
  /** Counts its writes, from 1. */
  readonly revision: number;
  readonly isEnabled: boolean;
  /** The highest deployment that has defined it, or has left it out. */
  readonly deployment?: number | undefined;
  /** When a process last defined it. */
  readonly definedAt: number;
  /** Its ticks up to this time are not made up: it was new, changed, or paused. */
  readonly since: number;
  /** The newest tick that is settled: it began a run, or counts below. */
  readonly lastAt?: number | undefined;
  /** The next tick after that; absent = there is none, or it is not known. */
  readonly nextAt?: number | undefined;
  /** The run that it began last. */
  readonly lastRunId?: string | undefined;
  readonly paused?: { readonly by?: Person | undefined; readonly at: number } | undefined;
  /** A higher deployment does not define it any more. */
  readonly gone?: true | undefined;
  /** The run of an earlier tick had not ended. */
  readonly skipped: TickCount;
  /** No process looked in time. */
  readonly missed: TickCount;
  /** `start` threw. */
  readonly failed: TickCount & { readonly error?: string | undefined };
}

/** The run of a tick. */
export interface TickRun {
  /** Its first record. */
  readonly record: RunCheckpoint;
  /** See `WriteOptions.fairKey`. */
  readonly fairKey?: string | undefined;
}

/** The schedules of a store. Their runs are due at once. */
export interface ScheduleStore {
  /** All that it keeps. One that is damaged has no times, and all counts 0. */
  list(): Promise<readonly StoredSchedule[]>;
  /**
   * Stores a schedule in place of the one with the revision before (revision 1: in place of none), and in the same commit the first
   * record of a run, which is then due. A run of which something is known already does not begin again.
   * @returns false, and changes nothing, if another write was first
   */
  note(schedule: StoredSchedule, run?: TickRun): Promise<boolean>;
}
