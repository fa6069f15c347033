import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A folder that goes when the test that asks for it is over. */
export function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-asked-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
