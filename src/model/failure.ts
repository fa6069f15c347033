import type { Clock } from '../values/clock.ts';
import { readProperty } from '../values/error-data.ts';
import { ModelError } from '../values/errors.ts';

/** Longer chains are cut: a hostile `cause` getter must not cause an endless walk. */
const MAX_CHAIN = 16;

/** Statuses below 500 that are transient: timeout, conflict, too early, too many requests. */
const passingStatuses: readonly unknown[] = [408, 409, 425, 429];

/** A connection that failed or broke. A name that does not resolve is a wrong address, and is not in this list. */
const networkCodes: readonly unknown[] = [
  'ECONNRESET',
  'ECONNREFUSED',
  'ETIMEDOUT',
  'EPIPE',
  'EAI_AGAIN',
  'UND_ERR_SOCKET',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'UND_ERR_CLOSED',
  'UND_ERR_DESTROYED',
  'UND_ERR_INFO',
];

/** Errors that provider packages throw for an incomplete answer. */
const brokenAnswers: readonly unknown[] = ['AI_InvalidResponseDataError', 'AI_EmptyResponseBodyError'];

/** The error of an incomplete reply. It is marked as retryable in the AI SDK's way. */
export function brokenOff(message: string): ModelError {
  return Object.assign(new ModelError(message), { isRetryable: true });
}

/** Returns whether another attempt may succeed. An unknown error is final. */
export function isRetryable(error: unknown): boolean {
  const chain = chainOf(error);
  // Provider packages mark every failed connection as retryable, this one too.
  if (chain.some((each) => readProperty(each, 'code') === 'ENOTFOUND')) return false;
  for (const each of chain) {
    const verdict = verdictOn(each);
    if (verdict !== undefined) return verdict;
  }
  return false;
}

function verdictOn(error: unknown): boolean | undefined {
  const [name, code] = [readProperty(error, 'name'), readProperty(error, 'code')];
  if (name === 'AbortError') return false;
  if (code === 'MODEL_STALLED' || networkCodes.includes(code) || brokenAnswers.includes(name)) return true;
  const [declared, status] = [readProperty(error, 'isRetryable'), statusOf(error)];
  // The AI SDK's default for 425 is false, which cannot be distinguished from a provider's deliberate false.
  if (typeof declared === 'boolean') return declared || status === 425;
  return status === undefined ? undefined : status >= 500 || passingStatuses.includes(status);
}

/** Errors within a stream have no response of their own; some servers give the status as their `code`. */
function statusOf(error: unknown): number | undefined {
  const found = [readProperty(error, 'statusCode'), readProperty(error, 'code')];
  return found.find((each): each is number => typeof each === 'number' && each >= 400 && each < 600);
}

/** Returns how long the provider asks to wait, ms; `undefined` if it does not say. */
export function askedWait(error: unknown, clock: Clock): number | undefined {
  for (const each of chainOf(error)) {
    const headers = readProperty(each, 'responseHeaders');
    const ms = numberOf(readProperty(headers, 'retry-after-ms'));
    if (ms !== undefined) return ms;
    const after = readProperty(headers, 'retry-after');
    const seconds = numberOf(after);
    if (seconds !== undefined) return seconds * 1_000;
    const date = typeof after === 'string' ? Date.parse(after) : Number.NaN;
    if (!Number.isNaN(date)) return Math.max(0, date - clock.now());
  }
  return undefined;
}

function numberOf(header: unknown): number | undefined {
  return typeof header === 'string' && /^\s*\d+(\.\d+)?\s*$/.test(header) ? Number(header) : undefined;
}

/** Returns an error and its causes, outermost first. */
function chainOf(error: unknown): unknown[] {
  const chain: unknown[] = [];
  for (let each = error; each !== undefined && each !== null && chain.length < MAX_CHAIN; ) {
    chain.push(each);
    each = readProperty(each, 'cause');
  }
  return chain;
}
