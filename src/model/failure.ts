import type { FailureKind, ModelFailure } from '../run/waits/outage.ts';
import type { Clock } from '../values/clock.ts';
import { isPawlError } from '../values/error-codes.ts';
import { readProperty } from '../values/error-data.ts';
import { ModelError } from '../values/errors.ts';
import { requestsOf } from './answer.ts';
import {
  type FailureWords,
  isAboutAccount,
  isAboutCaller,
  isAboutLength,
  isAboutRate,
  isAboutRequest,
  saidBy,
} from './failure-words.ts';

/** Errors of one failure that are looked at, and members of one group of errors: bounds for a hostile error. */
const MAX_ERRORS = 40;
const MAX_CHAIN = 16;
const MAX_MEMBERS = 16;

/** The HTTP statuses that refuse the request itself. */
const wrongRequest: ReadonlySet<number> = new Set([400, 413, 414, 415, 422, 431]);
/** Those that refuse the account, the model or the address. All others may pass. */
const wrongCaller: ReadonlySet<number> = new Set([401, 402, 403, 404]);

/** Codes of a connection that failed or broke: of Node, of undici besides UND_ERR_*, of Bun. */
const networkCodes: ReadonlySet<unknown> = new Set([
  'ECONNRESET',
  'ECONNREFUSED',
  'ECONNABORTED',
  'ETIMEDOUT',
  'EPIPE',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'ERR_STREAM_PREMATURE_CLOSE',
  'ConnectionRefused',
  'ConnectionClosed',
  'FailedToOpenSocket',
]);

/** Codes of undici for a wrong call: a bug of the program that makes it. */
const wrongCalls: ReadonlySet<unknown> = new Set([
  'UND_ERR_INVALID_ARG',
  'UND_ERR_INVALID_RETURN_VALUE',
  'UND_ERR_NOT_SUPPORTED',
  'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH',
]);

/** How the `TypeError` of `fetch` begins, in Node, Deno and browsers; it often has no code. */
const fetchFailures = [
  'fetch failed',
  'failed to fetch',
  'terminated',
  'load failed',
  'networkerror when attempting',
  'error sending request',
  'error reading a body',
];

/** Errors of a host's own model or middleware that no other attempt mends. */
const bugs: ReadonlySet<unknown> = new Set(['TypeError', 'RangeError', 'ReferenceError', 'SyntaxError']);

/** What errors of the AI SDK mean, by name. Their messages quote requests and answers, so they are not searched for words. */
const named: { readonly [name: string]: FailureKind } = {
  AbortError: 'passing',
  TimeoutError: 'passing',
  AI_InvalidResponseDataError: 'passing',
  AI_EmptyResponseBodyError: 'passing',
  AI_JSONParseError: 'passing',
  AI_TypeValidationError: 'passing',
  AI_LoadAPIKeyError: 'blocked',
  AI_LoadSettingError: 'blocked',
  AI_NoSuchModelError: 'blocked',
  AI_NoSuchProviderError: 'blocked',
  AI_NoSuchProviderReferenceError: 'blocked',
  AI_UnsupportedFunctionalityError: 'final',
  AI_InvalidPromptError: 'final',
  AI_InvalidArgumentError: 'final',
  AI_MessageConversionError: 'final',
  AI_InvalidMessageRoleError: 'final',
};

/** Codes of Pawl's own errors that are about the model or its answer. */
const modelCodes: ReadonlySet<unknown> = new Set(['MODEL', 'MODEL_STALLED', 'NOT_JSON']);

/** Errors of the AI SDK about a key or a setting that this process does not have. */
const setupErrors: ReadonlySet<unknown> = new Set(['AI_LoadAPIKeyError', 'AI_LoadSettingError']);

/** What is known of errors that Pawl made of several others. */
const verdicts = new WeakMap<object, ModelFailure>();

/** Returns an error of Pawl's own for which `failureOf` says this, wherever it is in a chain of causes. */
export function judged<Thrown extends object>(error: Thrown, failure: ModelFailure): Thrown {
  verdicts.set(error, failure);
  return error;
}

/** Returns the error of a model's reply that broke off before its end. It is marked as retryable in the AI SDK's way. */
export function brokenOff(message: string): ModelError {
  return Object.assign(new ModelError(message), { isRetryable: true });
}

/** Returns the error of a request that no model gets, because its model cannot take it: another attempt cannot succeed. */
export function refusedHere(message: string): ModelError {
  return Object.assign(new ModelError(message), { isRetryable: false });
}

/**
 * Returns what the error of a model call says about another attempt. Looks through causes, retries of the AI SDK and groups of
 * errors. What it says of an account counts first, then the outermost error that says anything. An unknown error may pass: a
 * provider's word that Pawl does not know ends no run. Never throws.
 */
export function failureOf(error: unknown, clock: Pick<Clock, 'now'>): ModelFailure {
  const chain = chainOf(error, { left: MAX_CHAIN });
  const known = chain.map((each) => verdicts.get(each as object)).find((each) => each !== undefined);
  if (known !== undefined) return known;
  const kind = kindIn(error, { left: MAX_ERRORS }, clock);
  const requests = chain.map(requestsOf).find((each) => each !== undefined);
  if (requests !== undefined) return { kind: 'final', requests };
  const retryAfterMs = kind === 'final' ? undefined : askedWait(error, clock);
  return {
    kind: kind ?? 'passing',
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(kind === undefined && isBug(error) ? { isBug: true } : {}),
  };
}

/** Returns whether a provider refused a request because its conversation is longer than the model takes. Never throws. */
export function isTooLong(error: unknown, clock: Pick<Clock, 'now'>): boolean {
  if (failureOf(error, clock).kind !== 'final') return false;
  const chain = chainOf(error, { left: MAX_CHAIN });
  return !chain.some(isOther) && chain.some((each) => isAboutLength(saidIn(each)));
}

/** Returns the HTTP status of a failed model call, or the number in its place within a stream. Never throws. */
export function statusOfError(error: unknown): number | undefined {
  for (const each of chainOf(error, { left: MAX_CHAIN })) {
    const { status } = saidBy(each);
    if (status !== undefined) return status;
  }
  return undefined;
}

/**
 * Returns whether a model call failed because this process lacks a provider's key or setting: the provider was not asked, and
 * another process may have it. Looks where `failureOf` looks; of a group of errors each member must be such a failure. Never
 * throws.
 */
export function isSetupFailure(error: unknown): boolean {
  return isSetup(error, { left: MAX_ERRORS });
}

function isSetup(error: unknown, search: { left: number }): boolean {
  return chainOf(error, search).some((each) => {
    if (setupErrors.has(readProperty(each, 'name'))) return true;
    const members = membersOf(each);
    return members.length > 0 && members.every((member) => isSetup(member, search));
  });
}

/** The verdict of an error, its causes and the members of groups; undefined = none of them says anything. */
function kindIn(error: unknown, search: { left: number }, clock: Pick<Clock, 'now'>): FailureKind | undefined {
  const chain = chainOf(error, search).map((each) => ({ error: each, said: saidIn(each) }));
  // The other errors of Pawl are not the model's, though their cause may look like it.
  if (chain.some((each) => isOther(each.error))) return 'final';
  // Provider packages mark every failed connection as retryable, that of a wrong address too.
  if (chain.some((each) => readProperty(each.error, 'code') === 'ENOTFOUND')) return 'blocked';
  if (chain.some(({ said }) => isAboutAccount(said)) && !isThrottled(chain, clock)) return 'blocked';
  for (const { error: each, said } of chain) {
    const kind = ownKind(each, said) ?? kindOfGroup(each, search, clock);
    if (kind !== undefined) return kind;
  }
  return undefined;
}

interface Link {
  readonly error: unknown;
  readonly said: FailureWords;
}

/** Some providers call what they give per minute a quota: a 429 that says when to come again is a rate limit. */
function isThrottled(chain: readonly Link[], clock: Pick<Clock, 'now'>): boolean {
  if (chain.find(({ said }) => said.status !== undefined)?.said.status !== 429) return false;
  return chain.some(({ error, said }) => isAboutRate(said) || waitIn(error, clock) !== undefined);
}

/** A group is worth what its most hopeful member is worth. */
function kindOfGroup(error: unknown, search: { left: number }, clock: Pick<Clock, 'now'>): FailureKind | undefined {
  const kinds = membersOf(error).map((member) => kindIn(member, search, clock) ?? 'passing');
  return (['passing', 'blocked', 'final'] as const).find((kind) => kinds.includes(kind));
}

const nothing: FailureWords = { status: undefined, texts: [], labels: [] };

function saidIn(error: unknown): FailureWords {
  return namedKind(error) === undefined ? saidBy(error) : nothing;
}

function namedKind(error: unknown): FailureKind | undefined {
  const name = readProperty(error, 'name');
  return typeof name === 'string' && Object.hasOwn(named, name) ? named[name] : undefined;
}

function isOther(error: unknown): boolean {
  const code = readProperty(error, 'code');
  return isPawlError(error) && !modelCodes.has(code);
}

function ownKind(error: unknown, said: FailureWords): FailureKind | undefined {
  const code = readProperty(error, 'code');
  const known = code === 'MODEL_STALLED' ? 'passing' : namedKind(error);
  const kind = known ?? kindOfConnection(error, code) ?? kindOfStatus(said);
  const isRetryable = readProperty(error, 'isRetryable');
  if (isRetryable === true && kind !== 'blocked') return 'passing';
  if (kind !== undefined) return kind;
  if (isAboutLength(said) || isAboutRequest(said)) return 'final';
  if (isAboutCaller(said)) return 'blocked';
  return isRetryable === false && isMarked(error) ? 'final' : undefined;
}

/** In errors of the AI SDK, and of its gateway, `isRetryable: false` is a default; an error of the host says it on purpose. */
function isMarked(error: unknown): boolean {
  if (readProperty(error, Symbol.for('vercel.ai.gateway.error') as never) === true) return false;
  const name = readProperty(error, 'name');
  return typeof readProperty(error, 'stack') === 'string' && !(typeof name === 'string' && name.startsWith('AI_'));
}

function kindOfConnection(error: unknown, code: unknown): FailureKind | undefined {
  if (networkCodes.has(code)) return 'passing';
  if (typeof code === 'string' && code.startsWith('UND_ERR_') && !wrongCalls.has(code)) return 'passing';
  return isFetchFailure(error) ? 'passing' : undefined;
}

function isFetchFailure(error: unknown): boolean {
  const [name, message] = [readProperty(error, 'name'), readProperty(error, 'message')];
  if (name !== 'TypeError' || typeof message !== 'string') return false;
  const beginning = message.slice(0, 40).toLowerCase();
  return fetchFailures.some((each) => beginning.startsWith(each));
}

function kindOfStatus({ status }: FailureWords): FailureKind | undefined {
  if (status === undefined) return undefined;
  if (wrongRequest.has(status)) return 'final';
  return wrongCaller.has(status) ? 'blocked' : 'passing';
}

/** Whether an error that says nothing else is a bug of the program. */
function isBug(error: unknown): boolean {
  return chainOf(error, { left: MAX_CHAIN }).some(
    (each) => bugs.has(readProperty(each, 'name')) || wrongCalls.has(readProperty(each, 'code')),
  );
}

/** Returns how long the provider asks to wait, ms; `undefined` if it does not say. */
function askedWait(error: unknown, clock: Pick<Clock, 'now'>): number | undefined {
  const open = [error];
  for (const search = { left: MAX_ERRORS }; open.length > 0 && search.left > 0; ) {
    for (const each of chainOf(open.shift(), search)) {
      const ms = waitIn(each, clock);
      if (ms !== undefined) return Math.min(ms, Number.MAX_SAFE_INTEGER);
      open.push(...membersOf(each));
    }
  }
  return undefined;
}

function waitIn(error: unknown, clock: Pick<Clock, 'now'>): number | undefined {
  const headers = readProperty(error, 'responseHeaders');
  const ms = numberOf(readProperty(headers, 'retry-after-ms'));
  if (ms !== undefined) return ms;
  const after = readProperty(headers, 'retry-after');
  const seconds = numberOf(after);
  if (seconds !== undefined) return seconds * 1_000;
  const date = typeof after === 'string' ? Date.parse(after) : Number.NaN;
  return Number.isNaN(date) ? delayIn(error) : Math.max(0, date - clock.now());
}

/** Google names the wait in the body, as a text of seconds: `{ error: { details: [{ retryDelay: '34s' }] } }`. */
function delayIn(error: unknown): number | undefined {
  const details = readProperty(readProperty(readProperty(error, 'data'), 'error'), 'details');
  if (!Array.isArray(details)) return undefined;
  for (const detail of details.slice(0, MAX_MEMBERS)) {
    const delay = readProperty(detail, 'retryDelay');
    const seconds = typeof delay === 'string' && delay.endsWith('s') ? numberOf(delay.slice(0, -1)) : undefined;
    if (seconds !== undefined) return seconds * 1_000;
  }
  return undefined;
}

function numberOf(header: unknown): number | undefined {
  return typeof header === 'string' && /^\s*\d+(\.\d+)?\s*$/.test(header) ? Number(header) : undefined;
}

/** An error and its causes, outermost first. Of the AI SDK's own retries the last error counts. */
function chainOf(error: unknown, search: { left: number }): unknown[] {
  const chain: unknown[] = [];
  for (let each = error; each !== undefined && each !== null && chain.length < MAX_CHAIN && search.left > 0; ) {
    search.left -= 1;
    chain.push(each);
    each = lastErrorOf(each) ?? readProperty(each, 'cause');
  }
  return chain;
}

/** The members of a group of errors. Those of a retry are its earlier attempts, which do not count. */
function membersOf(error: unknown): unknown[] {
  if (lastErrorOf(error) !== undefined) return [];
  const members = readProperty(error, 'errors');
  const length = readProperty(members, 'length');
  if (typeof length !== 'number' || !(length > 0)) return [];
  return Array.from({ length: Math.min(length, MAX_MEMBERS) }, (_, i) => readProperty(members, String(i)));
}

function lastErrorOf(error: unknown): object | undefined {
  const last = readProperty(error, 'lastError');
  return typeof last === 'object' && last !== null ? last : undefined;
}
