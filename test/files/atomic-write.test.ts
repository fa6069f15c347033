import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { writeAtomically } from '../../src/files/atomic-write.ts';
import { diskFiles } from '../../src/files/file-system.ts';
import { isSafeName, safeName } from '../../src/files/safe-name.ts';
import { FolderSyncs } from '../../src/files/syncs.ts';
import { faultyFiles } from './faulty.ts';

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-atomic-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const durable = (files = diskFiles) => ({ files, isSynced: true, folders: new FolderSyncs(files) });
const words = (text: string) => Buffer.from(text);

describe('a file that is written at once (recovery 4, 6)', () => {
  test('is synced before it gets its name, and its folder after that', async () => {
    const folder = newFolder();
    const faults = faultyFiles();
    await writeAtomically(durable(faults.files), join(folder, 'a'), (file) => file.write(words('new'), 0));
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
      const writing = writeAtomically(durable(faults.files), join(folder, 'a'), (file) => file.write(words('new'), 0));
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
      await writeAtomically(durable(), join(folder, 'a'), (file) => file.write(words('new'), 0));
      expect(readFileSync(join(folder, 'a'), 'utf8')).toBe('new');
      expect(readdirSync(folder)).toEqual(['a']);
    }
    symlinkSync(join(folder, 'a'), join(folder, 'link'));
    await expect(diskFiles.open(join(folder, 'link'), 'update')).rejects.toMatchObject({ code: 'ELOOP' });
    await expect(diskFiles.open(join(folder, 'link'), 'create')).rejects.toMatchObject({ code: 'EEXIST' });
  });
});

describe('syncs of a folder (recovery 4)', () => {
  test('that are asked for while one is under way share the next one', async () => {
    const under: (() => void)[] = [];
    const files = { ...diskFiles, syncFolder: () => new Promise<void>((resolve) => under.push(resolve)) };
    const folders = new FolderSyncs(files);
    let settled = 0;
    const ask = () => void folders.sync('here').then(() => settled++);
    for (let i = 0; i < 5; i++) ask();
    void folders.sync('elsewhere');
    expect(under).toHaveLength(2);
    under[0]?.();
    while (settled < 1) await new Promise((resolve) => setTimeout(resolve));
    expect([settled, under.length]).toEqual([1, 3]);
    under[2]?.();
    while (settled < 5) await new Promise((resolve) => setTimeout(resolve));
    ask();
    expect(under).toHaveLength(4);
  });

  test('fail each for themselves: the next one is tried anew', async () => {
    const faults = faultyFiles();
    faults.plan(() => (faults.calls.length === 1 ? 'EIO' : undefined));
    const folders = new FolderSyncs(faults.files);
    const folder = newFolder();
    const settled = await Promise.allSettled([folders.sync(folder), folders.sync(folder)]);
    expect(settled.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
  });
});

describe('a safe name (checkpoint 12)', () => {
  test('is the same for the same text, another for another, and nothing but letters and digits', () => {
    const texts = ['a', 'A', '../../etc/passwd', 'a\0b', 'x'.repeat(10_000), '😀', 'e\u0301', '\u00e9'];
    const names = texts.map(safeName);
    expect(new Set(names).size).toBe(texts.length);
    expect(names).toEqual(texts.map(safeName));
    expect(names.every(isSafeName)).toBe(true);
    expect(['..', 'journal', `${names[0]}.new`, names[0]?.toUpperCase() ?? ''].some(isSafeName)).toBe(false);
  });
});
