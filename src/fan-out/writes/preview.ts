import type { ModelResponse, ResponseSnapshot } from '../snapshot.ts';
import { Root } from './root.ts';

/** A file as it is, and as an answer would have it. */
export interface PreviewedFile {
  /** Relative to the root, with forward slashes. */
  readonly path: string;
  /** Its bytes now; null = there is no such file. */
  readonly before: Uint8Array | null;
  /** Its new text; null = it is to go. */
  readonly after: string | null;
}

/**
 * What `applyWrites` would do to the files as they are now, for whoever wants to show it; nothing is compared with what the model
 * read, and nothing is written.
 * @throws {WriteOutsideRootError} {WriteFailedError} as `applyWrites`
 */
export async function previewWrites(
  { proposedWrites = [] }: Pick<ModelResponse | ResponseSnapshot, 'proposedWrites'>,
  { root }: { readonly root: string },
): Promise<readonly PreviewedFile[]> {
  const opened = await Root.open(root);
  const files: PreviewedFile[] = [];
  for (const write of proposedWrites) {
    const { path } = await opened.file(write.path);
    const before = (await opened.read(path)) ?? null;
    files.push({ path, before, after: write.delete ? null : write.content });
  }
  return files;
}
