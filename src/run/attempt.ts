import { hasTexts, isAmount, isCount, isObject } from '../values/json.ts';
import { isSpend, isUsage, type Spend, type Usage } from '../values/usage.ts';
import type { ToolEffect } from './ledger.ts';
import type { OpenStep } from './open-step.ts';

/*
 * An attempt is one process at work on a run: from its claim until it leaves the run, ends it, or dies. A retry is a run that had
 * ended badly, and continues.
 */

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
  /** It is lost, and a process that parked the run has said so; `unknown`: also that the outcome of its `once` calls is unknown. */
  readonly told?: 'lost' | 'unknown';
}

/** A call that was under way when an attempt was lost. */
export interface LostCall {
  readonly callId: string;
  readonly name: string;
  readonly effect: ToolEffect;
  /** The step of the call; 1 is the first. */
  readonly step: number;
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
  /**
   * It is lost, and a process that parked the run after it has told so. `unknown`: it parked the run because the outcome of its
   * `once` calls is unknown.
   */
  readonly told?: 'lost' | 'unknown';
}

/** What a run had used when it ended. */
export interface UsedByEnd {
  readonly elapsedMs: number;
  readonly iterations: number;
  readonly usage: Usage;
  readonly spend?: Spend;
}

/** A retry of a run: when, and how the run had ended. */
export interface RunRetry {
  /** Wall clock, ms. */
  readonly at: number;
  /** How many whole steps the run had. */
  readonly steps: number;
  readonly error: { readonly code: string };
  /** Of the newest retry only. The limits of the run begin again there, and its next end counts what came after it. */
  readonly used?: UsedByEnd;
}

/** Most retries that a record names: the newest. */
export const MAX_RETRIES = 20;

const ends: readonly unknown[] = ['left', 'waited', 'slice'] satisfies RunAttempt['ended'][];

/** Returns whether a stored value is an attempt. */
export function isAttempt(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { number, from, ended, told } = value;
  if (told !== undefined && told !== 'lost' && told !== 'unknown') return false;
  return isCount(number) && isAmount(from) && (ended === undefined || ends.includes(ended));
}

/** Returns whether a stored value is a list of retries. */
export function isRetries(value: unknown): boolean {
  return Array.isArray(value) && value.length <= MAX_RETRIES && value.every(isRetry);
}

function isRetry(value: unknown): boolean {
  if (!isObject(value) || !isAmount(value.at) || !isCount(value.steps) || !hasTexts(value.error, ['code']))
    return false;
  const { used } = value;
  if (used === undefined) return true;
  if (!isObject(used) || !isAmount(used.elapsedMs) || !isCount(used.iterations)) return false;
  return isUsage(used.usage) && (used.spend === undefined || isSpend(used.spend));
}

/** Returns what a run had used at its newest retry; undefined if it had none. */
export function usedBefore({ retries }: { readonly retries?: readonly RunRetry[] | undefined }): UsedByEnd | undefined {
  return retries?.at(-1)?.used;
}

/** The longest text that a record keeps of a trace. */
export const TRACE_CHARS = 1_024;

/** Returns whether a stored value is what a record keeps of a trace. */
export function isTrace(value: unknown): boolean {
  return typeof value === 'string' && value.length <= TRACE_CHARS;
}

/** Returns the id in what a record keeps of a trace; undefined where that is no `traceparent`. */
export function traceIdIn(trace: string | undefined): string | undefined {
  return trace && /^00-[0-9a-f]{32}-/.test(trace) ? trace.slice(3, 35) : undefined;
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
  /** The whole steps that it has. */
  readonly iteration: number;
  readonly openStep?: OpenStep;
}

/** Returns the attempt before this one; undefined if the record knows none. */
export function previousAttempt({ attempt, updatedAt, iteration, openStep }: Recorded): PreviousAttempt | undefined {
  if (!attempt) return undefined;
  const { number, from, ended: how = 'lost', told } = attempt;
  const begun = how === 'lost' ? (openStep?.calls ?? []).filter(({ state }) => state === 'started') : [];
  const step = iteration + 1;
  const calls = begun.map(({ callId, name, effect, attempt }) => ({ callId, name, effect, step, attempt }));
  return { attempt: number, how, from, at: Math.max(from, updatedAt), calls, ...(told ? { told } : {}) };
}

/**
 * Returns what a record says of its newest attempt once a process has told that it is lost. One that is not lost stays as it is.
 * @param code why that process parked the run
 */
export function toldAttempt({ attempt }: Pick<Recorded, 'attempt'>, code: string): Pick<Recorded, 'attempt'> {
  if (!attempt || attempt.ended !== undefined) return {};
  const told = code === 'OUTCOME_UNKNOWN' ? 'unknown' : (attempt.told ?? 'lost');
  return { attempt: { ...attempt, told } };
}

/** Returns a progress whose attempt ends so. */
export function endAttempt<P extends { readonly attempt?: RunAttempt }>(progress: P, ended: RunAttempt['ended']): P {
  return progress.attempt && ended ? { ...progress, attempt: { ...progress.attempt, ended } } : progress;
}
