import type { Agent } from '../agent/agent.ts';
import type { Invocation, WorkflowInvocation } from '../run/request.ts';
import type { ScheduleTimes } from '../store/schedules/port.ts';
import { checkFlag, checkKeys, checkWord, type KnownKeys, kindOf } from '../values/known-options.ts';
import type { Workflow } from '../workflow/workflow.ts';
import { type Ticks, ticksOf } from './ticks.ts';

/** The run that a tick begins. Its id is that of the tick, and its label `schedule` is the id of the schedule. */
export type ScheduledRun =
  | { readonly agent: Agent; readonly invocation: Omit<Invocation, 'runId'> }
  | { readonly workflow: Workflow; readonly input?: unknown }
  | { readonly workflow: Workflow; readonly invocation: Omit<WorkflowInvocation<unknown>, 'runId'> };

/** Runs that start by the clock: see `createExecutor({ schedules })`. */
export interface Schedule {
  /**
   * Names it in stores and in the ids of its runs: 1 to 100 letters, digits and `. _ : / -`.
   * @example id: 'digest'
   */
  readonly id: string;
  /**
   * An expression of five fields, or of six with the second first: `'0 7 * * 1-5'`. Needs the package `croner`.
   * @default none: `every` says when
   * @example cron: '0 7 * * 1-5'
   */
  readonly cron?: string;
  /**
   * In place of `cron`: an interval such as `'15m'`. Its ticks are the multiples since 1970-01-01T00:00Z.
   * @default none: `cron` says when
   * @example every: '15m'
   */
  readonly every?: string;
  /**
   * The zone in which `cron` is read.
   * @default 'UTC'
   * @example timeZone: 'Europe/Berlin'
   */
  readonly timeZone?: string;
  /**
   * Returns the run of a tick. It should be pure: of the processes that call it for a tick one begins the run. A throw, or no answer within
   * `portMs`, costs this tick.
   * @example start: (tick) => ({ agent, invocation: { prompt: `Digest of ${tick.toISOString()}` } })
   */
  readonly start: (tick: Date) => ScheduledRun | Promise<ScheduledRun>;
  /**
   * When the run of the tick before has not ended (one that waits has not; one that is parked has): `skip` or `allow`.
   * @default 'skip'
   */
  readonly overlap?: 'skip' | 'allow';
  /**
   * When no process looked within 60 s of a tick: `latest` starts the newest one once, `skip` starts none.
   * @default 'latest'
   */
  readonly missed?: 'latest' | 'skip';
  /**
   * `false`: it has no ticks.
   * @default true
   */
  readonly enabled?: boolean;
}

const scheduleKeys: KnownKeys<Schedule> = {
  id: true,
  cron: true,
  every: true,
  timeZone: true,
  start: true,
  overlap: true,
  missed: true,
  enabled: true,
};

/** A schedule of this executor, checked. */
export interface DefinedSchedule {
  readonly id: string;
  readonly times: ScheduleTimes;
  readonly ticks: Ticks;
  readonly isEnabled: boolean;
  readonly start: Schedule['start'];
  readonly overlap: 'skip' | 'allow';
  readonly missed: 'latest' | 'skip';
}

const ID = /^[\w.:/-]{1,100}$/;

/** Returns whether a value may be the id of a schedule. */
function isScheduleId(id: unknown): id is string {
  return typeof id === 'string' && ID.test(id);
}

/** Checks the schedules of an executor. @throws {TypeError} that names the schedule */
export function schedulesIn(given: unknown): readonly DefinedSchedule[] {
  if (!Array.isArray(given)) throw new TypeError(`createExecutor: schedules must be a list, not ${kindOf(given)}`);
  const defined = given.map((schedule, i) => definedOf(schedule, `createExecutor: schedules[${i}]`));
  const ids = new Set<string>();
  for (const { id } of defined) {
    if (ids.has(id)) throw new TypeError(`createExecutor: schedules has two with the id ${JSON.stringify(id)}`);
    ids.add(id);
  }
  return defined;
}

function definedOf(given: Schedule, at: string): DefinedSchedule {
  checkKeys(given, scheduleKeys, { of: at });
  const { id, cron, every, timeZone, start, overlap = 'skip', missed = 'latest', enabled = true } = given;
  if (!isScheduleId(id)) {
    const got = typeof id === 'string' ? JSON.stringify((id as string).slice(0, 100)) : kindOf(id);
    throw new TypeError(`${at}: id must have 1 to 100 letters, digits and . _ : / -, not ${got}`);
  }
  const of = `createExecutor: schedule ${id}`;
  if (typeof start !== 'function') throw new TypeError(`${of}: start must be a function, not ${kindOf(start)}`);
  checkWord(`${of}: overlap`, overlap, ['skip', 'allow']);
  checkWord(`${of}: missed`, missed, ['latest', 'skip']);
  checkFlag(`${of}: enabled`, enabled);
  const times = {
    ...(cron === undefined ? {} : { cron }),
    ...(every === undefined ? {} : { every }),
    ...(timeZone === undefined ? {} : { timeZone }),
  };
  return { id, times, ticks: ticksOf(times, of), isEnabled: enabled, start, overlap, missed };
}
