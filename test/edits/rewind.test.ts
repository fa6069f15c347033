import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { applyWrites } from '../../src/edits/apply.ts';
import type { WriteSnapshot } from '../../src/edits/proposed-write.ts';
import { rewind } from '../../src/edits/undo.ts';
import { newRoot, put, treeOf } from './folder.ts';

const conflict = { code: 'WRITE_CONFLICT' };
const apply = (root: string, ...proposedWrites: readonly WriteSnapshot[]) => applyWrites({ proposedWrites }, { root });
const three = [
  { path: 'a.txt', content: 'new' },
  { path: 'src/b.ts', content: '', delete: true },
  { path: 'new/deep/n.txt', content: 'n' },
];

/** Bytes that are no text, permissions, and an empty folder. */
function someRoot(): string {
  const root = newRoot({ 'a.txt': new Uint8Array([0, 255, 10, 13]) });
  put(root, 'src/b.ts', 'b', 0o640);
  mkdirSync(join(root, 'empty'));
  return root;
}

describe('rewind (fan-out 7)', () => {
  test('makes the tree byte for byte what it was, permissions and folders too', async () => {
    const root = someRoot();
    const before = treeOf(root);
    await apply(root, ...three);
    expect(treeOf(root)).not.toEqual(before);
    expect((await rewind(root)).files).toEqual([
      { path: 'a.txt', change: 'changed' },
      { path: 'src/b.ts', change: 'created' },
      { path: 'new/deep/n.txt', change: 'deleted' },
    ]);
    expect(treeOf(root)).toEqual(before);
    expect(readdirSync(join(root, '.pawl/undo'))).toEqual([]);
  });

  test('takes back one apply after the other, the newest first, and says when there is none left', async () => {
    const root = someRoot();
    const trees = [treeOf(root)];
    for (let i = 0; i < 3; i++) {
      await apply(root, { path: 'a.txt', content: `${i}` }, { path: `n${i}/x`, content: '' });
      trees.push(treeOf(root));
    }
    for (const tree of trees.toReversed()) {
      expect(treeOf(root)).toEqual(tree);
      if (tree !== trees[0]) await rewind(root);
    }
    await expect(rewind(root)).rejects.toMatchObject(conflict);
    await expect(rewind(root)).rejects.toThrow(`there is nothing to rewind in ${JSON.stringify(root)}`);
  });

  test('leaves a root alone where nothing was ever applied', async () => {
    const root = someRoot();
    await expect(rewind(root)).rejects.toMatchObject(conflict);
    expect(readdirSync(root).sort()).toEqual(['a.txt', 'empty', 'src']);
  });

  test('is refused when one of the files was edited, deleted or made again since', async () => {
    const edits: ((root: string) => void)[] = [
      (root) => put(root, 'a.txt', 'edited'),
      (root) => rmSync(join(root, 'a.txt')),
      (root) => put(root, 'src/b.ts', 'made again'),
      (root) => put(root, 'new/deep/n.txt', 'edited'),
    ];
    for (const edit of edits) {
      const root = someRoot();
      await apply(root, ...three);
      edit(root);
      const before = treeOf(root);
      await expect(rewind(root)).rejects.toMatchObject(conflict);
      expect(treeOf(root)).toEqual(before);
      expect(readdirSync(join(root, '.pawl/undo'))).toEqual(['1']);
    }
  });

  test('is refused when a folder has become a link since: nothing is written through it', async () => {
    const outside = newRoot({ 'b.ts': 'theirs' });
    const root = someRoot();
    await apply(root, { path: 'src/b.ts', content: 'theirs' });
    rmSync(join(root, 'src'), { recursive: true });
    symlinkSync(outside, join(root, 'src'));
    await expect(rewind(root)).rejects.toMatchObject({ code: 'WRITE_OUTSIDE_ROOT' });
    expect(treeOf(outside)).toEqual({ 'b.ts': expect.stringContaining('theirs') });
  });

  test('leaves a folder that was made when something else is in it by now', async () => {
    const root = someRoot();
    await apply(root, ...three);
    put(root, 'new/mine.txt', 'mine');
    await rewind(root);
    expect(Object.keys(treeOf(root))).toEqual(['a.txt', 'empty/', 'new/', 'new/mine.txt', 'src/', 'src/b.ts']);
  });

  test('keeps permissions that were changed since', async () => {
    const root = someRoot();
    await apply(root, ...three);
    chmodSync(join(root, 'a.txt'), 0o600);
    await rewind(root);
    expect(treeOf(root)['a.txt']).toMatch(/^600 /);
  });

  test('of one answer takes back that one, also when others were applied after it', async () => {
    const root = someRoot();
    const first = await apply(root, { path: 'a.txt', content: 'first' });
    await apply(root, { path: 'src/b.ts', content: 'second' });
    await first.rewind();
    expect(readFileSync(join(root, 'a.txt'))).toEqual(Buffer.from([0, 255, 10, 13]));
    expect(readFileSync(join(root, 'src/b.ts'), 'utf8')).toBe('second');
    await expect(first.rewind()).rejects.toMatchObject(conflict);
    await expect(first.rewind()).rejects.toThrow('can no longer be rewound');
    await rewind(root);
    // The next one gets the number of the first, and is another one all the same.
    await apply(root, { path: 'a.txt', content: 'third' });
    await expect(first.rewind()).rejects.toMatchObject(conflict);
  });

  test('reaches back 20 applies, and no more old bytes are kept', async () => {
    const root = someRoot();
    for (let i = 1; i <= 23; i++) await apply(root, { path: 'a.txt', content: `${i}` });
    expect(readdirSync(join(root, '.pawl/undo'))).toHaveLength(20);
    for (let i = 0; i < 20; i++) await rewind(root);
    expect(readFileSync(join(root, 'a.txt'), 'utf8')).toBe('3');
    await expect(rewind(root)).rejects.toMatchObject(conflict);
  });

  test('changes nothing when the kept bytes are damaged, or what describes them', async () => {
    const root = someRoot();
    await apply(root, ...three);
    const before = treeOf(root);
    const old = join(root, '.pawl/undo/1/0');
    const bytes = readFileSync(old);
    writeFileSync(old, 'damaged');
    await expect(rewind(root)).rejects.toThrow(`${old} is damaged: it should hold the old bytes of "a.txt"`);
    expect(treeOf(root)).toEqual(before);
    writeFileSync(old, bytes);
    const manifest = join(root, '.pawl/undo/1/manifest.json');
    const text = readFileSync(manifest, 'utf8');
    for (const bad of [
      '',
      '{',
      'null',
      '{"version":2}',
      text.replace('"applied"', '"done"'),
      text.replace('"id":"', '"id":"../'),
    ]) {
      writeFileSync(manifest, bad);
      await expect(rewind(root)).rejects.toMatchObject({ code: 'WRITE_FAILED' });
      expect(treeOf(root)).toEqual(before);
    }
    writeFileSync(manifest, text);
    await rewind(root);
  });

  test('writes nothing outside the root, for any undo that came with a clone', async () => {
    const outside = newRoot({ victim: 'theirs' });
    const root = newRoot();
    const path = `../${outside.split('/').at(-1)}/victim`;
    const manifest = {
      version: 1,
      id: '0123456789abcdef',
      files: [{ path, before: null, after: '1b8ea1e2d1b3b2b5e7d0d0a2ad5c6eb8b3ad0b3d38e8b3f6a1dca2d9c8a6b7c5' }],
      folders: ['..', '/tmp'],
    };
    for (const state of ['applying', 'applied']) {
      put(root, '.pawl/undo/1/manifest.json', JSON.stringify({ ...manifest, state }));
      await expect(rewind(root)).rejects.toMatchObject({ name: expect.stringMatching(/Conflict|OutsideRoot/) });
      expect(treeOf(outside)).toEqual({ victim: expect.stringContaining('theirs') });
    }
  });
});
