import type { Clock } from './clock.ts';

/** After this time, ms, the event loop gets a turn. */
const PATIENCE_MS = 20;

/**
 * The real functions, also in a test that replaces them: a replaced timer might never fire. Where the runtime has no
 * `setImmediate`, the package still loads.
 */
const { setImmediate: immediate, performance } = globalThis;
/** Where the runtime has no ticks, each caller has a turn of its own. */
const nextTick = globalThis.process?.nextTick ?? immediate;
const now = performance.now.bind(performance);
/** When the event loop last had a turn. */
let lastAt = now();
/** The callers that wait, in their order, and whether one of them has just continued. */
const waiting: (() => void)[] = [];
let isContinuing = false;

/**
 * Lets the event loop run if this process has held it too long. A model that answers from memory and a store that writes
 * synchronously never wait, so a run would block timers, signals, requests and its own cancellation until it ends. Returns
 * undefined if there is no need to wait: nothing has held the event loop, and no other caller waits. Await it once: a caller that
 * asks until there is none waits as long as others come.
 */
export function yieldToEventLoop(): Promise<void> | undefined {
  if (waiting.length === 0 && now() - lastAt < PATIENCE_MS) return undefined;
  if (waiting.length === 0 && !isContinuing) immediate(beginTurn);
  return new Promise((resolve) => {
    waiting.push(resolve);
  });
}

function beginTurn(): void {
  lastAt = now();
  continueNext();
}

/** One caller after the other continues, as far as it comes without waiting, until their turn of the event loop is over. */
function continueNext(): void {
  isContinuing = true;
  waiting.shift()?.();
  // Ticks come when no microtask is left.
  queueMicrotask(() => nextTick(afterCaller));
}

function afterCaller(): void {
  isContinuing = false;
  if (waiting.length === 0) return;
  if (now() - lastAt < PATIENCE_MS) continueNext();
  else immediate(beginTurn);
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
      if (this.#clock) await makeTurn(turn, this.#clock).catch(() => {});
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
async function makeTurn(turn: () => Promise<void>, clock: Clock): Promise<void> {
  const began = monotonicOf(clock);
  await turn();
  const turnMs = monotonicOf(clock) - began;
  if (!(turnMs >= LONG_TURN_MS)) return;
  await new Promise<void>((resolve) => {
    clock.setTimeout(resolve, Math.min(turnMs, LONGEST_REST_MS));
  });
}
