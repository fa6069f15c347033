import { type Atom, createAtom, type ReadonlyAtom } from '@xstate/store';
import type { Warn } from '../../log/log.ts';
import type { Labels } from '../../run/request.ts';
import type { RunOutput } from '../../run/result.ts';
import type { Usage } from '../../values/usage.ts';
import { guardedObserver } from '../host/guard.ts';
import { Semaphore } from './recovery-limits.ts';

/** The public summary of a live run. */
export interface RunSummary {
  readonly runId: string;
  readonly agentId: string;
  readonly agentName: string;
  /** The state of the run's machine, for example `running.calling-tools`. */
  readonly state: string;
  readonly iteration: number;
  readonly usage: Usage;
  /** Whether a part of it is stored, so that a crash does not lose it. */
  readonly durable: boolean;
  /** Absent = none. */
  readonly labels?: Labels;
}

/** A run as the registry knows it. */
export interface LiveRun {
  readonly runId: string;
  /** What a log line says of it besides its id. */
  readonly names: { readonly agentId: string; readonly traceId?: string | undefined };
  readonly summary: RunSummary;
}

interface Entry<R> {
  readonly run: R;
  /** The result of an earlier run of this id in this process. */
  readonly before: RunOutput | undefined;
  /** Made at the first request: most runs have no watcher. */
  atom?: Atom<RunSummary>;
}

/** How many ended runs stay known, by their results without messages. */
const MAX_ENDED = 1_000;

/** How many children of one tree begin at once, for any `toolConcurrency` of its agents. */
const BEGIN_AT_ONCE = 8;

/** The live runs of one tree. They share the count of its runs, and each save of each of them stores it. */
export class LiveTree {
  readonly rootRunId: string;
  /** How many runs have begun below the root, as far as this process knows. */
  runs = 0;
  /** How many of them are live here. */
  members = 0;
  readonly #places = new Semaphore();

  constructor(rootRunId: string) {
    this.rootRunId = rootRunId;
  }

  /** Takes over the count of a record. The higher one stays: a sum would count twice what both have counted. */
  learn(runs = 0): void {
    this.runs = Math.max(this.runs, runs);
  }

  /** Counts a further run. @throws {Error} for the model of its parent, if the tree has so many */
  add(most: number): void {
    if (this.runs >= most)
      throw new Error(`a tree of runs has at most ${most} runs below its root (maxTreeRuns): this one is not started`);
    this.runs += 1;
  }

  /**
   * Begins or continues a child, a few at a time. Only the start has a place: a child that had it while it works would wait for
   * its own children, and they for a place.
   */
  async begin<T>(start: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (!(await this.#places.enter(BEGIN_AT_ONCE, signal))) throw signal.reason;
    try {
      return await start();
    } finally {
      this.#places.leave();
    }
  }
}

/** The table of an executor's live runs, and of the last ones that ended, with an atom for subscribers. */
export class Registry<R extends LiveRun> {
  readonly #live = new Map<string, Entry<R>>();
  readonly #ended = new Map<string, RunOutput>();
  readonly #dirty = new Set<Entry<R>>();
  readonly #trees = new Map<string, LiveTree>();
  readonly #version = createAtom(0);
  readonly #warn: Warn;
  #isFlushing = false;
  /** Called with each run that leaves the table. */
  onLeave: ((run: R) => void) | undefined;

  constructor(warn: Warn) {
    this.#warn = warn;
    this.#guard(this.runs);
  }

  /** An error of a host's subscriber would surface in the code that sets the atom. */
  #guard<A extends ReadonlyAtom<never> | ReadonlyAtom<RunSummary> | ReadonlyAtom<readonly RunSummary[]>>(atom: A): A {
    const subscribe = atom.subscribe.bind(atom) as (observer: object) => { unsubscribe(): void };
    atom.subscribe = ((...observer: unknown[]) =>
      subscribe(guardedObserver(this.#warn, ...observer))) as A['subscribe'];
    return atom;
  }

  /** Summaries of the live runs. Changes at most once per event-loop turn; computed when it is read. */
  readonly runs: ReadonlyAtom<readonly RunSummary[]> = createAtom(() => {
    this.#version.get();
    return [...this.#live.values()].map(({ run }) => run.summary);
  });

  /** The one table that `start`, `recover` and restored hosts share: the second caller gets the first caller's run. */
  enter(run: R): R {
    const first = this.#live.get(run.runId);
    if (first) return first.run;
    const entry = { run, before: this.#ended.get(run.runId) };
    this.#live.set(run.runId, entry);
    this.#ended.delete(run.runId);
    this.#note(entry);
    return run;
  }

  leave(run: R, output: RunOutput): void {
    const entry = this.#live.get(run.runId);
    if (entry?.run !== run) return;
    this.#live.delete(run.runId);
    // The id belongs to another run: a refused start has no answer of that run, and removes none.
    const known = output.error?.code === 'RUN_ID_CONFLICT' ? entry.before : output;
    if (known) this.#ended.set(run.runId, known);
    const [oldest] = this.#ended.keys();
    if (this.#ended.size > MAX_ENDED && oldest !== undefined) this.#ended.delete(oldest);
    this.#note(entry);
    this.onLeave?.(run);
  }

  /** Adds a live run to its tree, until `leaveTree`. */
  enterTree(rootRunId: string): LiveTree {
    const tree = this.#trees.get(rootRunId) ?? new LiveTree(rootRunId);
    this.#trees.set(rootRunId, tree);
    tree.members += 1;
    return tree;
  }

  leaveTree(tree: LiveTree): void {
    tree.members -= 1;
    if (tree.members === 0) this.#trees.delete(tree.rootRunId);
  }

  /** Records that a run changed; its atom changes at the end of this event-loop turn. */
  touch(run: R): void {
    const entry = this.#live.get(run.runId);
    if (entry?.run === run) this.#note(entry);
  }

  #note(entry: Entry<R>): void {
    this.#dirty.add(entry);
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    setImmediate(() => this.#flush());
  }

  #flush(): void {
    this.#isFlushing = false;
    const dirty = [...this.#dirty];
    this.#dirty.clear();
    // Also for a run that has ended: its watchers must see the end.
    for (const { run, atom } of dirty) if (atom) this.#attempt(() => atom.set(run.summary));
    this.#attempt(() => this.#version.set((version) => version + 1));
  }

  /** The setter of an atom calls its subscribers: an error of a host's subscriber would surface here. */
  #attempt(set: () => void): void {
    try {
      set();
    } catch (error) {
      this.#warn('callback.threw', { what: 'a subscriber of executor.runs', error });
    }
  }

  live(runId: string): R | undefined {
    return this.#live.get(runId)?.run;
  }

  ended(runId: string): RunOutput | undefined {
    return this.#ended.get(runId);
  }

  /** The result of a run that ended is not known any more. */
  forget(runId: string): void {
    this.#ended.delete(runId);
  }

  atomOf(runId: string): ReadonlyAtom<RunSummary> | undefined {
    const entry = this.#live.get(runId);
    if (entry) entry.atom ??= this.#guard(createAtom(entry.run.summary));
    return entry?.atom;
  }

  all(): R[] {
    return [...this.#live.values()].map(({ run }) => run);
  }
}
