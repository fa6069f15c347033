/** After so long, ms, the event loop gets a turn. */
const PATIENCE_MS = 20;

/** The real ones, also in a test that puts others in their place: a turn that nobody makes would not come. */
const [nextTurn, now] = [setImmediate, performance.now.bind(performance)];
let lastAt = now();
let turn: Promise<void> | undefined;

/**
 * A model that answers from memory and a store that writes in place wait for nothing, so that a run would keep everything else
 * of its process out until it ends: timers, signals, requests, its own cancellation. Undefined when there is no need to wait.
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
