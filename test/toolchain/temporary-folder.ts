// What tests put into the folder for temporary files goes with the run of the tests, whatever becomes of a single test.
import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildStudioPage } from './build-studio.ts';

let folder: string | undefined;

/** A folder in memory has to have this much room: the tests have used a tenth of it. */
const ROOM = 4 * 2 ** 30;
const MEMORY = '/dev/shm';

/**
 * In memory where there is room: thousands of stores are made, and each of their commits would wait for a disk. What a process
 * leaves that is killed is the same. TMPDIR says otherwise; `npm run torture` is on the disk.
 */
function parentFolder(): string {
  if (process.env.TMPDIR || process.env.PAWL_TORTURE) return tmpdir();
  try {
    const { type, bavail, bsize } = statfsSync(MEMORY);
    return type === TMPFS && bavail * bsize >= ROOM ? MEMORY : tmpdir();
  } catch {
    return tmpdir();
  }
}
const TMPFS = 0x01021994;

/** Once for all projects, before the first worker: workers and the processes that they start inherit the variable. */
export async function setup(): Promise<void> {
  if (process.env.PAWL_TEST_TMPDIR) return;
  // The page of Studio is a built file for the sources, too.
  if (!process.env.PAWL_TEST_BUILT) await buildStudioPage();
  folder = mkdtempSync(join(parentFolder(), 'pawl-tests-'));
  // A database server may run as another user.
  chmodSync(folder, 0o755);
  process.env.TMPDIR = folder;
  process.env.PAWL_TEST_TMPDIR = folder;
}

export function teardown(): void {
  if (folder) rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
}
