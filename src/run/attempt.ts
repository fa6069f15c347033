import { isAmount, isCount, isObject } from '../values/json.ts';
import type { OpenStep } from './open-step.ts';

/* An attempt is one process at work on a run: from its claim until it leaves the run, ends it, or dies. */

/** How an attempt ended that did not end the run. `lost`: its process died, or another process took the run from it. */
export type AttemptEnd = 'lost' | 'left' | 'waited' | 'slice';

/** The newest attempt that a record knows. */
export interface RunAttempt {
  /** Counts the attempts of the run that recorded something; 1 is the first. */
  readonly number: number;
  /** When it began, wall clock of its process, ms. */
  readonly from: number;
  /** Absent: it works, or is lost. */
  readonly ended?: Exclude<AttemptEnd, 'lost'>;
}

/** A call that was under way when an attempt was lost. */
export interface LostCall {
  readonly callId: string;
  readonly name: string;
  /** Which start of the call it was: 1 is the first. */
  readonly attempt: number;
}

/** The attempt before this one, as its record tells of it. */
export interface PreviousAttempt {
  readonly attempt: number;
  readonly how: AttemptEnd;
  /** When it began, wall clock, ms. */
  readonly from: number;
  /** The time of its last record, wall clock, ms: it worked at least until then. */
  readonly at: number;
  /** The calls that had begun and have no result, of an attempt that is lost. */
  readonly calls: readonly LostCall[];
}

const ends: readonly unknown[] = ['left', 'waited', 'slice'] satisfies RunAttempt['ended'][];

/** Returns whether a stored value is an attempt. */
export function isAttempt(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { number, from, ended } = value;
  return isCount(number) && isAmount(from) && (ended === undefined || ends.includes(ended));
}

/** The longest text that a record keeps of a trace. */
export const TRACE_CHARS = 1_024;

/** Returns whether a stored value is what a record keeps of a trace. */
export function isTrace(value: unknown): boolean {
  return typeof value === 'string' && value.length <= TRACE_CHARS;
}

/** Returns the attempt that begins now. @param before the newest one of the record; undefined = there is none @param now wall clock, ms */
export function nextAttempt(before: RunAttempt | undefined, now: number): RunAttempt {
  return { number: (before?.number ?? 0) + 1, from: now };
}

/** What a record tells of its newest attempt. */
interface Recorded {
  readonly attempt?: RunAttempt;
  /** The time of the record, wall clock, ms. */
  readonly updatedAt: number;
  readonly openStep?: OpenStep;
}

/** Returns the attempt before this one; undefined if the record knows none. */
export function previousAttempt({ attempt, updatedAt, openStep }: Recorded): PreviousAttempt | undefined {
  if (!attempt) return undefined;
  const { number, from, ended: how = 'lost' } = attempt;
  const begun = how === 'lost' ? (openStep?.calls ?? []).filter(({ state }) => state === 'started') : [];
  const calls = begun.map(({ callId, name, attempt }) => ({ callId, name, attempt }));
  return { attempt: number, how, from, at: Math.max(from, updatedAt), calls };
}

/** Returns a progress whose attempt ends so. */
export function endAttempt<P extends { readonly attempt?: RunAttempt }>(progress: P, ended: RunAttempt['ended']): P {
  return progress.attempt && ended ? { ...progress, attempt: { ...progress.attempt, ended } } : progress;
}
