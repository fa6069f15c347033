/** Time as a port. All code of Pawl that waits or measures uses the clock that it gets. */
export interface Clock {
  /** Wall clock, ms since the epoch. Only for timestamps that people read. */
  now(): number;
  /** Milliseconds from an arbitrary origin; never jumps. For throttles, deadlines and leases. */
  monotonic(): number;
  setTimeout(callback: () => void, ms: number): unknown;
  clearTimeout(timer: unknown): void;
}

/** The clock of this machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout: (callback, ms) => setTimeout(callback, Math.min(ms, 2 ** 31 - 1)),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
};

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Parses a duration into ms: a whole number and a unit, `s`, `m`, `h` or `d`. Undefined for any other text.
 * @example durationMs('12h') // 43_200_000
 */
export function durationMs(text: string): number | undefined {
  const [, amount, unit = ''] = /^(\d{1,15})([smhd])$/.exec(text) ?? [];
  return amount === undefined ? undefined : Number(amount) * (unitMs[unit] ?? 0);
}
