import type { AnyStateMachine } from 'xstate';
import { type Agent, agentFrom, defineAgent } from '../agent/agent.ts';
import type { Tool } from '../tool/define-tool.ts';
import { checkId, checkKeys, type KnownKeys, kindOf } from '../values/known-options.ts';
import type { MachineKernel } from './kernel.ts';
import { keepProgram, type MigrateWorkflow, programFrom, programOf } from './program.ts';
import { agentOfWorkflow, type TakesBySchema, type Workflow, workflowOf } from './workflow.ts';

/** The definition of a workflow. */
export interface WorkflowDefinition<Machine extends AnyStateMachine, Input = undefined, Events = object> {
  /**
   * Names the workflow in records: `recover` finds it by this id. No agent of the executor has it. 1 to 200 characters.
   * @example id: 'refund'
   */
  readonly id: string;
  /**
   * Stored with each run; `migrate` gets that of the record.
   * @default '1'
   * @example version: '2'
   */
  readonly version?: string;
  /**
   * The statechart, made with XState's `setup`. Its actors are made by `step`, `ask` and `waitForSignal`.
   * @example machine: setup({}).createMachine({ initial: 'done', states: { done: { type: 'final' } } })
   */
  readonly machine: Machine;
  /**
   * The form of the input: any schema that a tool's `input` takes. The machine gets what the schema returns, for example with
   * defaults. A start with another input fails with INPUT_INVALID.
   * @default none: it is not checked
   * @example input: z.object({ orderId: z.string() })
   */
  readonly input?: Input;
  /**
   * The form of events, by their types: a schema for the fields besides `type`. The machine gets what the schema returns. An event
   * that does not fit is refused where it is sent, with EVENT_INVALID.
   * @default none: they are not checked
   * @example events: { cancel: z.object({ by: z.string() }) }
   */
  readonly events?: Events;
  /**
   * Called once with the snapshot of a run of another version, an immer draft: it changes `value` and `context` into a state of
   * this machine. What the new states invoke, and their timers, begin then. A throw parks the run, with MIGRATION_FAILED.
   * @default none: the run is parked
   * @example migrate: (snapshot, { from }) => void (snapshot.value = from === '1' ? 'deciding' : snapshot.value)
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
 * @throws {TypeError} for an actor that was not made by `step`, `ask` or `waitForSignal`, for parts of a machine that no record
 *   can hold, and for a schema of an event that no state takes
 * @example
 * const refund = defineWorkflow({
 *   id: 'refund',
 *   machine: setup({ actors: { pay: step(payTool) } }).createMachine({
 *     initial: 'paying',
 *     states: { paying: { invoke: { src: 'pay', input: { cents: 700 }, onDone: 'paid' } }, paid: { type: 'final' } },
 *   }),
 * });
 */
export function defineWorkflow<Machine extends AnyStateMachine, Input = undefined, const Events = object>(
  definition: WorkflowDefinition<Machine, Input, Events>,
): Workflow<Machine, TakesBySchema<Machine, Input, Events>> {
  checkKeys(definition, definitionKeys, { of: 'defineWorkflow' });
  const { id, version = '1', machine, migrate, input, events } = definition;
  if (migrate !== undefined && typeof migrate !== 'function')
    throw new TypeError(`workflow ${String(id)}: migrate must be a function`);
  checkId('a workflow', id);
  const of = `workflow ${id}`;
  if (typeof machine?.getInitialSnapshot !== 'function' || typeof machine.provide !== 'function')
    throw new TypeError(`${of} needs a machine made with setup(…).createMachine(…), not ${kindOf(machine)}`);
  const program = programFrom(of, machine, { migrate, input, events });
  const agent = defineAgent({
    ...{ id, version, instructions: '', tools: program.tools },
    ...{ toolConcurrency: MAX_CALLS, maxRuntimeMs: MAX_WORK_MS },
  });
  keepProgram(agent, program);
  return workflowOf<Workflow>({ id, version, machine }, agent) as Workflow<
    Machine,
    TakesBySchema<Machine, Input, Events>
  >;
}

const definitionKeys: KnownKeys<WorkflowDefinition<AnyStateMachine, unknown, unknown>> = {
  id: true,
  version: true,
  machine: true,
  input: true,
  events: true,
  migrate: true,
};

/** What a test puts in the place of the parts of a workflow. */
interface RewiredParts {
  readonly tool: (tool: Tool) => Tool;
  /** In the place of an agent that it calls; absent = the agent itself. Workflows that it calls get the same tools and agents. */
  readonly agent?: (agent: Agent) => Agent;
  /** In the place of its machine as a function. */
  readonly kernel?: (kernel: MachineKernel) => MachineKernel;
}

/** Returns a workflow with other tools and agents of the same names: for tests. */
export function rewireWorkflow<W extends Workflow>(workflow: W, parts: RewiredParts): W {
  const agent = agentOfWorkflow(workflow) as Agent;
  return workflowOf(workflow, rewireAgent(agent, parts));
}

function rewireAgent(agent: Agent, { kernel, ...parts }: RewiredParts): Agent {
  const program = programOf(agent);
  if (!program) return parts.agent?.(agent) ?? agent;
  const changed = Object.freeze({ ...agent, tools: program.tools.map(parts.tool) });
  const rewired = agentFrom(changed, 'a workflow needs');
  const agents = program.agents.map((called) => rewireAgent(called, parts));
  keepProgram(rewired, { ...program, agents, kernel: kernel?.(program.kernel) ?? program.kernel });
  return rewired;
}
