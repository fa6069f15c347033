import { durationMs } from '../values/clock.ts';
import { Failure, oneLine } from './ui/failure.ts';
import { shortened } from './ui/format.ts';

/**
 * Parses the option `--since`: a date, or how long ago. Wall clock, ms.
 * @throws {Failure} if it is neither
 * @example sinceOf('7d', now) // a week ago
 */
export function sinceOf(option: string | undefined, now: number): number | undefined {
  if (option === undefined) return undefined;
  const ms = option.endsWith('s') ? undefined : durationMs(option);
  const at = ms === undefined ? dateOf(option) : now - ms;
  if (Number.isFinite(at)) return at;
  throw new Failure(
    `--since ${quoted(option)} is not a time; use a date (2026-11-22, 2026-11-22T08:00Z) or how long ago (30m, 12h, 7d)`,
  );
}

/** A date without a time means midnight UTC, when the days of the audit begin. */
function dateOf(text: string): number {
  return /^\d{4}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN;
}

/**
 * Parses the duration of an option (`--wait`, `--older-than`) into ms.
 * @param name of the option
 * @throws {Failure} if it is not a duration
 * @example lengthOf('wait', '30s') // 30_000
 */
export function lengthOf(name: string, option: string): number {
  const ms = durationMs(option);
  if (ms !== undefined) return ms;
  throw new Failure(`--${name} ${quoted(option)} is not a duration; use 30s, 10m, 12h or 7d`);
}

/** Parses the option `--limit`. @throws {Failure} if it is not a whole number from 1 to 10,000 */
export function limitOption(option: string | undefined, usual: number): number {
  return option === undefined ? usual : countOf('limit', option, 'runs');
}

/**
 * Parses an option that is a count.
 * @throws {Failure} if it is not a whole number from 1 to 10,000
 * @example countOf('steps', '40', 'turns') // 40
 */
export function countOf(name: string, option: string, things: string): number {
  const wanted = /^\d+$/.test(option) ? Number(option) : 0;
  if (wanted >= 1 && wanted <= 10_000) return wanted;
  throw new Failure(`--${name} ${quoted(option)} is not a number of ${things}; use 1 to 10000`);
}

/**
 * Checks the value of an option that must be one of a few words; the first is the default.
 * @throws {Failure} if it is not one of these
 */
export function oneOf<T extends string>(name: string, option: string | undefined, known: readonly [T, ...T[]]): T {
  if (option === undefined) return known[0];
  const found = known.find((each) => each === option);
  if (found !== undefined) return found;
  throw new Failure(`--${name} ${quoted(option)} is not known; it is one of ${known.join(', ')}`);
}

function quoted(text: string): string {
  return JSON.stringify(shortened(oneLine(text), 60));
}

/** Parses the option `--port`; 0 = any free one. @throws {Failure} if it is not a port */
export function portOf(option: string | undefined, usual: number): number {
  if (option === undefined) return usual;
  const port = /^\d{1,5}$/.test(option) ? Number(option) : Number.NaN;
  if (port <= 65_535) return port;
  throw new Failure(`--port ${quoted(option)} is not a port; use 0 to 65535`);
}
