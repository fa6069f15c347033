import { InvalidLabelsError } from '../values/errors.ts';
import { hasTexts, isCount, isObject, type JsonValue } from '../values/json.ts';
import { checkKeys, type KnownKeys, kindOf } from '../values/known-options.ts';
import type { Message } from '../values/message.ts';
import type { GivenFields, IdentityFields } from './fields.ts';

/**
 * An image for the model. `data`: the bytes, their base64, or a URL for the model's provider (a URL object, or a string that
 * begins with `http://` or `https://`). Pawl does not download a URL.
 */
export interface ImageInput {
  readonly mediaType: string;
  readonly data: Uint8Array | string | URL;
}

/** Names and texts by which a host finds its runs. */
export type Labels = { readonly [name: string]: string };

/** A request of a host. Only `prompt` is required; with a `runId` of the caller, `start` is idempotent. */
export interface Invocation extends GivenFields {
  /**
   * What the agent should do: the first message of the user.
   * @example prompt: 'Where is order 7?'
   */
  readonly prompt: string;
  /**
   * Names the run. With an id of your own the same request may come twice: the second start gets the first run, or its end.
   * @default a random UUID
   * @example runId: `order-${orderId}`
   */
  readonly runId?: string;
  /**
   * Who asks: budgets, limits, the audit and grants over HTTP go by it.
   * @default ''
   * @example callerId: user.id
   */
  readonly callerId?: string;
  /**
   * Where it was asked, for lists and tools.
   * @default ''
   * @example channelId: 'web'
   */
  readonly channelId?: string;
  /**
   * The organisation, for lists and tools.
   * @default ''
   * @example guildId: 'acme'
   */
  readonly guildId?: string;
  /**
   * A run to which this one belongs, for lists and tools.
   * @default ''
   * @example parentRunId: first.runId
   */
  readonly parentRunId?: string;
  /**
   * Plain JSON for the host's tools (`context.invocation.inputs`); stored once, with the first record.
   * @default none
   * @example inputs: { locale: 'de' }
   */
  readonly inputs?: { readonly [name: string]: JsonValue };
  /**
   * Images of the first message: base64, bytes or a URL.
   * @default none
   * @example images: [{ mediaType: 'image/png', data }]
   */
  readonly images?: readonly ImageInput[];
  /**
   * An earlier conversation, which comes before the prompt: messages as in `result.messages`. Each tool call in it has its
   * result. It is stored with the run, and is part of the request: a start with another history is another request.
   * @default none
   * @example history: earlier.messages
   */
  readonly history?: readonly Message[];
}

/** How a run of a workflow is asked for. */
export interface WorkflowInvocation<Input> extends GivenFields {
  /**
   * The input of its machine: plain JSON.
   * @default none
   * @example input: { orderId: '7' }
   */
  readonly input?: Input;
  /**
   * Names the run. With an id of your own the same request may come twice: the second start gets the first run, or its end.
   * @default a random UUID
   * @example runId: `refund-${orderId}`
   */
  readonly runId?: string;
  /**
   * Who asks: budgets, limits, the audit and grants over HTTP go by it.
   * @default ''
   * @example callerId: user.id
   */
  readonly callerId?: string;
  /**
   * Where it was asked, for lists and tools.
   * @default ''
   * @example channelId: 'web'
   */
  readonly channelId?: string;
  /**
   * The organisation, for lists and tools.
   * @default ''
   * @example guildId: 'acme'
   */
  readonly guildId?: string;
  /**
   * A run to which this one belongs, for lists and tools.
   * @default ''
   * @example parentRunId: first.runId
   */
  readonly parentRunId?: string;
}

/** How a field that a host gives is read. */
export interface GivenSpec<T> {
  /**
   * Checks the value of an invocation that has one.
   * @returns the value as it is recorded; undefined = the same as none @throws {TypeError} or a typed error of the field
   */
  readonly read: (given: unknown) => T | undefined;
  /** Whether a start with another value is another request: the value is a part of the fingerprint. */
  readonly isAsked: boolean;
}

/** The nine attributes of a run in its record; absent = ''. */
export interface RunCheckpointMeta {
  readonly runId: string;
  readonly agentId: string;
  readonly agentName: string;
  readonly callerId: string;
  readonly channelId: string;
  readonly guildId: string;
  readonly prompt: string;
  readonly modelTier: string;
  readonly parentRunId: string;
}

/** The names of the nine stored attributes of a run. */
export const metaFields: readonly (keyof RunCheckpointMeta)[] = [
  'runId',
  'agentId',
  'agentName',
  'callerId',
  'channelId',
  'guildId',
  'prompt',
  'modelTier',
  'parentRunId',
];

/** Returns whether a stored value is the attributes of a run. */
export function isMeta(value: unknown): boolean {
  return hasTexts(value, metaFields);
}

/** The info that every port gets of a run: one frozen object for all of them. */
export interface RunInfo extends Omit<RunCheckpointMeta, 'agentId' | 'agentName'> {
  /** The subject of the run: the agent's id. */
  readonly subjectId: string;
  readonly name: string;
  readonly inputs: { readonly [name: string]: JsonValue };
  /** The labels of the run (`invocation.labels`), not redacted; absent = none. */
  readonly labels?: Labels;
  /** Wall clock, ms. */
  readonly startedAt: number;
  readonly maxIterations: number;
}

/** An image as the model gets it, as JSON: the file part of a user message. */
export interface ImagePart {
  readonly type: 'file';
  readonly mediaType: string;
  readonly data: { readonly type: 'data'; readonly data: string } | { readonly type: 'url'; readonly url: string };
}

/** The call that began a run: the parent run, and the run at the top of the tree. A run that a host started has none. */
export interface ParentCall {
  readonly runId: string;
  readonly callId: string;
  /** The run at the top of the tree: the one that a host started. */
  readonly rootRunId: string;
  /** A workflow calls: it reads the whole result, where a model reads the answer. */
  readonly reads?: 'result';
}

/** Returns whether a stored value is a ParentCall. */
export function isParentCall(value: unknown): boolean {
  return hasTexts(value, ['runId', 'callId', 'rootRunId']);
}

/** The run of which a fork has the first steps. */
export interface ForkedFrom {
  readonly runId: string;
  /** How many steps it has of it. */
  readonly at: number;
  /** Their messages were changed. */
  readonly edited?: true;
}

/** Returns whether a stored value says of which run a fork is. */
export function isForkedFrom(value: unknown): boolean {
  return hasTexts(value, ['runId']) && isCount((value as { readonly at?: unknown }).at);
}

/**
 * The input of the run machine: plain data, the prompt not yet parsed. An incomplete request has no fingerprint: a recovered
 * run is known by its record.
 */
export interface RunRequest
  extends Omit<IdentityFields, 'meta'>,
    Omit<RunCheckpointMeta, 'agentId' | 'agentName' | 'modelTier'> {
  readonly inputs: { readonly [name: string]: JsonValue };
  readonly images: readonly ImagePart[];
  /** The earlier conversation; absent = none. */
  readonly earlier?: readonly Message[];
}

const MAX_LABELS = 32;
const MAX_LABEL_BYTES = 1_024;

/**
 * Checks the labels of an invocation, or of a filter.
 * @throws {TypeError} for a value that is not an object of texts @throws {INVALID_LABELS} above the limits of a run
 */
export function labelsOf(given: unknown, of = 'labels'): Labels {
  if (!isObject(given)) throw new TypeError(`${of} must be an object of strings, not ${kindOf(given)}`);
  // The entries of a Map are not properties: the run would have no labels.
  if (given instanceof Map || given instanceof Set)
    throw new TypeError(`${of} must be an object of strings, not a ${given instanceof Map ? 'Map' : 'Set'}`);
  const entries = Object.entries(given);
  const wrong = entries.find(([, text]) => typeof text !== 'string');
  if (wrong) throw new TypeError(`${of}.${wrong[0].slice(0, 100)} must be a string, not ${kindOf(wrong[1])}`);
  if (entries.length > MAX_LABELS)
    throw new InvalidLabelsError(`a run has at most ${MAX_LABELS} labels, not ${entries.length}`);
  const texts = (entries as [string, string][]).flat();
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (bytes > MAX_LABEL_BYTES)
    throw new InvalidLabelsError(
      `the labels of a run have at most ${MAX_LABEL_BYTES} bytes together, these have ${bytes}`,
    );
  if (!texts.every((text) => text.isWellFormed()))
    throw new InvalidLabelsError('the labels of a run must be well-formed Unicode');
  return Object.freeze(Object.fromEntries(entries) as Labels);
}

/** Returns the labels of an invocation; undefined without any. @throws {TypeError} @throws {INVALID_LABELS} */
export function labelsGiven(given: unknown): Labels | undefined {
  const labels = labelsOf(given);
  return Object.keys(labels).length > 0 ? labels : undefined;
}

/** Returns whether a stored value is Labels. */
export function isLabels(value: unknown): boolean {
  return isObject(value) && Object.values(value).every((text) => typeof text === 'string');
}

/** Protocols of data on this machine: no provider can fetch it. */
const localProtocols: readonly string[] = ['file:', 'blob:', 'data:', 'node:'];

/**
 * Converts an image to the file part of a message: plain JSON, bytes as base64, a URL as a string.
 * @param where names it in the error, for example `images[0]`
 * @throws {TypeError} without a media type, or with data that a provider cannot get
 */
export function imagePartOf(image: ImageInput, where: string): ImagePart {
  if (!isObject(image) || typeof image.mediaType !== 'string') throw new TypeError(`${where} needs a mediaType`);
  checkKeys(image, { mediaType: true, data: true } satisfies KnownKeys<ImageInput>, { of: where });
  const { mediaType, data } = image as ImageInput;
  return { type: 'file', mediaType, data: dataOf(data, where) };
}

function dataOf(data: unknown, where: string): ImagePart['data'] {
  if (data instanceof Uint8Array) return { type: 'data', data: Buffer.from(data).toString('base64') };
  if (data instanceof URL) return { type: 'url', url: fetchableUrl(data, `${where}.data`).href };
  if (typeof data !== 'string') throw new TypeError(`${where}.data must be bytes, their base64, or a URL`);
  // Base64 has no colon.
  if (!data.includes(':')) return { type: 'data', data };
  if (!URL.canParse(data)) throw new TypeError(`${where}.data is neither base64 nor a URL`);
  return { type: 'url', url: fetchableUrl(new URL(data), `${where}.data`).href };
}

/** Returns a URL that a provider can fetch. @throws {TypeError} for one that points to this process or machine */
export function fetchableUrl(url: URL, where: string): URL {
  if (!localProtocols.includes(url.protocol)) return url;
  throw new TypeError(`${where} is a ${url.protocol} URL, which no provider can fetch: pass the bytes or their base64`);
}
