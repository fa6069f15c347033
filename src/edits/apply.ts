import { type BaseChange, changesOf, planFor } from './plan.ts';
import { previewOf } from './preview.ts';
import { type ProposedWrites, proposedWritesOf, type WriteSnapshot } from './proposed-write.ts';
import { fileInsideRoot } from './root/paths.ts';
import type { Root } from './root/root.ts';
import type { LockOwner } from './root-lock.ts';
import { inRoot, prune, thisWorker, transact } from './transaction.ts';
import { changesIn, type FileChange, type RewoundWrites, rewindWith } from './undo.ts';

/** Writes that were applied. */
export interface AppliedWrites {
  /** The changed files; writes that changed nothing are left out. */
  readonly files: readonly FileChange[];
  /** Undoes these writes, as `rewind` undoes the newest ones. */
  rewind(): Promise<RewoundWrites>;
}

/**
 * Applies the writes that a model proposed: all of them, or none. The data to undo them is stored in `<root>/.pawl/undo`. If
 * the process is killed in the middle, the next `applyWrites` or `rewind` of this root restores the files first.
 *
 * @param response an answer of a fan-out
 * @param options.root the folder of the relative paths; its own path may contain links, paths inside it may not
 * @throws {TypeError} for an answer whose `proposedWrites` is no list of changes
 * @throws {WRITE_OUTSIDE_ROOT} if a path is absolute, leads out of the root, through a link, into `.git` or `.pawl`, or to
 *   files that models may not change: files that Git ignores, and likely secrets
 * @throws {WRITE_CONFLICT} if a file differs from what the model read, or two writes are for one path
 * @throws {WRITE_FAILED} if the disk fails. After each of these errors the files are unchanged
 * @example
 * const { responses } = await fanOut({ prompt: 'Fix the typo.', models, root: '.' });
 * const applied = await applyWrites(responses[0], { root: '.' });
 * applied.files; // [{ path: 'README.md', change: 'changed' }]
 * await applied.rewind();
 */
export function applyWrites(response: ProposedWrites, { root }: { readonly root: string }): Promise<AppliedWrites> {
  return applyWith(response, { root, worker: thisWorker });
}

const nothing: AppliedWrites = { files: [], rewind: async () => ({ files: [] }) };

/** @internal */
/** An answer may come from a cloned file, whose paths no file tool has checked. */
async function checkProposals(root: Root, changes: readonly BaseChange[]): Promise<void> {
  for (const { path } of changes) await root.checkAllowed(fileInsideRoot(path));
}

/** By path, why a person should read a change first. */
async function warningsOf(root: Root, writes: readonly WriteSnapshot[]): Promise<Map<string, string>> {
  const warnings = new Map<string, string>();
  for (const write of writes) {
    const { path, warning } = await previewOf(root, write);
    if (warning !== undefined) warnings.set(path, warning);
  }
  return warnings;
}

function withWarning(file: FileChange, warning: string | undefined): FileChange {
  return warning === undefined ? file : { ...file, warning };
}

/** As `applyWrites`, by a worker that the caller gives. @internal */
export async function applyWith(
  response: ProposedWrites,
  place: { readonly root: string; readonly worker: LockOwner },
): Promise<AppliedWrites> {
  const proposedWrites = proposedWritesOf('applyWrites', response);
  const changes = changesOf(proposedWrites);
  return inRoot(
    place,
    async (root) => {
      await checkProposals(root, changes);
      return (await planFor(root, changes)).length === 0 ? nothing : undefined;
    },
    async (session) => {
      await checkProposals(session.root, changes);
      const warnings = await warningsOf(session.root, proposedWrites);
      const undo = await transact(session, changes);
      if (!undo) return nothing;
      await prune(session.log);
      const { files, id } = undo.manifest;
      const applied = changesIn(files).map((file) => withWarning(file, warnings.get(file.path)));
      return { files: applied, rewind: () => rewindWith(place, id) };
    },
  );
}
