import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { applyWrites } from '../../src/edits/apply.ts';
import { versionOf } from '../../src/edits/content-version.ts';
import { Overlay } from '../../src/edits/overlay.ts';
import { pawlFolder } from '../../src/edits/pawl-folder.ts';
import { changesOf, planFor } from '../../src/edits/plan.ts';
import { previewWrites } from '../../src/edits/preview.ts';
import type { WriteSnapshot } from '../../src/edits/proposed-write.ts';
import { Root } from '../../src/edits/root/root.ts';
import { rewind } from '../../src/edits/undo.ts';
import { newRoot, put, treeOf } from './folder.ts';

const conflict = { code: 'WRITE_CONFLICT' };
const apply = (root: string, ...proposedWrites: readonly WriteSnapshot[]) => applyWrites({ proposedWrites }, { root });
const files = { 'a.txt': 'a', 'src/b.ts': 'b', 'src/c.ts': 'c' };

describe('applyWrites (fan-out 7)', () => {
  test.for<[string, unknown]>([
    ['nothing', undefined],
    ['a list in place of an answer', [{ path: 'a.txt', content: 'x' }]],
    ['a text', 'a.txt'],
    ['an answer whose changes are a text', { proposedWrites: 'a.txt' }],
    ['an answer whose changes are an object', { proposedWrites: { 0: { path: 'a.txt', content: 'x' } } }],
    ['a change that is a text', { proposedWrites: ['a.txt'] }],
    ['a change without a content', { proposedWrites: [{ path: 'a.txt' }] }],
    ['a change whose path is no text', { proposedWrites: [{ path: 7, content: 'x' }] }],
  ])('refuses %s with a TypeError, and so does previewWrites (edges 29)', async ([, response]) => {
    const root = newRoot(files);
    const before = treeOf(root);
    await expect(applyWrites(response as never, { root })).rejects.toThrow(TypeError);
    await expect(previewWrites(response as never, { root })).rejects.toThrow(TypeError);
    expect(treeOf(root)).toEqual(before);
  });

  test('does what a model proposed: files are created with their folders, changed and deleted', async () => {
    const root = newRoot(files);
    const overlay = new Overlay(root);
    await overlay.write('new/deep/n.txt', 'n');
    await overlay.read('a.txt');
    await overlay.write('a.txt', 'changed');
    await overlay.delete('src/b.ts');
    const applied = await applyWrites({ proposedWrites: overlay.writes() }, { root });
    expect(applied.files).toEqual([
      { path: 'a.txt', change: 'changed' },
      { path: 'new/deep/n.txt', change: 'created' },
      { path: 'src/b.ts', change: 'deleted' },
    ]);
    const contents = Object.entries(treeOf(root)).map(([path, what]) => `${path} ${what.replace(/^\d+ ?/, '')}`);
    expect(contents).toEqual(['a.txt changed', 'new/ ', 'new/deep/ ', 'new/deep/n.txt n', 'src/ ', 'src/c.ts c']);
  });

  test('keeps the permissions of a file that it changes', async () => {
    const root = newRoot();
    put(root, 'run.sh', 'old', 0o755);
    put(root, 'secret', 'old', 0o600);
    await apply(root, { path: 'run.sh', content: 'new' }, { path: 'secret', content: 'new' });
    expect(treeOf(root)).toEqual({ 'run.sh': '755 new', secret: '600 new' });
  });

  test('keeps old bytes where only their owner can read them', async () => {
    const root = newRoot();
    put(root, 'secret', 'old', 0o600);
    await apply(root, { path: 'secret', content: 'new' });
    expect(treeOf(root, { withPawl: true })).toMatchObject({ '.pawl/undo/1/': '700' });
  });

  test('refuses all when one file is not what it was when the model read it, and names each such file', async () => {
    const root = newRoot(files);
    const overlay = new Overlay(root);
    for (const path of ['a.txt', 'src/b.ts', 'src/c.ts']) await overlay.read(path);
    await overlay.write('a.txt', 'changed');
    await overlay.write('src/b.ts', 'changed');
    await overlay.delete('src/c.ts');
    put(root, 'src/b.ts', 'edited by hand');
    put(root, 'src/c.ts', 'edited by hand');
    const before = treeOf(root, { withPawl: true });
    const applying = applyWrites({ proposedWrites: overlay.writes() }, { root });
    await expect(applying).rejects.toMatchObject(conflict);
    await expect(applying).rejects.toThrow('"src/b.ts", "src/c.ts" have changed since this change was proposed');
    expect(treeOf(root, { withPawl: true })).toEqual(before);
  });

  test('refuses a new file when there is one by now, and a change of one that is gone', async () => {
    const root = newRoot(files);
    await expect(apply(root, { path: 'a.txt', content: 'new', base: null })).rejects.toMatchObject(conflict);
    const gone = { path: 'gone.txt', content: 'new', base: versionOf('old') };
    await expect(apply(root, gone)).rejects.toMatchObject(conflict);
    await expect(apply(root, { ...gone, content: '', delete: true })).rejects.toMatchObject(conflict);
    expect(treeOf(root, { withPawl: true })).not.toHaveProperty('.pawl/');
  });

  test('compares nothing for a write whose base is unknown', async () => {
    const root = newRoot(files);
    await apply(root, { path: 'a.txt', content: 'new' });
    expect(readFileSync(join(root, 'a.txt'), 'utf8')).toBe('new');
  });

  test('refuses two writes for one file, however it is spelled, and a file that is a folder of another', async () => {
    const root = newRoot(files);
    for (const [one, other] of [
      ['a.txt', './a.txt'],
      ['x', 'x/y'],
      ['x/y/z', 'x'],
    ] as const) {
      const writes = [
        { path: one, content: '1' },
        { path: other, content: '2' },
      ];
      await expect(apply(root, ...writes)).rejects.toMatchObject(conflict);
    }
    expect(Object.keys(treeOf(root))).toEqual(['a.txt', 'src/', 'src/b.ts', 'src/c.ts']);
  });

  test('refuses two writes for names that the file system takes for the same', async () => {
    const changes = changesOf([
      { path: 'Read.me', content: '1' },
      { path: 'READ.ME', content: '2' },
    ]);
    const root = await Root.open(newRoot());
    expect(await planFor(root, changes)).toHaveLength(2);
    await expect(planFor(root, changes, (path) => path.toLowerCase())).rejects.toMatchObject(conflict);
  });

  test('makes nothing, and keeps no undo, when nothing changes', async () => {
    const root = newRoot(files);
    const same = { path: 'a.txt', content: 'a' };
    for (const writes of [[], [same], [{ path: 'no.txt', content: '', delete: true }]]) {
      const applied = await apply(root, ...writes);
      expect(applied.files).toEqual([]);
      expect(await applied.rewind()).toEqual({ files: [] });
    }
    expect((await applyWrites({}, { root })).files).toEqual([]);
    expect(existsSync(join(root, '.pawl'))).toBe(false);
    const { files: changed } = await apply(root, same, { path: 'src/b.ts', content: 'new' });
    expect(changed).toEqual([{ path: 'src/b.ts', change: 'changed' }]);
  });

  test('refuses a write without text as a wrong call, and an answer that is none', async () => {
    const root = newRoot();
    const bad = [{ content: undefined }, { content: 1 }, { content: 'half \ud800' }, { content: '', base: 7 }];
    for (const each of bad) {
      await expect(apply(root, { path: 'a', ...each } as never)).rejects.toThrow(TypeError);
    }
    await expect(applyWrites({ proposedWrites: [] }, { root: '' })).rejects.toThrow(TypeError);
  });

  test('refuses a root that is no folder with a typed error', async () => {
    const root = newRoot(files);
    for (const bad of [join(root, 'nowhere'), join(root, 'a.txt')]) {
      const refusing = apply(bad, { path: 'x', content: '' });
      await expect(refusing).rejects.toMatchObject({ code: 'WRITE_FAILED' });
      await expect(refusing).rejects.toThrow(bad);
    }
  });

  test('called several times at once applies one after the other: of two for one file the second is refused', async () => {
    const root = newRoot();
    const all = Array.from({ length: 6 }, (_, i) => apply(root, { path: `${i}`, content: 'x', base: null }));
    await Promise.all(all);
    const two = [1, 2].map((i) => apply(root, { path: '0', content: `${i}`, base: versionOf('x') }));
    const settled = await Promise.allSettled(two);
    expect(settled.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(settled.find(({ status }) => status === 'rejected')).toMatchObject({ reason: conflict });
  });

  test('leaves no lock and no owner behind', async () => {
    const root = newRoot();
    await apply(root, { path: 'a', content: 'x' });
    await expect(apply(root, { path: 'a', content: 'y', base: null })).rejects.toMatchObject(conflict);
    expect(readdirSync(join(root, '.pawl/lock'))).toEqual([]);
    expect(readdirSync(join(root, '.pawl/undo'))).toEqual(['1']);
  });
});

describe('the folder that Pawl keeps in a root (fan-out 7)', () => {
  test('is made with a .gitignore that keeps all of it out of commits', async () => {
    const root = newRoot();
    expect(await pawlFolder(root)).toBe(join(root, '.pawl'));
    expect(readFileSync(join(root, '.pawl/.gitignore'), 'utf8')).toBe('*\n');
    writeFileSync(join(root, '.pawl/.gitignore'), 'runs.db\n');
    await pawlFolder(root);
    expect(readFileSync(join(root, '.pawl/.gitignore'), 'utf8')).toBe('runs.db\n');
  });

  test.for(['.pawl', '.pawl/undo', '.pawl/lock'])(
    'is refused when %s is a link, which a clone may bring along',
    async (name) => {
      const outside = newRoot();
      const root = newRoot(files);
      if (name !== '.pawl') mkdirSync(join(root, '.pawl'));
      symlinkSync(outside, join(root, name));
      const before = treeOf(root);
      await expect(apply(root, { path: 'a.txt', content: 'new' })).rejects.toMatchObject({
        code: 'WRITE_OUTSIDE_ROOT',
      });
      await expect(rewind(root)).rejects.toMatchObject({ code: 'WRITE_OUTSIDE_ROOT' });
      expect(treeOf(root)).toEqual(before);
      expect(treeOf(outside, { withPawl: true })).toEqual({});
    },
  );

  test('is refused when a file has its name, or it cannot be written', async () => {
    const root = newRoot({ '.pawl': 'a file' });
    await expect(pawlFolder(root)).rejects.toMatchObject({ code: 'WRITE_FAILED' });
    await expect(pawlFolder(join(root, 'nowhere'))).rejects.toMatchObject({ code: 'WRITE_FAILED' });
  });

  test.skipIf(process.getuid?.() === 0)('cannot be made in a root that is read-only: nothing is written', async () => {
    const root = newRoot(files);
    chmodSync(root, 0o555);
    await expect(apply(root, { path: 'src/b.ts', content: 'new' })).rejects.toMatchObject({ code: 'WRITE_FAILED' });
    chmodSync(root, 0o755);
    expect(readFileSync(join(root, 'src/b.ts'), 'utf8')).toBe('b');
  });
});
