import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { safeName } from '../../../src/files/safe-name.ts';
import { fileStore } from '../../../src/store/file/index.ts';
import { nextStep, sampleOutcome, sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { freshDir, journalOf } from './folder.ts';

const unavailable = { code: 'STORE_UNAVAILABLE' };

describe('a folder that is not what it should be (recovery 6, faults 36)', () => {
  test('is made at the first write, with those above it; reading makes nothing', async () => {
    const dir = join(freshDir(), 'deep', 'er');
    await using store = fileStore({ dir });
    expect(await store.load('run')).toBe(null);
    expect(await store.listInterrupted()).toEqual([]);
    expect(await store.outcome('run')).toBe(null);
    expect(() => readdirSync(dir)).toThrow('ENOENT');
    await store.save(sampleRecord('run'));
    expect(readdirSync(dir).sort()).toEqual(['layout', 'locks', 'mail', 'outcomes', 'owners', 'runs']);
  });

  test.for(['load', 'save', 'listInterrupted', 'claim', 'outcome'] as const)(
    'with a file in its place, or above it: %s says so with the path, each time',
    async (method) => {
      const file = freshDir();
      writeFileSync(file, 'not a folder');
      for (const dir of [file, join(file, 'below')]) {
        await using store = fileStore({ dir });
        for (let i = 0; i < 2; i++) {
          const call = method === 'save' ? store.save(sampleRecord('run')) : store[method]('run' as never, 'one', 1);
          await expect(call).rejects.toMatchObject({ ...unavailable, message: expect.stringContaining(dir) });
        }
      }
      expect(readFileSync(file, 'utf8')).toBe('not a folder');
    },
  );

  test('moved away while it is open: each call is refused, until it is back', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir });
    await store.save(sampleRecord('run'));
    renameSync(dir, `${dir}.moved`);
    await expect(store.append(nextStep(sampleRecord('run')).delta)).rejects.toMatchObject(unavailable);
    renameSync(`${dir}.moved`, dir);
    await store.append(nextStep(sampleRecord('run')).delta);
    renameSync(dir, `${dir}.moved`);
    await expect(store.load('run')).rejects.toMatchObject(unavailable);
    renameSync(`${dir}.moved`, dir);
    expect((await store.load('run'))?.revision).toBe(2);
    await store.save(sampleRecord('run'));
    renameSync(dir, `${dir}.moved`);
    await expect(store.listInterrupted()).rejects.toMatchObject(unavailable);
  });

  test('removed while it is open: one call says so, and then writers save what they have', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir });
    await store.save(sampleRecord('run'));
    rmSync(dir, { recursive: true });
    const { delta, record } = nextStep(sampleRecord('run'));
    await expect(store.append(delta)).rejects.toMatchObject(unavailable);
    await expect(store.append(delta)).rejects.toMatchObject({ code: 'REVISION_GAP' });
    await store.save(record);
    expect(await fileStore({ dir }).load('run')).toEqual(record);
  });

  test('a run’s folder that is gone is a run without a record; one that is a link is refused, and not followed', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir });
    await store.save(sampleRecord('run'));
    const folder = dirname(journalOf(dir, 'run'));
    renameSync(folder, `${dir}.elsewhere`);
    await expect(store.append(nextStep(sampleRecord('run')).delta)).rejects.toMatchObject({ code: 'REVISION_GAP' });
    symlinkSync(`${dir}.elsewhere`, folder);
    await expect(store.load('run')).rejects.toMatchObject(unavailable);
    await expect(fileStore({ dir }).save(sampleRecord('run'))).rejects.toMatchObject(unavailable);
    expect(await store.listInterrupted()).toEqual([]);
    expect(readdirSync(`${dir}.elsewhere`)).toEqual(['journal']);
  });

  test('files of the store that are links to something else are not followed', async () => {
    const dir = freshDir();
    const target = `${dir}.target`;
    writeFileSync(target, 'precious');
    await using store = fileStore({ dir });
    await store.save(sampleRecord('run'));
    for (const name of ['journal', 'journal.new', 'expiry']) {
      const path = join(dirname(journalOf(dir, 'run')), name);
      rmSync(path, { force: true });
      symlinkSync(target, path);
    }
    await expect(store.load('run')).rejects.toMatchObject(unavailable);
    await expect(store.append(nextStep(sampleRecord('run')).delta)).rejects.toMatchObject(unavailable);
    expect(readFileSync(target, 'utf8')).toBe('precious');
  });

  const intruders: Readonly<Record<string, (path: string) => unknown>> = {
    'a pipe': (path) => execFileSync('mkfifo', [path]),
    'a folder': (path) => mkdirSync(path),
    'a link': (path) => symlinkSync('/etc/hostname', path),
  };
  test.for(Object.entries(intruders))(
    '%s in the place of a journal is not waited for, and hides no other run from a list (recovery 6)',
    async ([, put]) => {
      const dir = freshDir();
      await using store = fileStore({ dir });
      for (const runId of ['run', 'other']) await store.save(sampleRecord(runId));
      rmSync(journalOf(dir, 'run'));
      put(journalOf(dir, 'run'));
      await expect(store.load('run')).rejects.toMatchObject({
        ...unavailable,
        message: expect.stringMatching(/remove it/),
      });
      await expect(store.claim('run', 'one', 1_000)).rejects.toMatchObject(unavailable);
      expect(await store.listInterrupted()).toMatchObject([
        { runId: safeName('run'), status: 'quarantined', reason: expect.stringContaining('remove it') },
        { runId: 'other', status: 'interrupted' },
      ]);
    },
  );

  test('a link to the store’s folder is as good as the folder', async () => {
    const dir = freshDir();
    mkdirSync(`${dir}.real`);
    symlinkSync(`${dir}.real`, dir);
    await using store = fileStore({ dir });
    await store.save(sampleRecord('run'));
    expect(await fileStore({ dir: realpathSync(dir) }).load('run')).toEqual(sampleRecord('run'));
  });
});

test('ids that look like paths stay in their folder, and say who they are inside (checkpoint 12)', async () => {
  const dir = freshDir();
  await using store = fileStore({ dir, durability: 'process' });
  const ids = ['../../outside', '/etc/outside', 'a/b', '..', 'CON', 'a\0b', 'x'.repeat(512), '😀'];
  for (const runId of ids) {
    await store.save(sampleRecord(runId));
    await store.keepOutcome(runId, sampleOutcome(runId), 4e12);
  }
  expect(readdirSync(dirname(dir))).toEqual([dir.split('/').at(-1)]);
  expect(readdirSync(join(dir, 'runs')).sort()).toEqual(ids.map(safeName).sort());
  for (const runId of ids) {
    expect(readFileSync(journalOf(dir, runId), 'utf8').split('\n')[0]).toContain(JSON.stringify(runId));
  }
});

test('a store that was closed refuses every call, after the writes that were asked for', async () => {
  const dir = freshDir();
  const store = fileStore({ dir });
  await store.save(sampleRecord('run'));
  const last = store.save(sampleRecord('run', { iteration: 1 }));
  await store.close();
  await last;
  await store.close();
  expect(readdirSync(join(dir, 'owners'))).toEqual([]);
  await expect(store.load('run')).rejects.toMatchObject(unavailable);
  await expect(store.save(sampleRecord('run'))).rejects.toMatchObject(unavailable);
  await expect(store.listInterrupted()).rejects.toMatchObject(unavailable);
  await expect(store.outcome('run')).rejects.toMatchObject(unavailable);
  expect((await fileStore({ dir }).load('run'))?.iteration).toBe(1);
});
