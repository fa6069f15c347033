import { type Atom, createAtom, type ReadonlyAtom } from '@xstate/store';
import type { RunOutput } from '../run/result.ts';
import type { Usage } from '../run/usage.ts';
import type { RunScope } from './scope.ts';

/** What is shown of a live run. */
export interface RunSummary {
  readonly runId: string;
  readonly agentId: string;
  readonly agentName: string;
  /** The state of the run's machine, for example `running.calling-tools`. */
  readonly state: string;
  readonly iteration: number;
  readonly usage: Usage;
}

/** Ended runs that are still known, by their results without messages. */
const MAX_ENDED = 1_000;

/** The live runs of an executor, each with an atom of its own, and the last ones that ended. */
export class Registry {
  readonly #live = new Map<string, { readonly scope: RunScope; readonly atom: Atom<RunSummary> }>();
  readonly #ended = new Map<string, RunOutput>();
  readonly #dirty = new Set<RunScope>();
  readonly #version = createAtom(0);
  #isFlushing = false;

  /** Summaries of the live runs; changes at most once per event-loop turn, computed when it is read. */
  readonly runs: ReadonlyAtom<readonly RunSummary[]> = createAtom(() => {
    this.#version.get();
    return [...this.#live.values()].map(({ atom }) => atom.get());
  });

  /** The one table in which `start`, `recover` and restored hosts meet: the second to come gets the first. */
  enter(scope: RunScope): RunScope {
    const first = this.#live.get(scope.runId);
    if (first) return first.scope;
    this.#live.set(scope.runId, { scope, atom: createAtom(summaryOf(scope)) });
    this.#ended.delete(scope.runId);
    this.touch(scope);
    return scope;
  }

  leave(scope: RunScope, output: RunOutput): void {
    if (this.#live.get(scope.runId)?.scope !== scope) return;
    this.#live.delete(scope.runId);
    this.#ended.set(scope.runId, output);
    const [oldest] = this.#ended.keys();
    if (this.#ended.size > MAX_ENDED && oldest !== undefined) this.#ended.delete(oldest);
    this.touch(scope);
  }

  /** Notes that a run changed; its atom follows at the end of this event-loop turn. */
  touch(scope: RunScope): void {
    this.#dirty.add(scope);
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    setImmediate(() => this.#flush());
  }

  #flush(): void {
    this.#isFlushing = false;
    const dirty = [...this.#dirty];
    this.#dirty.clear();
    for (const scope of dirty) {
      const entry = this.#live.get(scope.runId);
      if (entry?.scope === scope) attempt(() => entry.atom.set(summaryOf(scope)), scope);
    }
    const [first] = dirty;
    if (first) attempt(() => this.#version.set((version) => version + 1), first);
  }

  live(runId: string): RunScope | undefined {
    return this.#live.get(runId)?.scope;
  }

  ended(runId: string): RunOutput | undefined {
    return this.#ended.get(runId);
  }

  atomOf(runId: string): ReadonlyAtom<RunSummary> | undefined {
    return this.#live.get(runId)?.atom;
  }

  scopes(): RunScope[] {
    return [...this.#live.values()].map(({ scope }) => scope);
  }
}

/** The subscribers of an atom are called by its setter, and what a host's subscriber throws would surface here. */
function attempt(set: () => void, scope: RunScope): void {
  try {
    set();
  } catch (error) {
    scope.kernel.config.warn('run: a subscriber of executor.runs threw', { runId: scope.runId, error: String(error) });
  }
}

export function summaryOf(scope: RunScope): RunSummary {
  const { value, context } = scope.actor.getSnapshot();
  return {
    runId: scope.runId,
    agentId: scope.agent.id,
    agentName: scope.agent.name,
    state: pathOf(value),
    iteration: context.progress.iteration,
    usage: context.progress.usage,
  };
}

function pathOf(value: unknown): string {
  if (typeof value === 'string') return value;
  const [[name, inner]] = Object.entries(value as Record<string, unknown>) as [[string, unknown]];
  return `${name}.${pathOf(inner)}`;
}
