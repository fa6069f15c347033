/** After this time, ms, the event loop gets a turn. */
const PATIENCE_MS = 20;

/** So many callers continue after one turn: the work of each may take long, and each may begin others. */
const CALLERS_A_TURN = 16;

/**
 * The real functions, also in a test that replaces them: a replaced timer might never fire. Where the runtime has no
 * `setImmediate`, the package still loads.
 */
const { setImmediate: nextTurn, performance } = globalThis;
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
  if (turns.length === 0) nextTurn(endTurn);
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
  if (turns.length > 0) nextTurn(endTurn);
}
