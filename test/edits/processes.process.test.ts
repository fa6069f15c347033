import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { applyWith, applyWrites } from '../../src/edits/apply.ts';
import type { WriteSnapshot } from '../../src/edits/proposed-write.ts';
import { rewind } from '../../src/edits/undo.ts';
import { passOnErrors } from '../fixtures/processes.ts';
import { newRoot, treeOf } from './folder.ts';
import { faultyWorker, hasProc, someFiles, someWrites } from './workers.ts';

const isTorture = process.env.PAWL_TORTURE === '1';
const program = fileURLToPath(new URL('apply-child.ts', import.meta.url));

/** Runs in a process of its own. @returns how it ended, an exit code or a signal */
async function inChild(
  role: 'apply' | 'rewind',
  root: string,
  lastCall = 0,
  writes: readonly WriteSnapshot[] = someWrites,
) {
  const args = [program, role, root, String(lastCall), JSON.stringify(writes)];
  const child = passOnErrors(spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] }));
  const [code, signal] = await once(child, 'exit');
  return signal ?? code;
}

/** At which calls the child is killed: all of them, or some that the seed draws. */
function moments(calls: number): number[] {
  if (isTorture) return Array.from({ length: calls }, (_, i) => i + 1);
  const third = Math.floor(calls / 3);
  return [0, 1, 2].map((i) => i * third + 1 + Math.floor(Math.random() * third));
}

describe.skipIf(!hasProc)('a process that is killed with SIGKILL (fan-out 7)', { timeout: 600_000 }, () => {
  test('at a call of an apply leaves a tree that the next call makes what it was before or after', async () => {
    const { worker, faults } = faultyWorker(() => undefined);
    await applyWith({ proposedWrites: someWrites }, { root: newRoot(someFiles), worker });
    for (const moment of moments(faults.calls.length)) {
      const root = newRoot(someFiles);
      const before = treeOf(root);
      expect(await inChild('apply', root, moment), `call ${moment}`).toBe('SIGKILL');
      await applyWrites({}, { root });
      const isBefore = JSON.stringify(treeOf(root)) === JSON.stringify(before);
      if (!isBefore) await rewind(root);
      expect(treeOf(root), `call ${moment}`).toEqual(before);
    }
  });

  test('at a call of a rewind leaves a tree that the next call makes what it was before or after', async () => {
    const root = newRoot(someFiles);
    await applyWrites({ proposedWrites: someWrites }, { root });
    const after = treeOf(root);
    const calls = 75;
    for (const moment of moments(calls)) {
      const end = await inChild('rewind', root, moment);
      await applyWrites({}, { root });
      const isRewound = JSON.stringify(treeOf(root)) !== JSON.stringify(after);
      if (isRewound) {
        expect(Object.keys(treeOf(root)), `call ${moment}`).toEqual(['a.txt', 'src/', 'src/b.ts', 'src/c.ts', 'z.bin']);
        await applyWrites({ proposedWrites: someWrites }, { root });
      }
      expect(['SIGKILL', 0], `call ${moment}`).toContain(end);
      expect(treeOf(root), `call ${moment}`).toEqual(after);
    }
  });

  test('is not waited for: what it held is taken over at once', async () => {
    const root = newRoot(someFiles);
    expect(await inChild('apply', root, 20)).toBe('SIGKILL');
    expect(readdirSync(join(root, '.pawl/lock'))).toContain('apply');
    await applyWith({}, { root, worker: { ...faultyWorker(() => undefined).worker, waitMs: 1_000 } });
  });
});

test('several processes that apply to one root at once take turns, and nothing is lost (fan-out 7)', async () => {
  const root = newRoot({ shared: '' });
  const writesOf = (name: string) => ['1', '2', '3'].map((i) => ({ path: `${name}/${i}`, content: name }));
  const children = ['a', 'b', 'c'].map((name) => inChild('apply', root, 0, writesOf(name)));
  expect(await Promise.all(children)).toEqual([0, 0, 0]);
  for (const name of ['a', 'b', 'c']) {
    for (const { path, content } of writesOf(name)) expect(readFileSync(join(root, path), 'utf8')).toBe(content);
  }
  for (let i = 0; i < 3; i++) await rewind(root);
  expect(Object.keys(treeOf(root))).toEqual(['shared']);
});
