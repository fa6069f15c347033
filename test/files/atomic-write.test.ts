import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { writeAtomically } from '../../src/files/atomic-write.ts';
import { diskFiles } from '../../src/files/file-system.ts';
import { faultyFiles } from './faulty.ts';

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-atomic-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const words = (text: string) => Buffer.from(text);

describe('a file that is written at once (recovery 4, 6)', () => {
  test('is synced before it gets its name, and its folder after that', async () => {
    const folder = newFolder();
    const faults = faultyFiles();
    await writeAtomically(faults, join(folder, 'a'), (file) => file.write(words('new'), 0));
    expect(faults.calls.map(({ method }) => method)).toEqual([
      'open',
      'write',
      'sync',
      'close',
      'rename',
      'syncFolder',
    ]);
    expect(readFileSync(join(folder, 'a'), 'utf8')).toBe('new');
    expect(readdirSync(folder)).toEqual(['a']);
  });

  test('stays what it was when any call on the way fails, and leaves nothing beside it', async () => {
    for (let failing = 1; failing <= 6; failing++) {
      const folder = newFolder();
      writeFileSync(join(folder, 'a'), 'old');
      const faults = faultyFiles();
      faults.plan(() => (faults.calls.length === failing ? 'ENOSPC' : undefined));
      const writing = writeAtomically(faults, join(folder, 'a'), (file) => file.write(words('new'), 0));
      await expect(writing).rejects.toMatchObject({ code: 'ENOSPC' });
      expect(faults.fired).toBe(1);
      // When only the sync of the folder failed, the new file has the name already.
      expect(readFileSync(join(folder, 'a'), 'utf8')).toBe(failing === 6 ? 'new' : 'old');
      expect(readdirSync(folder)).toEqual(['a']);
    }
  });

  test('takes the place of what a killed writer left, and never writes through a link', async () => {
    const folder = newFolder();
    for (const leave of [
      () => writeFileSync(join(folder, 'a.new'), 'half'),
      () => symlinkSync('/dev/full', join(folder, 'a.new')),
    ]) {
      leave();
      await writeAtomically({ files: diskFiles }, join(folder, 'a'), (file) => file.write(words('new'), 0));
      expect(readFileSync(join(folder, 'a'), 'utf8')).toBe('new');
      expect(readdirSync(folder)).toEqual(['a']);
    }
    symlinkSync(join(folder, 'a'), join(folder, 'link'));
    await expect(diskFiles.open(join(folder, 'link'), 'read')).rejects.toMatchObject({ code: 'ELOOP' });
    await expect(diskFiles.open(join(folder, 'link'), 'create')).rejects.toMatchObject({ code: 'EEXIST' });
  });
});
