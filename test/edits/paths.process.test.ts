import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { applyWrites } from '../../src/edits/apply.ts';
import { Overlay } from '../../src/edits/overlay.ts';
import { insideRoot } from '../../src/edits/root/paths.ts';
import { newRoot, treeOf } from './folder.ts';

const refusal = { code: 'WRITE_OUTSIDE_ROOT' };

/** Each way in which a path may ask for what is not a model's business. */
const hostile = [
  '../x',
  'a/../../x',
  'src/../../../x',
  '..',
  '/etc/passwd',
  '//host/share',
  'C:/x',
  'c:x',
  'a\\b',
  '..\\x',
  'a\0b',
  'line\nend',
  '\u001b[2J',
  'half \ud800',
  'x'.repeat(256),
  `${'x/'.repeat(600)}x`,
  '.git/hooks/post-checkout',
  '.GIT/config',
  'src/.git/config',
  '.git./config',
  '.git /config',
  '.g\u200cit/config',
  'git~1/config',
  '.git::$INDEX_ALLOCATION/config',
  '.pawl/answers.json',
  '.Pawl/undo/1/manifest.json',
  './.pawl/x',
  'a/../.pawl/x',
];
/** Names of folders, where a file is asked for. */
const noFiles = ['', '.', './', 'src/..', 'src/', 'src/.', 'a/b/..'];

/** All that a model can ask of a path, and what is done with it in the end. */
function asked(root: string, path: string): { [what: string]: () => Promise<unknown> } {
  const overlay = new Overlay(root);
  return {
    read: () => overlay.read(path),
    write: () => overlay.write(path, 'x'),
    delete: () => overlay.delete(path),
    'apply a write': () => applyWrites({ proposedWrites: [{ path, content: 'x' }] }, { root }),
    'apply a deletion': () => applyWrites({ proposedWrites: [{ path, content: '', delete: true }] }, { root }),
  };
}

describe('a path that leads out of the root is refused before anything is written, (fan-out 7)', () => {
  test.for([...hostile, ...noFiles])('like %j', async (path) => {
    const root = newRoot({ 'src/a.ts': 'a', '.git/config': 'c' });
    const before = treeOf(root, { withPawl: true });
    for (const [what, ask] of Object.entries(asked(root, path))) {
      await expect(ask(), what).rejects.toMatchObject(refusal);
    }
    if (hostile.includes(path)) await expect(new Overlay(root).list(path)).rejects.toMatchObject(refusal);
    expect(treeOf(root, { withPawl: true })).toEqual(before);
  });

  test('also when it is no string at all', async () => {
    for (const path of [undefined, null, 1, {}, ['a']]) {
      await expect(applyWrites({ proposedWrites: [{ path: path as string, content: '' }] }, { root: newRoot() }))
        .rejects //
        .toThrow(TypeError);
    }
  });

  test('and so is one through a link: a linked folder, a linked file, one to nowhere, one within the root', async () => {
    const outside = mkdtempSync(join(tmpdir(), 'pawl-outside-'));
    onTestFinished(() => rmSync(outside, { recursive: true, force: true }));
    const root = newRoot({ 'src/a.ts': 'a' });
    symlinkSync(outside, join(root, 'out'));
    symlinkSync(join(root, 'src/a.ts'), join(root, 'file'));
    symlinkSync('/nowhere', join(root, 'dangling'));
    symlinkSync('src', join(root, 'within'));
    mkdirSync(join(root, 'deep'));
    symlinkSync('..', join(root, 'deep/up'));
    const before = [treeOf(root, { withPawl: true }), treeOf(outside)];
    for (const path of ['out/x', 'out/new/x', 'file', 'dangling', 'within/a.ts', 'deep/up/src/a.ts']) {
      for (const [what, ask] of Object.entries(asked(root, path))) {
        await expect(ask(), `${what} ${path}`).rejects.toMatchObject(refusal);
      }
    }
    for (const folder of ['out', 'within', 'deep/up']) {
      await expect(new Overlay(root).list(folder)).rejects.toMatchObject(refusal);
    }
    expect([treeOf(root, { withPawl: true }), treeOf(outside)]).toEqual(before);
  });

  test.skipIf(process.platform === 'win32')('and so is a pipe, which would be waited for without end', async () => {
    const root = newRoot();
    execFileSync('mkfifo', [join(root, 'pipe')]);
    for (const ask of Object.values(asked(root, 'pipe'))) await expect(ask()).rejects.toMatchObject(refusal);
  });

  test('and so is a folder where a file is asked for, and a file where a folder is asked for', async () => {
    const root = newRoot({ 'src/a.ts': 'a' });
    for (const path of ['src', 'src/a.ts/b']) {
      for (const [what, ask] of Object.entries(asked(root, path))) {
        await expect(ask(), `${what} ${path}`).rejects.toMatchObject(refusal);
      }
    }
    await expect(new Overlay(root).list('src/a.ts')).rejects.toMatchObject(refusal);
  });

  test('with a message that is short, and harmless in a terminal', async () => {
    const error = await new Overlay(newRoot()).read(`${'x'.repeat(300)}\u001b[2J\n`).catch((thrown: unknown) => thrown);
    expect((error as Error).message).toMatch(/^"x{200}…" is refused: .*; give a path relative to the root$/);
  });
});

describe('a path inside the root (fan-out 7)', () => {
  test('may be spelled in more than one way, and means one file', () => {
    const spellings = ['src/a.ts', './src/a.ts', 'src//a.ts', 'src/./a.ts', 'src/b/../a.ts', 'b/../src/a.ts'];
    expect(new Set(spellings.map(insideRoot))).toEqual(new Set(['src/a.ts']));
  });

  test('may have dots, blanks and letters of any script in its names', () => {
    for (const path of [
      '.gitignore',
      '.github/x.yml',
      'a..b',
      '...',
      'git',
      'x.git',
      '日本語 ä.txt',
      '~/x',
      'ab:c',
      '.pawl-notes',
    ]) {
      expect(insideRoot(path)).toBe(path);
    }
  });

  test('may be below a root that is itself reached through a link', async () => {
    const root = newRoot({ 'a.txt': 'a' });
    const link = `${root}-link`;
    symlinkSync(root, link);
    onTestFinished(() => rmSync(link));
    expect((await new Overlay(link).read('a.txt')).content).toBe('a');
    await applyWrites({ proposedWrites: [{ path: 'a.txt', content: 'b' }] }, { root: link });
    expect((await new Overlay(root).read('a.txt')).content).toBe('b');
  });
});
