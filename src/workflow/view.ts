import type { AnyMachineSnapshot, AnyStateMachine } from 'xstate';
import type { OpenCall } from '../run/open-step.ts';
import type { Progress } from '../run/progress.ts';
import { isAtRest } from '../run/waits/model-waits.ts';
import { waitsOf } from '../run/waits/wait-rules.ts';
import type { MachineEvent } from '../run/workflow/event.ts';
import { restText, type WorkflowState } from '../run/workflow/state.ts';
import { toErrorData } from '../values/error-data.ts';
import { EventNotTakenError } from '../values/errors.ts';
import type { JsonObject, JsonValue } from '../values/json.ts';
import { outlineOf, type StateOutline } from './outline.ts';
import type { Program } from './program.ts';

/** What is known of the machine of a workflow's run. */
export interface WorkflowView {
  /** The value of its state, as XState has it; null before its first transition. */
  readonly state: JsonValue;
  /** The open timers: `dueAt` is wall clock, ms; absent = the timer is due. */
  readonly timers: readonly { readonly sendId: string; readonly dueAt?: number }[];
  /** The open calls, by the ids of their actors. */
  readonly calls: readonly (Pick<OpenCall, 'callId' | 'name' | 'state'> & { readonly actorId: string })[];
  /**
   * The types of events that the state takes, guards not asked; a wildcard is as the machine writes it. This and what follows is
   * absent where the executor does not know the workflow, or where its machine has no such state.
   */
  readonly takes?: readonly string[];
  /** The JSON Schemas of events without their type, by type; of those for which the workflow has a schema. */
  readonly eventSchemas?: { readonly [type: string]: JsonObject };
  /** The tags of the active states. */
  readonly tags?: readonly string[];
  /** The `meta` of the active states, by their ids. */
  readonly meta?: { readonly [stateId: string]: unknown };
  /** The machine itself: its states and their transitions. */
  readonly machine?: StateOutline;
}

type Fields = Pick<Progress, 'workflow' | 'openStep' | 'waiting'>;

/**
 * Returns what is known of the machine of a workflow's run.
 * @param known its program, where this process has it; and whether the run is over: then its machine takes nothing
 */
export function workflowView(
  fields: Fields,
  { program, isOver }: { readonly program: Program | undefined; readonly isOver: boolean },
): WorkflowView {
  const { workflow, openStep } = fields;
  const stored = {
    state: workflow?.snapshot.value ?? null,
    timers: workflow ? timersOf(workflow, fields) : [],
    calls: Object.entries(workflow?.calls ?? {}).flatMap(([actorId, callId]) => {
      const call = openStep?.calls.find((each) => each.callId === callId);
      return call ? [{ actorId, callId, name: call.name, state: call.state }] : [];
    }),
  };
  const now = workflow && program && restored(program, workflow);
  return now && program ? { ...stored, ...viewOf(now, isOver), ...schemasOf(program) } : stored;
}

function timersOf({ timers }: WorkflowState, fields: Fields): WorkflowView['timers'] {
  const dueAt = new Map(waitsOf(fields).map((wait) => [wait.id, wait.dueAt]));
  return timers.map(({ sendId, waitId }) => {
    const at = dueAt.get(waitId);
    return { sendId, ...(at === undefined ? {} : { dueAt: at }) };
  });
}

/** A machine that has changed may not have the state any more. */
function restored({ kernel }: Program, { snapshot }: WorkflowState): AnyMachineSnapshot | undefined {
  try {
    return kernel.restore(snapshot);
  } catch {
    return undefined;
  }
}

function viewOf(now: AnyMachineSnapshot, isOver: boolean) {
  return {
    takes: isOver ? [] : takenIn(now),
    tags: [...now.tags],
    meta: now.getMeta() as { readonly [stateId: string]: unknown },
    machine: outlineOf(now.machine),
  };
}

function schemasOf({ events }: Program): Pick<WorkflowView, 'eventSchemas'> {
  if (events.size === 0) return {};
  return { eventSchemas: Object.fromEntries([...events].map(([type, { jsonSchema }]) => [type, jsonSchema])) };
}

/** A workflow that rests, and waits for events alone. */
interface Rest {
  /** Where it is, and what continues it. */
  readonly text: string;
  /** No event leads out of its state. */
  readonly isDeadEnd: boolean;
}

/** Returns where a workflow rests that waits for events alone; undefined: something else continues it, or it is an agent's run. */
export function restOf(program: Program | undefined, fields: Fields & Pick<Progress, 'outcome'>): Rest | undefined {
  const { workflow, waiting } = fields;
  if (!workflow || waiting?.waits.length || !isAtRest(fields)) return undefined;
  const now = program && restored(program, workflow);
  const takes = now && takenIn(now);
  return { text: restText(workflow.snapshot.value ?? null, takes), isDeadEnd: takes?.length === 0 };
}

type StateNode = AnyStateMachine['root'];

/** The types of events that a snapshot takes, those of the innermost states first. A final one takes none. */
function takenIn({ status, machine, _nodes }: AnyMachineSnapshot): readonly string[] {
  return status === 'active' ? [...typesIn(machine.root, new Set(_nodes)).taken] : [];
}

/** An inner state that forbids a type hides it from the states around it. */
function typesIn(
  node: StateNode,
  active: ReadonlySet<StateNode>,
): { readonly taken: ReadonlySet<string>; readonly forbidden: ReadonlySet<string> } {
  const inner = Object.values(node.states).flatMap((each) => (active.has(each) ? [typesIn(each, active)] : []));
  const taken = new Set(inner.flatMap((each) => [...each.taken]));
  const forbidden = new Set(inner.flatMap((each) => [...each.forbidden]));
  const own = node.config.on as { readonly [type: string]: unknown } | undefined;
  for (const [type, transition] of Object.entries(own ?? {})) {
    if (type.startsWith('xstate.') || forbidden.has(type)) continue;
    if (transition === undefined) forbidden.add(type);
    else taken.add(type);
  }
  return { taken, forbidden };
}

/**
 * Checks that the state of a workflow takes an event, as XState decides: its guards are asked, and nothing else of it runs.
 * @throws {EventNotTakenError} with the types that it takes
 */
export function checkTaken(program: Program, { workflow }: Pick<Progress, 'workflow'>, event: MachineEvent): void {
  const now = workflow && restored(program, workflow);
  const refusal = now && refusalOf(now, event);
  if (now && refusal === undefined) return;
  const taken = now ? takenIn(now) : [];
  const instead = refusal || (taken.length === 0 ? 'it takes no event' : `it takes ${taken.join(', ')}`);
  const at = now ? `in state ${JSON.stringify(now.value)}` : 'without a state that its machine has';
  throw new EventNotTakenError(`the workflow ${at} does not take ${event.type}: ${instead}`, { taken });
}

/** Returns why a snapshot does not take an event: by a guard, or '' for another reason; undefined: it takes it. */
function refusalOf(now: AnyMachineSnapshot, event: MachineEvent): string | undefined {
  try {
    if (now.status === 'active' && now.machine.getTransitionData(now, event).length > 0) return undefined;
    return takenIn(now).includes(event.type) ? 'its guard refuses it' : '';
  } catch (error) {
    return toErrorData(error).message;
  }
}
