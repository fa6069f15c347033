import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { writeAtomically } from '../files/atomic-write.ts';
import { orAbsent } from '../files/errors.ts';
import type { FileSystem } from '../files/file-system.ts';
import { withFile } from '../files/file-system.ts';
import { versionOf } from './content-version.ts';
import { WriteConflictError, WriteFailedError } from './errors.ts';
import type { PlannedChange } from './plan.ts';
import { quotedPath } from './root/paths.ts';
import { type Manifest, parseManifest } from './undo-manifest.ts';

/** The data that undoes one apply: a folder with a manifest and the old bytes. */
export interface Undo {
  readonly ordinal: number;
  readonly folder: string;
  /** Undefined until all its bytes are stored: then nothing was applied yet. */
  readonly manifest: Manifest | undefined;
}

export type ReadyUndo = Undo & { readonly manifest: Manifest };

const MANIFEST = 'manifest.json';

/**
 * The undos of a root on the disk: for each apply a manifest and the old bytes of its files. Callers hold the root's lock.
 */
export class UndoLog {
  readonly files: FileSystem;
  readonly #folder: string;

  constructor(files: FileSystem, folder: string) {
    this.files = files;
    this.#folder = folder;
  }

  /** The oldest first. @throws {WRITE_FAILED} if one cannot be read */
  async all(): Promise<Undo[]> {
    const { files } = this;
    const ordinals = (await files.folders(this.#folder)).filter((name) => /^[1-9]\d{0,14}$/.test(name)).map(Number);
    const undos: Undo[] = [];
    for (const ordinal of ordinals.sort((a, b) => a - b)) {
      const folder = join(this.#folder, String(ordinal));
      const bytes = await orAbsent(files.readWhole(join(folder, MANIFEST)));
      const manifest = bytes && parseManifest(bytes.toString());
      if (bytes && !manifest) {
        throw new WriteFailedError(`${join(folder, MANIFEST)} is damaged, or of a newer version; delete ${folder}`);
      }
      undos.push({ ordinal, folder, manifest });
    }
    return undos;
  }

  /** Stores the old bytes of all files. When it resolves, the disk has them. @param rewinds the undo that is undone */
  async begin(plan: readonly PlannedChange[], folders: readonly string[], rewinds?: number): Promise<ReadyUndo> {
    const ordinal = ((await this.all()).at(-1)?.ordinal ?? 0) + 1;
    const undo: Undo = { ordinal, folder: join(this.#folder, String(ordinal)), manifest: undefined };
    try {
      await this.files.makeFolder(undo.folder);
      for (const [i, change] of plan.entries()) await this.#keep(undo, i, change);
      const files = plan.map(({ path, before, after }) => ({ path, before, after }));
      const id = randomBytes(8).toString('hex');
      const manifest: Manifest = {
        version: 1,
        state: 'applying',
        id,
        files,
        folders,
        ...(rewinds === undefined ? {} : { rewinds }),
      };
      const ready = await this.write(undo, manifest);
      await this.files.syncFolder(this.#folder);
      return ready;
    } catch (error) {
      await this.discard(undo).catch(() => {});
      throw error;
    }
  }

  async write(undo: Undo, manifest: Manifest): Promise<ReadyUndo> {
    const text = Buffer.from(`${JSON.stringify(manifest)}\n`);
    await writeAtomically(this, join(undo.folder, MANIFEST), (file) => file.write(text, 0));
    return { ...undo, manifest };
  }

  /** The old bytes of a file. @throws {WRITE_FAILED} if they are damaged */
  async oldBytes({ folder, manifest }: ReadyUndo, i: number): Promise<Buffer> {
    const path = join(folder, String(i));
    const bytes = await this.files.readWhole(path);
    if (versionOf(bytes) === manifest.files[i]?.before?.version) return bytes;
    throw new WriteFailedError(
      `${path} is damaged: it should hold the old bytes of ${quotedPath(manifest.files[i]?.path ?? '')}`,
    );
  }

  /** The manifest is deleted first: without a manifest an undo is known to be incomplete. */
  async discard({ folder }: Undo): Promise<void> {
    const { files } = this;
    if ((await orAbsent(files.readChangeTime(folder))) === undefined) return;
    await files.remove(join(folder, MANIFEST));
    await files.syncFolder(folder);
    await files.removeFolder(folder);
  }

  async #keep(undo: Undo, i: number, { path, at, before }: PlannedChange): Promise<void> {
    if (!before) return;
    const { files } = this;
    const bytes = await files.readWhole(at);
    if (versionOf(bytes) !== before.version) {
      throw new WriteConflictError(`${quotedPath(path)} is being changed right now; nothing was written, try again`);
    }
    await withFile(files.open(join(undo.folder, String(i)), 'create'), async (file) => {
      await file.write(bytes, 0);
      await file.sync();
    });
  }
}
