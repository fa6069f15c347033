import type { StoredSchedule, TickCount } from '../store/schedules/port.ts';
import type { DefinedSchedule } from './definition.ts';
import type { DueTicks } from './ticks.ts';

/*
 * What becomes of a schedule, as pure functions: from what the store keeps of it and what this process defines to the row that is
 * stored next. Each row follows the one that was read, so that of two processes one is the first.
 */

/** A tick that began no run within this time was missed, ms. */
const LATE_MS = 60_000;

/** A tick that no process has settled for so long: none looks after its schedule, ms. */
const ABANDONED_MS = 600_000;

/** The process that looks. */
export interface Looker {
  /** Wall clock, ms. */
  readonly now: number;
  readonly deployment: number | undefined;
  /** When it began to look, wall clock, ms. */
  readonly beganAt: number;
}

/** What this process does about a schedule now. */
export type TickVerdict =
  | { readonly does: 'nothing' }
  /** It stores what it defines. */
  | { readonly does: 'define'; readonly row: StoredSchedule }
  /** It settles the newest tick that is due. */
  | { readonly does: 'tick'; readonly row: StoredSchedule; readonly due: DueTicks; readonly isLate: boolean };

const nothing: TickVerdict = { does: 'nothing' };
const none: TickCount = { count: 0 };

/** Decides what a process does about a schedule. @param row as it is stored; undefined = no process has looked yet */
export function judgeTick(schedule: DefinedSchedule, row: StoredSchedule | undefined, by: Looker): TickVerdict {
  if (!row) return { does: 'define', row: definedRow(schedule, row, by) };
  const standing = standingOf(row, by.deployment);
  if (standing === 'older') return nothing;
  if (standing === 'newer' || (!isSame(schedule, row) && mayChange(row, by)))
    return { does: 'define', row: definedRow(schedule, row, by) };
  if (!isSame(schedule, row) || !schedule.isEnabled || row.paused) return nothing;
  const due = schedule.ticks.due(Math.max(row.since, row.lastAt ?? 0), by.now);
  return due ? { does: 'tick', row, due, isLate: by.now - due.newest > LATE_MS } : nothing;
}

/** As for runs: without a number the deployment is not compared. */
function standingOf({ deployment: stored }: StoredSchedule, mine: number | undefined): 'older' | 'same' | 'newer' {
  if (mine === undefined || stored === mine) return 'same';
  return stored === undefined || mine > stored ? 'newer' : 'older';
}

/** Of processes of one deployment the one that began last decides; also one that finds the schedule abandoned. */
function mayChange(row: StoredSchedule, { beganAt, now }: Looker): boolean {
  return row.gone === true || row.definedAt <= beganAt || isAbandoned(row, now);
}

/** Returns whether no process looks after a schedule: a tick of it has been due for ten minutes. */
export function isAbandoned({ nextAt, paused }: StoredSchedule, now: number): boolean {
  return nextAt !== undefined && paused === undefined && now - nextAt > ABANDONED_MS;
}

function isSame({ times, isEnabled }: DefinedSchedule, row: StoredSchedule): boolean {
  const hasTimes = times.cron === row.cron && times.every === row.every && times.timeZone === row.timeZone;
  return hasTimes && isEnabled === row.isEnabled && !row.gone;
}

/** The row of what this process defines. Other ticks than before begin from now on: the past is not made up. */
function definedRow(schedule: DefinedSchedule, row: StoredSchedule | undefined, by: Looker): StoredSchedule {
  const before = row ?? freshRow(schedule.id, by);
  const { times, ticks, isEnabled } = schedule;
  const since = row && isSame(schedule, row) ? row.since : by.now;
  return {
    ...before,
    ...{ cron: times.cron, every: times.every, timeZone: times.timeZone, isEnabled, since, gone: undefined },
    revision: before.revision + 1,
    deployment: by.deployment ?? before.deployment,
    definedAt: by.now,
    nextAt: isEnabled ? ticks.next(Math.max(since, before.lastAt ?? 0)) : undefined,
  };
}

function freshRow(id: string, { now }: Looker): StoredSchedule {
  const counts = { skipped: none, missed: none, failed: none };
  return { id, revision: 0, isEnabled: true, definedAt: now, since: now, ...counts };
}

/** What became of a tick. */
export type SettledTick =
  | { readonly as: 'started'; readonly runId: string }
  | { readonly as: 'skipped' }
  | { readonly as: 'missed' }
  | { readonly as: 'failed'; readonly error: string };

/** Returns the row in which a tick is settled; the older ones that were due are missed. */
export function settledRow(
  { ticks }: DefinedSchedule,
  { row, due }: Extract<TickVerdict, { does: 'tick' }>,
  settled: SettledTick,
): StoredSchedule {
  const { newest, older, olderAt } = due;
  const missed = counted(row.missed, older, olderAt);
  const after = { ...row, revision: row.revision + 1, lastAt: newest, nextAt: ticks.next(newest), missed };
  if (settled.as === 'started') return { ...after, lastRunId: settled.runId };
  if (settled.as === 'missed') return { ...after, missed: counted(missed, 1, newest) };
  if (settled.as === 'skipped') return { ...after, skipped: counted(row.skipped, 1, newest) };
  return { ...after, failed: { ...counted(row.failed, 1, newest), error: settled.error } };
}

function counted(before: TickCount, more: number, lastAt: number | undefined): TickCount {
  return more > 0 ? { count: before.count + more, lastAt } : before;
}

/** Returns the row of a schedule that an executor of a higher deployment does not define; undefined: it is not for it to say. */
export function goneRow(row: StoredSchedule, { deployment, now }: Looker): StoredSchedule | undefined {
  if (row.gone || standingOf(row, deployment) !== 'newer') return undefined;
  return { ...row, revision: row.revision + 1, deployment, definedAt: now, gone: true, nextAt: undefined };
}

/** Returns the row of a schedule that is paused. */
export function pausedRow(row: StoredSchedule, paused: StoredSchedule['paused']): StoredSchedule {
  return { ...row, paused, revision: row.revision + 1 };
}

/** Returns the row of a schedule that continues. Ticks of its pause are never made up. */
export function resumedRow(row: StoredSchedule, since: number, nextAt: number | undefined): StoredSchedule {
  return { ...row, paused: undefined, since, nextAt, revision: row.revision + 1 };
}

/** Returns the id of the run of a tick: every process computes the same. */
export function tickRunId(id: string, tick: number): string {
  return `${id}@${new Date(tick).toISOString()}`;
}
