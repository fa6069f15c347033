import { canonicalJson, type JsonValue } from '../values/json.ts';
import { type Message, textOf, toolCallsOf, toolResultsOf } from '../values/message.ts';
import { letGo } from '../values/thenable.ts';
import type { EscalatorDecision, EscalatorState } from './escalator.ts';

/** The rules of the ready escalator, with defaults filled in. */
export interface Rules {
  readonly idleNudges: number;
  readonly nudge: string | ((state: EscalatorState) => string);
  readonly killAfterAlarms: number;
  readonly lookAgainMs: number;
  /** How many equal turns are no progress; 0 = not checked. */
  readonly alikeSteps: number;
  readonly raiseStepsBy: number;
  readonly maxRaisedSteps: number;
}

/** The message to the model of a run that is idle, if the host gives no other. */
export const defaultNudge =
  'You have worked for a long time without a result. Say what you still need, or answer with what you have.';

/**
 * Decides by the rules of the ready escalator: nudge, wait, raise the step limit, or kill. Pure: the same state gets the
 * same decision.
 */
export function decideByRules(state: EscalatorState, rules: Rules): EscalatorDecision {
  const { alarmsInStep, idleMs, reason, tail } = state;
  if (reason === 'idle' && alarmsInStep >= rules.killAfterAlarms) {
    return {
      kill: true,
      reason: `no sign of life for ${Math.round(idleMs)} ms, at alarm ${alarmsInStep} of this step`,
    };
  }
  if (rules.alikeSteps > 0 && isWithoutProgress(tail, rules.alikeSteps)) return unstick(state, rules);
  if (reason === 'steps') return moreSteps(state, rules, rules.raiseStepsBy);
  const nudge = alarmsInStep <= rules.idleNudges ? { nudge: nudgeFor(state, rules) } : {};
  return { ...nudge, extendByMs: rules.lookAgainMs };
}

/** Nudges the run once. If as many further turns are alike, the run is ended. */
function unstick(state: EscalatorState, rules: Rules): EscalatorDecision {
  const { iterations, nudgedAtStep, reason } = state;
  const room =
    reason === 'idle'
      ? { extendByMs: rules.lookAgainMs }
      : moreSteps(state, rules, Math.min(rules.raiseStepsBy, rules.alikeSteps));
  if (nudgedAtStep === undefined) {
    const nudge = `Your last ${rules.alikeSteps} turns were alike. Do something else, or answer with what you have.`;
    return { nudge, ...room };
  }
  if (iterations - nudgedAtStep < rules.alikeSteps) return room;
  return { kill: true, reason: `no progress: the last ${rules.alikeSteps} turns were alike, in spite of a nudge` };
}

function moreSteps({ raisedSteps }: EscalatorState, rules: Rules, wanted: number): EscalatorDecision {
  const by = Math.min(wanted, rules.maxRaisedSteps - raisedSteps);
  return by > 0 ? { raiseStepsBy: by } : {};
}

/** If the host's function throws, the default text is used: the rest of the decision must not be lost. */
function nudgeFor(state: EscalatorState, { nudge }: Rules): string {
  try {
    const text = typeof nudge === 'function' ? nudge(state) : nudge;
    if (typeof text === 'string' && text.trim() !== '') return text;
    letGo(text);
  } catch {
    // The default text is used.
  }
  return defaultNudge;
}

/** One model turn and its tool results, reduced to comparable texts. */
interface Turn {
  readonly text: string;
  readonly calls: string;
  /** The tools and their results, without their inputs. */
  readonly results: string;
}

/**
 * Whether the last turns were all alike: the same text, the same calls, or the same tools with the same results.
 * @param steps how many turns are compared; false if there are fewer
 */
function isWithoutProgress(tail: readonly Message[], steps: number): boolean {
  const turns = turnsOf(tail).slice(-steps);
  if (turns.length < steps) return false;
  return (['text', 'calls', 'results'] as const).some((aspect) => {
    const [first] = turns;
    return first?.[aspect] !== '' && turns.every((turn) => turn[aspect] === first?.[aspect]);
  });
}

function turnsOf(tail: readonly Message[]): Turn[] {
  return tail.flatMap((message, i) => {
    if (message.role !== 'assistant') return [];
    const calls = toolCallsOf(message);
    const next = tail[i + 1];
    const results = next ? toolResultsOf(next) : [];
    return {
      text: textOf(message).trim(),
      calls: calls.map(({ toolName, input }) => `${toolName} ${canonicalJson(input as JsonValue)}`).join('\n'),
      results: results.map(({ toolName, output }) => `${toolName} ${canonicalJson(output as JsonValue)}`).join('\n'),
    };
  });
}
