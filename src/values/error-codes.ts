import type * as errors from './errors.ts';
import type { AnsweredBefore } from './errors.ts';

/**
 * The codes of all errors of this package except those of `pawl/fan-out`; `docs/errors.md` explains each. The list derives
 * from the classes, so a new class is in it at once.
 */
export type KnownErrorCode = {
  [Name in keyof typeof errors]: (typeof errors)[Name] extends new (
    ...given: never
  ) => { readonly code: infer Code }
    ? Code
    : never;
}[keyof typeof errors];

/** A code of Pawl, or one of the host's own: an error that a port, a tool or a provider threw keeps its `code`. */
export type ErrorCode = KnownErrorCode | (string & {});

/** What an error means to the code that catches it. */
export interface ErrorPolicy {
  /** `later`: the same call may succeed at another time, unchanged. `never`: something has to change first. */
  readonly retry: 'never' | 'later';
  /** Another owner has the run: it took the run from this process (`lost`), or already had it (`elsewhere`). */
  readonly ownership?: 'lost' | 'elsewhere';
  /** The store did not answer, or had no room. */
  readonly isStoreAway?: true;
  /** A save that fails with this code fails at each attempt: this record can never be stored. */
  readonly isUnstorable?: true;
}

const never: ErrorPolicy = Object.freeze({ retry: 'never' });
const later: ErrorPolicy = Object.freeze({ retry: 'later' });
const storeAway: ErrorPolicy = Object.freeze({ retry: 'later', isStoreAway: true });
const unstorable: ErrorPolicy = Object.freeze({ retry: 'never', isUnstorable: true });

/** A code without a row does not compile. */
const policies = {
  AGENT_NOT_FOUND: never,
  ALREADY_ANSWERED: never,
  ANSWER_CUT: never,
  ANSWER_REDACTED: never,
  ANSWER_REFUSED: never,
  BUDGET_EXCEEDED: later,
  CANCELLED: never,
  CHECKPOINT_CORRUPT: never,
  RUN_NOT_FOUND: never,
  // A newer version of the host's program can read the record.
  CHECKPOINT_TOO_NEW: later,
  CONTENT_REFUSED: never,
  CONTEXT_TOO_LONG: never,
  CRITIC_KILL: never,
  DEADLINE_EXCEEDED: never,
  DEFINITION_CHANGED: never,
  ERR_SHUTDOWN: later,
  EVENT_INVALID: never,
  FORK_EFFECTS: never,
  EVENT_NOT_TAKEN: never,
  INPUT_INVALID: never,
  INVALID_LABELS: never,
  INVALID_RUN_ID: never,
  INVALID_THREAD_ID: never,
  JOURNAL_GONE: never,
  KEY_MISMATCH: never,
  LAB_FILE: never,
  LEASE_LOST: Object.freeze({ retry: 'never', ownership: 'lost' }),
  MIGRATION: never,
  MODEL: never,
  MODEL_OUTAGE: later,
  MODEL_STALLED: later,
  // A process of the newer deployment can continue the run.
  NEWER_DEPLOYMENT: later,
  NOT_DURABLE: later,
  NOT_JSON: unstorable,
  OUTPUT_INVALID: never,
  PORT_TIMEOUT: storeAway,
  RECORD_GONE: never,
  RECORD_TOO_LARGE: unstorable,
  REPLAY_MISS: never,
  REPLY_TOO_LARGE: never,
  REVISION_GAP: never,
  RUN_ID_CONFLICT: never,
  RUN_ENDED: never,
  RUN_NOT_ENDED: later,
  RUN_OWNED_ELSEWHERE: Object.freeze({ retry: 'later', ownership: 'elsewhere' }),
  RUN_PANIC: never,
  RUN_PARKED: never,
  RUN_SLICED: later,
  RUN_WAITS: later,
  SCHEDULE_NOT_FOUND: never,
  // A process with another setup can continue the run.
  SETUP: later,
  STEP_LIMIT: never,
  STORE_FULL: storeAway,
  STORE_UNAVAILABLE: storeAway,
  THREAD_BUSY: later,
  THREAD_EXISTS: never,
  THREAD_FULL: later,
  THREAD_MESSAGE_CONFLICT: never,
  THREAD_MISSING: never,
  TOOL_LOOP: never,
  TRANSCRIPT_INVALID: never,
  UNDELIVERED: never,
  UNKNOWN_TIER: never,
  UNKNOWN_TOOL: never,
  UNSUPPORTED: never,
  WAIT_AFTER_EFFECT: never,
  WAIT_CHANGED: never,
  WAIT_EXPIRED: never,
  WAIT_GONE: never,
  WORKFLOW_ERROR: never,
  WORKFLOW_LOOP: never,
  WORKFLOW_STATE: never,
} as const satisfies { readonly [Code in KnownErrorCode]: ErrorPolicy };

/** Returns the policy of a code; undefined for a code that is not Pawl's. */
export function policyOf(code: unknown): ErrorPolicy | undefined {
  return typeof code === 'string' && Object.hasOwn(policies, code) ? policies[code as KnownErrorCode] : undefined;
}

/** The page that explains the codes, in the package. A fork with a site writes the address of its page here. */
const ERRORS_PAGE = 'docs/errors.md';

/**
 * Returns where an error is explained; undefined for a code that is not Pawl's.
 * @example pageOfCode('LEASE_LOST') // docs/errors.md#lease_lost
 */
export function pageOfCode(code: unknown): string | undefined {
  return policyOf(code) && `${ERRORS_PAGE}#${String(code).toLowerCase()}`;
}

/** Marks every error of Pawl, also across two installed copies of the package. */
const brand: unique symbol = Symbol.for('pawl.error') as never;

/**
 * An error of Pawl: a stable `code` to branch on, and a message that says what happened and what to do. `docs/errors.md` explains each
 * code. Ask `isPawlError`, not `instanceof`: two copies of the package in one process have two classes but one code.
 * @example throw new PawlError('STORE_UNAVAILABLE', 'the database did not answer', { cause }); // in a store of your own
 */
export class PawlError extends Error {
  readonly code: ErrorCode;
  readonly [brand] = true;

  /** Whether the call that failed may succeed later, unchanged. */
  get retry(): 'never' | 'later' {
    return policyOf(this.code)?.retry ?? 'never';
  }

  constructor(code: ErrorCode, message?: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
    this.name = new.target.name;
  }
}

/** The base of the errors with a class of their own, which has the code. */
export abstract class CodedError extends PawlError {
  abstract override readonly code: string;

  constructor(message?: string, options?: { cause?: unknown }) {
    super('', message, options);
  }
}

/**
 * Returns whether a value is an error of Pawl, made by this copy of the package or by another. Never throws.
 * @param code only an error with this code
 * @example try { await executor.park(runId, 'later'); } catch (error) { if (!isPawlError(error, 'RUN_NOT_FOUND')) throw error; }
 */
export function isPawlError<Code extends ErrorCode>(
  value: unknown,
  code?: Code,
): value is PawlError & { readonly code: Code } & (Code extends 'ALREADY_ANSWERED'
    ? { readonly answered: AnsweredBefore | undefined }
    : unknown) {
  try {
    const error = value as PawlError | null | undefined;
    return error?.[brand] === true && (code === undefined || error.code === code);
  } catch {
    return false;
  }
}

/**
 * Ends the message of a `CheckpointCorruptError` about an encrypted text that the codec did not open: its key may be another
 * one under the same id. Stores keep the message as the reason of a quarantine, and `pawl prune` spares such a record, so these
 * words never change.
 */
export const NOT_OPENED = '(encrypted: not opened)';

/** Ends the message of a `KeyMismatchError` about a key that the codec does not have. The command line advises by these words. */
export const UNKNOWN_KEY = 'which is not among the keys';

/** Ends the message of a `KeyMismatchError` about an encrypted text in a store without a codec. */
export const NO_CODEC = 'give the store the codec that wrote it';
