import { type ErrorCode, type ErrorPolicy, policyOf } from './error-codes.ts';
import { hasTexts } from './json.ts';

/** What caused an error, as plain data. */
export interface ErrorCause {
  readonly name: string;
  /** Absent: what was thrown has none. */
  readonly code?: ErrorCode;
  readonly message: string;
  readonly cause?: ErrorCause;
}

/** An error as plain data. Results, records and events carry it. */
export interface ErrorData extends ErrorCause {
  /** Stable, to branch on; see docs. `RUN_PANIC` for an error without a code. */
  readonly code: ErrorCode;
}

/** Longer chains are cut: a hostile `cause` getter must not cause an endless walk. */
const MAX_CHAIN = 16;
const MAX_MESSAGE = 4_000;

/**
 * Reads a property of any value without throwing; a getter that throws, a proxy that refuses or a primitive reads as
 * `undefined`.
 */
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
  // Its name and its code stand beside the message.
  if (typeof readProperty(value, 'stack') === 'string') return 'an error without a message was thrown';
  try {
    return typeof value === 'object' && value !== null
      ? 'a value that is not an Error was thrown'
      : `thrown: ${String(value)}`.slice(0, MAX_MESSAGE);
  } catch {
    return 'a value that cannot be described was thrown';
  }
}

/** Converts anything that can be thrown into plain data: name, code, message, cause. Never throws. */
export function toErrorData(error: unknown, fallbackCode: ErrorCode = 'RUN_PANIC'): ErrorData {
  const { name, code = fallbackCode, ...rest } = causeOf(error, 0);
  return { name, code, ...rest };
}

function causeOf(error: unknown, depth: number): ErrorCause {
  const code = readString(error, 'code');
  const cause = depth < MAX_CHAIN ? readProperty(error, 'cause') : undefined;
  return {
    name: readString(error, 'name') ?? 'Error',
    ...(code === undefined ? {} : { code }),
    message: readString(error, 'message') ?? describe(error),
    ...(cause === undefined || cause === null ? {} : { cause: causeOf(cause, depth + 1) }),
  };
}

/** Most errors of one chain or aggregate that are looked at: enough for any honest one, and a bound for a hostile one. */
const MAX_VISITED = 10_000;

/** Returns whether an error, its `cause` chain or the members of an AggregateError have this code. Never throws. */
export function hasCode(error: unknown, code: string): boolean {
  return findCode(error, (each) => each === code);
}

/**
 * Returns whether the code of an error, of its `cause` chain or of a member of an AggregateError passes a test. Errors are
 * compared by code, not by class: a process may hold two copies of a package, and hosts have errors of their own. Never
 * throws: a cycle, a getter that throws or a revoked proxy ends the search there.
 */
function findCode(error: unknown, isMeant: (code: unknown) => boolean): boolean {
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

/** Returns whether a stored value is an error as plain data. */
export function isErrorData(value: unknown): boolean {
  return hasTexts(value, ['name', 'code', 'message']);
}

/**
 * Returns whether the call that failed may succeed later, unchanged. `later` for a store that does not answer, a budget that
 * is used up, a run that another process works on. `never` for everything else, and for codes that are not Pawl's.
 * @param error an error of Pawl, or its plain data, as `result.error`
 * @example if (result.error && retryOf(result.error) === 'later') await queue.again(job);
 */
export function retryOf(error: unknown): ErrorPolicy['retry'] {
  return policyOf(readProperty(error, 'code'))?.retry ?? 'never';
}

/** Returns whether an error, or one of its causes, has a policy with this trait. */
export function hasTrait(error: unknown, trait: 'ownership' | 'isStoreAway' | 'isUnstorable'): boolean {
  return findCode(error, (code) => policyOf(code)?.[trait] !== undefined);
}
