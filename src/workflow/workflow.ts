import type { AnyStateMachine, InputFrom, OutputFrom } from 'xstate';
import type { Agent } from '../agent/agent.ts';
import { hiddenField } from '../values/hidden.ts';

/** A workflow: a machine of your own, each run of which is durable. */
export interface Workflow<Machine extends AnyStateMachine = AnyStateMachine> {
  readonly id: string;
  readonly version: string;
  readonly machine: Machine;
}

/** The input of a workflow's machine. */
export type WorkflowInput<W> = W extends Workflow<infer Machine> ? InputFrom<Machine> : never;
/** The output of a workflow's machine. */
export type WorkflowOutput<W> = W extends Workflow<infer Machine> ? OutputFrom<Machine> : never;

const agents = hiddenField<Agent>();

/** Makes a workflow of the definition of its runs. */
export function workflowOf<Machine extends AnyStateMachine>(
  { id, version, machine }: Workflow<Machine>,
  agent: Agent,
): Workflow<Machine> {
  const workflow = { id, version, machine };
  agents.put(workflow, agent);
  return Object.freeze(workflow);
}

/** Returns the definition of a workflow's runs; undefined for a value that is no workflow. */
export function agentOfWorkflow(given: unknown): Agent | undefined {
  return typeof given === 'object' && given !== null ? agents.get(given) : undefined;
}
