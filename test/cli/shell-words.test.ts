import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { commandOn } from '../../src/cli/ui/shell-words.ts';

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-path-'));
  folders.push(folder);
  return folder;
}

/** A folder that has the command, below an empty one. */
function folderWith(...path: readonly string[]): string {
  const folder = join(emptyFolder(), ...path);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'pawl'), '', { mode: 0o755 });
  return folder;
}

describe('the command in a line that a person can type', () => {
  test('is `pawl` where the PATH has it', () => {
    expect(commandOn([emptyFolder(), folderWith('bin')].join(delimiter))).toBe('pawl');
  });

  test('is `npx --no-install pawl` where only npm or npx have put it on the PATH', () => {
    const path = [folderWith('node_modules', '.bin'), emptyFolder()].join(delimiter);
    expect(commandOn(path)).toBe('npx --no-install pawl');
    expect(commandOn(`${folderWith('node_modules', '.bin')}/`)).toBe('npx --no-install pawl');
  });

  test('is `npx --no-install pawl` where it is nowhere, or cannot be executed', () => {
    const folder = folderWith('bin');
    chmodSync(join(folder, 'pawl'), 0o644);
    for (const path of ['', folder, '/nowhere']) expect(commandOn(path)).toBe('npx --no-install pawl');
  });
});
