import type { RunDefinition } from '../run/fields.ts';
import { checkSettings, type ModelSettings, settingNames } from '../run/model-settings.ts';
import { type DataOf, readSchema, type ToolInput } from '../tool/schema.ts';
import { readEntries, type ToolEntries } from '../tool/toolbox.ts';
import { sha256 } from '../values/digest.ts';
import { readProperty } from '../values/error-data.ts';
import { type KnownKeys, readOptions } from '../values/known-options.ts';
import { checkNames } from './names.ts';
import { type Phase, readPhases } from './phase.ts';

/** What a run is a run of. Ids and versions are the host's; `recover` finds agents by id. */
export interface AgentDefinition<Schema = unknown> {
  readonly id: string;
  /** Default: the id. */
  readonly name?: string;
  /** Default '1'. Stored with each run, so that an operator sees which definition began it. */
  readonly version?: string;
  /** The host's name for a class of models; default: the executor's `defaults.modelTier`. */
  readonly modelTier?: string;
  /** The system prompt, word for word. An agent with phases needs none: each phase has its own. */
  readonly instructions?: string;
  readonly tools?: ToolEntries;
  readonly maxIterations?: number;
  /** Working time over all processes, ms. */
  readonly maxRuntimeMs?: number;
  /** Tool calls of one message that run side by side; default 8. */
  readonly toolConcurrency?: number;
  /** Stages that follow one another, each a loop of its own; the output of the last is the run's. Absent = one loop. */
  readonly phases?: readonly Phase[];
  /** Agents of the executor's palette that this one may put to work: tools named `agent__<id>`. */
  readonly subAgents?: readonly string[];
  /** Skills of the palette: tools named `skill__<name>`. */
  readonly skills?: readonly string[];
  /** What it is good for: what other agents are told of it when they may put it to work. */
  readonly description?: string;
  /**
   * The form of the answer: a schema of the same kinds as a tool's input. The answer is read as JSON and checked; one
   * that does not fit gets one turn of repair. Of a pipeline it is the last phase's. The result has it as `data`.
   */
  readonly output?: Schema;
  /** How its models are called: temperature, output tokens, tool choice, provider options. A phase may overrule each. */
  readonly settings?: ModelSettings;
}

/** An agent as runs use it. `Data` is what its `output` schema gives: `undefined` without one. */
export interface Agent<Data = unknown> extends AgentDefinition {
  readonly name: string;
  readonly version: string;
  readonly instructions: string;
  /** `output`, read. */
  readonly outputSchema?: ToolInput<Data>;
}

const agentKeys: KnownKeys<Agent> = {
  id: true,
  name: true,
  version: true,
  modelTier: true,
  instructions: true,
  tools: true,
  maxIterations: true,
  maxRuntimeMs: true,
  toolConcurrency: true,
  phases: true,
  subAgents: true,
  skills: true,
  description: true,
  output: true,
  outputSchema: true,
  settings: true,
};

/** Agents that were read here: frozen, and of plain data as far as they are ours. */
const known = new WeakSet<object>();
/** Frozen objects of other origin, by what was read of them. One that may change is read at each start. */
const readings = new WeakMap<object, Agent>();

/**
 * Defines an agent. Its definition is read once: what becomes of the object afterwards changes nothing.
 * @throws {TypeError} when a field is not what it should be, for an unknown key, and for a phase that names a tool which the
 *   agent does not have, or in its instructions something else than `Query` and earlier phases
 * @example const agent = defineAgent({ id: 'greeter', instructions: 'Greet warmly.', tools: [lookup] })
 */
export function defineAgent<const Schema = undefined>(definition: AgentDefinition<Schema>): Agent<DataOf<Schema>> {
  const agent = agentOf(fieldsOf(definition));
  checkNames(agent);
  return agent as Agent<DataOf<Schema>>;
}

/**
 * An agent as its runs have it. One of another copy of the package, or spread from another agent, is read once, into a
 * frozen copy; what its phases name is not checked then, because a stored run may be waiting for it.
 * @param refusal begins the message, for example `start needs`
 * @throws {TypeError} when it is not an agent @throws what a getter of it throws
 */
export function agentFrom(given: unknown, refusal: string): Agent {
  if (typeof given === 'object' && given !== null) {
    if (known.has(given)) return given as Agent;
    const read = readings.get(given);
    if (read) return read;
    const fields = fieldsOf(given as Agent);
    if ([fields.id, fields.name, fields.instructions].every((text) => typeof text === 'string')) {
      const agent = agentOf(fields);
      if (Object.isFrozen(given)) readings.set(given, agent);
      return agent;
    }
  }
  throw new TypeError(`${refusal} an agent made with defineAgent`);
}

function fieldsOf(definition: AgentDefinition): AgentDefinition {
  const id = readProperty(definition, 'id');
  const of = typeof id === 'string' ? `agent ${id}` : 'agent';
  return readOptions(definition, agentKeys as KnownKeys<AgentDefinition>, { of, elsewhere: settingNames() });
}

function agentOf(given: AgentDefinition): Agent {
  const { id } = given;
  if (typeof id !== 'string' || id === '') throw new TypeError('an agent needs an id: a string that is not empty');
  const of = `agent ${id}`;
  const phases = given.phases === undefined ? undefined : readPhases(of, given.phases);
  checkTexts(of, given, phases !== undefined && phases.length > 0);
  checkLimits(of, given);
  const agent = Object.freeze({
    ...withoutSchema(given),
    name: given.name ?? id,
    version: given.version ?? '1',
    instructions: given.instructions ?? '',
    ...(phases && { phases }),
    ...(given.tools !== undefined && { tools: readEntries(of, given.tools) }),
    ...(given.subAgents && { subAgents: readNames(of, 'subAgents', given.subAgents) }),
    ...(given.skills && { skills: readNames(of, 'skills', given.skills) }),
    ...(given.settings !== undefined && { settings: checkSettings(given.settings, { of, at: 'settings' }) }),
    ...(given.output !== undefined && { outputSchema: readSchema(given.output, `${id} (output)`) }),
  });
  known.add(agent);
  return agent;
}

/** It is read from `output` again: of an agent that was spread with another `output` it would be the old one. */
function withoutSchema(given: AgentDefinition & { readonly outputSchema?: unknown }): AgentDefinition {
  const { outputSchema: _, ...rest } = given;
  return rest;
}

function checkTexts(of: string, given: AgentDefinition, isPipeline: boolean): void {
  const { instructions } = given;
  if (typeof instructions !== 'string' && !(isPipeline && instructions === undefined))
    throw new TypeError(`${of} needs instructions: a string`);
  for (const field of ['name', 'version', 'modelTier', 'description'] as const) {
    if (typeof (given[field] ?? '') !== 'string') throw new TypeError(`${of}: ${field} must be a string`);
  }
}

function checkLimits(of: string, { maxIterations, maxRuntimeMs, toolConcurrency }: AgentDefinition): void {
  for (const [name, value] of Object.entries({ maxIterations, maxRuntimeMs, toolConcurrency })) {
    if (value !== undefined && !(typeof value === 'number' && value > 0))
      throw new TypeError(`${of}: ${name} must be a number above 0, not ${value}`);
  }
}

function readNames(of: string, field: string, given: readonly string[]): readonly string[] {
  if (!Array.isArray(given) || given.some((name) => typeof name !== 'string' || name === ''))
    throw new TypeError(`${of}: ${field} must be a list of names`);
  return Object.freeze([...given]);
}

const definitions = new WeakMap<Agent, RunDefinition>();

/** What a record remembers of its agent's definition: to see later that it changed. */
export function definitionOf(agent: Agent): RunDefinition {
  const found = definitions.get(agent);
  if (found) return found;
  const text = JSON.stringify([agent.id, agent.instructions, agent.modelTier ?? '', agent.phases ?? []]);
  const definition = {
    version: agent.version,
    hash: sha256(text).slice(0, 16),
  };
  definitions.set(agent, definition);
  return definition;
}
