import { checkKeys, checkMethods, type KnownKeys } from '../../values/known-options.ts';

export interface DriveOptions {
  /**
   * After this time no model call and no tool starts. At least one call begins, however short it is.
   * @default 60_000
   */
  readonly budgetMs?: number;
  /**
   * How long calls that are under way then may last. Model calls and `read` calls end after three quarters of
   * it; the rest is for calls with effects and for the last save. A platform that kills must allow for both times together.
   * @default 30_000
   */
  readonly graceMs?: number;
  /**
   * An abort ends the budget at once. Nothing is counted as a failed start.
   * @default none
   * @example signal: stop.signal
   */
  readonly signal?: AbortSignal;
}

/** The options of a call of `drive`, complete. */
export interface DriveLimits {
  readonly budgetMs: number;
  readonly graceMs: number;
  readonly signal: AbortSignal | undefined;
}

const optionKeys: KnownKeys<DriveOptions> = { budgetMs: true, graceMs: true, signal: true };

/** A timer takes no longer time, ms. */
const MAX_MS = 2 ** 31 - 1;

/** Reads the options of `drive`. @throws {TypeError} for an unknown option, or a time that is not a number of 0 or more */
export function driveLimitsOf(options: DriveOptions): DriveLimits {
  checkKeys(options, optionKeys, { of: 'drive' });
  const { budgetMs = 60_000, graceMs = 30_000, signal } = options;
  checkMethods('drive: signal', signal, { methods: ['addEventListener', 'removeEventListener'] });
  return { budgetMs: msOf('budgetMs', budgetMs), graceMs: msOf('graceMs', graceMs), signal };
}

function msOf(name: string, ms: number): number {
  if (typeof ms === 'number' && ms >= 0) return Math.min(ms, MAX_MS);
  throw new TypeError(`drive: ${name} must be a number of milliseconds, 0 or more, not ${String(ms)}`);
}
