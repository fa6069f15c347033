import type { Agent } from '../../agent/agent.ts';
import type { ModelChoice } from '../../model/port.ts';
import { tierOf } from '../../model/tier.ts';
import type { RunCheckpoint } from '../../record/checkpoint.ts';
import { givenFields, identityOf } from '../../run/field-rows.ts';
import type { GivenFields } from '../../run/fields.ts';
import { births, checkHostRunId, checkRunId, fingerprintOf } from '../../run/identity.ts';
import {
  type Invocation,
  imagePartOf,
  type ParentCall,
  type RunCheckpointMeta,
  type RunRequest,
  type WorkflowInvocation,
} from '../../run/request.ts';
import { enterHistory } from '../../run/resume.ts';
import { stateJson } from '../../run/workflow/state.ts';
import { readProperty } from '../../values/error-data.ts';
import { frozenJson, isObject, type JsonObject } from '../../values/json.ts';
import { checkKeys, type KnownKeys } from '../../values/known-options.ts';

const attribution = ['callerId', 'channelId', 'guildId', 'parentRunId'] as const;

const invocationKeys: KnownKeys<Invocation> = {
  prompt: true,
  runId: true,
  callerId: true,
  channelId: true,
  guildId: true,
  parentRunId: true,
  inputs: true,
  images: true,
  history: true,
  ...(Object.fromEntries(givenFields.map(([key]) => [key, true])) as { readonly [K in keyof GivenFields]-?: true }),
};

const settings = 'it is one of the settings of an agent: defineAgent({ settings })';
const signal = 'an abort signal is an option: run(agent, { prompt }, { signal })';
/** The words of the AI SDK's calls, from which many users come. */
const foreignWords = {
  messages: 'history takes the earlier messages, and prompt the new one',
  system: 'the system prompt is instructions of an agent',
  ...{ temperature: settings, maxOutputTokens: settings, providerOptions: settings, toolChoice: settings },
  model: 'a model is that of an agent, or of the executor',
  tools: 'tools are those of an agent',
  stopWhen: 'maxSteps of an agent is the most steps of a run',
  ...{ signal, abortSignal: signal },
} as const;

/** The inputs of a request besides the invocation. */
export interface Beginning {
  readonly agentId: string;
  readonly newId: () => string;
  /** Wall clock, ms. */
  readonly now: number;
  /** The call of another run that begins this one; absent = a host does. */
  readonly parent?: ParentCall | undefined;
  /** A host's machine begins the run. */
  readonly isHosted?: boolean;
  /** It is a run of a workflow: it has an input, and no prompt. */
  readonly isWorkflow?: boolean;
}

/**
 * Checks an invocation (prompt, ids, inputs, images, history, labels) and makes the plain JSON request of it.
 * @throws {TypeError} for a wrong call; {INVALID_RUN_ID}; {INVALID_LABELS}; {NOT_JSON} for a value that cannot be
 *   stored, of a workflow {WORKFLOW_STATE}; {TRANSCRIPT_INVALID} for a broken history
 */
export function requestOf(
  given: unknown,
  { agentId, newId, now, parent, isHosted = false, isWorkflow = false }: Beginning,
): RunRequest {
  const invocation = isWorkflow ? invocationOf(given) : given;
  if (!isObject(invocation)) throw new TypeError('a run needs an invocation: { prompt: string, … }');
  checkKeys(invocation, invocationKeys, { of: 'invocation', foreign: foreignWords });
  const { prompt, runId, inputs, images = [], history = [] } = invocation as Partial<Invocation>;
  if (typeof prompt !== 'string') throw new TypeError(`prompt must be a string, not ${typeof prompt}`);
  if (!Array.isArray(history)) throw new TypeError('history must be an array of messages');
  if (!Array.isArray(images)) throw new TypeError('images must be an array of { mediaType, data }');
  if (prompt.trim() === '' && images.length === 0 && !isWorkflow)
    throw new TypeError('prompt is empty: say what the agent should do');
  for (const name of attribution) {
    if (invocation[name] !== undefined && typeof invocation[name] !== 'string')
      throw new TypeError(`${name} must be a string`);
  }
  const [callerId = '', channelId = '', guildId = '', parentRunId = ''] = attribution.map(
    (name) => invocation[name] as string,
  );
  const request = {
    runId: parent ? checkRunId(runId) : checkHostRunId(runId ?? newId()),
    prompt,
    callerId,
    channelId,
    guildId,
    parentRunId,
    // A child has the inputs of its parent, which an older version may have begun.
    inputs: parent ? plainInputs(inputs) : inputsOf(inputs),
    images: images.map((image, i) => imagePartOf(image, `images[${i}]`)),
    earlier: enterHistory(history),
    ...givenIn(invocation),
  };
  const born = { birth: births.make(request.runId), beganAt: now };
  const began = { ...born, ...(parent ? { parent } : {}), ...(isHosted ? { hosted: true as const } : {}) };
  return { ...request, fingerprint: fingerprintOf({ ...request, agentId }), ...began };
}

/** The keys of a workflow's invocation. Its input is the one of its machine. */
const workflowKeys: KnownKeys<WorkflowInvocation<unknown>> = {
  input: true,
  runId: true,
  callerId: true,
  channelId: true,
  guildId: true,
  parentRunId: true,
  ...(Object.fromEntries(givenFields.map(([key]) => [key, true])) as { readonly [K in keyof GivenFields]-?: true }),
};

/** A workflow has no prompt: its input stands among the inputs of its run. */
function invocationOf(given: unknown): unknown {
  if (!isObject(given)) throw new TypeError('a run of a workflow needs an invocation: { input, … }');
  checkKeys(given, workflowKeys, { of: 'invocation' });
  const { input, ...rest } = given;
  return { ...rest, prompt: '', inputs: input === undefined ? {} : { input: stateJson(input, 'input') } };
}

/** The short fields of an invocation that the table of run fields says how to read. */
function givenIn(invocation: { readonly [key: string]: unknown }): GivenFields {
  const read = givenFields.map(([key, { read }]) => [
    key,
    invocation[key] === undefined ? undefined : read(invocation[key]),
  ]);
  return Object.fromEntries(read.filter(([, value]) => value !== undefined)) as GivenFields;
}

/**
 * The inputs of an invocation, as frozen plain JSON.
 * @throws {TypeError} for a key with the reserved prefix: no key of `inputs` has a meaning to Pawl
 */
function inputsOf(given: unknown): JsonObject {
  const inputs = plainInputs(given);
  const reserved = Object.keys(inputs).find((key) => key.startsWith('pawl.'));
  if (reserved === undefined) return inputs;
  throw new TypeError(
    `inputs: ${JSON.stringify(reserved.slice(0, 100))} begins with "pawl."; use a key without that prefix`,
  );
}

function plainInputs(given: unknown): JsonObject {
  return frozenJson(given ?? {}, 'inputs') as JsonObject;
}

/** Returns the request of a stored run, from its record. No code compares it, so it has no fingerprint. */
export function requestFrom(record: RunCheckpoint): RunRequest {
  const { meta, inputs = {}, images = [], earlier = [] } = record;
  const { runId, prompt, callerId, channelId, guildId, parentRunId } = meta;
  const { fingerprint: _, ...identity } = identityOf(record);
  return { runId, prompt, callerId, channelId, guildId, parentRunId, inputs, images, earlier, ...identity };
}

/** Returns the request of a refused start: its id as given, and no field that must be valid. */
export function refusedRequest(invocation: unknown, newId: () => string): RunRequest {
  const [runId, prompt] = [readProperty(invocation, 'runId'), readProperty(invocation, 'prompt')];
  const id = runId === undefined || runId === null ? newId() : shown(runId);
  return plainRequest(id, typeof prompt === 'string' ? prompt : '(unreadable)');
}

/** Returns a request that has no more than an id and a prompt. */
export function plainRequest(runId: string, prompt: string): RunRequest {
  return { runId, prompt, callerId: '', channelId: '', guildId: '', parentRunId: '', inputs: {}, images: [] };
}

/** A text for an id that is not a string. */
function shown(runId: unknown): string {
  if (typeof runId === 'string') return runId;
  return typeof runId === 'object' || typeof runId === 'function' ? `(${typeof runId})` : String(runId);
}

/**
 * Returns the stored attributes of a new run, from its request and the present definition of its agent.
 * @param model of agents that name none
 */
export function metaFor(agent: Agent, request: RunRequest, model: ModelChoice): RunCheckpointMeta {
  const { runId, callerId, channelId, guildId, prompt, parentRunId } = request;
  return {
    runId,
    agentId: agent.id,
    agentName: agent.name,
    callerId,
    channelId,
    guildId,
    prompt,
    modelTier: tierOf(agent.model ?? model),
    parentRunId,
  };
}
