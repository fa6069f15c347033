import { fingerprint } from '../values/digest.ts';
import { ToolLoopError } from '../values/errors.ts';
import { canonicalJson, isCount, isObject } from '../values/json.ts';
import { isToolError } from '../values/tool-output.ts';
import type { OpenCall, OpenStep } from './open-step.ts';

/** The limits of one run. Times in milliseconds. */
export interface Limits {
  /** Model turns, the answering one included, over the whole life of the run. */
  readonly maxSteps: number;
  /** Working time over all processes; the time between a crash and the resume does not count. */
  readonly maxRuntimeMs: number;
  readonly maxConsecutiveToolErrors: number;
  readonly maxSameToolCallRepeats: number;
  /** Tool calls of one message that run at the same time. */
  readonly toolConcurrency: number;
}

/** Most levels of agents below a run: what looks through a tree, as a cancel does, looks no deeper. */
export const MAX_LEVELS = 32;

/** The limits of a run that is still resolving: it may do nothing. */
export const unresolvedLimits: Limits = Object.freeze({
  maxSteps: 0,
  maxRuntimeMs: 0,
  maxConsecutiveToolErrors: 0,
  maxSameToolCallRepeats: 0,
  toolConcurrency: 0,
});

/** The counters of the guards from step to step; part of the record. */
export interface GuardCounters {
  /** Steps in a row in which every call failed. */
  readonly failedSteps: number;
  /** For each call of the last step (hash of name and canonical input): the number of steps in a row with it. */
  readonly repeats: { readonly [callHash: string]: number };
  /** How many answers were sent back because they did not fit the output schema. */
  readonly repairs?: number;
}

/** The counters of a run that has made no step. */
export const noCounters: GuardCounters = Object.freeze({ failedSteps: 0, repeats: Object.freeze({}) });

function hashOf(call: OpenCall): string {
  return fingerprint(`${call.name}\n${canonicalJson(call.input)}`);
}

/**
 * Returns the counters after a step whose calls have all answered.
 * @param refuses the run is a fork that refuses calls with effects: those are no repetition, since the model may only ask again
 */
export function countStep(counters: GuardCounters, step: OpenStep, refuses = false): GuardCounters {
  // A denied call did not fail: a step of denied calls counts neither as a failed step nor as a good one.
  const made = step.calls.filter(({ result }) => result?.type !== 'execution-denied');
  const allFailed = made.every(({ result }) => result !== undefined && isToolError(result));
  const failedSteps =
    made.length === 0 && step.calls.length > 0 ? counters.failedSteps : allFailed ? counters.failedSteps + 1 : 0;
  // Without a prototype: V8 gives each new key of an ordinary object a hidden class of its own, and these keys are hashes.
  const repeats: Record<string, number> = Object.create(null);
  // Two equal calls of one step count once.
  for (const hash of (refuses ? made : step.calls).map(hashOf)) repeats[hash] = (counters.repeats[hash] ?? 0) + 1;
  const { repairs } = counters;
  return { failedSteps, repeats, ...(repairs ? { repairs } : {}) };
}

/** Returns the error that ends a run whose model calls failing tools again and again or repeats one call, or undefined. */
export function toolLoopOf(counters: GuardCounters, limits: Limits): ToolLoopError | undefined {
  if (counters.failedSteps >= limits.maxConsecutiveToolErrors) {
    return new ToolLoopError(
      `every tool call of ${counters.failedSteps} steps in a row failed (maxConsecutiveToolErrors)`,
    );
  }
  const most = Math.max(0, ...Object.values(counters.repeats));
  if (most < limits.maxSameToolCallRepeats) return undefined;
  return new ToolLoopError(`the same tool call was made in ${most} steps in a row (maxSameToolCallRepeats)`);
}

/** Returns whether a stored value is GuardCounters. */
export function isCounters(value: unknown): boolean {
  if (!isObject(value) || !isCount(value.failedSteps) || !isCounts(value.repeats)) return false;
  return value.repairs === undefined || isCount(value.repairs);
}

function isCounts(value: unknown): boolean {
  return isObject(value) && Object.values(value).every(isCount);
}
