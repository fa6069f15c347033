import type { AnyStateMachine, EventFrom, InputFrom, OutputFrom } from 'xstate';
import type { Agent } from '../agent/agent.ts';
import type { WorkflowInvocation } from '../run/request.ts';
import type { MachineEvent } from '../run/workflow/event.ts';
import type { GivenOf } from '../tool/schema.ts';
import { hiddenField } from '../values/hidden.ts';
import type { JsonObject } from '../values/json.ts';

/** What a workflow takes: the input of its start, and its events. */
export interface WorkflowTakes {
  readonly input: unknown;
  readonly event: unknown;
}

/** A workflow: a machine of your own, each run of which is durable. */
export interface Workflow<
  Machine extends AnyStateMachine = AnyStateMachine,
  Takes extends WorkflowTakes = AnyStateMachine extends Machine
    ? WorkflowTakes
    : { readonly input: InputFrom<Machine>; readonly event: TypedEvent<Machine> },
> {
  readonly id: string;
  readonly version: string;
  readonly machine: Machine;
  /** Never set: the types of what it takes. */
  readonly '~takes'?: Takes;
}

/** The input of a workflow: of its schema, or of its machine. */
export type WorkflowInput<W> = W extends { readonly '~takes'?: infer Takes extends WorkflowTakes }
  ? Takes['input']
  : never;
/** How a run of a workflow is asked for: with an `input`, where its schema or its machine needs one. */
export type WorkflowStart<W> = WorkflowInvocation<WorkflowInput<W>> &
  (undefined extends WorkflowInput<W> ? unknown : { readonly input: WorkflowInput<W> });
/** The output of a workflow's machine. */
export type WorkflowOutput<W> = W extends { readonly machine: infer Machine extends AnyStateMachine }
  ? OutputFrom<Machine>
  : never;
/** The events that a workflow takes: as its schemas say, and as its machine's types say of the others. */
export type WorkflowEventOf<W> = W extends { readonly '~takes'?: infer Takes extends WorkflowTakes }
  ? Takes['event']
  : never;

/** A machine without types of its own takes any event. */
export type TypedEvent<Machine extends AnyStateMachine> = string extends EventFrom<Machine>['type']
  ? MachineEvent
  : EventFrom<Machine>;

/** What a workflow takes by its schemas. */
export interface TakesBySchema<Machine extends AnyStateMachine, Input, Events> {
  readonly input: Input extends undefined ? InputFrom<Machine> : GivenOf<Input, JsonObject>;
  readonly event: EventBySchema<Machine, Events>;
}

/** The events of a workflow with schemas: of those types as the schemas say, of the others as its machine says. */
export type EventBySchema<Machine extends AnyStateMachine, Events> = [keyof Events] extends [never]
  ? TypedEvent<Machine>
  :
      | { [Type in keyof Events & string]: { readonly type: Type } & GivenOf<Events[Type], JsonObject> }[keyof Events &
          string]
      | OtherEvent<Machine, keyof Events>;

/** The events of a machine for which there is no schema. Of a machine without types the schemas alone say what it takes. */
export type OtherEvent<Machine extends AnyStateMachine, Known> = string extends EventFrom<Machine>['type']
  ? never
  : Exclude<EventFrom<Machine>, { readonly type: Known }>;

const agents = hiddenField<Agent>();

/** Makes a workflow of the definition of its runs. */
export function workflowOf<W extends Workflow>({ id, version, machine }: W, agent: Agent): W {
  const workflow = { id, version, machine };
  agents.put(workflow, agent);
  return Object.freeze(workflow) as unknown as W;
}

/** Returns the definition of a workflow's runs; undefined for a value that is no workflow. */
export function agentOfWorkflow(given: unknown): Agent | undefined {
  return typeof given === 'object' && given !== null ? agents.get(given) : undefined;
}
