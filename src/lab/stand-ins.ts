import { childToolName } from '../agent/names.ts';
import { type Agent, defineAgent, defineSkill, type Model, type Skill, type Tool } from '../index.ts';
import { toolboxOf } from '../tool/toolbox.ts';
import { readProperty } from '../values/error-data.ts';

/** What a double gets of its call. */
export interface DoubledCall {
  readonly id: string;
  readonly name: string;
}

/** Answers the calls of a tool in a replay, in the tool's place. */
export type Double = (input: never, call: DoubledCall) => unknown;

/** How the parts of an agent are replaced. */
interface StandInOptions {
  readonly agents: readonly Agent[];
  readonly skills: readonly Skill[];
  readonly doubles: Readonly<Record<string, Double>>;
  /** Whether a tool that only reads may run. */
  readonly mayRead: boolean;
  /** The model of the agent and of its phases, in the place of their own; absent = they ask their own. */
  readonly model?: Model;
  /** Whether the recorded run was retried; absent = it was not. */
  readonly isRetried?: boolean;
}

/** An agent that can do nothing: its own tools cannot be reached from it. */
export interface StandIn {
  readonly agent: Agent;
  /** What it may call: its model reads their descriptions, and none of them has a tool or a model. */
  readonly agents: readonly Agent[];
  readonly skills: readonly Skill[];
  /** The names of the tools that are calls of agents and skills. */
  readonly children: ReadonlySet<string>;
}

/**
 * Makes the agent of a replay: the instructions, phases, schemas and limits of this one, and of its tools the names, the
 * descriptions and the checks of their input.
 * @throws {TypeError} for a tool that it has by name only, and for a double of a tool that it does not have
 */
export function standInFor(agent: Agent, options: StandInOptions): StandIn {
  const { model, doubles, isRetried } = options;
  const tools = [...toolsOf(agent).values()].map((tool) => withoutEffect(tool, options));
  const { subAgents = [], skills = [] } = agent;
  const children = new Set([
    ...subAgents.map((id) => childToolName('agent', id)),
    ...skills.map((name) => childToolName('skill', name)),
  ]);
  const names = [...tools.map(({ name }) => name), ...children];
  const stranger = Object.keys(doubles).find((name) => !names.includes(name));
  if (stranger !== undefined)
    throw new TypeError(
      `replay: tools.${stranger} doubles a tool that agent ${agent.id} does not have; it has ${names.join(', ') || 'none'}`,
    );
  const phases = agent.phases?.map(({ model: own, ...phase }) => ({
    ...phase,
    ...(own && !model ? { model: own } : {}),
    // The steps that the recorded run kept at a retry are those of its recording.
    ...(isRetried ? { recovery: 'step' as const } : {}),
  }));
  const asked = model ? { model, maxRuntimeMs: Number.POSITIVE_INFINITY } : {};
  return {
    agent: { ...agent, ...asked, tools, ...(phases ? { phases } : {}) },
    agents: subAgents.map((id) => agentNamed(id, options.agents)),
    skills: skills.map((name) => skillNamed(name, options.skills)),
    children,
  };
}

function toolsOf({ id, tools }: Agent): ReadonlyMap<string, Tool> {
  try {
    return toolboxOf(tools, []).tools;
  } catch (error) {
    if (readProperty(error, 'code') !== 'UNKNOWN_TOOL') throw error;
    throw new TypeError(`replay: agent ${id} names a tool of an executor: give replay the agent with the tool itself`, {
      cause: error,
    });
  }
}

/** The new object has no way to the old `execute`, unless the tool only reads and may run. */
function withoutEffect(tool: Tool, { doubles, mayRead }: StandInOptions): Tool {
  const { name, description, input, effect, timeoutMs, concurrency } = tool;
  const double = Object.hasOwn(doubles, name) ? doubles[name] : undefined;
  const live = mayRead && effect === 'read' ? tool.execute : undefined;
  return Object.freeze({
    ...{ name, description, input, effect, allowUrls: true },
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(concurrency === undefined ? {} : { concurrency }),
    execute: double
      ? (value: unknown, { callId }: { callId: string }) => double(value as never, { id: callId, name })
      : (live ?? refuse),
  });
}

function refuse(): never {
  throw new TypeError('a replay makes no call');
}

function agentNamed(id: string, agents: readonly Agent[]): Agent {
  const known = agents.find((agent) => agent.id === id);
  const { name = id, description } = known ?? {};
  return defineAgent({
    id,
    name,
    instructions: '',
    model: mute,
    ...(description === undefined ? {} : { description }),
  });
}

function skillNamed(name: string, skills: readonly Skill[]): Skill {
  const known = skills.find((skill) => skill.name === name);
  if (known) return { ...known, instructions: '', tools: [], model: mute };
  return defineSkill({ name, description: '', input: { type: 'object' }, instructions: '', model: mute });
}

/** The model of what must not be asked. */
export const mute: Model = {
  specificationVersion: 'v4',
  provider: 'pawl',
  modelId: 'recording',
  supportedUrls: {},
  doGenerate: refuse,
  doStream: refuse,
};
