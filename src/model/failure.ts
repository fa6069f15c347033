import type { FailureKind, ModelFailure } from '../run/waits/outage.ts';
import type { Clock } from '../values/clock.ts';
import { policyOf } from '../values/error-codes.ts';
import { readProperty } from '../values/error-data.ts';
import { ModelError } from '../values/errors.ts';

/** Errors of one failure that are looked at, and members of one group of errors: bounds for a hostile error. */
const MAX_ERRORS = 100;
const MAX_CHAIN = 16;
const MAX_MEMBERS = 16;

/** The HTTP statuses whose meaning does not depend on the provider; others below 500 are final. */
const statuses: { readonly [status: number]: FailureKind } = {
  401: 'blocked',
  402: 'blocked',
  403: 'blocked',
  404: 'blocked',
  408: 'passing',
  409: 'passing',
  425: 'passing',
  429: 'passing',
};

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

/** Codes of undici for a wrong call, which fails each time. */
const wrongCalls: ReadonlySet<unknown> = new Set([
  'UND_ERR_ABORTED',
  'UND_ERR_INVALID_ARG',
  'UND_ERR_INVALID_RETURN_VALUE',
  'UND_ERR_NOT_SUPPORTED',
  'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH',
]);

/** The `TypeError` of `fetch`, in Node and in browsers; it often has no code. */
const fetchFailures: ReadonlySet<unknown> = new Set(['fetch failed', 'failed to fetch', 'terminated']);

/** Errors that provider packages throw for an answer that is not what its protocol promises. */
const brokenAnswers: ReadonlySet<unknown> = new Set([
  'AI_InvalidResponseDataError',
  'AI_EmptyResponseBodyError',
  'AI_JSONParseError',
]);

/** Errors within a stream have no status: many servers give one of these words as `type` or `code`. */
const streamErrors: { readonly [word: string]: FailureKind } = {
  overloaded_error: 'passing',
  api_error: 'passing',
  server_error: 'passing',
  internal_server_error: 'passing',
  service_unavailable: 'passing',
  timeout_error: 'passing',
  rate_limit_error: 'passing',
  rate_limit_exceeded: 'passing',
  authentication_error: 'blocked',
  permission_error: 'blocked',
  billing_error: 'blocked',
  insufficient_quota: 'blocked',
  invalid_api_key: 'blocked',
  not_found_error: 'blocked',
  model_not_found: 'blocked',
};

/** Errors of the AI SDK about a key or a setting that this process does not have. */
const setupErrors: ReadonlySet<unknown> = new Set(['AI_LoadAPIKeyError', 'AI_LoadSettingError']);

/** Returns the error of a model's reply that broke off before its end. It is marked as retryable in the AI SDK's way. */
export function brokenOff(message: string): ModelError {
  return Object.assign(new ModelError(message), { isRetryable: true });
}

/**
 * Returns what the error of a model call says about another attempt. Looks through causes, retries of the AI SDK and groups of
 * errors; the outermost error that says anything decides. An unknown error is final. Never throws.
 */
export function failureOf(error: unknown, clock: Pick<Clock, 'now'>): ModelFailure {
  const search = { left: MAX_ERRORS };
  const kind = kindIn(error, search) ?? 'final';
  const retryAfterMs = kind === 'final' ? undefined : askedWait(error, clock);
  return { kind, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
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
function kindIn(error: unknown, search: { left: number }): FailureKind | undefined {
  const chain = chainOf(error, search);
  // Provider packages mark every failed connection as retryable, that of a wrong address too.
  if (chain.some((each) => readProperty(each, 'code') === 'ENOTFOUND')) return 'blocked';
  for (const each of chain) {
    const kind = ownKind(each) ?? kindOfGroup(each, search);
    if (kind !== undefined) return kind;
  }
  return undefined;
}

/** A group is worth what its most hopeful member is worth. */
function kindOfGroup(error: unknown, search: { left: number }): FailureKind | undefined {
  const kinds = membersOf(error).map((member) => kindIn(member, search));
  return (['passing', 'blocked', 'final'] as const).find((kind) => kinds.includes(kind));
}

function ownKind(error: unknown): FailureKind | undefined {
  const [name, code] = [readProperty(error, 'name'), readProperty(error, 'code')];
  if (setupErrors.has(name)) return 'blocked';
  if (name === 'AbortError') return 'final';
  if (code === 'MODEL_STALLED' || name === 'TimeoutError' || brokenAnswers.has(name)) return 'passing';
  // The other errors of Pawl are not the model's, though their cause may look like it.
  if (code !== 'MODEL' && policyOf(code) !== undefined) return 'final';
  const kind = kindOfConnection(error, code) ?? kindOfStatus(error, code);
  if (kind !== undefined) return kind;
  if (readProperty(error, 'isRetryable') === true) return 'passing';
  // Without a status `false` is the default of the AI SDK, also for a broken connection: the cause says more.
  return statusOf(error, code) === undefined ? kindOfWord(error, code) : 'final';
}

function kindOfConnection(error: unknown, code: unknown): FailureKind | undefined {
  if (networkCodes.has(code)) return 'passing';
  if (typeof code === 'string' && code.startsWith('UND_ERR_')) return wrongCalls.has(code) ? 'final' : 'passing';
  return isFetchFailure(error) ? 'passing' : undefined;
}

function isFetchFailure(error: unknown): boolean {
  const [name, message] = [readProperty(error, 'name'), readProperty(error, 'message')];
  return name === 'TypeError' && typeof message === 'string' && fetchFailures.has(message.slice(0, 40).toLowerCase());
}

function kindOfStatus(error: unknown, code: unknown): FailureKind | undefined {
  const status = statusOf(error, code);
  if (status === undefined) return undefined;
  return status >= 500 ? 'passing' : statuses[status];
}

/** Errors within a stream have no response of their own; some servers give the status as their `code`. */
function statusOf(error: unknown, code: unknown): number | undefined {
  const found = [readProperty(error, 'statusCode'), code];
  return found.find((each): each is number => typeof each === 'number' && each >= 400 && each < 600);
}

function kindOfWord(error: unknown, code: unknown): FailureKind | undefined {
  const words = [code, readProperty(error, 'type')].filter((each) => typeof each === 'string');
  const known = words.find((word) => Object.hasOwn(streamErrors, word));
  return known === undefined ? undefined : streamErrors[known];
}

/** Returns how long the provider asks to wait, ms; `undefined` if it does not say. */
function askedWait(error: unknown, clock: Pick<Clock, 'now'>): number | undefined {
  const open = [error];
  for (const search = { left: MAX_ERRORS }; open.length > 0 && search.left > 0; ) {
    for (const each of chainOf(open.shift(), search)) {
      const ms = waitIn(readProperty(each, 'responseHeaders'), clock);
      if (ms !== undefined) return Math.min(ms, Number.MAX_SAFE_INTEGER);
      open.push(...membersOf(each));
    }
  }
  return undefined;
}

function waitIn(headers: unknown, clock: Pick<Clock, 'now'>): number | undefined {
  const ms = numberOf(readProperty(headers, 'retry-after-ms'));
  if (ms !== undefined) return ms;
  const after = readProperty(headers, 'retry-after');
  const seconds = numberOf(after);
  if (seconds !== undefined) return seconds * 1_000;
  const date = typeof after === 'string' ? Date.parse(after) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - clock.now());
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
