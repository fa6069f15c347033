import { dirname, resolve } from 'node:path';
import { writeAtomically } from '../files/atomic-write.ts';
import { fileError, orAbsent } from '../files/errors.ts';
import { diskFiles, type FileSystem } from '../files/file-system.ts';
import { type Checkpoint, decodeFanOut, encodeFanOut } from './checkpoint.ts';

/**
 * Replaces a checkpoint file atomically: a reader sees the old checkpoint or the new one. When it resolves, the disk has the
 * new one.
 * @throws {STORE_FULL} {STORE_UNAVAILABLE} {NOT_JSON}
 */
export async function saveCheckpoint(path: string, checkpoint: Checkpoint): Promise<void> {
  // The path must stay the same if the host changes its working folder.
  const file = resolve(path);
  await diskFiles.makeFolder(dirname(file)).catch((error: unknown) => {
    throw fileError(error, path);
  });
  await writeText(diskFiles, file, encodeFanOut(checkpoint));
}

/**
 * Loads the checkpoint file of a fan-out.
 * @returns null if there is no file
 * @throws {CHECKPOINT_CORRUPT} {CHECKPOINT_TOO_NEW} {STORE_UNAVAILABLE} and the file is unchanged
 */
export function loadCheckpoint(path: string): Promise<Checkpoint | null> {
  return readCheckpoint(diskFiles, path);
}

/** As `loadCheckpoint`, from a given file system. @internal */
export async function readCheckpoint(files: FileSystem, path: string): Promise<Checkpoint | null> {
  try {
    const bytes = await orAbsent(files.readWhole(path));
    return bytes === undefined ? null : decodeFanOut(bytes, path);
  } catch (error) {
    throw fileError(error, path);
  }
}

/**
 * Replaces a checkpoint file by a text, atomically. Each write has a temporary name of its own, so no lock is needed.
 * @internal
 */
export async function writeText(files: FileSystem, path: string, text: string): Promise<void> {
  try {
    await writeAtomically({ files, temporaryFor }, path, (file) => file.write(Buffer.from(text), 0));
  } catch (error) {
    throw fileError(error, path);
  }
}

/** Returns a temporary file name beside a checkpoint file, with the pid of the writing process. */
export function temporaryFor(path: string): string {
  return `${path}.${process.pid}.${crypto.randomUUID().slice(0, 8)}.tmp`;
}

/** Returns the pid in the name of a checkpoint's temporary file; undefined for any other name. */
export function writerOf(name: string, base: string): number | undefined {
  if (!name.startsWith(`${base}.`)) return undefined;
  const [, pid] = /^(\d+)\.[0-9a-f]{8}\.tmp$/.exec(name.slice(base.length + 1)) ?? [];
  return pid === undefined ? undefined : Number(pid);
}
