import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { versionOf } from '../../src/edits/content-version.ts';
import { Overlay } from '../../src/edits/overlay.ts';
import { newRoot, put, treeOf } from './folder.ts';

const files = { 'a.txt': 'a\n', 'src/b.ts': 'b\n', 'src/deep/c.ts': 'c\n' };

describe('what a model writes is queued, and (fan-out 7)', () => {
  test('changes nothing on the disk, and the same model reads it', async () => {
    const root = newRoot(files);
    const before = treeOf(root, { withPawl: true });
    const overlay = new Overlay(root);
    await overlay.write('a.txt', 'new\n');
    await overlay.write('docs/d.md', 'd\n');
    await overlay.delete('src/b.ts');
    expect((await overlay.read('a.txt')).content).toBe('new\n');
    expect((await overlay.read('docs/d.md')).content).toBe('d\n');
    await expect(overlay.read('src/b.ts')).rejects.toThrow('there is no file "src/b.ts": its deletion is queued');
    expect(treeOf(root, { withPawl: true })).toEqual(before);
    expect((await new Overlay(root).read('a.txt')).content).toBe('a\n');
  });

  test('is seen in listings: what is new is there, what is deleted is not', async () => {
    const overlay = new Overlay(newRoot(files));
    await overlay.write('docs/d.md', 'd\n');
    await overlay.delete('src/b.ts');
    const all = ['a.txt', 'docs/', 'docs/d.md', 'src/', 'src/deep/', 'src/deep/c.ts'];
    expect(await overlay.list()).toEqual({ entries: all, isCut: false });
    expect((await overlay.list('src')).entries).toEqual(['src/deep/', 'src/deep/c.ts']);
    expect((await overlay.list('docs')).entries).toEqual(['docs/d.md']);
    await expect(overlay.list('nowhere')).rejects.toThrow('there is no folder "nowhere"');
  });

  test('says what the file was when it was first read, after any change of it', async () => {
    const root = newRoot(files);
    const overlay = new Overlay(root);
    expect((await overlay.read('a.txt')).version).toBe(versionOf('a\n'));
    writeFileSync(join(root, 'a.txt'), 'edited\n');
    expect(await overlay.read('a.txt')).toMatchObject({ content: 'edited\n', version: versionOf('a\n') });
    await overlay.write('a.txt', 'new\n');
    expect(overlay.writes()).toEqual([{ path: 'a.txt', content: 'new\n', base: versionOf('a\n') }]);
  });

  test('says what the file was when the change was queued, where the model never read it', async () => {
    const root = newRoot(files);
    const overlay = new Overlay(root);
    await overlay.write('a.txt', 'new\n');
    await overlay.write('z.txt', 'z\n');
    put(root, 'z.txt', 'mine');
    await overlay.write('z.txt', 'zz\n');
    await overlay.delete('src/b.ts');
    expect(overlay.writes()).toEqual([
      { path: 'a.txt', content: 'new\n', base: versionOf('a\n') },
      { path: 'src/b.ts', content: '', delete: true, base: versionOf('b\n') },
      { path: 'z.txt', content: 'zz\n', base: null },
    ]);
  });

  test('is no write when it gives back what was there, and none when a queued file is deleted again', async () => {
    const overlay = new Overlay(newRoot(files));
    await overlay.write('a.txt', 'new\n');
    await overlay.write('n.txt', 'n\n');
    await overlay.delete('src/b.ts');
    await overlay.write('a.txt', 'a\n');
    await overlay.delete('n.txt');
    await overlay.write('src/b.ts', 'b\n');
    expect(overlay.writes()).toEqual([]);
    await expect(overlay.delete('n.txt')).rejects.toThrow('there is no file "n.txt"');
  });

  test('gives the same bytes back for a text with a mark at its beginning and with other line ends', async () => {
    const text = '\ufeffone\r\ntwo';
    const overlay = new Overlay(newRoot({ 'a.txt': text }));
    const { content } = await overlay.read('a.txt');
    await overlay.write('a.txt', content);
    expect(overlay.writes()).toEqual([]);
  });

  test('calls that are made together work in their order', async () => {
    const overlay = new Overlay(newRoot(files));
    const [, read, , last] = await Promise.all([
      overlay.write('a.txt', '1'),
      overlay.read('a.txt'),
      overlay.write('a.txt', '2'),
      overlay.read('a.txt'),
    ]);
    expect([read.content, last.content]).toEqual(['1', '2']);
  });
});

describe('a model is refused, with words that it can use, (fan-out 7)', () => {
  test('what is no text in UTF-8', async () => {
    const overlay = new Overlay(newRoot({ zero: 'a\0b', 'bad.txt': new Uint8Array([0x61, 0xff]) }));
    for (const path of ['zero', 'bad.txt']) {
      await expect(overlay.read(path)).rejects.toThrow(`"${path}" is not UTF-8 text, and is not shown`);
    }
    await expect(overlay.write('new.txt', 'half \ud800')).rejects.toThrow('is not text');
  });

  test('a file above 256 KB, read or written', async () => {
    const most = 'x'.repeat(256 * 1024);
    const overlay = new Overlay(newRoot({ fits: most, large: `${most}x` }));
    expect((await overlay.read('fits')).content).toBe(most);
    await expect(overlay.read('large')).rejects.toThrow('"large" is refused: more than 256 KB in one file is too much');
    await expect(overlay.write('new', `${most}x`)).rejects.toThrow('"new" is refused: more than 256 KB');
  });

  test('more than 16 MB of queued text', async () => {
    const overlay = new Overlay(newRoot());
    const quarter = 'x'.repeat(256 * 1024);
    for (let i = 0; i < 64; i++) await overlay.write(`${i}`, quarter);
    await expect(overlay.write('one-more', 'x')).rejects.toThrow('all queued changes together may have at most 16 MB');
    await overlay.delete('0');
    await overlay.write('one-more', 'x');
    await overlay.write('one-more', quarter);
    await expect(overlay.write('two-more', 'x')).rejects.toThrow('16 MB');
  });

  test('more than 1,000 queued changes', async () => {
    const overlay = new Overlay(newRoot());
    for (let i = 0; i < 1_000; i++) await overlay.write(`${i}`, '');
    await expect(overlay.write('one-more', '')).rejects.toThrow('1000 changes are already queued');
    await overlay.write('0', 'other text for a file that is queued');
  });

  test('a file where a folder is queued, and a folder where a file is queued', async () => {
    const overlay = new Overlay(newRoot());
    await overlay.write('a/b', '');
    await expect(overlay.write('a', '')).rejects.toThrow('"a" is refused: "a/b" is queued, and a file is not a folder');
    await expect(overlay.write('a/b/c', '')).rejects.toThrow('"a/b/c" is refused: "a/b" is queued');
    await overlay.delete('a/b');
    await overlay.write('a', '');
  });

  test('what the disk refuses, without a word on where it is', async () => {
    const root = newRoot();
    const gone = new Overlay(root);
    await gone.list();
    rmSync(root, { recursive: true });
    const refused = await gone.read('a').catch((error: Error) => error.message);
    expect(refused).toBe('the disk refuses it: ENOENT');
  });

  test('files of a root that is not there', async () => {
    const root = join(newRoot(), 'nowhere');
    const overlay = new Overlay(root);
    await expect(overlay.read('a')).rejects.toMatchObject({ code: 'WRITE_FAILED' });
    mkdirSync(root);
    put(root, 'a', 'now');
    expect((await overlay.read('a')).content).toBe('now');
  });
});

describe('a listing (fan-out 7)', () => {
  test('leaves out links, node_modules and what is kept from models', async () => {
    const root = newRoot({
      'a.txt': '',
      '.git/config': '',
      'src/.GIT/x': '',
      '.pawl/x': '',
      'node_modules/m/x.js': '',
    });
    symlinkSync('a.txt', join(root, 'link'));
    symlinkSync('/etc', join(root, 'src/etc'));
    expect(await new Overlay(root).list()).toEqual({ entries: ['a.txt', 'src/'], isCut: false });
  });

  test('has at most 1,000 entries, the upper ones, and says that it was cut', async () => {
    const root = newRoot({ 'z.txt': '' });
    for (let i = 0; i < 600; i++) put(root, `one/${i}`, '');
    for (let i = 0; i < 600; i++) put(root, `one/two/${i}`, '');
    const { entries, isCut } = await new Overlay(root).list();
    expect([entries.length, isCut]).toEqual([1_000, true]);
    expect(entries.filter((entry) => /^one\/[^/]+$/.test(entry))).toHaveLength(600);
    expect(entries).toContain('z.txt');
    expect(await new Overlay(root).list('one/two')).toMatchObject({ isCut: false });
  });
});
