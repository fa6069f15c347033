import type { AnyStateMachine } from 'xstate';
import { type Agent, agentFrom, defineAgent } from '../agent/agent.ts';
import type { Tool } from '../tool/define-tool.ts';
import { checkKeys, kindOf } from '../values/known-options.ts';
import { keepProgram, type MigrateWorkflow, type Program, programFrom, programOf } from './program.ts';
import { agentOfWorkflow, type Workflow, workflowOf } from './workflow.ts';

/** The definition of a workflow. */
export interface WorkflowDefinition<Machine extends AnyStateMachine> {
  readonly id: string;
  /** Default '1'. Stored with each run. */
  readonly version?: string;
  readonly machine: Machine;
  /**
   * Called once with the snapshot of a run of another version, an immer draft: it changes `value` and `context` into a state of
   * this machine. What the new states invoke, and their timers, begin then. A throw parks the run, with MIGRATION_FAILED.
   * @example (snapshot, { from }) => { if (from === '1' && snapshot.value === 'asking') snapshot.value = 'deciding'; }
   */
  readonly migrate?: MigrateWorkflow;
}

/** Most calls of a run that are open at the same time. */
const MAX_CALLS = 1_000;

/** A workflow may work for as long as it needs; timers of Node end at 24.8 days. */
const MAX_WORK_MS = 2 ** 31 - 1;

/**
 * Defines a workflow: the runs of a machine made with XState's `setup`. Each transition is stored before the calls that it asks for
 * begin, so a crash repeats none that was recorded.
 * @throws {TypeError} for an actor that was not made by `step`, `ask` or `waitForSignal`, and for parts of a machine that no
 *   record can hold
 * @example
 * const refund = defineWorkflow({
 *   id: 'refund',
 *   machine: setup({ actors: { pay: step(payTool) } }).createMachine({
 *     initial: 'paying',
 *     states: { paying: { invoke: { src: 'pay', input: { cents: 700 }, onDone: 'paid' } }, paid: { type: 'final' } },
 *   }),
 * });
 */
export function defineWorkflow<Machine extends AnyStateMachine>(
  definition: WorkflowDefinition<Machine>,
): Workflow<Machine> {
  checkKeys(definition, { id: true, version: true, machine: true, migrate: true }, { of: 'defineWorkflow' });
  const { id, version = '1', machine, migrate } = definition;
  if (migrate !== undefined && typeof migrate !== 'function')
    throw new TypeError(`workflow ${String(id)}: migrate must be a function`);
  if (typeof id !== 'string' || id === '') throw new TypeError('a workflow needs an id: a string that is not empty');
  const of = `workflow ${id}`;
  if (typeof machine?.getInitialSnapshot !== 'function' || typeof machine.provide !== 'function')
    throw new TypeError(`${of} needs a machine made with setup(…).createMachine(…), not ${kindOf(machine)}`);
  const program = programFrom(of, machine, migrate);
  const agent = defineAgent({
    ...{ id, version, instructions: '', tools: program.tools },
    ...{ toolConcurrency: MAX_CALLS, maxRuntimeMs: MAX_WORK_MS },
  });
  return madeOf({ id, version, machine }, agent, program);
}

function madeOf<Machine extends AnyStateMachine>(
  of: Workflow<Machine>,
  agent: Agent,
  program: Program,
): Workflow<Machine> {
  keepProgram(agent, program);
  return workflowOf(of, agent);
}

/** Returns a workflow whose calls go through other tools of the same names: for tests. */
export function withTools<W extends Workflow>(workflow: W, change: (tool: Tool) => Tool): W {
  const agent = agentOfWorkflow(workflow) as Agent;
  const program = programOf(agent) as Program;
  const changed = Object.freeze({ ...agent, tools: program.tools.map(change) });
  return madeOf(workflow, agentFrom(changed, 'a workflow needs'), program) as W;
}
