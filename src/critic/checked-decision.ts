import type { CriticAnswer } from '../../machines/critic.ts';
import { isObject } from '../values/json.ts';

const MAX_NUDGE = 4_000;
const MAX_REASON = 500;
const MAX_RAISE = 1_000;

/** The result of a question: the decision, and whether part of the answer was invalid. */
export type CriticJudgement = Pick<CriticAnswer, 'decision' | 'hasFailed'>;

/** The judgement for an escalator that failed: it decides nothing. */
export const failedJudgement: CriticJudgement = Object.freeze({ decision: Object.freeze({}), hasFailed: true });

/** Checks an escalator's answer and returns its valid part. Never throws: invalid parts are ignored. */
export function judgementOf(answer: unknown): CriticJudgement {
  try {
    if (answer === null || answer === undefined) return { decision: {}, hasFailed: false };
    if (!isObject(answer)) return failedJudgement;
    const { nudge, extendByMs, raiseStepsBy, kill, reason } = answer;
    if (kill === true) return { decision: { kill: textOf(reason, MAX_REASON) ?? 'no reason given' }, hasFailed: false };
    const decision = {
      ...present('nudge', textOf(nudge, MAX_NUDGE)),
      ...present('extendByMs', isNumberAboveZero(extendByMs) ? extendByMs : undefined),
      ...present('raiseStepsBy', raiseOf(raiseStepsBy)),
    };
    const asked = [nudge, extendByMs, raiseStepsBy, kill].filter((field) => field !== undefined && field !== null);
    return { decision, hasFailed: asked.length > Object.keys(decision).length };
  } catch {
    return failedJudgement;
  }
}

function present<K extends string, V>(key: K, value: V | undefined): { [key in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { [key in K]: V });
}

function textOf(value: unknown, most: number): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value.slice(0, most) : undefined;
}

function isNumberAboveZero(value: unknown): value is number {
  return typeof value === 'number' && value > 0 && Number.isFinite(value);
}

function raiseOf(value: unknown): number | undefined {
  return isNumberAboveZero(value) && Number.isInteger(value) ? Math.min(value, MAX_RAISE) : undefined;
}
