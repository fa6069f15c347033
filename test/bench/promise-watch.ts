import type { AppendingStore, ControlStore, StoreGroups } from 'pawl/stores/kit';
import type { Broken } from './report.ts';

/** What the stores that come with Pawl have in common. */
export type BenchStore = AppendingStore & ControlStore & Pick<StoreGroups, 'outcomes'>;

const MAX_UNSAVED = 1;

/**
 * Watches the promise that makes the figures worth anything: when a tool starts, the steps before it are stored. A
 * runtime that saves in the background would look fast and lose steps.
 */
export class PromiseWatch {
  readonly #finished = new Map<string, number>();
  readonly #stored = new Map<string, number>();
  /** The most finished steps that were not stored yet when a tool of the same run started. */
  mostUnsaved = 0;
  tools = 0;
  stepsStored = 0;
  /** When the first step of each run was stored here, as `performance.now()` has it. */
  readonly firstStored = new Map<string, number>();

  stepDone(runId: string, iteration: number): void {
    this.#finished.set(runId, iteration);
  }

  toolStarted(runId: string): void {
    this.tools += 1;
    const unsaved = (this.#finished.get(runId) ?? 0) - (this.#stored.get(runId) ?? 0);
    this.mostUnsaved = Math.max(this.mostUnsaved, unsaved);
  }

  #countStored(runId: string): void {
    this.stepsStored += 1;
    if (!this.firstStored.has(runId)) this.firstStored.set(runId, performance.now());
  }

  /** The store, reporting what has landed. */
  watching(store: BenchStore): BenchStore {
    return {
      ...store,
      save: async (record, options) => {
        await store.save(record, options);
        this.#stored.set(record.meta.runId, record.iteration);
      },
      append: async (delta, options) => {
        await store.append(delta, options);
        this.#stored.set(delta.runId, delta.head.iteration);
        if (delta.messages.length > 0) this.#countStored(delta.runId);
      },
      delete: async (runId, options) => {
        await store.delete(runId, options);
        this.#stored.delete(runId);
        this.#finished.delete(runId);
      },
    };
  }
}

export function unsavedSteps(mostUnsaved: number): Broken[] {
  if (mostUnsaved <= MAX_UNSAVED) return [];
  const promise = `at most ${MAX_UNSAVED} finished step is unsaved when a tool starts`;
  return [{ promise, seen: `${mostUnsaved} steps` }];
}
