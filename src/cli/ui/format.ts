import type { Usage } from '../../index.ts';
import { oneLine } from './control-characters.ts';

/**
 * Formats a number as a text with commas: '1,200'.
 * The first use of Intl costs a tenth of what a short command computes, and most numbers need no comma.
 */
export function grouped(n: number): string {
  if (Number.isInteger(n) && n >= 0 && n < 1_000) return String(n);
  thousands ??= new Intl.NumberFormat('en-US');
  return thousands.format(n);
}

let thousands: Intl.NumberFormat | undefined;

/** Formats a count with its noun: '1 run', '1,200 runs'. */
export function count(n: number, one: string, many = `${one}s`): string {
  return `${grouped(n)} ${n === 1 ? one : many}`;
}

/** Formats a number of tokens as a short text. */
export function tokens({ inputTokens, outputTokens }: Usage): string {
  return count(inputTokens + outputTokens, 'token');
}

/**
 * Formats a length of time as a short text.
 * @param ms
 * @example duration(83_000) // '1 min 23 s'
 */
export function duration(ms: number): string {
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1_000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Formats how long ago a moment was as a short text. @param at wall clock, ms */
export function ago(at: number, now: number): string {
  const ms = Math.max(0, now - at);
  return ms < 172_800_000 ? `${duration(ms)} ago` : `${Math.floor(ms / 86_400_000)} days ago`;
}

/** Formats a list of names as a short text, each name with its count. @example tally(['a', 'b', 'a']) // 'a ×2, b' */
export function tally(names: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const each of names) {
    const name = oneLine(each);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].map(([name, n]) => (n === 1 ? name : `${name} ×${n}`)).join(', ');
}

/** Shortens a text to a number of characters; an ellipsis shows that it was cut. */
export function shortened(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}

let precise: Intl.NumberFormat | undefined;

/** Formats an amount of US dollars. @example dollars(1.5) // '$1.50' */
export function dollars(usd: number): string {
  precise ??= new Intl.NumberFormat('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 4 });
  return `$${precise.format(usd)}`;
}
