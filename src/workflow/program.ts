import type { AnyStateMachine } from 'xstate';
import type { Agent } from '../agent/agent.ts';
import { childToolName } from '../agent/names.ts';
import { type OpenCall, outcomeUnknown } from '../run/open-step.ts';
import { isTypeOf } from '../run/workflow/event.ts';
import { stateJson } from '../run/workflow/state.ts';
import type { Tool } from '../tool/define-tool.ts';
import { readSchema, type ToolInput } from '../tool/schema.ts';
import { unfitInput } from '../tool/unfit.ts';
import { sha256 } from '../values/digest.ts';
import { toErrorData } from '../values/error-data.ts';
import { isObject, type JsonObject, type JsonValue } from '../values/json.ts';
import { kindOf } from '../values/known-options.ts';
import type { ToolOutput } from '../values/message.ts';
import { checkMachine, sendsToParent } from './check-machine.ts';
import { type BegunActor, Kernel, type MachineKernel } from './kernel.ts';
import { type StepCall, stepCallOf } from './step.ts';

/** What runs of a workflow need of its definition. */
export interface Program {
  readonly machine: AnyStateMachine;
  readonly kernel: MachineKernel;
  /** The calls of the machine by the names of their actors. */
  readonly calls: ReadonlyMap<string, StepCall>;
  readonly tools: readonly Tool[];
  readonly agents: readonly Agent[];
  /** Whether the machine is seen to send events to its parent. */
  readonly sendsToParent: boolean;
  /** A hash of the structure of the machine. */
  readonly hash: string;
  readonly migrate?: MigrateWorkflow | undefined;
  /** The form of its input; absent = any JSON. */
  readonly input?: ToolInput | undefined;
  /** The forms of events without their type. Events of other types are not checked. */
  readonly events: ReadonlyMap<string, ToolInput>;
}

/** What a definition may have besides its machine. */
interface ProgramOptions {
  readonly migrate?: MigrateWorkflow | undefined;
  readonly input?: unknown;
  readonly events?: unknown;
}

/** The part of a snapshot that a migration may change: an immer draft. */
export interface MigratedSnapshot {
  /** The active states, as XState writes them. */
  value: JsonValue;
  context: JsonValue;
}

/** Brings the snapshot of a run of another version into a state of this one, by changes of the draft. @param from.from its version */
export type MigrateWorkflow = (snapshot: MigratedSnapshot, from: { readonly from: string }) => void;

const programs = new WeakMap<Agent, Program>();

/** Returns the program of a workflow's runs; undefined for an agent. */
export function programOf(agent: Agent): Program | undefined {
  return programs.get(agent);
}

/** Returns whether an agent is the definition of a workflow's runs. */
export function isWorkflow(agent: Agent): boolean {
  return programs.has(agent);
}

/** Makes an agent the definition of a workflow's runs. */
export function keepProgram(agent: Agent, program: Program): void {
  programs.set(agent, program);
}

/**
 * Reads a machine, and the calls that it may make.
 * @throws {TypeError} for an actor whose effect is not declared, and for what a stored run cannot keep
 */
export function programFrom(of: string, machine: AnyStateMachine, options: ProgramOptions): Program {
  const calls = new Map<string, StepCall>();
  for (const [src, logic] of Object.entries(machine.implementations.actors)) calls.set(src, stepCallOf(of, src, logic));
  checkMachine(of, machine, calls);
  const kinds = [...calls.values()];
  const agents = kinds.flatMap((call) => (call.kind === 'agent' ? [call.agent] : []));
  const tools = new Map(kinds.flatMap((call) => (call.kind === 'agent' ? [] : [[call.tool.name, call.tool] as const])));
  return {
    machine,
    kernel: new Kernel(machine, [...calls.keys()]),
    calls,
    tools: [...tools.values()],
    agents: [...new Set(agents)],
    sendsToParent: sendsToParent(machine),
    migrate: options.migrate,
    input: options.input === undefined ? undefined : schemaFor(`${of}: input`, options.input),
    events: eventSchemas(of, machine, options.events ?? {}),
    hash: sha256(JSON.stringify(structureOf(machine.root))).slice(0, 16),
  };
}

function schemaFor(of: string, schema: unknown): ToolInput {
  try {
    return readSchema(schema, of);
  } catch (cause) {
    throw new TypeError(`${of}: ${toErrorData(cause).message}`, { cause });
  }
}

/** Reads the schemas of events. A type that no state takes is a typing error of the definition. @throws {TypeError} */
function eventSchemas(of: string, machine: AnyStateMachine, given: unknown): ReadonlyMap<string, ToolInput> {
  if (!isObject(given))
    throw new TypeError(`${of}: events must be an object of schemas by event type, not ${kindOf(given)}`);
  const descriptors = machine.events.map(String);
  return new Map(
    Object.entries(given).map(([type, schema]) => {
      if (!descriptors.some((descriptor) => isTypeOf(descriptor, type)))
        throw new TypeError(
          `${of}: events has a schema for ${JSON.stringify(type)}, and no state of the machine takes it`,
        );
      return [type, schemaFor(`${of}: events.${type}`, schema)];
    }),
  );
}

type StateNode = AnyStateMachine['root'];

/** What a stored snapshot depends on: the states, their kinds, and what each begins. */
function structureOf({ key, type, invoke, after, states }: StateNode): unknown {
  const invokes = invoke.map(({ id, src }) => [id, src]);
  const delays = after.map(({ delay }) => (typeof delay === 'function' ? '' : delay));
  return [key, type, invokes, delays, Object.values(states).map(structureOf)];
}

/** Returns the id of a call: the number of its transition, and its place in it. It is unique in the run. */
export function callIdOf(transition: number, place: number): string {
  return `${transition}.${place}`;
}

/** Makes the line of the ledger for an actor that a transition begins. @throws for an input that no record can hold */
export function callFor(
  program: Program,
  { id, src, input, isSpawned }: BegunActor & { readonly isSpawned: boolean },
  callId: string,
): OpenCall {
  const call = program.calls.get(src);
  if (!call) throw new TypeError(`actor ${id}: ${src} is not an actor of this workflow`);
  const isAgent = call.kind === 'agent';
  const name = isAgent ? childToolName('agent', call.agent.id) : call.tool.name;
  const effect = isAgent ? ('idempotent' as const) : call.tool.effect;
  const isWait = call.kind === 'wait' ? { isWait: true as const } : {};
  const given = stateJson(input ?? null, `the input of ${id}`);
  const marks = { ...isWait, ...(isSpawned ? { isSpawned } : {}) };
  return { callId, name, effect, input: given, state: 'planned', attempt: 0, ...marks };
}

/** Returns the event that tells a machine how a call ended, as XState names it. */
export function resultEvent(actorId: string, call: OpenCall): JsonObject {
  const { result = { type: 'error-text', value: outcomeUnknown } } = call;
  const read = readOutput(
    result.type === 'error-text' ? { ...result, value: toldOf(actorId, call, result.value) } : result,
  );
  return 'error' in read
    ? { type: `xstate.error.actor.${actorId}`, error: read.error, actorId }
    : { type: `xstate.done.actor.${actorId}`, output: read.output, actorId };
}

/** A model knows a tool by its name, and a machine an actor by its id. */
function toldOf(actorId: string, { name, input }: OpenCall, text: string): string {
  const unfit = unfitInput(name, '');
  if (!text.startsWith(unfit)) return text;
  const given = input === null ? 'invoke.input gave none' : 'which invoke.input gave';
  const needed = name.startsWith(childToolName('agent', '')) ? ' (an agent takes { prompt: string })' : '';
  return `the input of actor ${actorId}, ${given}, does not fit${needed}: ${text.slice(unfit.length)}`;
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
