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
