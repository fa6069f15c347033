import { withDeadline } from '../run/deadline.ts';
import { toErrorData } from '../run/error-data.ts';
import type { CheckpointStore } from '../store/port.ts';
import type { Listed } from './listing.ts';
import type { Kernel } from './scope.ts';

interface Family {
  readonly kernel: Kernel;
  readonly store: CheckpointStore;
  /** Whether a run of this id was listed, or is live here. */
  isKnown(runId: string): boolean;
}

interface Judged {
  readonly child: Listed;
  /** Why it is left to its parent; undefined = it has none any more. */
  readonly left: string | undefined;
}

const GOES_ON = 'its parent goes on with it';

/** Tells the children that nobody goes on with from those that are left to their parents. Each root is asked for once. */
export async function* orphansAmong(children: readonly Listed[], family: Family): AsyncGenerator<Judged> {
  const childById = new Map(children.map((child) => [child.runId, child]));
  const asked = new Map<string, string | undefined>();
  for (const child of children) {
    const root = rootOf(child, childById);
    if (!asked.has(root)) asked.set(root, family.isKnown(root) ? GOES_ON : await whyNotGone(root, family));
    yield { child, left: asked.get(root) };
  }
}

/** The run at the top of a tree; '' when damaged records name each other as parents, because nobody is at the top then. */
function rootOf(child: Listed, childById: ReadonlyMap<string, Listed>): string {
  const seen = new Set<string>();
  let root = child.meta.parentRunId;
  for (let above = childById.get(root); above; above = childById.get(root)) {
    if (seen.has(root)) return '';
    seen.add(root);
    root = above.meta.parentRunId;
  }
  return root;
}

/** A list may show a damaged record under another name, or leave it out: only a store that says "none" has none. */
async function whyNotGone(root: string, { kernel, store }: Family): Promise<string | undefined> {
  if (root === '') return undefined;
  const { clock, defaults } = kernel.config;
  try {
    const record = await withDeadline(store.load(root), { ms: defaults.portMs, clock, what: 'store.load' });
    return record ? GOES_ON : undefined;
  } catch (error) {
    const { code, message } = toErrorData(error);
    return `its parent cannot be read: ${code}: ${message}`;
  }
}
