import { createHash } from 'node:crypto';
import { UnsupportedError } from '../run/errors.ts';
import type { Definition } from '../run/progress.ts';
import type { ToolEntries } from '../tool/toolbox.ts';

/** One stage of a multi-phase agent. */
export interface Phase {
  readonly name: string;
  readonly instructions: string;
}

/** What a run is a run of. Ids and versions are the host's; `recover` finds agents by id. */
export interface AgentDefinition {
  readonly id: string;
  /** Default: the id. */
  readonly name?: string;
  /** Default '1'. Stored with each run, so that an operator sees which definition began it. */
  readonly version?: string;
  /** The host's name for a class of models; default: the executor's `defaults.modelTier`. */
  readonly modelTier?: string;
  /** The system prompt, word for word. */
  readonly instructions: string;
  readonly tools?: ToolEntries;
  readonly maxIterations?: number;
  /** Working time over all processes, ms. */
  readonly maxRuntimeMs?: number;
  /** Tool calls of one message that run side by side; default 8. */
  readonly toolConcurrency?: number;
  readonly phases?: readonly Phase[];
}

export interface Agent extends AgentDefinition {
  readonly name: string;
  readonly version: string;
}

/**
 * Defines an agent.
 * @throws {TypeError} when the id, the instructions or a limit is not what it should be
 * @throws {UnsupportedError} for phases, which this version does not run yet
 * @example const agent = defineAgent({ id: 'greeter', instructions: 'Greet warmly.', tools: [lookup] })
 */
export function defineAgent(definition: AgentDefinition): Agent {
  const { id, instructions, maxIterations, maxRuntimeMs, toolConcurrency, phases } = definition;
  if (typeof id !== 'string' || id === '') throw new TypeError('an agent needs an id: a string that is not empty');
  if (typeof instructions !== 'string') throw new TypeError(`agent ${id} needs instructions: a string`);
  for (const [name, value] of Object.entries({ maxIterations, maxRuntimeMs, toolConcurrency })) {
    if (value !== undefined && !(value > 0))
      throw new TypeError(`agent ${id}: ${name} must be a number above 0, not ${value}`);
  }
  if (phases && phases.length > 0) {
    throw new UnsupportedError(`agent ${id} has phases; this version runs agents with a single loop`);
  }
  return Object.freeze({ ...definition, name: definition.name ?? id, version: definition.version ?? '1' });
}

const definitions = new WeakMap<Agent, Definition>();

/** What a record remembers of its agent's definition: to see later that it changed. */
export function definitionOf(agent: Agent): Definition {
  const known = definitions.get(agent);
  if (known) return known;
  const text = JSON.stringify([agent.id, agent.instructions, agent.modelTier ?? '', agent.phases ?? []]);
  const definition = {
    version: agent.version,
    hash: createHash('sha256').update(text).digest('base64url').slice(0, 16),
  };
  definitions.set(agent, definition);
  return definition;
}
