import { childToolName } from '../agent/names.ts';
import { type OpenCall, outcomeUnknown } from '../run/open-step.ts';
import { frozenJson, isObject, type JsonObject, type JsonValue } from '../values/json.ts';
import type { ToolOutput } from '../values/message.ts';
import type { BegunActor } from './kernel.ts';
import type { Program } from './program.ts';

/** Returns the id of a call: the number of its transition, and its place in it. It is unique in the run. */
export function callIdOf(transition: number, place: number): string {
  return `${transition}.${place}`;
}

/** Makes the line of the ledger for an actor that a transition begins. @throws for an input that no record can hold */
export function callFor(program: Program, { id, src, input }: BegunActor, callId: string): OpenCall {
  const call = program.calls.get(src);
  if (!call) throw new TypeError(`actor ${id}: ${src} is not an actor of this workflow`);
  const isAgent = call.kind === 'agent';
  const name = isAgent ? childToolName('agent', call.agent.id) : call.tool.name;
  const effect = isAgent ? ('idempotent' as const) : call.tool.effect;
  return { callId, name, effect, input: frozenJson(input ?? null, `the input of ${id}`), state: 'planned', attempt: 0 };
}

/** Returns the event that tells a machine how a call ended, as XState names it. */
export function resultEvent(actorId: string, { result }: OpenCall): JsonObject {
  const read = readOutput(result ?? { type: 'error-text', value: outcomeUnknown });
  return 'error' in read
    ? { type: `xstate.error.actor.${actorId}`, error: read.error, actorId }
    : { type: `xstate.done.actor.${actorId}`, output: read.output, actorId };
}

type Read = { readonly output: JsonValue } | { readonly error: JsonObject };

function readOutput(result: ToolOutput): Read {
  switch (result.type) {
    case 'error-json':
      return { error: errorOf(result.value as JsonValue) };
    case 'error-text':
      return { error: { name: 'Error', code: codeOf(result.value), message: result.value } };
    case 'execution-denied':
      return { error: { name: 'Error', code: 'DENIED', message: result.reason ?? 'a person denied this call' } };
    default:
      return { output: result.value as unknown as JsonValue };
  }
}

function errorOf(value: JsonValue): JsonObject {
  return isObject(value)
    ? (value as JsonObject)
    : { name: 'Error', code: 'TOOL_FAILED', message: JSON.stringify(value) };
}

/** The ledger says this of a `once` call of which no process knows whether it took effect. */
const UNKNOWN = 'Outcome unknown: ';

function codeOf(text: string): string {
  return text.startsWith(UNKNOWN) ? 'OUTCOME_UNKNOWN' : 'TOOL_FAILED';
}
