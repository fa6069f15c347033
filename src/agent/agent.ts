import { sha256 } from '../run/digest.ts';
import { checkKeys, type KnownKeys } from '../run/known-options.ts';
import type { RunDefinition } from '../run/progress.ts';
import { type DataOf, readSchema, type ToolInput } from '../tool/schema.ts';
import type { ToolEntries } from '../tool/toolbox.ts';
import { checkPhases, type Phase } from './phase.ts';

/** What a run is a run of. Ids and versions are the host's; `recover` finds agents by id. */
export interface AgentDefinition<Schema = unknown> {
  readonly id: string;
  /** Default: the id. */
  readonly name?: string;
  /** Default '1'. Stored with each run, so that an operator sees which definition began it. */
  readonly version?: string;
  /** The host's name for a class of models; default: the executor's `defaults.modelTier`. */
  readonly modelTier?: string;
  /** The system prompt, word for word. Of an agent with phases: each phase has its own. */
  readonly instructions: string;
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
}

/** An agent as runs use it. `Data` is what its `output` schema gives: `undefined` without one. */
export interface Agent<Data = unknown> extends AgentDefinition {
  readonly name: string;
  readonly version: string;
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
};

/**
 * Defines an agent.
 * @throws {TypeError} when the id, the instructions or a limit is not what it should be, and for an unknown key
 * @example const agent = defineAgent({ id: 'greeter', instructions: 'Greet warmly.', tools: [lookup] })
 */
export function defineAgent<const Schema = undefined>(definition: AgentDefinition<Schema>): Agent<DataOf<Schema>> {
  const { id, instructions, maxIterations, maxRuntimeMs, toolConcurrency, phases } = definition;
  if (typeof id !== 'string' || id === '') throw new TypeError('an agent needs an id: a string that is not empty');
  checkKeys(definition, agentKeys, { of: `agent ${id}` });
  if (typeof instructions !== 'string') throw new TypeError(`agent ${id} needs instructions: a string`);
  for (const [name, value] of Object.entries({ maxIterations, maxRuntimeMs, toolConcurrency })) {
    if (value !== undefined && !(value > 0))
      throw new TypeError(`agent ${id}: ${name} must be a number above 0, not ${value}`);
  }
  checkPhases(id, phases ?? []);
  const named = { ...definition, name: definition.name ?? id, version: definition.version ?? '1' };
  if (definition.output === undefined) return Object.freeze(named);
  const outputSchema = readSchema(definition.output, `${id} (output)`) as ToolInput<DataOf<Schema>>;
  return Object.freeze({ ...named, outputSchema });
}

/** @param refusal begins the message @throws {TypeError} when it is not an agent: known by shape, for there may be two copies of the package */
export function checkAgent(agent: unknown, refusal: string): asserts agent is Agent {
  const { id, name, instructions } = (agent ?? {}) as Partial<Agent>;
  if (typeof id === 'string' && typeof name === 'string' && typeof instructions === 'string') return;
  throw new TypeError(`${refusal} an agent made with defineAgent`);
}

const definitions = new WeakMap<Agent, RunDefinition>();

/** What a record remembers of its agent's definition: to see later that it changed. */
export function definitionOf(agent: Agent): RunDefinition {
  const known = definitions.get(agent);
  if (known) return known;
  const text = JSON.stringify([agent.id, agent.instructions, agent.modelTier ?? '', agent.phases ?? []]);
  const definition = {
    version: agent.version,
    hash: sha256(text).slice(0, 16),
  };
  definitions.set(agent, definition);
  return definition;
}
