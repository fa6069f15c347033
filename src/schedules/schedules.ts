import { isPerson } from '../run/command.ts';
import type { Person } from '../run/waits/wait.ts';
import type { ScheduleStore, ScheduleTimes, StoredSchedule, TickCount } from '../store/schedules/port.ts';
import type { Clock } from '../values/clock.ts';
import { NotDurableError, ScheduleNotFoundError, StoreUnavailableError, UnsupportedError } from '../values/errors.ts';
import { checkKeys, kindOf } from '../values/known-options.ts';
import type { DefinedSchedule } from './definition.ts';
import { isAbandoned, judgeTick, pausedRow, resumedRow } from './rules.ts';
import { ticksOf } from './ticks.ts';

/** Who pauses or resumes a schedule. */
export interface PauseOptions {
  /** The person; the list has the one who paused it. */
  readonly by?: Person | undefined;
}

/** A schedule in a list. Times are wall clock, ms. */
export interface ListedSchedule extends ScheduleTimes {
  readonly id: string;
  /** Its next tick; absent while it is paused, gone or not enabled, or if this process cannot tell. */
  readonly nextAt?: number;
  /** The newest tick that began a run, or counts as skipped, missed or failed. */
  readonly lastAt?: number;
  /** The run that it began last. */
  readonly lastRunId?: string;
  readonly paused?: { readonly by?: Person | undefined; readonly at: number };
  /** Ticks that began no run, because the run of an earlier tick had not ended. */
  readonly skipped: TickCount;
  /** Ticks that began no run, because no process looked in time. */
  readonly missed: TickCount;
  /** Ticks that began no run, because `start` threw; with the message of the last error. */
  readonly failed: TickCount & { readonly error?: string | undefined };
  /** No deployment defines it any more, or no process has looked after it for ten minutes. It starts nothing. */
  readonly gone?: true;
  /** It is defined with `enabled: false`. */
  readonly disabled?: true;
}

/** The schedules of a store: a function that lists them, with methods. Every process of the store sees the same. */
export interface Schedules {
  /** Lists what the store keeps, and what this executor defines, by id. @throws {NOT_DURABLE} @throws {UNSUPPORTED} */
  (): Promise<readonly ListedSchedule[]>;
  /**
   * Pauses a schedule, in every process: its ticks begin no run until `resume`, and are never made up. A run that has begun continues.
   * @throws {SCHEDULE_NOT_FOUND} @throws {NOT_DURABLE} @throws {UNSUPPORTED} @throws {TypeError} for a `by` that is no person
   * @example await executor.schedules.pause('nightly', { by: { id: 'ada' } });
   */
  pause(id: string, options?: PauseOptions): Promise<void>;
  /** Resumes a schedule: its next tick begins a run again. @throws as `pause` */
  resume(id: string, options?: PauseOptions): Promise<void>;
}

/** What lists and changes schedules. */
interface Parts {
  readonly schedules: readonly DefinedSchedule[];
  /** Undefined: `hasStore` says why. */
  readonly store: ScheduleStore | undefined;
  readonly hasStore: boolean;
  readonly clock: Clock;
  readonly deployment: number | undefined;
}

/** How many times a change is tried again because other processes write the schedule. */
const MAX_TRIES = 20;

/** Makes the schedules of an executor. */
export function schedulesOf(parts: Parts): Schedules {
  const { clock } = parts;
  const list = async () => {
    const stored = new Map((await storeOf(parts).list()).map((row) => [row.id, row]));
    for (const { id } of parts.schedules) if (!stored.has(id)) stored.set(id, newRow(parts, id) as StoredSchedule);
    return [...stored.values()].map((row) => listed(row, clock.now())).sort((a, b) => (a.id < b.id ? -1 : 1));
  };
  const pause: Schedules['pause'] = async (id, options = {}) => {
    checkScheduleId(id, 'pause');
    const by = personOf(options, 'pause');
    await change(parts, id, (row) => (row.paused ? undefined : pausedRow(row, { ...by, at: clock.now() })));
  };
  const resume: Schedules['resume'] = async (id, options = {}) => {
    checkScheduleId(id, 'resume');
    personOf(options, 'resume');
    await change(parts, id, (row) => {
      const since = clock.now();
      return row.paused && resumedRow(row, since, nextOf(parts, row, since));
    });
  };
  return Object.assign(list, { pause, resume });
}

function storeOf({ store, hasStore }: Parts): ScheduleStore {
  if (store) return store;
  if (!hasStore) throw new NotDurableError('schedules need a store (createExecutor({ store }))');
  throw new UnsupportedError('this store keeps no schedules: it has no schedules');
}

function checkScheduleId(id: unknown, what: string): void {
  if (typeof id !== 'string')
    throw new TypeError(`executor.schedules.${what} needs the id of a schedule, not ${kindOf(id)}`);
}

function personOf(options: PauseOptions, what: string): { readonly by?: Person } {
  const of = `executor.schedules.${what}`;
  checkKeys(options, { by: true }, { of });
  const { by } = options;
  if (by === undefined) return {};
  if (!isPerson(by)) throw new TypeError(`${of}: by must be { id, name? }`);
  return { by: { id: by.id, ...(by.name === undefined ? {} : { name: by.name }) } };
}

/** Changes a stored schedule. @param change returns the next row; undefined = nothing is to be changed */
async function change(
  parts: Parts,
  id: string,
  change: (row: StoredSchedule) => StoredSchedule | undefined,
): Promise<void> {
  const store = storeOf(parts);
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const stored = (await store.list()).find((row) => row.id === id);
    const row = stored ?? newRow(parts, id);
    if (!row) throw new ScheduleNotFoundError(`there is no schedule ${JSON.stringify(String(id).slice(0, 100))}`);
    const next = change(stored ?? { ...row, revision: 0 });
    if (!next || (await store.note(next))) return;
  }
  throw new StoreUnavailableError(`schedule ${id}: other processes keep changing it; try again`);
}

/** The row of a schedule that this executor defines and no process has stored yet. */
function newRow({ schedules, clock, deployment }: Parts, id: string): StoredSchedule | undefined {
  const now = clock.now();
  const schedule = schedules.find((each) => each.id === id);
  const verdict = schedule && judgeTick(schedule, undefined, { now, deployment, beganAt: now });
  return verdict?.does === 'define' ? verdict.row : undefined;
}

/** An expression needs `croner`, which a process that defines no schedule may not have. */
function nextOf({ schedules }: Parts, { id, cron, every, timeZone, isEnabled }: StoredSchedule, after: number) {
  if (!isEnabled) return undefined;
  const own = schedules.find((schedule) => schedule.id === id);
  try {
    return (own?.ticks ?? ticksOf({ cron, every, timeZone }, `schedule ${id}`)).next(after);
  } catch {
    return undefined;
  }
}

function listed(row: StoredSchedule, now: number): ListedSchedule {
  const { id, cron, every, timeZone, nextAt, lastAt, lastRunId, paused, skipped, missed, failed } = row;
  const isGone = row.gone === true || isAbandoned(row, now);
  return {
    id,
    ...(cron === undefined ? {} : { cron }),
    ...(every === undefined ? {} : { every }),
    ...(timeZone === undefined ? {} : { timeZone }),
    ...(nextAt === undefined || paused || isGone ? {} : { nextAt }),
    ...(lastAt === undefined ? {} : { lastAt }),
    ...(lastRunId === undefined ? {} : { lastRunId }),
    ...(paused ? { paused } : {}),
    skipped,
    missed,
    failed,
    ...(isGone ? { gone: true as const } : {}),
    ...(row.isEnabled ? {} : { disabled: true as const }),
  };
}
