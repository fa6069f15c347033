import { warningFor } from './executed.ts';
import type { ProposedWrites, WriteSnapshot } from './proposed-write.ts';
import { Root } from './root/root.ts';

/** A file as it is, and as an answer would have it. */
export interface PreviewedFile {
  /** Relative to the root, with forward slashes. */
  readonly path: string;
  /** Its bytes now; null = there is no such file. */
  readonly before: Uint8Array | null;
  /** Its new text; null = it is to go. */
  readonly after: string | null;
  /** Why a person should read it: other programs execute or obey that file by themselves. Absent for any other file. */
  readonly warning?: string;
}

/**
 * What `applyWrites` would do to the files as they are now, for whoever wants to show it; nothing is compared with what the model
 * read, and nothing is written.
 * @throws {WriteOutsideRootError} {WriteFailedError} as `applyWrites`
 */
export async function previewWrites(
  { proposedWrites = [] }: ProposedWrites,
  { root }: { readonly root: string },
): Promise<readonly PreviewedFile[]> {
  const opened = await Root.open(root);
  const files: PreviewedFile[] = [];
  for (const write of proposedWrites) {
    files.push(await previewOf(opened, write));
  }
  return files;
}

/** @internal */
export async function previewOf(root: Root, write: WriteSnapshot): Promise<PreviewedFile> {
  const { path, stats } = await root.file(write.path);
  await root.checkAllowed(path);
  const before = (await root.read(path)) ?? null;
  const after = write.delete ? null : write.content;
  const warning = warningFor({ path, before, after, mode: stats?.mode });
  return { path, before, after, ...(warning === undefined ? {} : { warning }) };
}
