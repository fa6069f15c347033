import type { Worker } from './exclusive.ts';
import { type Change, changesOf, planFor } from './plan.ts';
import { previewOf } from './preview.ts';
import type { ProposedWrites, WriteSnapshot } from './proposed-write.ts';
import { fileInsideRoot } from './root/paths.ts';
import type { Root } from './root/root.ts';
import { inRoot, prune, thisWorker, transact } from './transaction.ts';
import { changesIn, type FileChange, type RewoundWrites, rewindWith } from './undo.ts';

/** Writes that were applied. */
export interface AppliedWrites {
  /** What was done; writes that changed nothing are not in it. */
  readonly files: readonly FileChange[];
  /** Takes these writes back, as `rewind` does with the newest ones. */
  rewind(): Promise<RewoundWrites>;
}

/**
 * Does what a model proposed: all of its writes, or none. What undoes them is kept in `<root>/.pawl/undo`. A process that is
 * killed in the middle leaves it to the next `applyWrites` or `rewind` of this root to put back what it had done.
 *
 * @param response an answer of a fan-out
 * @param options.root the folder that the paths are relative to; it may be reached through links, nothing in it may
 * @throws {WriteOutsideRootError} when a path is absolute, leads out of the root, through a link, into `.git` or `.pawl`, or to
 *   what models may not change: what Git ignores, and what is likely to hold secrets
 * @throws {WriteConflictError} when a file is not what the model read, or two writes are for one place
 * @throws {WriteFailedError} when the disk refuses. After each of these the files are as they were
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
/** An answer may come from a file that a clone has brought along: no tool has refused anything in it. */
async function checkProposals(root: Root, changes: readonly Change[]): Promise<void> {
  for (const { path } of changes) await root.checkAllowed(fileInsideRoot(path));
}

/** By path, why somebody should read a change first. */
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
  { proposedWrites = [] }: ProposedWrites,
  place: { readonly root: string; readonly worker: Worker },
): Promise<AppliedWrites> {
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
