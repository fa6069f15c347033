import { type ErrorCode, type ErrorPolicy, policyOf } from './error-codes.ts';
import { hasTexts } from './json.ts';

/** An error as plain data: what results, records and events carry. */
export interface ErrorData {
  readonly name: string;
  /** Stable, to branch on; see docs. `RUN_PANIC` where an error brought none. */
  readonly code: ErrorCode;
  readonly message: string;
  readonly cause?: ErrorData;
}

/** Chains longer than this are cut: a hostile `cause` getter must not make us walk for ever. */
const MAX_CHAIN = 16;
const MAX_MESSAGE = 4_000;

/** Reads a property of anything; a getter that throws, a proxy that refuses or a primitive reads as `undefined`. */
export function readProperty(value: unknown, key: string): unknown {
  try {
    return value === null || value === undefined ? undefined : (value as Record<string, unknown>)[key];
  } catch {
    return undefined;
  }
}

function readString(value: unknown, key: string): string | undefined {
  const found = readProperty(value, key);
  return typeof found === 'string' && found !== '' ? found.slice(0, MAX_MESSAGE) : undefined;
}

function describe(value: unknown): string {
  try {
    return typeof value === 'object' && value !== null
      ? 'a value that is not an Error was thrown'
      : `thrown: ${String(value)}`.slice(0, MAX_MESSAGE);
  } catch {
    return 'a value that cannot be described was thrown';
  }
}

/** Turns anything that can be thrown into plain data. Total: it never throws, whatever the value does. */
export function toErrorData(error: unknown, fallbackCode = 'RUN_PANIC', depth = 0): ErrorData {
  const cause = depth < MAX_CHAIN ? readProperty(error, 'cause') : undefined;
  return {
    name: readString(error, 'name') ?? 'Error',
    code: readString(error, 'code') ?? fallbackCode,
    message: readString(error, 'message') ?? describe(error),
    ...(cause === undefined || cause === null ? {} : { cause: toErrorData(cause, fallbackCode, depth + 1) }),
  };
}

/** So many errors of one chain or aggregate are looked at: enough for any honest one, and an end for a hostile one. */
const MAX_VISITED = 10_000;

/** Whether `code` stands anywhere in an error's `cause` chain or among the members of an AggregateError. Total, as `findCode`. */
export function hasCode(error: unknown, code: string): boolean {
  return findCode(error, (each) => each === code);
}

/**
 * Whether the code of an error, of one in its `cause` chain or of a member of an AggregateError passes a test.
 * Errors are known by code, not by class: there may be two copies of a package, and hosts have errors of their own.
 * Total: cycles, getters that throw and revoked proxies only end the search in that place.
 */
export function findCode(error: unknown, isMeant: (code: unknown) => boolean): boolean {
  const seen = new Set<unknown>();
  const open: unknown[] = [error];
  while (open.length > 0 && seen.size < MAX_VISITED) {
    const current = open.pop();
    if (typeof current !== 'object' || current === null || seen.has(current)) continue;
    if (isMeant(readProperty(current, 'code'))) return true;
    seen.add(current);
    open.push(readProperty(current, 'cause'), ...membersOf(current));
  }
  return false;
}

function membersOf(error: object): unknown[] {
  const members = readProperty(error, 'errors');
  const length = Math.min(Number(readProperty(members, 'length')) || 0, MAX_VISITED);
  return Array.from({ length }, (_, i) => readProperty(members, String(i)));
}

/** Whether a stored value is an error as plain data. */
export function isErrorData(value: unknown): boolean {
  return hasTexts(value, ['name', 'code', 'message']);
}

/**
 * Whether the call that failed may succeed later without a change to it: `later` for a store that is away, a budget that is used
 * up, a run that another process works on. `never` for all else, and for codes that are not Pawl's.
 * @param error an error of Pawl, or its plain data, as `result.error`
 * @example if (result.error && retryOf(result.error) === 'later') await queue.again(job);
 */
export function retryOf(error: unknown): ErrorPolicy['retry'] {
  return policyOf(readProperty(error, 'code'))?.retry ?? 'never';
}

/** Whether an error, or one that caused it, has a policy with this trait. */
export function hasTrait(error: unknown, trait: 'ownership' | 'isStoreAway' | 'isUnstorable'): boolean {
  return findCode(error, (code) => policyOf(code)?.[trait] !== undefined);
}
