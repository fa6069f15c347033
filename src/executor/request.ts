import type { Agent } from '../agent/agent.ts';
import { imagePartOf } from '../run/image.ts';
import { frozenJson, isObject, type JsonObject } from '../run/json.ts';
import { checkKeys, type KnownKeys } from '../run/known-options.ts';
import type { Invocation, RunCheckpointMeta, RunRequest } from '../run/request.ts';
import { checkRunId } from '../run/run-id.ts';

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
};

/**
 * Checks an invocation and makes plain JSON of it.
 * @throws {TypeError} for a wrong call; {InvalidRunIdError}; {NotJsonError} for inputs that cannot be stored
 */
export function requestOf(invocation: unknown, newId: () => string): RunRequest {
  if (!isObject(invocation)) throw new TypeError('a run needs an invocation: { prompt: string, … }');
  checkKeys(invocation, invocationKeys, { of: 'invocation' });
  const { prompt, runId, inputs, images = [] } = invocation as Partial<Invocation>;
  if (typeof prompt !== 'string') throw new TypeError(`prompt must be a string, not ${typeof prompt}`);
  if (!Array.isArray(images)) throw new TypeError('images must be an array of { mediaType, data }');
  if (prompt.trim() === '' && images.length === 0) throw new TypeError('prompt is empty: say what the agent should do');
  for (const name of attribution) {
    if (invocation[name] !== undefined && typeof invocation[name] !== 'string')
      throw new TypeError(`${name} must be a string`);
  }
  const [callerId = '', channelId = '', guildId = '', parentRunId = ''] = attribution.map(
    (name) => invocation[name] as string,
  );
  return {
    runId: checkRunId(runId ?? newId()),
    prompt,
    callerId,
    channelId,
    guildId,
    parentRunId,
    inputs: frozenJson(inputs ?? {}, 'inputs') as JsonObject,
    images: images.map((image, i) => imagePartOf(image, `images[${i}]`)),
  };
}

/** The stored attributes of a run that is begun with today's definition of its agent. */
export function metaFor(agent: Agent, request: RunRequest, modelTier: string): RunCheckpointMeta {
  const { runId, callerId, channelId, guildId, prompt, parentRunId } = request;
  return {
    runId,
    agentId: agent.id,
    agentName: agent.name,
    callerId,
    channelId,
    guildId,
    prompt,
    modelTier,
    parentRunId,
  };
}
