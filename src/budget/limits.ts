import { type BudgetAmounts, described, type Kind, kinds, limitOf } from './amounts.ts';
import type { LeavingAmounts, StandingAmounts } from './store.ts';

/** Limits in units; an absent kind is not limited. */
export type BudgetLimits = { readonly [K in Kind]?: number };

/**
 * Checks the limits of createBudget, and returns them in the units of its amounts.
 * @throws {TypeError} if a limit is not a number >= 0, or if there is no limit
 */
export function limitsOf(given: { readonly [K in Kind]?: number | undefined }): BudgetLimits {
  const limits: { [K in Kind]?: number } = {};
  for (const kind of kinds) {
    const limit = given[kind];
    if (limit === undefined) continue;
    if (typeof limit !== 'number' || !Number.isFinite(limit) || limit < 0) {
      throw new TypeError(`createBudget: ${kind} must be a number >= 0, not ${shown(limit)}`);
    }
    limits[kind] = limitOf(kind, limit);
  }
  if (Object.keys(limits).length === 0) {
    throw new TypeError('createBudget needs at least one limit: tokens, usd or seconds');
  }
  return limits;
}

function shown(value: unknown): string {
  return typeof value === 'number' ? String(value) : typeof value;
}

/** Which limit refused a call, and why. */
export interface Refusal {
  readonly kind: Kind;
  readonly limit: number;
  readonly standing: StandingAmounts;
  /** The estimate of the refused call; undefined if the caller may make no call at all. */
  readonly estimate: BudgetAmounts | undefined;
}

/**
 * Decides whether a caller may make a call: returns the limit that refuses it, or undefined. What is left must be enough
 * for what all running calls are expected to use. A single call may be expected to use more: estimates are rough, so a
 * caller with anything left can make one call.
 * @param estimate undefined asks whether anything is left
 */
export function refusalOf(
  limits: BudgetLimits,
  { spent, reserved }: StandingAmounts,
  estimate?: BudgetAmounts,
): Refusal | undefined {
  for (const kind of kinds) {
    const limit = limits[kind];
    if (limit === undefined) continue;
    const used = spent[kind] + reserved[kind];
    const standing = { spent, reserved };
    if (used >= limit) return { kind, limit, standing, estimate: undefined };
    if (estimate && reserved[kind] > 0 && used + estimate[kind] > limit) return { kind, limit, standing, estimate };
  }
  return undefined;
}

/** What the message of a refusal needs. */
interface Circumstances {
  readonly callerId: string;
  readonly windowMs: number;
  /** Wall clock, ms. */
  readonly now: number;
  readonly leaving: readonly LeavingAmounts[];
}

/** Returns the message of a refused call: which limit, how much of it is used, when some of it becomes free. */
export function messageOf(refusal: Refusal, circumstances: Circumstances): string {
  const { kind, limit, standing, estimate } = refusal;
  const { callerId, windowMs } = circumstances;
  const whose = callerId === '' ? 'the budget of runs without a caller' : `the budget of caller ${quoted(callerId)}`;
  const need = estimate ? described(kind, estimate[kind]) : '';
  const what = estimate ? `a model call of about ${need} does not fit ${whose}` : `${whose} is used up`;
  const reserved = standing.reserved[kind];
  const held = reserved === 0 ? '' : ` and ${described(kind, reserved)} held by calls under way`;
  const sum = `${described(kind, standing.spent[kind])} spent in ${time(windowMs)}${held}`;
  return `${what}: ${sum}, the limit is ${described(kind, limit)}; ${frees(refusal, circumstances)}`;
}

function frees({ kind, limit, standing }: Refusal, { leaving, now, windowMs }: Circumstances): string {
  let spent = standing.spent[kind];
  if (spent < limit) return 'it frees up when calls that are under way have ended';
  for (const { inMs, amounts } of leaving) {
    spent -= amounts[kind];
    if (spent < limit) return `it frees up in ${time(inMs)}${moment(now + inMs)}`;
  }
  return limit === 0 ? 'nothing is allowed' : `it frees up within ${time(windowMs)}`;
}

function moment(at: number): string {
  return Math.abs(at) <= 8.64e15 ? `, at ${new Date(at).toISOString()}` : '';
}

function quoted(callerId: string): string {
  return JSON.stringify(callerId.length > 100 ? `${callerId.slice(0, 100)}…` : callerId);
}

const units = [
  ['days', 86_400_000],
  ['hours', 3_600_000],
  ['minutes', 60_000],
] as const;

/** A length of time in words, for the message of a refusal. @example time(604_800_000) // '7 days' */
function time(ms: number): string {
  const [name, length] = units.find(([, each]) => ms >= 2 * each) ?? ['seconds', 1_000];
  return `${Number((ms / length).toFixed(1))} ${name}`;
}
