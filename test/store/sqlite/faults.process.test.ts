import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { storeError } from '../../../src/sqlite/errors.ts';
import { sqliteStore } from '../../../src/store/sqlite/index.ts';
import { nextStep, sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { canRun, startChild } from '../child-process.ts';
import { freshPath, sql } from './files.ts';

const unavailable = { code: 'STORE_UNAVAILABLE' };

describe('a file that cannot be opened (recovery 6, faults 36)', () => {
  test('constructing a store touches nothing; its folder is made at the first use', async () => {
    const path = join(dirname(freshPath()), 'deep', 'er', 'runs.db');
    await using store = sqliteStore({ path });
    expect(() => readFileSync(path)).toThrow();
    expect(await store.load('run')).toBe(null);
    expect(readFileSync(path).length).toBeGreaterThan(0);
  });

  test.for(['load', 'save', 'listInterrupted', 'claim'] as const)(
    '%s says so with the path, each time',
    async (method) => {
      const path = join(freshPath(), 'below a file', 'runs.db');
      writeFileSync(dirname(dirname(path)), 'not a folder');
      await using store = sqliteStore({ path });
      for (let i = 0; i < 2; i++) {
        const call = method === 'save' ? store.save(sampleRecord('run')) : store[method]('run' as never, 'one', 1);
        await expect(call).rejects.toMatchObject({ ...unavailable, message: expect.stringContaining(path) });
      }
    },
  );

  test('a folder in its place', async () => {
    const path = freshPath();
    mkdirSync(path);
    await using store = sqliteStore({ path });
    await expect(store.load('run')).rejects.toMatchObject(unavailable);
  });

  test('a link to the store’s file works like the file', async () => {
    const path = freshPath();
    const target = join(dirname(path), 'elsewhere.db');
    symlinkSync(target, path);
    writeFileSync(target, '');
    await using store = sqliteStore({ path });
    await store.save(sampleRecord('run'));
    await using other = sqliteStore({ path: target });
    expect(await other.load('run')).toEqual(sampleRecord('run'));
  });

  test('a file that is no database is refused, and left as it is', async () => {
    const path = freshPath();
    writeFileSync(path, 'to be, or not to be '.repeat(500));
    const before = readFileSync(path);
    await using store = sqliteStore({ path });
    await expect(store.save(sampleRecord('run'))).rejects.toMatchObject(unavailable);
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test('the database of something else is refused, and left as it is', async () => {
    const path = freshPath();
    sql(path, 'CREATE TABLE customers (name TEXT)');
    const before = readFileSync(path);
    await using store = sqliteStore({ path });
    await expect(store.save(sampleRecord('run'))).rejects.toMatchObject(unavailable);
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test('a newer layout is refused, and left as it is', async () => {
    const path = freshPath();
    const store = sqliteStore({ path });
    await store.save(sampleRecord('run'));
    await store.close();
    sql(path, 'PRAGMA user_version = 99');
    const before = readFileSync(path);
    await using reopened = sqliteStore({ path });
    const refusal = { code: 'CHECKPOINT_TOO_NEW', message: expect.stringContaining('upgrade') };
    await expect(reopened.load('run')).rejects.toMatchObject(refusal);
    await expect(reopened.save(sampleRecord('run'))).rejects.toMatchObject(refusal);
    await reopened.close();
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test('a store that was closed refuses every call', async () => {
    const store = sqliteStore({ path: freshPath() });
    await store.save(sampleRecord('run'));
    const last = store.save(sampleRecord('run', { iteration: 1 }));
    await store.close();
    await last;
    await store.close();
    await expect(store.load('run')).rejects.toMatchObject(unavailable);
    await expect(store.save(sampleRecord('run'))).rejects.toMatchObject(unavailable);
  });
});

describe('a disk that fails (recovery 6, faults 3, 4)', () => {
  test('a file that is deleted while it is open: writes are refused after a tenth of a second at the latest', async () => {
    const path = freshPath();
    const looked = () => new Promise((resolve) => setTimeout(resolve, 150));
    await using store = sqliteStore({ path });
    await store.save(sampleRecord('run'));
    renameSync(dirname(path), `${dirname(path)}-moved`);
    await looked();
    await expect(store.save(sampleRecord('run', { iteration: 1 }))).rejects.toMatchObject(unavailable);
    renameSync(`${dirname(path)}-moved`, dirname(path));
    expect(await store.load('run')).toEqual(sampleRecord('run'));
    rmSync(dirname(path), { recursive: true });
    await looked();
    await expect(store.append(nextStep(sampleRecord('run')).delta)).rejects.toMatchObject(unavailable);
    await expect(store.append(nextStep(sampleRecord('run')).delta)).rejects.toMatchObject({ code: 'REVISION_GAP' });
  });

  test.for([
    [13, 'STORE_FULL'],
    [8, 'STORE_UNAVAILABLE'],
    [10, 'STORE_UNAVAILABLE'],
    [10 | (3 << 8), 'STORE_UNAVAILABLE'],
    [18, 'RECORD_TOO_LARGE'],
    [5, 'STORE_UNAVAILABLE'],
    [1, 'STORE_UNAVAILABLE'],
  ] as const)('result code %i of SQLite is %s, with its cause', ([errcode, code]) => {
    const cause = Object.assign(new Error('of SQLite'), { code: 'ERR_SQLITE_ERROR', errcode });
    expect(storeError(cause, '/some/runs.db')).toMatchObject({ code, cause });
  });

  const canMount = canRun('unshare', '-rm', 'sh', '-c', `mount -t tmpfs none "$1"`, 'sh', dirname(freshPath()));
  test.skipIf(!canMount)(
    'a full disk: a typed refusal, what was stored loads, and room makes it work again',
    async () => {
      const path = freshPath();
      const mount = ['sh', '-c', 'mount -t tmpfs -o size=500k none "$1" && shift && exec "$@"', 'sh', dirname(path)];
      const child = startChild({ role: 'fill', path, under: ['unshare', '-rm', ...mount] });
      const said = (await child.next()) as { saved: number };
      expect(said).toEqual({ refusal: 'STORE_FULL', saved: said.saved, loaded: said.saved, again: 'saved' });
      expect(said.saved).toBeGreaterThan(2);
    },
  );

  test.skipIf(!canMount).for([
    ['closed', 'STORE_UNAVAILABLE'],
    ['open in another process', 1],
  ] as const)('a disk that is read-only, its store %s: each call has a typed answer', async ([how, revision]) => {
    const path = freshPath();
    const store = sqliteStore({ path });
    await store.save(sampleRecord('run'));
    if (how === 'closed') await store.close();
    const script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"';
    const under = ['unshare', '-rm', 'sh', '-c', script, 'sh', dirname(path)];
    const child = startChild({ role: 'read', path, under });
    expect(await child.next()).toEqual({ revision, written: 'STORE_UNAVAILABLE' });
    await store.close();
  });

  const canTrace = canRun('strace', '-qq', '-e', 'inject=fsync:error=EIO:when=9', 'true');
  test.skipIf(!canTrace)('a sync that fails: a typed refusal, and what is tried again is stored once', async () => {
    const path = freshPath();
    const log = join(dirname(path), 'strace.log');
    const inject = ['-e', 'trace=fsync,fdatasync,openat', '-e', 'inject=fsync,fdatasync:error=EIO:when=8+5', '-o', log];
    const child = startChild({ role: 'persist', path, argument: '20', under: ['strace', '-f', '-qq', ...inject] });
    const said = (await child.next()) as { refusals: string[]; revision: number };
    await child.exited;
    const failures = readFileSync(log, 'utf8').split('INJECTED').slice(1);
    expect(failures.length).toBeGreaterThan(0);
    // A second sync of the same open file may succeed without having written anything: it must be opened anew.
    expect(failures[0]).toContain(`"${path}"`);
    expect(said.refusals.length).toBeGreaterThan(0);
    expect(new Set(said.refusals)).toEqual(new Set(['STORE_UNAVAILABLE']));
    await using store = sqliteStore({ path });
    const record = await store.load('run');
    expect([record?.revision, record?.messages.length]).toEqual([21, 21]);
  });
});
