import type { RunCheckpoint } from '../../record/checkpoint.ts';
import { parentOf } from '../../record/identify.ts';
import { CHILD_MARK } from '../../run/identity.ts';
import type { CheckpointStore } from '../../store/port.ts';
import { withDeadline } from '../../values/deadline.ts';
import { toErrorData } from '../../values/error-data.ts';
import type { ExecutorServices } from '../run/active-run.ts';
import type { Listed } from './listing.ts';

interface RunTree {
  readonly services: ExecutorServices;
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

/** Whether a listed run may be a child: a host's own list need not say so, but only a child has such an id. */
export function mayBeChild({ parent, runId }: Listed): boolean {
  return parent !== undefined || runId.startsWith(CHILD_MARK);
}

/** Finds the children whose parent runs no longer exist; others are left to their parents. Each root is read once. */
export async function* orphansAmong(listed: readonly Listed[], tree: RunTree): AsyncGenerator<Judged> {
  const children = await Promise.all(listed.map((child) => withParent(child, tree)));
  const childById = new Map(children.map((child) => [child.runId, child]));
  const asked = new Map<string, string | undefined>();
  for (const child of children) {
    if (!child.parent) {
      yield { child, left: undefined };
      continue;
    }
    const root = rootOf(child.parent.runId, childById);
    if (!asked.has(root)) asked.set(root, tree.isKnown(root) ? GOES_ON : await whyNotGone(root, tree));
    yield { child, left: asked.get(root) };
  }
}

/** The child with the call that began it, from its record where the list does not say. */
async function withParent(child: Listed, tree: RunTree): Promise<Listed> {
  if (child.parent) return child;
  const record = await recordOf(child.runId, tree).catch(() => null);
  const parent = record ? parentOf(record) : undefined;
  return parent ? { ...child, parent } : child;
}

/** The run at the top of a tree; '' when damaged records name each other as parents, because nobody is at the top then. */
function rootOf(parentRunId: string, childById: ReadonlyMap<string, Listed>): string {
  const seen = new Set<string>();
  let root = parentRunId;
  for (let above = childById.get(root)?.parent; above; above = childById.get(root)?.parent) {
    if (seen.has(root)) return '';
    seen.add(root);
    root = above.runId;
  }
  return root;
}

function recordOf(runId: string, { services, store }: RunTree): Promise<RunCheckpoint | null> {
  const { clock, defaults } = services.config;
  return withDeadline(store.load(runId), { ms: defaults.portMs, clock, what: 'store.load' });
}

/** A list may show a damaged record under another name, or leave it out: only a store that says "none" has none. */
async function whyNotGone(root: string, tree: RunTree): Promise<string | undefined> {
  if (root === '') return undefined;
  try {
    return (await recordOf(root, tree)) ? GOES_ON : undefined;
  } catch (error) {
    const { code, message } = toErrorData(error);
    return `its parent cannot be read: ${code}: ${message}`;
  }
}
