import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { applyWith, applyWrites } from '../../src/edits/apply.ts';
import { rewind, rewindWith } from '../../src/edits/undo.ts';
import { diskFiles } from '../../src/files/file-system.ts';
import { newRoot, put, treeOf } from './folder.ts';
import { faultyWorker, someFiles, someWrites, undoFolder, worker } from './workers.ts';

const proposedWrites = someWrites;
const failed = { code: 'WRITE_FAILED' };
const conflict = { code: 'WRITE_CONFLICT' };

const isTorture = process.env.PAWL_TORTURE === '1';

async function appliedOnce() {
  const root = newRoot(someFiles);
  const before = treeOf(root);
  await applyWith({ proposedWrites }, { root, worker: worker() });
  return { root, before, after: treeOf(root) };
}

/** The calls that an apply or a rewind makes, by their numbers: all of them, or each sixteenth, beginning anywhere, and the last. */
async function stepsOf(what: 'apply' | 'rewind'): Promise<number[]> {
  const { worker: counting, faults } = faultyWorker(() => undefined);
  if (what === 'rewind') await rewindWith({ root: (await appliedOnce()).root, worker: counting });
  else await applyWith({ proposedWrites }, { root: newRoot(someFiles), worker: counting });
  const stride = isTorture ? 1 : 16;
  const offset = Math.floor(Math.random() * stride);
  return faults.calls.map((_, i) => i + 1).filter((step, _, { length }) => step % stride === offset || step === length);
}

describe('when writes are applied (fan-out 7)', () => {
  test('the old bytes are on the disk before the first file changes, and all new ones, too', async () => {
    const root = newRoot(someFiles);
    const { worker: watched, faults } = faultyWorker(() => undefined);
    await applyWith({ proposedWrites }, { root, worker: watched });
    const calls = faults.calls.map(({ method, path }) => ({ method, path: path.replace(root, '') }));
    const first = calls.findIndex(({ method, path }) => method === 'rename' && !path.startsWith('/.pawl/'));
    const synced = calls.slice(0, first).filter(({ method }) => method === 'sync' || method === 'syncFolder');
    expect(synced.map(({ path }) => path.replace(/-[0-9a-f]{16}-/, '-'))).toEqual([
      ...['0', '2', '3', 'manifest.json.new', ''].map((name) => join('/.pawl/undo/1', name).replace(/\/$/, '')),
      '/.pawl/undo',
      ...['/.pawl-0.new', '/new/deep/.pawl-1.new', '/src/.pawl-3.new'],
    ]);
    const after = calls.slice(first).filter(({ path }) => !path.startsWith('/.pawl/lock'));
    expect(after.map(({ method }) => method)).toEqual([
      ...['rename', 'rename', 'remove', 'rename'],
      // The folders whose names have changed: the root, new/deep, src, new.
      ...Array(4).fill('syncFolder'),
      // Only then is it applied.
      ...['open', 'write', 'sync', 'close', 'rename', 'syncFolder'],
      ...['folders', 'readWhole'],
    ]);
  });
});

describe('when the disk refuses (fan-out 7)', () => {
  test('the second of three writes, the tree is byte for byte what it was, and the error says why', async () => {
    const root = newRoot(someFiles);
    const before = treeOf(root, { withPawl: true });
    const { worker: failing } = faultyWorker(({ method, path }, n) =>
      n > 1 && method === 'rename' && path.endsWith('-1.new') ? 'EACCES' : undefined,
    );
    const applying = applyWith({ proposedWrites: someWrites.slice(0, 3) }, { root, worker: failing });
    await expect(applying).rejects.toMatchObject({ ...failed, cause: { code: 'EACCES' } });
    await expect(applying).rejects.toThrow(/^the writes failed \(EACCES: .*\); the files are unchanged$/);
    expect(treeOf(root, { withPawl: true })).toEqual(before);
  });

  test('any single call on the way, the tree is as before, or all is applied; what failed is not kept as an undo', async () => {
    for (const step of await stepsOf('apply')) {
      const root = newRoot(someFiles);
      const before = treeOf(root);
      const { worker: failing, faults } = faultyWorker((_, n) => (n === step ? 'ENOSPC' : undefined));
      const outcome = await applyWith({ proposedWrites }, { root, worker: failing }).catch((error: unknown) => error);
      expect(faults.fired, `step ${step}`).toBe(1);
      if (outcome instanceof Error) {
        expect(outcome, `step ${step}`).toMatchObject(failed);
        expect(treeOf(root), `step ${step}`).toEqual(before);
        await expect(rewind(root)).rejects.toMatchObject(conflict);
        await applyWith({ proposedWrites }, { root, worker: worker() });
      }
      expect(Object.keys(treeOf(root)), `step ${step}`).toEqual(
        ['a.txt', 'new/', 'new/deep/', 'new/deep/n.txt', 'src/', 'src/c.ts', 'z.bin'], //
      );
      await rewind(root);
      expect(treeOf(root), `step ${step}`).toEqual(before);
    }
  });

  test('any single call of a rewind, the tree is as before it, or all is taken back', async () => {
    for (const step of await stepsOf('rewind')) {
      const { root, before, after } = await appliedOnce();
      const { worker: failing } = faultyWorker((_, n) => (n === step ? 'EIO' : undefined));
      const outcome = await rewindWith({ root, worker: failing }).catch((error: unknown) => error);
      expect(treeOf(root), `step ${step}`).toEqual(outcome instanceof Error ? after : before);
      if (outcome instanceof Error) {
        expect(outcome, `step ${step}`).toMatchObject(failed);
        await rewind(root);
        expect(treeOf(root), `step ${step}`).toEqual(before);
      }
      await expect(rewind(root), `step ${step}`).rejects.toMatchObject(conflict);
    }
  });

  test('everything from some moment on, the error says that the next call puts it back, and that does', async () => {
    const root = newRoot(someFiles);
    const before = treeOf(root);
    let isBroken = false;
    const { worker: failing } = faultyWorker(({ method, path }) => {
      isBroken ||= method === 'rename' && path.endsWith('-1.new');
      return isBroken ? 'EROFS' : undefined;
    });
    const applying = applyWith({ proposedWrites }, { root, worker: failing });
    await expect(applying).rejects.toMatchObject(failed);
    await expect(applying).rejects.toThrow(`the files could not be restored (EROFS: on purpose`);
    await expect(applying).rejects.toThrow(`the old bytes are in ${undoFolder(root, 1)}`);
    expect(treeOf(root)).not.toEqual(before);
    await applyWrites({}, { root });
    expect(treeOf(root)).toEqual(before);
  });
});

describe('when a process dies in the middle (fan-out 7)', () => {
  const leftIn = (root: string) => ['lock', 'undo'].flatMap((name) => namesIn(join(root, '.pawl', name)));
  const namesIn = (folder: string) => (existsSync(folder) ? readdirSync(folder) : []);
  /** From this call on nothing that it does reaches the disk. */
  const dying = (step: number) => faultyWorker((_, n) => (n >= step ? 'EIO' : undefined), true).worker;
  const settled = async (root: string) => {
    // An owner that died while it wrote its name is known by its age alone.
    for (const name of namesIn(join(root, '.pawl/lock'))) utimesSync(join(root, '.pawl/lock', name), 0, 0);
    await applyWith({}, { root, worker: worker() });
    return treeOf(root);
  };

  test('at any call of an apply, the next call makes the tree what it was before or after, and leaves nothing else', async () => {
    const ends = new Set<string>();
    for (const step of await stepsOf('apply')) {
      const root = newRoot(someFiles);
      const before = treeOf(root);
      await applyWith({ proposedWrites }, { root, worker: dying(step) }).catch(() => {});
      const tree = await settled(root);
      const isBefore = JSON.stringify(tree) === JSON.stringify(before);
      ends.add(isBefore ? 'before' : 'after');
      if (isBefore) await expect(rewind(root), `step ${step}`).rejects.toMatchObject(conflict);
      else await rewind(root);
      expect(treeOf(root), `step ${step}`).toEqual(before);
      expect(leftIn(root), `step ${step}`).toEqual([]);
    }
    expect([...ends]).toEqual(['before', 'after']);
  });

  test('at any call of a rewind, the next call makes the tree what it was before or after, and leaves nothing else', async () => {
    const ends = new Set<string>();
    for (const step of await stepsOf('rewind')) {
      const { root, before, after } = await appliedOnce();
      await rewindWith({ root, worker: dying(step) }).catch(() => {});
      const tree = await settled(root);
      const isBefore = JSON.stringify(tree) === JSON.stringify(before);
      ends.add(isBefore ? 'rewound' : 'not yet');
      if (!isBefore) {
        expect(tree, `step ${step}`).toEqual(after);
        await rewind(root);
      }
      expect(treeOf(root), `step ${step}`).toEqual(before);
      await expect(rewind(root), `step ${step}`).rejects.toMatchObject(conflict);
      expect(leftIn(root), `step ${step}`).toEqual([]);
    }
    expect([...ends]).toEqual(['not yet', 'rewound']);
  });

  test('and the next one too, while it puts things back, the third does it', { timeout: 600_000 }, async () => {
    const steps = await stepsOf('apply');
    for (const first of steps.slice(isTorture ? 0 : -4)) {
      for (const second of steps.filter((_, i) => i % 4 === first % 4)) {
        const root = newRoot(someFiles);
        const before = treeOf(root);
        await applyWith({ proposedWrites }, { root, worker: dying(first) }).catch(() => {});
        await rewindWith({ root, worker: dying(second) }).catch(() => {});
        await settled(root);
        await rewind(root).catch((error: unknown) => expect(error).toMatchObject(conflict));
        expect(treeOf(root), `${first} ${second}`).toEqual(before);
      }
    }
  });

  test('while it takes back what could not be called applied, the next call does not take it for applied', async () => {
    for (let step = 0; step < 40; step += isTorture ? 1 : 4) {
      const root = newRoot(someFiles);
      const before = treeOf(root);
      let named = 0;
      const { worker: broken } = faultyWorker(({ method, path }, n) => {
        // The second time the manifest gets its name it says that all is applied: the sync after that fails.
        if (method === 'rename' && path.endsWith('manifest.json.new')) named += 1;
        if (failedAt === 0 && named === 2 && method === 'syncFolder') {
          failedAt = n;
          return 'EIO';
        }
        return failedAt > 0 && n > failedAt + step ? 'EIO' : undefined;
      }, true);
      let failedAt = 0;
      await expect(applyWith({ proposedWrites }, { root, worker: broken })).rejects.toMatchObject(failed);
      expect(failedAt).toBeGreaterThan(0);
      await settled(root);
      await rewind(root).catch((error: unknown) => expect(error).toMatchObject(conflict));
      expect(treeOf(root), `${step} calls later`).toEqual(before);
    }
  });

  test('and one of the files is edited since, nothing is overwritten: the error names it and the old bytes', async () => {
    const root = newRoot(someFiles);
    const { worker: broken } = faultyWorker(({ method, path }) => {
      isBroken ||= method === 'rename' && path.endsWith('-3.new');
      return isBroken ? 'EIO' : undefined;
    }, true);
    let isBroken = false;
    await expect(applyWith({ proposedWrites }, { root, worker: broken })).rejects.toMatchObject(failed);
    put(root, 'a.txt', 'edited by hand');
    const before = treeOf(root);
    for (const call of [() => applyWrites({ proposedWrites }, { root }), () => rewind(root)]) {
      await expect(call()).rejects.toMatchObject(conflict);
      await expect(call()).rejects.toThrow(`"a.txt" was changed after a process died while it applied writes`);
      await expect(call()).rejects.toThrow(`the old ones in ${undoFolder(root, 1)}`);
    }
    expect(treeOf(root)).toEqual(before);
    expect(readFileSync(join(undoFolder(root, 1), '0'), 'utf8')).toBe('a');
    rmSync(join(root, 'a.txt'));
    symlinkSync('z.bin', join(root, 'a.txt'));
    await expect(rewind(root)).rejects.toThrow(`"a.txt" was changed after a process died`);
    rmSync(undoFolder(root, 1), { recursive: true });
    await applyWrites({ proposedWrites: [{ path: 'z.txt', content: '' }] }, { root });
  });
});

describe('while writes are applied (fan-out 7)', () => {
  test('an edit of a file that is still to be written: all is taken back, and the edit stays', async () => {
    const root = newRoot(someFiles);
    const { worker: watched } = faultyWorker(({ method, path }) => {
      if (method === 'rename' && path.endsWith('-0.new')) writeFileSync(join(root, 'src/c.ts'), 'edited');
      return undefined;
    });
    const before = treeOf(root);
    await expect(applyWith({ proposedWrites }, { root, worker: watched })).rejects.toMatchObject(conflict);
    expect(treeOf(root)).toEqual({ ...before, 'src/c.ts': before['src/c.ts']?.replace(/c$/, 'edited') });
  });

  test('another one waits for its turn, and fails when it does not come', async () => {
    const root = newRoot(someFiles);
    const others: unknown[] = [];
    const rename: typeof diskFiles.rename = async (path, name) => {
      const place = { root, worker: { ...worker(), waitMs: 0 } };
      others.push(await rewindWith(place).catch((error: unknown) => error));
      await diskFiles.rename(path, name);
    };
    await applyWith({ proposedWrites }, { root, worker: worker({ ...diskFiles, rename }) });
    expect(others.length).toBeGreaterThan(0);
    for (const other of others) expect(other).toMatchObject(failed);
    expect((others[0] as Error).message).toMatch(/^another process is applying or rewinding writes in this root/);
    await rewind(root);
  });
});
