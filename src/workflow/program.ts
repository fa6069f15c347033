import type { AnyStateMachine } from 'xstate';
import type { Agent } from '../agent/agent.ts';
import type { Tool } from '../tool/define-tool.ts';
import { sha256 } from '../values/digest.ts';
import { Kernel } from './kernel.ts';
import { type StepCall, stepCallOf } from './step.ts';

/** What runs of a workflow need of its definition. */
export interface Program {
  readonly machine: AnyStateMachine;
  readonly kernel: Kernel;
  /** The calls of the machine by the names of their actors. */
  readonly calls: ReadonlyMap<string, StepCall>;
  readonly tools: readonly Tool[];
  readonly agents: readonly Agent[];
  /** A hash of the structure of the machine. */
  readonly hash: string;
}

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
export function programFrom(of: string, machine: AnyStateMachine): Program {
  const calls = new Map<string, StepCall>();
  for (const [src, logic] of Object.entries(machine.implementations.actors)) calls.set(src, stepCallOf(of, src, logic));
  checkStates(of, machine, calls);
  const kinds = [...calls.values()];
  const agents = kinds.flatMap((call) => (call.kind === 'agent' ? [call.agent] : []));
  const tools = new Map(kinds.flatMap((call) => (call.kind === 'agent' ? [] : [[call.tool.name, call.tool] as const])));
  return {
    machine,
    kernel: new Kernel(machine, [...calls.keys()]),
    calls,
    tools: [...tools.values()],
    agents: [...new Set(agents)],
    hash: sha256(JSON.stringify(structureOf(machine.root))).slice(0, 16),
  };
}

type StateNode = AnyStateMachine['root'];

/** Checks what each state invokes. @throws {TypeError} */
function checkStates(of: string, machine: AnyStateMachine, calls: ReadonlyMap<string, StepCall>): void {
  for (const node of nodesOf(machine.root)) {
    const at = `${of}: state ${node.path.join('.') || machine.id}`;
    for (const invoked of node.invoke) {
      const { src, systemId } = invoked as { src: unknown; systemId?: string; onSnapshot?: unknown };
      if (systemId !== undefined)
        throw new TypeError(`${at}: systemId is not possible in a workflow: use the id of the actor`);
      if ((invoked as { onSnapshot?: unknown }).onSnapshot !== undefined)
        throw new TypeError(`${at}: onSnapshot is not possible in a workflow: a call has a result, and no snapshots`);
      if (typeof src !== 'string' || !calls.has(src))
        throw new TypeError(
          `${at} invokes ${typeof src === 'string' ? JSON.stringify(src) : 'inline logic'}: declare it in setup({ actors }) with step, ask or waitForSignal`,
        );
    }
  }
}

function nodesOf(node: StateNode): readonly StateNode[] {
  return [node, ...Object.values(node.states).flatMap(nodesOf)];
}

/** What a stored snapshot depends on: the states, their kinds, and what each begins. */
function structureOf({ key, type, invoke, after, states }: StateNode): unknown {
  const invokes = invoke.map(({ id, src }) => [id, src]);
  const delays = after.map(({ delay }) => (typeof delay === 'function' ? '' : delay));
  return [key, type, invokes, delays, Object.values(states).map(structureOf)];
}
