/** After this time, ms, the event loop gets a turn. */
const PATIENCE_MS = 20;

/** So many runs continue after one turn. Each may then begin others, whose work would fill the next turn. */
const RUNS_A_TURN = 16;

/**
 * The real functions, also in a test that replaces them: a replaced timer might never fire. Where the runtime has no
 * `setImmediate`, the package still loads.
 */
const { setImmediate: nextTurn, performance } = globalThis;
const now = performance.now.bind(performance);
let lastAt = now();

/** A turn of the event loop, and the runs that continue after it. */
interface Turn {
  readonly isOver: Promise<void>;
  readonly end: () => void;
  runs: number;
}

/** The turns that runs wait for; the first one comes next. */
const turns: Turn[] = [];

/**
 * Lets the event loop run if this run has held it too long. A model that answers from memory and a store that writes
 * synchronously never wait, so a run would block timers, signals, requests and its own cancellation until it ends. Hundreds of
 * runs that wait share a turn by a few, in their order. Returns undefined if there is no need to wait.
 */
export function yieldToEventLoop(): Promise<void> | undefined {
  let turn = turns.at(-1);
  if (!turn && now() - lastAt < PATIENCE_MS) return undefined;
  if (!turn || turn.runs >= RUNS_A_TURN) {
    const { promise, resolve } = Promise.withResolvers<void>();
    turn = { isOver: promise, end: resolve, runs: 0 };
    turns.push(turn);
    if (turns.length === 1) nextTurn(endTurn);
  }
  turn.runs += 1;
  return turn.isOver;
}

function endTurn(): void {
  const turn = turns.shift();
  lastAt = now();
  if (turns.length > 0) nextTurn(endTurn);
  turn?.end();
}
