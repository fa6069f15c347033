import type { OlderModel } from '../model/adapt-model.ts';
import type { Model } from '../model/port.ts';
import { modelOf } from '../model/tier.ts';
import { type Clock, systemClock } from '../values/clock.ts';
import { checkKeys, type KnownKeys } from '../values/known-options.ts';
import { opinionOf } from './ask-model.ts';
import type { Escalator, EscalatorState } from './escalator.ts';
import { decideByRules, defaultNudge, type Rules } from './rules.ts';

/** All fields are optional. Times in ms. */
export interface EscalatorOptions {
  /** How many idle alarms of one step lead to a nudge; default 2. */
  readonly idleNudges?: number;
  /** The text of a nudge for an idle run. */
  readonly nudge?: string | ((state: EscalatorState) => string);
  /** The number of idle alarms in one step that kills the run; default 3. A completed step resets the count. */
  readonly killAfterAlarms?: number;
  /** An idle run that was not killed is checked again after this time; default 60 s. */
  readonly lookAgainMs?: number;
  /**
   * This many turns (2 to 10) with the same text, the same calls, or the same tools with the same results are no progress.
   * They lead to one nudge. As many further turns of this kind end the run. Checked when the critic asks. Absent = never.
   */
  readonly noProgress?: { readonly steps: number };
  /** A run that has used up its steps but makes progress gets this many more. Absent = the limit stays. */
  readonly raiseStepsBy?: number;
  /** The most additional steps in all; default 10 times `raiseStepsBy`. */
  readonly maxRaisedSteps?: number;
  /** Asked if the rules do not end the run. Its answer is used within the limits above; an invalid answer is ignored. */
  readonly model?: Model | OlderModel;
  /** The time limit of the model; default 15 s. Keep it below the critic's `askTimeoutMs`. */
  readonly modelTimeoutMs?: number;
  /** For the time limit of the model and its retries; default: the clock of this machine. */
  readonly clock?: Clock;
  /** For the jitter of its retries: a number from 0 to 1; default Math.random. */
  readonly random?: () => number;
}

const optionKeys: KnownKeys<EscalatorOptions> = {
  idleNudges: true,
  nudge: true,
  killAfterAlarms: true,
  lookAgainMs: true,
  noProgress: true,
  raiseStepsBy: true,
  maxRaisedSteps: true,
  model: true,
  modelTimeoutMs: true,
  clock: true,
  random: true,
};

/** The model cannot extend a silence by more than this many idle periods. */
const MAX_LOOKS = 60;

/**
 * A ready escalator: it nudges a silent run first and kills it later, and it detects a run that makes no progress. If the
 * host allows it, a healthy run gets more steps.
 *
 * @throws {TypeError} if an option is invalid
 * @example
 * createCritic({ escalator: createEscalator({ noProgress: { steps: 3 }, raiseStepsBy: 10, model: cheapModel }) });
 */
export function createEscalator(options: EscalatorOptions = {}): Escalator {
  checkKeys(options, optionKeys, { of: 'createEscalator' });
  const rules = rulesOf(options);
  const { modelTimeoutMs: timeoutMs = 15_000, clock = systemClock, random = Math.random } = options;
  checkAbove(0, { modelTimeoutMs: timeoutMs });
  if (options.model === undefined) return (state) => decideByRules(state, rules);
  const model = modelOf(options.model, 'the model of the escalator');
  return async (state, signal) => {
    const ruled = decideByRules(state, rules);
    if (ruled.kill) return ruled;
    const maxRaise =
      state.reason === 'steps' ? Math.min(rules.raiseStepsBy, rules.maxRaisedSteps - state.raisedSteps) : 0;
    const maxExtendMs = rules.lookAgainMs * MAX_LOOKS;
    const opinion = await opinionOf(model, state, { maxRaise, maxExtendMs, timeoutMs, clock, random, signal });
    if (!opinion || opinion.kill) return opinion ?? ruled;
    return state.reason === 'idle' ? { extendByMs: rules.lookAgainMs, ...opinion } : opinion;
  };
}

/** The rules of an escalator, from the options of createEscalator. @throws {TypeError} */
function rulesOf(options: EscalatorOptions): Rules {
  const { idleNudges = 2, nudge = defaultNudge, killAfterAlarms = 3, lookAgainMs = 60_000, noProgress } = options;
  const { raiseStepsBy = 0, maxRaisedSteps = raiseStepsBy * 10 } = options;
  if (noProgress !== undefined) checkKeys(noProgress, { steps: true }, { of: 'createEscalator', at: 'noProgress' });
  const alikeSteps = noProgress?.steps ?? 0;
  checkAbove(-1, { idleNudges, raiseStepsBy, maxRaisedSteps });
  checkAbove(0, { killAfterAlarms, lookAgainMs });
  if (noProgress !== undefined && !(Number.isInteger(alikeSteps) && alikeSteps >= 2 && alikeSteps <= 10))
    throw new TypeError(`noProgress.steps must be a whole number from 2 to 10, not ${String(alikeSteps)}`);
  if (typeof nudge !== 'string' && typeof nudge !== 'function')
    throw new TypeError(`nudge must be a text, or a function that gives one, not ${typeof nudge}`);
  return { idleNudges, nudge, killAfterAlarms, lookAgainMs, alikeSteps, raiseStepsBy, maxRaisedSteps };
}

function checkAbove(least: number, numbers: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(numbers)) {
    if (typeof value !== 'number' || !Number.isInteger(value) || value <= least)
      throw new TypeError(`${name} must be a whole number of at least ${least + 1}, not ${String(value)}`);
  }
}
