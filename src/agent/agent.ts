import type { ModelChoice } from '../model/port.ts';
import { checkModelChoice, tierOf } from '../model/tier.ts';
import type { RunDefinition } from '../run/fields.ts';
import { checkSettings, type ModelSettings, settingNames } from '../run/model-settings.ts';
import { knownPhases } from '../run/pipeline.ts';
import { type CutAnswer, cutAnswers } from '../run/reply.ts';
import { type DataOf, readOutput, type ToolInput } from '../tool/schema.ts';
import { checkEntries, readEntries, type ToolEntries } from '../tool/toolbox.ts';
import { sha256 } from '../values/digest.ts';
import { readProperty } from '../values/error-data.ts';
import {
  checkId,
  checkWord,
  earlierNames,
  isWholeBound,
  type KnownKeys,
  readOptions,
} from '../values/known-options.ts';
import { checkNames } from './names.ts';
import { hashedPhase, type Phase, phaseFactsOf, readPhases } from './phase.ts';

/** The definition of an agent. Ids and versions are the host's; `recover` finds agents by id. */
export interface AgentDefinition<Schema = unknown> {
  /**
   * Names the agent in records: `recover` finds it by this id. It stays the same over releases, and has 1 to 200 characters.
   * @example id: 'support'
   */
  readonly id: string;
  /**
   * The agent's name for people, in Studio and in lists.
   * @default the id
   * @example name: 'Support desk'
   */
  readonly name?: string;
  /**
   * Stored with each run, so that an operator sees which definition began it.
   * @default '1'
   * @example version: '2026-11'
   */
  readonly version?: string;
  /**
   * The language model that it asks, or the name of one of the executor's `models` (a tier).
   * @default the executor's `defaults.model`
   * @example model: openai('gpt-5')
   */
  readonly model?: ModelChoice;
  /**
   * The system prompt, verbatim. An agent with phases needs none: each phase has its own.
   * @default ''
   * @example instructions: 'Answer questions about orders.'
   */
  readonly instructions?: string;
  /**
   * What it may call: tools, names of the executor's tools, or tools of the AI SDK by their names.
   * @default none
   * @example tools: [searchOrders, sendMail]
   */
  readonly tools?: ToolEntries;
  /**
   * Most steps of a run, or of a phase; then STEP_LIMIT.
   * @default the executor's `defaults.maxSteps`
   * @example maxSteps: 40
   */
  readonly maxSteps?: number;
  /**
   * Longest working time of a run, over all processes; waits do not count.
   * @default the executor's `defaults.maxRuntimeMs`
   * @example maxRuntimeMs: 3_600_000
   */
  readonly maxRuntimeMs?: number;
  /**
   * Most tool calls of one message that run at the same time.
   * @default the executor's `defaults.toolConcurrency`
   * @example toolConcurrency: 1
   */
  readonly toolConcurrency?: number;
  /**
   * Stages that follow one another, each a loop of its own; the output of the last is the run's output.
   * @default none: one loop
   * @example phases: [{ name: 'plan', instructions: 'Plan.' }, { name: 'write', instructions: 'Write {{.plan}}' }]
   */
  readonly phases?: readonly Phase[];
  /**
   * Ids of agents of the executor that this agent may call: tools named `agent__<id>`.
   * @default none
   * @example subAgents: ['researcher']
   */
  readonly subAgents?: readonly string[];
  /**
   * Names of skills of the executor that it may call: tools named `skill__<name>`.
   * @default none
   * @example skills: ['summarise']
   */
  readonly skills?: readonly string[];
  /**
   * What the agent is good for: other agents that may call it get this text.
   * @default ''
   * @example description: 'Finds facts in the archive.'
   */
  readonly description?: string;
  /**
   * The form of the answer: a schema of the same kinds as a tool's input, or an `Output` of the AI SDK. Pawl reads the answer as
   * JSON and checks it; an answer that does not fit gets one repair turn. In a pipeline it is the answer of the last phase. The
   * result holds it as `data`.
   * @default none: the answer is text
   * @example output: z.object({ city: z.string() })
   */
  readonly output?: Schema & (object | undefined);
  /**
   * What a run does with an answer that reached its length limit.
   * @default the executor's `defaults.onCutAnswer`
   * @example onCutAnswer: 'continue'
   */
  readonly onCutAnswer?: CutAnswer;
  /**
   * Settings of its model calls: temperature, output tokens, tool choice, provider options. A phase may override each.
   * @default none
   * @example settings: { temperature: 0, maxOutputTokens: 2_000 }
   */
  readonly settings?: ModelSettings;
}

/** An agent as runs use it. `Data` is what its `output` schema returns: `undefined` without one. */
export interface Agent<Data = unknown> extends AgentDefinition {
  readonly name: string;
  readonly version: string;
  readonly instructions: string;
  /** `output`, parsed. */
  readonly outputSchema?: ToolInput<Data>;
}

const agentKeys: KnownKeys<Agent> = {
  id: true,
  name: true,
  version: true,
  model: true,
  instructions: true,
  tools: true,
  maxSteps: true,
  maxRuntimeMs: true,
  toolConcurrency: true,
  phases: true,
  subAgents: true,
  skills: true,
  description: true,
  output: true,
  outputSchema: true,
  onCutAnswer: true,
  settings: true,
};

/** The words of the AI SDK's agents, from which many users come, and of other libraries. */
const foreignWords = {
  system: 'Pawl calls the system prompt instructions',
  prompt: 'each run has a prompt of its own: executor.run(agent, { prompt })',
  messages: 'a run gets earlier messages as history: executor.run(agent, { prompt, history })',
  ...earlierNames,
  stopWhen: 'maxSteps is the most steps of a run',
  maxTurns: 'maxSteps is the most steps of a run',
  maxRetries: 'createExecutor({ defaults: { modelAttempts } }) is the most attempts of a model call',
  handoffs: 'subAgents takes the ids of agents that it may call',
} as const;

/** Agents that this module read: frozen, and plain data as far as Pawl made them. */
const known = new WeakSet<object>();
/** The agent read from each frozen object of another origin. An object that may change is read at each start. */
const readings = new WeakMap<object, Agent>();

/**
 * Defines an agent. The definition is read once: later changes of the object have no effect.
 * @throws {TypeError} for a field with a wrong value, for an unknown key, and for a phase that names a tool which the agent
 *   does not have, or whose instructions name something other than `Query` and earlier phases; also for a schema of a tool that
 *   is none @throws {UNSUPPORTED} for a tool of the AI SDK without `execute`
 * @example const agent = defineAgent({ id: 'greeter', instructions: 'Greet warmly.', tools: [lookup] })
 */
export function defineAgent<const Schema = undefined>(definition: AgentDefinition<Schema>): Agent<DataOf<Schema>> {
  const agent = agentOf(fieldsOf(definition));
  checkNames(agent);
  checkEntries(agent.tools);
  return agent as Agent<DataOf<Schema>>;
}

/**
 * Returns the agent as its runs use it. An agent of another copy of the package, or a spread of one, is read once, into a
 * frozen copy. The names in its phases are not checked then, because a stored run may be waiting for it.
 * @param refusal begins the message, for example `start needs`
 * @throws {TypeError} for a value that is not an agent @throws what a getter of it throws
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
  return readOptions(definition, agentKeys as KnownKeys<AgentDefinition>, {
    of,
    elsewhere: settingNames(),
    foreign: foreignWords,
  });
}

function agentOf(given: AgentDefinition): Agent {
  const { id } = given;
  checkId('an agent', id);
  const of = `agent ${id}`;
  const phases = given.phases === undefined ? undefined : readPhases(of, given.phases);
  checkTexts(of, given, phases !== undefined);
  checkLimits(of, given);
  checkModelChoice(`${of}: model`, given.model);
  checkWord(`${of}: onCutAnswer`, given.onCutAnswer, cutAnswers);
  const outputSchema = given.output === undefined ? undefined : readOutput(given.output, `${id} (output)`);
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
    ...(outputSchema && { outputSchema }),
  });
  known.add(agent);
  return agent;
}

/** `outputSchema` is read from `output` again: an agent that was spread with another `output` would keep the old one. */
function withoutSchema(given: AgentDefinition & { readonly outputSchema?: unknown }): AgentDefinition {
  const { outputSchema: _, ...rest } = given;
  return rest;
}

function checkTexts(of: string, given: AgentDefinition, isPipeline: boolean): void {
  const { instructions } = given;
  if (typeof instructions !== 'string' && !(isPipeline && instructions === undefined))
    throw new TypeError(`${of} needs instructions: a string`);
  for (const field of ['name', 'version', 'description'] as const) {
    if (typeof (given[field] ?? '') !== 'string') throw new TypeError(`${of}: ${field} must be a string`);
  }
}

function checkLimits(of: string, { maxSteps, maxRuntimeMs, toolConcurrency }: AgentDefinition): void {
  if (maxRuntimeMs !== undefined && !(typeof maxRuntimeMs === 'number' && maxRuntimeMs > 0))
    throw new TypeError(`${of}: maxRuntimeMs must be a number above 0, not ${maxRuntimeMs}`);
  for (const [name, value] of Object.entries({ maxSteps, toolConcurrency })) {
    if (value !== undefined && !isWholeBound(value))
      throw new TypeError(`${of}: ${name} must be a whole number above 0, not ${value}`);
  }
}

function readNames(of: string, field: string, given: readonly string[]): readonly string[] {
  if (!Array.isArray(given) || given.some((name) => typeof name !== 'string' || name === ''))
    throw new TypeError(`${of}: ${field} must be a list of names`);
  return Object.freeze([...given]);
}

const definitions = new WeakMap<Agent, RunDefinition>();

/** Returns what a record stores of its agent's definition, so that a later change of the agent shows as a difference. */
export function definitionOf(agent: Agent): RunDefinition {
  const found = definitions.get(agent);
  if (found) return found;
  const phases = (agent.phases ?? []).map(hashedPhase);
  const text = JSON.stringify([agent.id, agent.instructions, tierOf(agent.model ?? ''), phases]);
  const definition = {
    version: agent.version,
    hash: sha256(text).slice(0, 16),
  };
  definitions.set(agent, definition);
  return definition;
}

const phaseDefinitions = new WeakMap<Agent, readonly string[]>();

/** Returns the definitions of an agent by which a run is found that was parked for another one: see `neededPhases`. */
export function phaseDefinitionsOf(agent: Agent): readonly string[] {
  const found = phaseDefinitions.get(agent);
  if (found) return found;
  const hashes = phaseFactsOf(agent.phases, 1).map(({ hash }) => hash);
  const known = knownPhases(agent.id, hashes);
  phaseDefinitions.set(agent, known);
  return known;
}
