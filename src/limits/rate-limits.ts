import type { BucketCost } from '../store/limits/port.ts';
import type { CheckpointStore } from '../store/port.ts';
import { type Clock, systemClock } from '../values/clock.ts';
import { sha256 } from '../values/digest.ts';
import { isObject } from '../values/json.ts';
import { checkKeys, type KnownKeys, kindOf } from '../values/known-options.ts';
import type { CallLimits, CallTurn, LimitedCall, TakeOptions } from './port.ts';
import { TurnTaker } from './turn-taker.ts';

/** A limit. It holds for each model, tier, caller, or value of a label by itself. */
export interface LimitRule {
  /**
   * What is limited: each model, each tier, each caller, or each value of a label (`label:tenant`). A run without a caller, or without
   * the label, is not limited by the rule.
   * @example by: 'callerId'
   */
  readonly by: 'model' | 'tier' | 'callerId' | `label:${string}`;
  /**
   * Most requests, above 0.
   * @default none
   * @example requestsPerMinute: 60
   */
  readonly requestsPerMinute?: number;
  /**
   * Most tokens, input and output together, above 0.
   * @default none
   * @example tokensPerMinute: 50_000
   */
  readonly tokensPerMinute?: number;
}

export interface RateLimitsOptions {
  /**
   * Holds the turns of all processes that share it: any store of Pawl.
   * @example store
   */
  readonly store: CheckpointStore;
  /**
   * A request waits until all rules that match it give it a turn: those by labels and callers first, those by models last. A request that
   * an earlier one holds back has no place in the others yet.
   * @example rules: [{ by: 'label:tenant', requestsPerMinute: 60 }]
   */
  readonly rules: readonly LimitRule[];
  /**
   * A turn within this time is waited for in the process; a run with a later one is suspended in the store. 1,000 or more.
   * @default 2_000
   */
  readonly holdMs?: number | undefined;
  /**
   * For tests.
   * @default the computer's
   * @example clock: testClock()
   */
  readonly clock?: Clock | undefined;
}

const of = 'rateLimits';
const optionKeys: KnownKeys<RateLimitsOptions> = { store: true, rules: true, holdMs: true, clock: true };
const ruleKeys: KnownKeys<LimitRule> = { by: true, requestsPerMinute: true, tokensPerMinute: true };

const MINUTE_MS = 60_000;
/** So much of a limit may begin at once when its bucket lies idle. */
const LAG_MS = 1_000;
const HOLD_MS = 2_000;
/** A run that rests is due this long before its turn: it could not rest for less. */
const LEAST_HOLD_MS = 1_000;
/** The output that is expected of a request, in tokens: at most this part of the limit. */
const OUTPUT_TOKENS = 1_000;
const OUTPUT_SHARE = 1 / 20;

/**
 * Makes limits on the requests and tokens of a minute that hold over all processes that share the store. An idle limit lets one second's
 * worth begin at once, and at least one request.
 *
 * @throws {TypeError} for a rule without a limit, an unknown `by`, two rules for the same, and a store without the group `limits`
 * @example
 * const limits = rateLimits({ store, rules: [{ by: 'model', requestsPerMinute: 600 }, { by: 'label:tenant', tokensPerMinute: 50_000 }] });
 * createExecutor({ models, store, limits });
 */
export function rateLimits(options: RateLimitsOptions): CallLimits {
  checkKeys(options, optionKeys, { of });
  const { store, rules, holdMs = HOLD_MS, clock = systemClock } = options;
  if (!isObject(store) || !store.limits)
    throw new TypeError(`${of}: the store must give turns to calls; this one has no group limits`);
  if (!(typeof holdMs === 'number' && holdMs >= LEAST_HOLD_MS))
    throw new TypeError(`${of}: holdMs must be a number of ms of ${LEAST_HOLD_MS} or more, not ${kindOf(holdMs)}`);
  checkRules(rules);
  return new RateLimits(
    rules.map((rule) => ({ ...rule })),
    { holdMs, taker: new TurnTaker(store.limits, clock) },
  );
}

class RateLimits implements CallLimits {
  readonly holdMs: number;
  readonly #rules: readonly LimitRule[];
  /** What the rules are by, from the narrowest to the widest: the last one is kept to exactly. */
  readonly #bys: readonly LimitRule['by'][];
  readonly #taker: TurnTaker;

  constructor(rules: readonly LimitRule[], { holdMs, taker }: { readonly holdMs: number; readonly taker: TurnTaker }) {
    this.#rules = rules;
    this.#bys = [...new Set(rules.map(({ by }) => by))].sort((a, b) => widthOf(a) - widthOf(b));
    this.holdMs = holdMs;
    this.#taker = taker;
  }

  async take(call: LimitedCall, { signal, after }: TakeOptions): Promise<CallTurn> {
    const bys = this.#bys.slice(this.#bys.indexOf(after as LimitRule['by']) + 1).filter((by) => isMatch({ by }, call));
    if (bys.length === 0) return { waitMs: 0 };
    const costs = bys.map((by) =>
      this.#rules.filter((rule) => rule.by === by).flatMap((rule) => bucketsOf(rule, call)),
    );
    const { waitMs, groups } = await this.#taker.take(costs, signal);
    const over = this.#rules.find(
      (rule) => isMatch(rule, call) && tokensOf(rule, call) > (rule.tokensPerMinute ?? Infinity),
    );
    return {
      waitMs,
      rule: bys[groups - 1],
      ...(groups < bys.length ? { isPart: true } : {}),
      ...(over && after === undefined ? { exceeds: { by: over.by, tokensPerMinute: over.tokensPerMinute ?? 0 } } : {}),
    };
  }

  report(call: LimitedCall, usedTokens: number): void {
    if (!Number.isFinite(usedTokens) || usedTokens < 0) return;
    for (const rule of this.#rules) {
      const { tokensPerMinute: limit } = rule;
      const [bucket] = limit === undefined ? [] : tokenBucket(rule, call);
      const byMs = (usedTokens - tokensOf(rule, call)) * (MINUTE_MS / (limit ?? 1));
      if (bucket && byMs !== 0) this.#taker.move({ bucket: bucket.bucket, lagMs: bucket.lagMs, byMs });
    }
  }
}

function bucketsOf(rule: LimitRule, call: LimitedCall): BucketCost[] {
  const value = limitedBy(rule.by, call);
  if (value === undefined) return [];
  return [...requestBucket(rule, value), ...tokenBucket(rule, call)];
}

function requestBucket({ by, requestsPerMinute }: LimitRule, value: string): BucketCost[] {
  if (requestsPerMinute === undefined) return [];
  const costMs = MINUTE_MS / requestsPerMinute;
  return [{ bucket: idOf('requests', by, value), costMs, lagMs: Math.max(LAG_MS, costMs) }];
}

function tokenBucket(rule: LimitRule, call: LimitedCall): BucketCost[] {
  const { by, tokensPerMinute } = rule;
  const value = limitedBy(by, call);
  if (tokensPerMinute === undefined || value === undefined) return [];
  const costMs = tokensOf(rule, call) * (MINUTE_MS / tokensPerMinute);
  return [{ bucket: idOf('tokens', by, value), costMs, lagMs: LAG_MS }];
}

/** What a request is expected to use. */
function tokensOf({ tokensPerMinute = 0 }: LimitRule, { inputTokens }: LimitedCall): number {
  return inputTokens + Math.min(OUTPUT_TOKENS, tokensPerMinute * OUTPUT_SHARE);
}

/** Models are the limits of a provider, and count all callers. */
function widthOf(by: LimitRule['by']): number {
  return by === 'model' ? 2 : by === 'tier' ? 1 : 0;
}

function isMatch({ by }: Pick<LimitRule, 'by'>, call: LimitedCall): boolean {
  return limitedBy(by, call) !== undefined;
}

/** Returns to whom a rule applies; undefined: to no one in this call. */
function limitedBy(by: LimitRule['by'], call: LimitedCall): string | undefined {
  if (by === 'model' || by === 'tier' || by === 'callerId') return call[by] || undefined;
  const label = by.slice('label:'.length);
  return Object.hasOwn(call.labels, label) ? call.labels[label] : undefined;
}

/** A caller or a label may be any text, and is no matter of the store: it gets a hash. */
function idOf(what: 'requests' | 'tokens', by: string, value: string): string {
  return sha256(JSON.stringify([what, by, value]));
}

function checkRules(rules: unknown): asserts rules is readonly LimitRule[] {
  if (!Array.isArray(rules) || rules.length === 0)
    throw new TypeError(`${of}: rules must be a list of one or more rules`);
  const seen = new Set<string>();
  for (const [i, rule] of rules.entries()) {
    const at = `rules[${i}]`;
    if (!isObject(rule))
      throw new TypeError(`${of}: ${at} must be { by, requestsPerMinute or tokensPerMinute }, not ${kindOf(rule)}`);
    checkKeys(rule, ruleKeys, { of, at });
    checkBy(rule.by, at);
    const given = (['requestsPerMinute', 'tokensPerMinute'] as const).filter((name) => rule[name] !== undefined);
    if (given.length === 0)
      throw new TypeError(`${of}: ${at} has no limit: give it requestsPerMinute, tokensPerMinute, or both`);
    for (const name of given) {
      const limit = rule[name];
      if (!(typeof limit === 'number' && limit > 0 && Number.isFinite(limit)))
        throw new TypeError(
          `${of}: ${at}.${name} must be a number above 0, not ${typeof limit === 'number' ? limit : kindOf(limit)}`,
        );
      const what = `${name} by ${rule.by}`;
      if (seen.has(what)) throw new TypeError(`${of}: ${at} gives ${what} a second time`);
      seen.add(what);
    }
  }
}

function checkBy(by: unknown, at: string): void {
  const isLabel = typeof by === 'string' && by.startsWith('label:') && by.length > 'label:'.length;
  if (isLabel || by === 'model' || by === 'tier' || by === 'callerId') return;
  const got = typeof by === 'string' ? JSON.stringify(by.slice(0, 40)) : kindOf(by);
  throw new TypeError(`${of}: ${at}.by must be 'model', 'tier', 'callerId' or 'label:<name>', not ${got}`);
}
