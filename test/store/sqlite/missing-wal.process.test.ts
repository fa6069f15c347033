import { copyFileSync, existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { acceptWithoutWal, sqliteStore } from '../../../src/store/sqlite/index.ts';
import { nextStep, sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { copyOfPinned } from '../../fixtures/pinned-stores.ts';
import { startChild } from '../child-process.ts';
import { freshPath, sql } from './files.ts';

const refusal = {
  code: 'STORE_UNAVAILABLE',
  message: expect.stringMatching(/was in use, and its file .*-wal is missing: .*--accept-without-wal/),
};

const stateOf = (path: string) => sql(path, 'SELECT state FROM file_state');

/** The main file alone, as a copy without its -wal file has it. */
function mainOf(path: string): string {
  const copy = join(dirname(freshPath()), 'copy.db');
  copyFileSync(path, copy);
  return copy;
}

describe('a copy of a store that is in use, without its -wal file (edges 27)', () => {
  test('is refused from the first write on, for reading too, and no file is made beside it', async () => {
    const path = freshPath();
    await using store = sqliteStore({ path });
    await store.save(sampleRecord('run'));
    await store.append(nextStep(sampleRecord('run')).delta);
    for (const readOnly of [true, false, true]) {
      const copy = mainOf(path);
      for (let opening = 0; opening < 2; opening++) {
        await using opened = sqliteStore({ path: copy, readOnly });
        await expect(opened.load('run')).rejects.toMatchObject(refusal);
      }
      expect(readdirSync(dirname(copy))).toEqual(['copy.db']);
    }
  });

  test('is not what a close leaves whose disk fails once while it clears the mark', async () => {
    const path = freshPath();
    const { prepare } = DatabaseSync.prototype;
    let failures = 0;
    const failing = vi.spyOn(DatabaseSync.prototype, 'prepare').mockImplementation(function (this: DatabaseSync, text) {
      const statement = prepare.call(this, text);
      const run = statement.run.bind(statement);
      if (text.startsWith('DELETE FROM file_state'))
        statement.run = (...values: never[]) => {
          if (failures++ > 0) return run(...values);
          throw Object.assign(new Error('disk I/O error'), { code: 'ERR_SQLITE_ERROR', errcode: 778 });
        };
      return statement;
    });
    onTestFinished(() => failing.mockRestore());
    const store = sqliteStore({ path });
    await store.save(sampleRecord('run'));
    await store.close();
    expect([failures, existsSync(`${path}-wal`)]).toEqual([2, false]);
    const copy = mainOf(path);
    await using opened = sqliteStore({ path: copy });
    expect(await opened.load('run')).toEqual(sampleRecord('run'));
  });

  test('opens once a person has accepted that nothing is missing', async () => {
    const path = freshPath();
    await using store = sqliteStore({ path });
    await store.save(sampleRecord('run'));
    const copy = mainOf(path);
    acceptWithoutWal(copy);
    await using opened = sqliteStore({ path: copy });
    expect(await opened.load('run')).toEqual(sampleRecord('run'));
    expect(() => acceptWithoutWal(path)).toThrow('-wal is there: nothing is missing');
  });

  test('is refused also after one of two processes has closed the store, and opens after both have', async () => {
    const path = freshPath();
    const [first, second] = [sqliteStore({ path }), sqliteStore({ path })];
    await first.save(sampleRecord('run'));
    await second.save(sampleRecord('other'));
    await first.close();
    await expect(sqliteStore({ path: mainOf(path) }).load('run')).rejects.toMatchObject(refusal);
    await second.append(nextStep(sampleRecord('other')).delta);
    expect(stateOf(path)).toEqual([{ state: 'open' }]);
    await second.close();
    await using copy = sqliteStore({ path: mainOf(path) });
    expect((await copy.listInterrupted()).map(({ runId }) => runId).sort()).toEqual(['other', 'run']);
  });
});

describe('a store that nothing is missing of (edges 27)', () => {
  const opensAgain = async (path: string, runId = 'run') => {
    await using store = sqliteStore({ path });
    expect(await store.load(runId)).not.toBeNull();
  };

  test('opens after a clean close, and its file has no mark', async () => {
    const path = freshPath();
    const store = sqliteStore({ path });
    await store.save(sampleRecord('run'));
    await store.close();
    expect([existsSync(`${path}-wal`), stateOf(path)]).toEqual([false, []]);
    await opensAgain(path);
  });

  test.for(['SIGKILL', 'end', 'exit'] as const)('opens after its process ended by %s without a close', async (how) => {
    const path = freshPath();
    const child = startChild({ role: 'leave', path, argument: how });
    expect(await child.next()).toBe('saved');
    if (how === 'SIGKILL') await child.kill();
    else await child.exited;
    if (how === 'SIGKILL') expect(statSync(`${path}-wal`).size).toBeGreaterThan(0);
    await opensAgain(path);
    // The second opening is of a file that this process has closed.
    await opensAgain(path);
  });

  test('opens after a process that only read it was the last to close it, its writer having been killed', async () => {
    const path = freshPath();
    const child = startChild({ role: 'leave', path, argument: 'SIGKILL' });
    await child.next();
    await child.kill();
    const reader = sqliteStore({ path });
    await reader.listInterrupted();
    await reader.close();
    expect([existsSync(`${path}-wal`), stateOf(path)]).toEqual([false, []]);
    await opensAgain(path);
  });

  test('opens after a process that wrote nothing, and did not close it, was the last to have it open', async () => {
    const path = freshPath();
    const writer = startChild({ role: 'leave', path, argument: 'SIGKILL' });
    await writer.next();
    await writer.kill();
    const reader = startChild({ role: 'leave', path, argument: 'look' });
    expect(await reader.next()).toBe('seen');
    await reader.exited;
    expect(existsSync(`${path}-wal`)).toBe(false);
    await opensAgain(path);
  });

  test('opens after many processes have closed it at the same time', async () => {
    const path = freshPath();
    for (let round = 0; round < 3; round++) {
      const stores = Array.from({ length: 6 }, () => sqliteStore({ path, busyTimeoutMs: 10_000 }));
      await Promise.all(stores.map((store, i) => store.save(sampleRecord(`run-${i}`))));
      await Promise.all(stores.map((store) => store.close()));
      expect(existsSync(`${path}-wal`)).toBe(false);
    }
    await opensAgain(path, 'run-0');
  });

  test('opens when an earlier version wrote it, which knew no mark, and when it is in memory', async () => {
    await using old = sqliteStore({ path: copyOfPinned('runs.db') });
    expect((await old.listInterrupted()).length).toBeGreaterThan(0);
    await using memory = sqliteStore({ path: ':memory:' });
    await memory.save(sampleRecord('run'));
    expect(await memory.load('run')).not.toBeNull();
  });

  test('costs one commit more at its close, and one copy into the main file at its first write', async () => {
    const path = freshPath();
    const store = sqliteStore({ path });
    await store.listInterrupted();
    expect(stateOf(path)).toEqual([]);
    await store.save(sampleRecord('run'));
    expect(stateOf(path)).toEqual([{ state: 'open' }]);
    const before = statSync(path).mtimeMs;
    for (let i = 0, record = sampleRecord('run'); i < 10; i++) {
      const step = nextStep(record);
      await store.append(step.delta);
      record = step.record;
    }
    expect(statSync(path).mtimeMs).toBe(before);
    await store.close();
  });
});
