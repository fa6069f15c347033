import { isObject, type JsonValue } from '../values/json.ts';
import {
  type AssistantMessage,
  encodeMessage,
  isMessage,
  type ToolMessage,
  type ToolOutput,
} from '../values/message.ts';
import type { FieldRedactor } from '../values/redact.ts';
import { change } from './change.ts';
import { isOpenCall, Ledger, ledgerOf, type OpenCall, type PlaceLimits } from './ledger.ts';
import { redactAllowed } from './waits/wait.ts';

export type { OpenCall, ToolEffect, WaitEnd } from './ledger.ts';

/** The one step with unanswered tool calls: the model's message and the ledger of its calls. */
export interface OpenStep {
  readonly message: AssistantMessage;
  readonly calls: readonly OpenCall[];
}

const UNKNOWN = 'Outcome unknown: ';

/** What the model reads of a `once` call during which the process died, or that got no answer and parked its run. */
export const outcomeUnknown = `${UNKNOWN}the process died, or no answer came, while this call was running. It may or may not have taken effect; it is not repeated.`;

/** Returns what the model reads of a `once` call that began and got no answer. */
export function unknownOutcomeOf(why: string): string {
  return `${UNKNOWN}no answer came after this call was sent (${why}). It may or may not have taken effect; find that out before you call again.`;
}

/**
 * Returns the open step as a new process continues it after a crash: results stay, planned calls still have to run, running
 * calls are repeated if that is harmless. It is unknown whether a running `once` call took effect: it is answered, never
 * repeated.
 */
export function recoverOpenStep({ message, calls }: OpenStep): OpenStep {
  const recovered = change(calls, (draft) => {
    for (const call of draft.filter(({ state }) => state === 'started')) {
      call.state = call.effect === 'once' ? 'done' : 'planned';
      if (call.effect === 'once') call.result = { type: 'error-text', value: outcomeUnknown };
    }
  });
  return stepOf(message, recovered);
}

/**
 * Returns the positions of the calls that have changed. A call object never changes in place: a changed call is another
 * object.
 */
export function changedCalls(before: readonly OpenCall[], now: readonly OpenCall[]): number[] {
  const changed: number[] = [];
  for (let i = 0; i < now.length; i++) if (now[i] !== before[i]) changed.push(i);
  return changed;
}

/** Returns whether a crash left a `once` call with an unknown outcome. */
export function hasUnknownOutcome(step: OpenStep): boolean {
  return step.calls.some((call) => call.state === 'started' && call.effect === 'once');
}

/** Up to this many calls, a search costs less than a ledger. */
const FEW = 16;

/** Makes an open step of a model's message and its calls. */
export function stepOf(message: AssistantMessage, calls: readonly OpenCall[]): OpenStep {
  return calls.length <= FEW ? { message, calls } : new Ledger(calls).showIn(message);
}

function ledgerFor(step: OpenStep): Ledger | undefined {
  return ledgerOf(step) ?? (step.calls.length <= FEW ? undefined : new Ledger(step.calls));
}

/** Returns the planned calls that may start now. */
export function callsToStart(step: OpenStep, limits: PlaceLimits): readonly OpenCall[] {
  const ledger = ledgerFor(step);
  if (ledger) return ledger.startable(limits);
  const running = step.calls.filter((call) => call.state === 'started');
  const starting: OpenCall[] = [];
  for (const call of step.calls) {
    if (running.length >= limits.all) break;
    const isPlanned = call.state === 'planned';
    if (!isPlanned || running.filter(({ name }) => name === call.name).length >= limits.ofTool(call.name)) continue;
    running.push(call);
    starting.push(call);
  }
  return starting;
}

/** Returns the step after these calls have started. */
export function markStarted(step: OpenStep, callIds: ReadonlySet<string>): OpenStep {
  return changeCalls(step, callIds, (call) => ({ ...call, state: 'started', attempt: call.attempt + 1 }));
}

/** Finds a call of the open step by its id. */
export function callOf(step: OpenStep, callId: string): OpenCall | undefined {
  const ledger = ledgerFor(step);
  return ledger ? ledger.call(callId) : step.calls.find((call) => call.callId === callId);
}

/** Returns the input with which a call runs: the model's own, or the one that a person put in its place. */
export function inputOf({ input, allowed }: Pick<OpenCall, 'input' | 'allowed'>): JsonValue {
  return allowed?.input === undefined ? input : allowed.input;
}

/** Returns the place of a call in its message; -1 for a call of another step. */
export function positionOf(step: OpenStep, callId: string): number {
  return ledgerFor(step)?.positionOf(callId) ?? step.calls.findIndex((call) => call.callId === callId);
}

/** Returns the step after a change of some of its calls. */
export function changeCalls(
  step: OpenStep,
  callIds: ReadonlySet<string>,
  change: (call: OpenCall) => OpenCall,
): OpenStep {
  const ledger = ledgerFor(step);
  if (!ledger) return { ...step, calls: step.calls.map((call) => (callIds.has(call.callId) ? change(call) : call)) };
  for (const callId of callIds) {
    const call = ledger.call(callId);
    const next = call && change(call);
    if (next && next !== call) ledger.change(next);
  }
  return ledger.showIn(step.message);
}

/** Withdraws calls of a step that should start and never did: their intent was not stored when the run stopped. */
export function markUnbegun(step: OpenStep, callIds: ReadonlySet<string>): OpenStep {
  const withdrawn = change(step.calls, (draft) => {
    for (const call of draft.filter(({ callId, state }) => callIds.has(callId) && state === 'started')) {
      call.state = 'planned';
      call.attempt -= 1;
    }
  });
  return withdrawn === step.calls ? step : stepOf(step.message, withdrawn);
}

/** Records the result of a call in the open step. A result for a call that is not running (a late one) changes nothing. */
export function recordCallResult(step: OpenStep, callId: string, result: ToolOutput): OpenStep {
  const callIds = new Set([callId]);
  return changeCalls(step, callIds, (call) => (call.state === 'started' ? { ...call, state: 'done', result } : call));
}

/** Returns the step of a workflow after one of its calls has changed: a call that has ended stands after those that ended before. */
export function endedLast(step: OpenStep, callId: string): OpenStep {
  const call = callOf(step, callId);
  if (call?.state !== 'done' || step.calls.at(-1) === call) return step;
  return stepOf(step.message, [...step.calls.filter((each) => each !== call), call]);
}

/** Returns whether all calls of the step have answered. */
export function isAllAnswered(step: OpenStep): boolean {
  return ledgerFor(step)?.isAllDone ?? step.calls.every((call) => call.state === 'done');
}

/** Returns whether no call of the step runs or may start: each has answered, or waits. */
export function isIdle(step: OpenStep): boolean {
  return ledgerFor(step)?.isIdle ?? step.calls.every(({ state }) => state === 'done' || state === 'waiting');
}

/** Returns whether this call is the only unanswered one. */
export function isLastUnanswered(step: OpenStep, callId: string): boolean {
  const isIt = (call: OpenCall) => call.state === (call.callId === callId ? 'started' : 'done');
  return ledgerFor(step)?.isLast(callId) ?? step.calls.every(isIt);
}

/** Returns the tool message of a step whose calls have all answered: results in call order. */
export function resultsMessage(step: OpenStep): ToolMessage {
  const content = step.calls.map((call) => ({
    type: 'tool-result' as const,
    toolCallId: call.callId,
    toolName: call.name,
    output: call.result ?? { type: 'error-text' as const, value: outcomeUnknown },
  }));
  return { role: 'tool', content };
}

/** Returns whether a stored value is an OpenStep. */
export function isOpenStep(value: unknown): boolean {
  return isObject(value) && isMessage(value.message) && Array.isArray(value.calls) && value.calls.every(isOpenCall);
}

/** A line of the ledger without its texts has at most this many UTF-16 units of JSON. */
const LINE_UNITS = 128;

/** Returns a bound for the UTF-16 units of a step's JSON: the texts of the calls are in the message and in the ledger. */
export function sizeOfStep({ message, calls }: OpenStep): number {
  if (calls.length > FEW) return sizeOfMany(message, calls);
  if (calls.some((call) => call.result)) return Number.POSITIVE_INFINITY;
  return 2 * encodeMessage(message).length + LINE_UNITS * calls.length;
}

/** For messages with many calls: the calls that were measured last, and the units of the message and of them. */
const measured = new WeakMap<object, { readonly calls: readonly OpenCall[]; readonly units: number }>();

/** Measures the calls that have changed since the last time. */
function sizeOfMany(message: AssistantMessage, calls: readonly OpenCall[]): number {
  const found = measured.get(message);
  const last = found?.calls.length === calls.length ? found : undefined;
  let units = last?.units ?? encodeMessage(message).length + LINE_UNITS;
  for (const at of last ? changedCalls(last.calls, calls) : calls.keys()) {
    units += unitsOf(calls[at]) - (last ? unitsOf(last.calls[at]) : 0);
  }
  measured.set(message, { calls, units });
  return units;
}

const unitsOf = (call: OpenCall | undefined): number => JSON.stringify(call ?? null).length + 1;

const inputLost =
  'The process stopped before this call had ended, and its arguments are not in the record: they were redacted. ' +
  'It is unknown whether the call took effect. Make the call again if that is harmless.';

/** Returns a step without its secrets. */
export function redactStep(step: OpenStep, by: FieldRedactor): OpenStep {
  return by.once(step, ({ message, calls }) => ({
    message: by.message(message) as OpenStep['message'],
    calls: redactCalls(calls, by),
  }));
}

/** The calls that a redactor got last. */
const lastRedacted = new WeakMap<FieldRedactor, { readonly calls: Calls; readonly redacted: Calls }>();

type Calls = OpenStep['calls'];

/** A step may have thousands of calls, and is redacted as many times: unchanged calls are not looked up. */
function redactCalls(calls: Calls, by: FieldRedactor): Calls {
  const last = lastRedacted.get(by);
  const redacted = calls.map((call, i) => {
    const known = last?.calls[i] === call ? last.redacted[i] : undefined;
    return known ?? by.once(call, () => redactCall(call, by));
  });
  lastRedacted.set(by, { calls, redacted });
  return redacted;
}

/**
 * A call whose input was changed must not be made with it: the next process reports it to the model instead. A running `once`
 * call keeps its state: its outcome counts as unknown.
 */
function redactCall({ result, allowed, answers, ...call }: OpenCall, by: FieldRedactor): OpenCall {
  const input = by.json(call.input);
  const redacted = {
    ...call,
    input,
    ...(result ? { result: by.output(result) } : {}),
    ...(allowed ? { allowed: redactAllowed(allowed, by) } : {}),
    ...(answers ? { answers: by.json(answers as never) } : {}),
  };
  const isToRun =
    call.state === 'planned' || call.state === 'waiting' || (call.state === 'started' && call.effect !== 'once');
  if (input === call.input || !isToRun) return redacted;
  return { ...redacted, state: 'done', result: { type: 'error-text', value: inputLost } };
}
