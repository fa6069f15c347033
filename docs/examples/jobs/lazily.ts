// Durable only where it is worth it: most jobs are over after a few steps, and cost no write. A run gets its first record after
// so many steps, after so much time, or before its first call that must not happen twice. Until then a crash loses it, and the
// host begins the job again.
import type { Checkpointer, CheckpointerFactory, CheckpointStore, Clock } from 'pawl';
import { createCheckpointerFactory } from 'pawl/stores/kit';

export interface LazyOptions {
  readonly clock: Clock;
  /** A run is stored from this step on. */
  readonly afterSteps: number;
  /** A run is stored once it has worked that long, ms. */
  readonly afterMs: number;
  /** Least time between two plain writes of a run, ms. */
  readonly throttleMs: number;
}

export interface LazyFactory extends CheckpointerFactory {
  /** From now on every run is stored: the process is about to end. */
  storeAll(): void;
}

type State = Parameters<Checkpointer['save']>[0];

export function lazily(store: CheckpointStore, options: LazyOptions): LazyFactory {
  const { clock, throttleMs } = options;
  const eager = createCheckpointerFactory(store, { clock, throttleMs });
  let isEnding = false;
  return {
    store,
    storeAll: () => {
      isEnding = true;
    },
    begin: async (info, begun) => {
      const checkpointer = await eager.begin(info, begun);
      // A run that has a record keeps it up to date.
      if (!checkpointer || begun?.landed) return checkpointer;
      return new LazyCheckpointer(checkpointer, { ...options, isEnding: () => isEnding });
    },
  };
}

class LazyCheckpointer implements Checkpointer {
  readonly #inner: Checkpointer;
  readonly #options: LazyOptions & { readonly isEnding: () => boolean };
  readonly #timer: unknown;
  #newest: State | undefined;
  #isDue = false;
  #isWritten = false;

  constructor(inner: Checkpointer, options: LazyOptions & { readonly isEnding: () => boolean }) {
    this.#inner = inner;
    this.#options = options;
    this.#timer = options.clock.setTimeout(() => this.#come(), options.afterMs);
  }

  /** Pawl reads it whenever it says whether the run is durable. */
  get durable(): boolean {
    return this.#isWritten;
  }

  async save(state: State, { force = false }: { readonly force?: boolean } = {}): Promise<void> {
    this.#newest = state;
    if (!this.#isWritten && !this.#isWorthIt(state)) return;
    await this.#write(state, force || !this.#isWritten);
  }

  async complete(): Promise<void> {
    this.#options.clock.clearTimeout(this.#timer);
    if (this.#isWritten) await this.#inner.complete();
  }

  async fail(error: unknown): Promise<void> {
    this.#options.clock.clearTimeout(this.#timer);
    if (this.#isWritten) await this.#inner.fail(error);
  }

  #isWorthIt({ iteration, openStep, outcome }: State): boolean {
    // The end of a run that was never stored is delivered from memory.
    if (outcome) return false;
    const hasEffects = openStep?.calls.some(({ effect }) => effect === 'once') ?? false;
    return this.#isDue || this.#options.isEnding() || hasEffects || iteration >= this.#options.afterSteps;
  }

  async #write(state: State, force: boolean): Promise<void> {
    try {
      await this.#inner.save(state, { force });
      this.#isWritten = true;
    } catch (error) {
      // A run that cannot be stored continues as it began: not durable.
      if (this.#isWritten || (error as { code?: unknown }).code !== 'RECORD_TOO_LARGE') throw error;
    }
  }

  #come(): void {
    this.#isDue = true;
    // What fails here is tried again with the next save.
    if (this.#newest && !this.#isWritten) this.#write(this.#newest, true).catch(() => {});
  }
}
