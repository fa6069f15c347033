import { change } from './change.ts';
import type { JsonValue } from './json.ts';
import type { AssistantMessage, ToolMessage, ToolOutput } from './message.ts';

/**
 * What repeating a call would do. `read`: nothing; `idempotent`: the receiver recognises the idempotency key; `once`: the
 * effect would happen twice, so an unrecorded call is never repeated.
 */
export type ToolEffect = 'read' | 'idempotent' | 'once';

/** One line of the ledger: a call of the open step. */
export interface OpenCall {
  readonly callId: string;
  readonly name: string;
  readonly input: JsonValue;
  readonly effect: ToolEffect;
  readonly state: 'planned' | 'started' | 'done';
  /** How often the call was started, over all processes. */
  readonly attempt: number;
  readonly result?: ToolOutput;
}

/** The one step whose tool calls have not all answered: the model's message and the ledger of its calls. */
export interface OpenStep {
  readonly message: AssistantMessage;
  readonly calls: readonly OpenCall[];
}

export const outcomeUnknown =
  'Outcome unknown: the process died while this call was running. It may or may not have taken effect; it is not repeated.';

/**
 * What becomes of the ledger after a crash: results stay, planned calls are still to run, calls that were under way run
 * again when that is harmless. Of a `once` call nobody knows whether it took effect: it is answered, never repeated.
 */
export function recoverOpenStep(step: OpenStep): OpenStep {
  return change(step, ({ calls }) => {
    for (const call of calls.filter(({ state }) => state === 'started')) {
      call.state = call.effect === 'once' ? 'done' : 'planned';
      if (call.effect === 'once') call.result = { type: 'error-text', value: outcomeUnknown };
    }
  });
}

/** Whether a crash left a `once` call of which nobody knows the outcome. */
export function hasUnknownOutcome(step: OpenStep): boolean {
  return step.calls.some((call) => call.state === 'started' && call.effect === 'once');
}

/**
 * The planned calls that may start now.
 * @param limits how many calls may run side by side, in all and of one tool
 */
export function callsToStart(
  step: OpenStep,
  limits: { readonly all: number; readonly ofTool: (name: string) => number },
): readonly OpenCall[] {
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

export function startCalls(step: OpenStep, callIds: ReadonlySet<string>): OpenStep {
  const calls = step.calls.map(
    (call): OpenCall => (callIds.has(call.callId) ? { ...call, state: 'started', attempt: call.attempt + 1 } : call),
  );
  return { ...step, calls };
}

/** Takes back calls that were to start and never did: their intent had not landed when the run stopped. */
export function withdrawCalls(step: OpenStep, callIds: ReadonlySet<string>): OpenStep {
  return change(step, ({ calls }) => {
    for (const call of calls.filter(({ callId, state }) => callIds.has(callId) && state === 'started')) {
      call.state = 'planned';
      call.attempt -= 1;
    }
  });
}

/** Records a result. A result for a call that is not under way (a late one) changes nothing. */
export function recordResult(step: OpenStep, callId: string, result: ToolOutput): OpenStep {
  const calls = step.calls.map(
    (call): OpenCall =>
      call.callId === callId && call.state === 'started' ? { ...call, state: 'done', result } : call,
  );
  return { ...step, calls };
}

export function isAllAnswered(step: OpenStep): boolean {
  return step.calls.every((call) => call.state === 'done');
}

/** The tool message of a step whose calls have all answered: results in call order. */
export function resultsMessage(step: OpenStep): ToolMessage {
  const content = step.calls.map((call) => ({
    type: 'tool-result' as const,
    toolCallId: call.callId,
    toolName: call.name,
    output: call.result ?? { type: 'error-text' as const, value: outcomeUnknown },
  }));
  return { role: 'tool', content };
}
