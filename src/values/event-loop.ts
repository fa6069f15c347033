import type { Clock } from './clock.ts';

/** After this time, ms, the event loop gets a turn. */
const PATIENCE_MS = 20;

/** So many callers continue after one turn: the work of each may take long, and each may begin others. */
const CALLERS_A_TURN = 16;

/**
 * The real functions, also in a test that replaces them: a replaced timer might never fire. Where the runtime has no
 * `setImmediate`, the package still loads.
 */
const { setImmediate: immediate, performance } = globalThis;
const now = performance.now.bind(performance);
let lastAt = now();

/** A turn of the event loop, and how many callers wait for it. They share its promise: each keeps it for as long as it works. */
interface Turn {
  readonly isOver: Promise<void>;
  readonly end: () => void;
  callers: number;
}

/** The turns for which callers wait, in their order. */
const turns: Turn[] = [];

/**
 * Lets the event loop run if this process has held it too long. A model that answers from memory and a store that writes
 * synchronously never wait, so a run would block timers, signals, requests and its own cancellation until it ends. Returns
 * undefined if there is no need to wait: right after a turn there is none, however many others wait. A caller that asks until
 * there is none would never come to its end beside more callers than one turn continues.
 */
export function yieldToEventLoop(): Promise<void> | undefined {
  if (now() - lastAt < PATIENCE_MS) return undefined;
  if (turns.length === 0) immediate(endTurn);
  let turn = turns.at(-1);
  if (!turn || turn.callers === CALLERS_A_TURN) {
    const { promise, resolve } = Promise.withResolvers<void>();
    turn = { isOver: promise, end: resolve, callers: 0 };
    turns.push(turn);
  }
  turn.callers += 1;
  return turn.isOver;
}

function endTurn(): void {
  lastAt = now();
  turns.shift()?.end();
  if (turns.length > 0) immediate(endTurn);
}

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
