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

/** After a turn that held the event loop for so long, ms, others get as much time. */
const LONG_TURN_MS = 5;
const LONGEST_REST_MS = 100;

/**
 * Turns of the event loop, one for each who asks. `nextTurn` lets all who wait continue in the same turn: what a thousand of them do
 * then holds up the process as if there had been no turn.
 */
export class Turns {
  readonly #clock: Clock | undefined;
  /** Those who wait, by whom they work for: each of these has one turn before any has a second. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #isOpen = false;

  /** @param clock with it, a long turn is followed by a pause of the same length: a request of another caller needs several turns */
  constructor(clock?: Clock) {
    this.#clock = clock;
  }

  /** Resolves in a turn that no one else has. @param by whom the work is for */
  own(by = ''): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = this.#waiting.get(by) ?? [];
    waiting.push(resolve);
    this.#waiting.set(by, waiting);
    if (!this.#isOpen) void this.#give();
    return promise;
  }

  async #give(): Promise<void> {
    this.#isOpen = true;
    await nextTurn();
    for (let next = this.#next(); next; next = this.#next()) {
      const turn = async () => {
        next();
        await nextTurn();
      };
      // A clock of a host that throws costs the pause, and no turn.
      if (this.#clock) await paused(turn, this.#clock).catch(() => {});
      else await turn();
    }
    this.#isOpen = false;
  }

  #next(): (() => void) | undefined {
    const [by = '', waiting = []] = this.#waiting.entries().next().value ?? [];
    const next = waiting.shift();
    this.#waiting.delete(by);
    if (waiting.length > 0) this.#waiting.set(by, waiting);
    return next;
  }
}

function monotonicOf(clock: Clock): number {
  try {
    return clock.monotonic();
  } catch {
    return Number.NaN;
  }
}

/** Makes a turn, and pauses after a long one. */
async function paused(turn: () => Promise<void>, clock: Clock): Promise<void> {
  const began = monotonicOf(clock);
  await turn();
  const turnMs = monotonicOf(clock) - began;
  if (!(turnMs >= LONG_TURN_MS)) return;
  await new Promise<void>((resolve) => {
    clock.setTimeout(resolve, Math.min(turnMs, LONGEST_REST_MS));
  });
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
