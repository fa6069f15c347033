import type { ScheduleTimes } from '../store/schedules/port.ts';
import { durationMs } from '../values/clock.ts';
import { readProperty, toErrorData } from '../values/error-data.ts';

/** The ticks of a schedule that are due, wall clock, ms. */
export interface DueTicks {
  readonly newest: number;
  /** How many older ones are due too; of an expression at most 1,000 are counted. */
  readonly older: number;
  /** The newest of those. */
  readonly olderAt?: number | undefined;
}

/** When a schedule has its ticks. Times are wall clock, ms. */
export interface Ticks {
  /** The first tick after a time; undefined = there is none. */
  next(after: number): number | undefined;
  /** The ticks after one time, up to another one with it; undefined = there is none. */
  due(after: number, now: number): DueTicks | undefined;
}

/** The part of `croner` that is used. */
interface CronPattern {
  nextRun(after: Date): Date | null;
}
type CronClass = new (
  expression: string,
  options: { readonly timezone: string; readonly mode: '5-or-6-parts' },
) => CronPattern;

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const LONGEST_EVERY_MS = 366 * 86_400_000;
const MAX_CRON_CHARS = 200;
/** So many ticks of an expression are counted one by one. */
const MAX_COUNTED_TICKS = 1_000;

/**
 * Returns the ticks of an interval or an expression.
 * @param of names the schedule, for the error
 * @throws {TypeError} for an expression, a zone or an interval that has no ticks, both or none of them, and without `croner`
 */
export function ticksOf({ cron, every, timeZone }: ScheduleTimes, of: string): Ticks {
  if ((cron === undefined) === (every === undefined)) throw new TypeError(`${of} needs either cron or every`);
  if (every !== undefined) {
    if (timeZone !== undefined)
      throw new TypeError(`${of}: timeZone is of cron; every has the same ticks in all zones`);
    return intervalTicks(intervalOf(every, of));
  }
  return cronTicks(cronOf(cron, timeZone, of));
}

function intervalOf(every: unknown, of: string): number {
  const ms = typeof every === 'string' ? (durationMs(every) ?? 0) : 0;
  if (ms >= SECOND_MS && ms <= LONGEST_EVERY_MS) return ms;
  const got = typeof every === 'string' ? JSON.stringify(every.slice(0, 40)) : typeof every;
  throw new TypeError(`${of}: every must be a time from '1s' to '366d', not ${got}`);
}

function intervalTicks(ms: number): Ticks {
  const before = (time: number) => Math.floor(time / ms) * ms;
  return {
    next: (after) => before(after) + ms,
    due: (after, now) => {
      const newest = before(now);
      if (newest <= after) return undefined;
      const older = (newest - before(after)) / ms - 1;
      return { newest, older, ...(older > 0 ? { olderAt: newest - ms } : {}) };
    },
  };
}

function cronOf(cron: unknown, timeZone: unknown, of: string): CronPattern {
  if (typeof cron !== 'string' || cron.length > MAX_CRON_CHARS || !hasFields(cron)) {
    const got = typeof cron === 'string' ? JSON.stringify(cron.slice(0, 40)) : typeof cron;
    throw new TypeError(`${of}: cron must be an expression of five or six fields, for example '0 7 * * *', not ${got}`);
  }
  if (timeZone !== undefined && typeof timeZone !== 'string')
    throw new TypeError(`${of}: timeZone must be a text such as 'Europe/Berlin', not ${typeof timeZone}`);
  const Cron = cronClass(of);
  try {
    const pattern = new Cron(cron, { timezone: timeZone ?? 'UTC', mode: '5-or-6-parts' });
    // A zone is read only now. The year 2027 has a next tick of everything that has one.
    if (pattern.nextRun(new Date(Date.UTC(2027, 0, 1)))) return pattern;
  } catch (cause) {
    const { message } = toErrorData(cause);
    throw new TypeError(`${of}: cron ${JSON.stringify(cron)} ${inZone(timeZone)}: ${message}`, { cause });
  }
  throw new TypeError(`${of}: cron ${JSON.stringify(cron)} names a time that never comes`);
}

const inZone = (timeZone: string | undefined) => (timeZone === undefined ? '' : `in ${JSON.stringify(timeZone)}`);

/** A nickname and a date are no expressions. */
function hasFields(cron: string): boolean {
  const count = cron.split(' ').filter((field) => field !== '').length;
  return (count === 5 || count === 6) && !cron.includes('@') && !cron.includes(':');
}

/** Loads the class when a schedule needs it: a program without an expression needs no `croner`. */
function cronClass(of: string): CronClass {
  try {
    const { createRequire } = process.getBuiltinModule('node:module');
    return (createRequire(import.meta.url)('croner') as { readonly Cron: CronClass }).Cron;
  } catch (cause) {
    const isMissing = readProperty(cause, 'code') === 'MODULE_NOT_FOUND';
    const why = isMissing ? 'which is not installed: npm install croner' : toErrorData(cause).message;
    throw new TypeError(`${of}: cron needs the package croner, ${why}`, { cause });
  }
}

function cronTicks(pattern: CronPattern): Ticks {
  const next = (after: number) => pattern.nextRun(new Date(after))?.getTime();
  return {
    next,
    due: (after, now) => {
      const first = next(after);
      if (first === undefined || first > now) return undefined;
      const counted = upTo(next, { newest: first, older: 0 }, now);
      if (counted.older < MAX_COUNTED_TICKS) return counted;
      return { ...newestIn(next, counted, now), older: MAX_COUNTED_TICKS };
    },
  };
}

/** Continues from a tick to the newest one that is due, over at most 1,000. */
function upTo(next: Ticks['next'], from: DueTicks, now: number): DueTicks {
  let { newest, older, olderAt } = from;
  while (older < MAX_COUNTED_TICKS) {
    const later = next(newest);
    if (later === undefined || later > now) break;
    olderAt = newest;
    newest = later;
    older += 1;
  }
  return { newest, older, olderAt };
}

/** Finds the newest tick in the shortest time before now that has one. */
function newestIn(next: Ticks['next'], known: DueTicks, now: number): DueTicks {
  for (let ms = MINUTE_MS; ; ms *= 2) {
    const from = Math.max(known.newest, now - ms);
    const first = next(from);
    if (first !== undefined && first <= now) return upTo(next, { newest: first, older: 0, olderAt: known.newest }, now);
    if (from === known.newest) return known;
  }
}
