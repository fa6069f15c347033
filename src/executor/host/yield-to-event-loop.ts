/** After this time, ms, the event loop gets a turn. */
const PATIENCE_MS = 20;

/**
 * The real functions, also in a test that replaces them: a replaced timer might never fire. Where the runtime has no
 * `setImmediate`, the package still loads.
 */
const { setImmediate: nextTurn, performance } = globalThis;
const now = performance.now.bind(performance);
let lastAt = now();
let turn: Promise<void> | undefined;

/**
 * Lets the event loop run if this run has held it too long. A model that answers from memory and a store that writes
 * synchronously never wait, so a run would block timers, signals, requests and its own cancellation until it ends. Returns
 * undefined if there is no need to wait.
 */
export function yieldToEventLoop(): Promise<void> | undefined {
  if (turn || now() - lastAt < PATIENCE_MS) return turn;
  turn = new Promise((resolve) => {
    nextTurn(() => {
      turn = undefined;
      lastAt = now();
      resolve();
    });
  });
  return turn;
}
