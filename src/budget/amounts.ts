import type { Spend } from './port.ts';

/** The kinds of amounts that a budget limits: tokens, US dollars, seconds. */
export const kinds = ['tokens', 'usd', 'seconds'] as const;
export type Kind = (typeof kinds)[number];

/**
 * The units of a budget: tokens, billionths of a US dollar, millionths of a second. All are whole numbers, so that adding
 * and subtracting the same amount leaves exactly zero.
 */
export interface BudgetAmounts {
  readonly tokens: number;
  readonly usd: number;
  readonly seconds: number;
}

const unitsPerOne: BudgetAmounts = { tokens: 1, usd: 1e9, seconds: 1e6 };

/** The most that one call counts. Sums of such amounts neither lose digits nor become infinite. */
const MAX_UNITS = 1e14;

/** No amounts: 0 tokens, 0 US dollars, 0 seconds. */
export const nothing: BudgetAmounts = Object.freeze({ tokens: 0, usd: 0, seconds: 0 });

/** Adds two amounts of a budget. */
export function add(a: BudgetAmounts, b: BudgetAmounts): BudgetAmounts {
  return { tokens: a.tokens + b.tokens, usd: a.usd + b.usd, seconds: a.seconds + b.seconds };
}

/** Subtracts one amount of a budget from another. */
export function subtract(a: BudgetAmounts, b: BudgetAmounts): BudgetAmounts {
  return { tokens: a.tokens - b.tokens, usd: a.usd - b.usd, seconds: a.seconds - b.seconds };
}

/** Returns what `a` has more than `b`; never negative. */
export function beyond(a: BudgetAmounts, b: BudgetAmounts): BudgetAmounts {
  const { tokens, usd, seconds } = subtract(a, b);
  return { tokens: Math.max(0, tokens), usd: Math.max(0, usd), seconds: Math.max(0, seconds) };
}

/** Returns whether each amount of a budget is 0. */
export function isNothing({ tokens, usd, seconds }: BudgetAmounts): boolean {
  return tokens === 0 && usd === 0 && seconds === 0;
}

/** Converts what a call or a run has spent into amounts of a budget: whole units. @param spend finite and not negative */
export function amountsOf(spend: Spend): BudgetAmounts {
  const units = (kind: Kind) => Math.min(MAX_UNITS, Math.round(spend[kind] * unitsPerOne[kind]));
  return { tokens: units('tokens'), usd: units('usd'), seconds: units('seconds') };
}

/** Converts a limit of a budget (tokens, US dollars, seconds) into whole units. A limit above 0 never becomes 0. */
export function limitOf(kind: Kind, limit: number): number {
  return limit === 0 ? 0 : Math.max(1, Math.round(limit * unitsPerOne[kind]));
}

/** Converts amounts of a budget into tokens, US dollars and seconds. */
export function toSpend({ tokens, usd, seconds }: BudgetAmounts): Spend {
  return { tokens, usd: usd / unitsPerOne.usd, seconds: seconds / unitsPerOne.seconds };
}

/** Returns an amount of a budget as text for a message: '1,200 tokens', '$0.25', '90 s'. */
export function described(kind: Kind, units: number): string {
  const amount = units / unitsPerOne[kind];
  if (kind === 'tokens') return `${grouped(amount)} tokens`;
  return kind === 'usd' ? `$${precise(amount)}` : `${grouped(amount)} s`;
}

/** Made only when a refusal is worded: number formats cost more than the rest of importing the package. */
const grouped = (amount: number) => new Intl.NumberFormat('en-US', { maximumFractionDigits: 1 }).format(amount);
const precise = (amount: number) =>
  new Intl.NumberFormat('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 6 }).format(amount);
