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

/** Resolves in the next turn of the event loop: timers, signals and requests come first. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/**
 * Turns of the event loop, one for each who asks. `nextTurn` lets all who wait continue in the same turn: what a thousand of them do
 * then holds up the process as if there had been no turn.
 */
export class Turns {
  #last: Promise<void> = Promise.resolve();

  /** Resolves in a turn that no one else has. */
  own(): Promise<void> {
    this.#last = this.#last.then(nextTurn);
    return this.#last;
  }
}

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Parses a duration into ms: a whole number and a unit, `s`, `m`, `h` or `d`. Undefined for any other text.
 * @example durationMs('12h') // 43_200_000
 */
export function durationMs(text: string): number | undefined {
  const [, amount, unit = ''] = /^(\d{1,15})([smhd])$/.exec(text) ?? [];
  return amount === undefined ? undefined : Number(amount) * (unitMs[unit] ?? 0);
}
