import { type Atom, createAtom } from '@xstate/store';

/** What follows something on a server writes through this. */
export interface Source<State> {
  /** Aborted a moment after the last component has left. */
  readonly signal: AbortSignal;
  /** Changes the state; components see it in the next frame. */
  update(change: (state: State) => State): void;
  /** Resolves at the next `nudge` of the key, after so many ms, or when the signal is aborted. */
  nudged(ms?: number): Promise<void>;
}

/** Follows what a key names until the signal is aborted; it must not reject. */
export type Follow<State> = (key: string, source: Source<State>) => Promise<void>;

/** How long a source outlives its last component: StrictMode and a change of page unmount for a moment only. */
const LINGER_MS = 1_000;
/** A hidden page has no frames. */
const FRAME_MS = 100;

/** One source for each key, however many components look at it; it lives while one does, and a moment longer. */
export class SharedSources<State> {
  readonly initial: State;
  readonly #follow: Follow<State>;
  readonly #running = new Map<string, RunningSource<State>>();

  constructor(initial: State, follow: Follow<State>) {
    this.initial = initial;
    this.#follow = follow;
  }

  /** The state of a key as components may show it; the same object until it changes. */
  read(key: string): State {
    return this.#running.get(key)?.shown.get() ?? this.initial;
  }

  /** Follows a key for one component. Returns the function that ends this. */
  subscribe(key: string, notify: () => void): () => void {
    const source = this.#running.get(key) ?? this.#start(key);
    const leave = source.join(notify);
    return () =>
      leave(() => {
        // Another source may have its key by now.
        if (this.#running.get(key) === source) this.#running.delete(key);
      });
  }

  /** Changes the state of a key, if a component looks at it. */
  update(key: string, change: (state: State) => State): void {
    this.#running.get(key)?.update(change);
  }

  /** Tells a source that there is news on the server. */
  nudge(key: string): void {
    this.#running.get(key)?.nudge();
  }

  #start(key: string): RunningSource<State> {
    const source = new RunningSource(this.initial);
    this.#running.set(key, source);
    void this.#follow(key, {
      signal: source.signal,
      update: (change) => source.update(change),
      nudged: (ms) => source.waitForNudge(ms),
    });
    return source;
  }
}

class RunningSource<State> {
  readonly shown: Atom<State>;
  readonly #stop = new AbortController();
  #state: State;
  #members = 0;
  #leaving: ReturnType<typeof setTimeout> | undefined;
  #cancelFrame: (() => void) | undefined;
  #isNudged = false;
  #wake: (() => void) | undefined;

  constructor(initial: State) {
    this.#state = initial;
    this.shown = createAtom(initial);
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  update(change: (state: State) => State): void {
    if (this.signal.aborted) return;
    this.#state = change(this.#state);
    this.#cancelFrame ??= nextFrame(() => {
      this.#cancelFrame = undefined;
      this.shown.set(this.#state);
    });
  }

  nudge(): void {
    this.#isNudged = true;
    this.#wake?.();
  }

  waitForNudge(ms?: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.signal.removeEventListener('abort', end);
        this.#wake = undefined;
        this.#isNudged = false;
        resolve();
      };
      const timer = ms === undefined ? undefined : setTimeout(end, ms);
      this.signal.addEventListener('abort', end);
      this.#wake = end;
      if (this.signal.aborted || this.#isNudged) end();
    });
  }

  join(notify: () => void): (stopped: () => void) => void {
    clearTimeout(this.#leaving);
    this.#members += 1;
    const { unsubscribe } = this.shown.subscribe(notify);
    return (stopped) => {
      unsubscribe();
      this.#members -= 1;
      if (this.#members > 0) return;
      this.#leaving = setTimeout(() => {
        this.#cancelFrame?.();
        this.#stop.abort();
        stopped();
      }, LINGER_MS);
    };
  }
}

/** What pages have, and servers and tests may lack. */
const page = globalThis as unknown as {
  readonly requestAnimationFrame?: (callback: () => void) => number;
  readonly cancelAnimationFrame?: (frame: number) => void;
};

/** Calls back in the next frame, or soon in a page that shows none. Returns the function that prevents it. */
function nextFrame(callback: () => void): () => void {
  const end = (): void => {
    cancel();
    callback();
  };
  const frame = page.requestAnimationFrame?.(end);
  const timer = setTimeout(end, frame === undefined ? 0 : FRAME_MS);
  const cancel = (): void => {
    if (frame !== undefined) page.cancelAnimationFrame?.(frame);
    clearTimeout(timer);
  };
  return cancel;
}
