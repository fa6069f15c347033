// What tests put into the folder for temporary files goes with the run of the tests, whatever becomes of a single test.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

let folder: string | undefined;

/** Once for all projects, before the first worker: workers and the processes that they start inherit the variable. */
export function setup(): void {
  if (process.env.PAWL_TEST_TMPDIR) return;
  folder = mkdtempSync(join(tmpdir(), 'pawl-tests-'));
  // A database server may run as another user.
  chmodSync(folder, 0o755);
  process.env.TMPDIR = folder;
  process.env.PAWL_TEST_TMPDIR = folder;
}

export function teardown(): void {
  if (folder) rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
}
