import type { InterruptedRun } from '../../index.ts';
import { quoted, type RunStore } from '../open/run-store.ts';

/** The run whose call began this one, and which makes that call again when it goes on; undefined when there is none. */
export function parentOf(entry: InterruptedRun): string | undefined {
  return 'meta' in entry ? entry.parent?.runId : undefined;
}

/** Who goes on with a run: whoever resumes it, the run at the top of its tree, or nobody any more. */
export type Place =
  | { readonly kind: 'own' }
  | { readonly kind: 'orphan' }
  | { readonly kind: 'child'; readonly root: string };

/** Where the runs of one list stand in their trees. */
export class RunTree {
  readonly #store: Pick<RunStore, 'load'>;
  readonly #entries: ReadonlyMap<string, InterruptedRun>;

  constructor(store: Pick<RunStore, 'load'>, entries: readonly InterruptedRun[]) {
    this.#store = store;
    this.#entries = new Map(entries.map((entry) => [entry.runId, entry]));
  }

  async placeOf(entry: InterruptedRun): Promise<Place> {
    const parent = parentOf(entry);
    if (parent === undefined) return { kind: 'own' };
    const root = this.#rootAbove(parent);
    if (root === '') return { kind: 'orphan' };
    // What a list lacks may have been on its way. One that cannot be read is there all the same: that is for a person.
    const isGone = !this.#entries.has(root) && (await this.#store.load(root).catch(() => undefined)) === null;
    return isGone ? { kind: 'orphan' } : { kind: 'child', root };
  }

  /** '' when damaged records name each other as parents: nobody is at the top then. */
  #rootAbove(parent: string): string {
    const seen = new Set<string>();
    let root = parent;
    for (let entry = this.#entries.get(root); entry; entry = this.#entries.get(root)) {
      const above = parentOf(entry);
      if (above === undefined) break;
      if (seen.has(root)) return '';
      seen.add(root);
      root = above;
    }
    return root;
  }
}

/** What somebody does who wants a waiting run to go on, as a line. */
export function wayOn(runId: string, place: Place, option: string): string {
  if (place.kind === 'own') return `go on with: pawl resume ${quoted(runId)}${option}`;
  if (place.kind === 'orphan') return 'the run that began it is gone: `pawl recover` ends it as cancelled';
  return `the run at the top goes on with it: pawl resume ${quoted(place.root)}${option}`;
}
