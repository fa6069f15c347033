import { backoffMs } from '../../values/backoff.ts';
import { type ErrorCause, type ErrorData, toErrorData } from '../../values/error-data.ts';
import { ModelOutageError } from '../../values/errors.ts';
import type { Wait } from './wait.ts';

/**
 * What a failed model call is worth another attempt.
 * - `passing`: the provider is overloaded, unreachable or broke off; the same call may succeed later.
 * - `blocked`: the provider refuses this account, model or address; a person has to change something, and then it may succeed.
 * - `final`: the same call fails each time.
 */
export type FailureKind = 'passing' | 'blocked' | 'final';

/** What the error of a model call says about another attempt. */
export interface ModelFailure {
  readonly kind: FailureKind;
  /** How long the provider asks to wait, ms; absent = it does not say. */
  readonly retryAfterMs?: number;
  /** A bug of the host's own model or middleware: it may pass with the next deployment only. */
  readonly isBug?: boolean;
  /** The most requests in one process for an answer that came without content: no wait mends it, but another request may. */
  readonly requests?: number;
}

/** The end of the retries in the process. It carries the clock and the random number, so that what follows is a pure decision. */
export interface FailedCall extends ModelFailure {
  /** Wall clock, ms. */
  readonly at: number;
  /** From 0 to 1, for the jitter of the next wait. */
  readonly random: number;
}

/** The wait of a run whose model is away. */
type RetryWait = Extract<Wait, { kind: 'retry' }>;

/** A model turn that failed after its retries in the process. */
export interface FailedTurn {
  readonly error: ErrorData;
  readonly failure: FailedCall;
  /** The wait that ended with this attempt; absent = the turn's first failure. */
  readonly previous: RetryWait | undefined;
  /** The id and the step of the next wait. */
  readonly id: string;
  readonly step: number;
  /** Whether the run has a record: only such a run can wait. */
  readonly isDurable: boolean;
  /** Whether the turn belongs to an optional phase: that phase ends, and the run continues without it. */
  readonly isOptional: boolean;
  /** Whether the record has a model turn: the model answered this run before. */
  readonly hasTurn: boolean;
}

/** What an executor does about a model that stays away. */
interface OutagePolicy {
  /** How long a run waits for its model, from the first failure, ms; 0 = not at all. */
  readonly modelOutageMs: number;
  readonly onModelOutage: 'park' | 'fail';
}

/** The run waits; or it ends: parked, or failed with this error. */
export type AfterFailure =
  | { readonly kind: 'wait'; readonly wait: RetryWait }
  | { readonly kind: 'ends'; readonly how: 'park' | 'fail'; readonly error: ErrorData };

/** The wait of a run after its first failure; it doubles up to the longest. */
const FIRST_WAIT_MS = 30_000;
const LONGEST_WAIT_MS = 900_000;
/** The wait for a person; the run tries by itself as well. */
const BLOCKED_WAIT_MS = 900_000;
/** Runs that failed together should not return together: a wait is this share longer or shorter. */
const WAIT_SPREAD = 0.2;

/** A wait is part of each save, so it keeps the beginning of its error only. */
const MAX_WAIT_MESSAGE = 500;
const MAX_WAIT_CAUSES = 2;

/** Decides what a run does after a model turn that failed: wait for the model, be parked, or fail. */
export function afterModelFailure(turn: FailedTurn, policy: OutagePolicy): AfterFailure {
  const { error, failure, previous } = turn;
  if (!mayWait(turn, failure, policy)) return { kind: 'ends', how: 'fail', error };
  const since = previous?.since ?? failure.at;
  const endsAt = since + policy.modelOutageMs;
  const asked = failure.at + (failure.retryAfterMs ?? 0);
  if (failure.at >= endsAt) return away(turn, policy, `no model call succeeded for ${failure.at - since} ms`);
  if (asked > endsAt) {
    return away(turn, policy, `the provider asks for a wait of ${failure.retryAfterMs} ms, which is too long`);
  }
  const failures = (previous?.failures ?? 0) + 1;
  // The last attempt is at the end of the outage; a provider's wait ends before that.
  const dueAt = Math.ceil(Math.max(asked, Math.min(endsAt, failure.at + waitMs(failure, failures))));
  const { id, step } = turn;
  const needsPerson = failure.kind === 'blocked';
  const facts = { id, createdAt: failure.at, dueAt, step, kind: 'retry' } as const;
  return { kind: 'wait', wait: { ...facts, error: shortError(error), failures, since, needsPerson } };
}

function mayWait(turn: FailedTurn, { kind, isBug }: FailedCall, { modelOutageMs }: OutagePolicy): boolean {
  if (kind === 'final' || !turn.isDurable || turn.isOptional || modelOutageMs <= 0) return false;
  // A mistake in the setup or in the program that shows in a run's first turn: the caller should learn it now.
  return (kind === 'passing' && isBug !== true) || turn.hasTurn;
}

function waitMs({ kind, random }: FailedCall, failures: number): number {
  if (kind === 'blocked') return BLOCKED_WAIT_MS;
  const ms = backoffMs(failures, { firstMs: FIRST_WAIT_MS, maxMs: LONGEST_WAIT_MS });
  return ms * (1 + WAIT_SPREAD * (2 * random - 1));
}

function away({ error }: FailedTurn, { onModelOutage, modelOutageMs }: OutagePolicy, what: string): AfterFailure {
  const message = `${what} (defaults.modelOutageMs is ${modelOutageMs}): ${error.message}`;
  return { kind: 'ends', how: onModelOutage, error: toErrorData(new ModelOutageError(message, { cause: error })) };
}

function shortError<Data extends ErrorCause>({ message, cause, ...rest }: Data, depth = 0): Data {
  return {
    ...rest,
    message: message.slice(0, MAX_WAIT_MESSAGE).toWellFormed(),
    ...(cause && depth < MAX_WAIT_CAUSES ? { cause: shortError(cause, depth + 1) } : {}),
  } as Data;
}
