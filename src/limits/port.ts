import type { Labels } from '../run/request.ts';

/** A model request of a run, as limits count it. */
export interface LimitedCall {
  /** `provider/modelId`, and, for an entry of a list with a `key`, `#` and that key: each account has its own limit. */
  readonly model: string;
  /** '' for a model of the agent's own. */
  readonly tier: string;
  /** '' if the run has none. */
  readonly callerId: string;
  readonly labels: Labels;
  /** An estimate of the tokens of the request. */
  readonly inputTokens: number;
}

/** The turn of a request. */
export interface CallTurn {
  /** The request may be sent after this time, ms; 0 = now. */
  readonly waitMs: number;
  /** The `by` of the rule that holds it back. */
  readonly rule?: string | undefined;
  /** Other rules have given it no turn yet: they are asked at its time, `after` this one. */
  readonly isPart?: boolean | undefined;
  /** The request alone has more tokens than this limit gives for a minute. It is sent all the same, and what follows waits longer. */
  readonly exceeds?: { readonly by: string; readonly tokensPerMinute: number } | undefined;
}

/** Of a take. */
export interface TakeOptions {
  readonly signal: AbortSignal;
  readonly after?: string | undefined;
}

/** The limits of an executor on its model requests: `rateLimits` makes them. */
export interface CallLimits {
  /** A turn within this time is waited for in the process; a run with a later one is suspended in the store. ms, 1,000 or more. */
  readonly holdMs: number;
  /**
   * Takes the turn of a request. It is asked before each one, also of retries, and asked again after a rejection.
   * @param options `signal`: the run is stopped: its turn is not needed; `after`: the `rule` of a turn that was a part, and has come
   */
  take(call: LimitedCall, options: TakeOptions): Promise<CallTurn>;
  /** A request has ended. @param usedTokens what it used, as its provider reported */
  report(call: LimitedCall, usedTokens: number): void;
}
