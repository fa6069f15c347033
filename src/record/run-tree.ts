import { CHILD_MARK } from '../run/identity.ts';
import type { Wait } from '../run/waits/wait.ts';
import { type ErrorData, toErrorData } from '../values/error-data.ts';
import type { RunHead } from './checkpoint.ts';
import { parentOf } from './identify.ts';
import type { InterruptedRun, ReadableRun } from './interrupted.ts';

/** A run that a call of another run began, and which that call continues. */
interface ChildPlace {
  readonly kind: 'child';
  readonly parent: string;
  /** The run at the top of the tree: the one to start. */
  readonly root: string;
  /** Its parent rests until the child has ended: the child is continued by itself. */
  readonly isAlone?: true;
  /** How many runs are above it. */
  readonly depth: number;
  /** Why that run cannot be read; absent if it can be. */
  readonly trouble?: ErrorData;
}

/** What continues a stored run: its own start, the run above it, or no run, because the one at the top has ended. */
export type TreePlace = { readonly kind: 'own' } | { readonly kind: 'orphan' } | ChildPlace;

interface TreeOptions {
  /** Reads a record; null if there is none. */
  load(runId: string): Promise<RunHead | null>;
  /** Returns a run that is live in this process. An unlisted live run exists, even if the store does not know it. */
  live?(runId: string): Pick<RunHead, 'parent' | 'waiting'> | undefined;
}

/** A run in its tree: the run above it, and whether it can be read; null if there is none. */
type Node = {
  readonly parent?: string | undefined;
  /** The children that it waits for. */
  readonly awaited?: readonly string[];
  readonly trouble?: ErrorData;
} | null;

/** The number of runs whose store answers are remembered. */
const REMEMBERED_RUNS = 1_000;

/**
 * Returns whether a listed run may be a child: a host's own list may leave the parent out, but only a child has such an id.
 */
export function mayBeChild({ parent, runId }: Pick<ReadableRun, 'parent' | 'runId'>): boolean {
  return parent !== undefined || runId.startsWith(CHILD_MARK);
}

/**
 * Finds parents and roots of stored runs: which run is the child of which tool call. Listed runs are not read again; the
 * store is asked once for each other run.
 */
export class RunTree {
  readonly #options: TreeOptions;
  readonly #listed = new Map<string, Node>();
  readonly #read = new Map<string, Node>();

  constructor(options: TreeOptions) {
    this.#options = options;
  }

  /** Adds an entry of a list. Only the store itself can tell whether an unreadable record exists. */
  add(entry: InterruptedRun): void {
    if (entry.status === 'quarantined') return;
    // The list of a host may leave the parent out: then the record is read.
    const { parent, waits = [] } = entry;
    if (parent || !mayBeChild(entry))
      this.#listed.set(entry.runId, { parent: parent?.runId, awaited: childrenIn(waits) });
  }

  async placeOf(run: Pick<ReadableRun, 'runId' | 'parent'>): Promise<TreePlace> {
    const parent = run.parent?.runId ?? (mayBeChild(run) ? (await this.#loadNode(run.runId))?.parent : undefined);
    return parent === undefined ? { kind: 'own' } : this.#placeBelow(parent, run.runId);
  }

  async #placeBelow(parent: string, runId: string): Promise<TreePlace> {
    const seen = new Set<string>();
    let isAlone = false;
    for (let root = parent; !seen.has(root); ) {
      seen.add(root);
      const node = await this.#node(root);
      if (!node) return { kind: 'orphan' };
      if (root === parent) isAlone = node.awaited?.includes(runId) ?? false;
      if (node.parent === undefined) {
        const trouble = node.trouble ? { trouble: node.trouble } : {};
        // A run that cannot be read exists all the same.
        return { kind: 'child', parent, root, depth: seen.size, ...(isAlone ? { isAlone } : {}), ...trouble };
      }
      root = node.parent;
    }
    // Damaged records that name each other as parents have no run at the top.
    return { kind: 'orphan' };
  }

  async #node(runId: string): Promise<Node> {
    const listed = this.#listed.get(runId);
    if (listed) return listed;
    const live = this.#options.live?.(runId);
    return live ? { parent: live.parent?.runId, awaited: childrenIn(live.waiting?.waits) } : this.#loadNode(runId);
  }

  async #loadNode(runId: string): Promise<Node> {
    const known = this.#read.get(runId);
    if (known !== undefined) return known;
    const node = await this.#load(runId);
    if (this.#read.size >= REMEMBERED_RUNS) this.#read.clear();
    this.#read.set(runId, node);
    return node;
  }

  async #load(runId: string): Promise<Node> {
    try {
      const record = await this.#options.load(runId);
      return record && { parent: parentOf(record)?.runId, awaited: childrenIn(record.waiting?.waits) };
    } catch (error) {
      return { trouble: toErrorData(error) };
    }
  }
}

function childrenIn(waits: readonly Wait[] = []): readonly string[] {
  return waits.flatMap((wait) => (wait.kind === 'child' ? wait.childRunId : []));
}
