import { StatementSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { sqliteStore } from '../../../src/store/sqlite/index.ts';
import { nextStep, sampleRecord, userMessage } from '../../../src/testing/store-contract/records.ts';
import { encodeMessage, enterMessage } from '../../../src/values/message.ts';
import { expectLoadInParts } from '../large-records.ts';
import { freshPath, sql } from './files.ts';

/** Makes SQLite itself fail in the middle of a write: after the run's row is there, before its messages are. */
const poison = `CREATE TRIGGER poison BEFORE INSERT ON messages WHEN new.messages LIKE '%poison%'
  BEGIN SELECT RAISE(ABORT, 'poisoned'); END`;

describe('writes that are asked for at once', () => {
  test('an error of SQLite fails the write that caused it, and no other', async () => {
    const path = freshPath();
    await using store = sqliteStore({ path });
    await store.save(sampleRecord('before'));
    sql(path, poison);
    const bad = sampleRecord('bad', { messages: [userMessage('poison')] });
    const settled = await Promise.allSettled([
      store.save(sampleRecord('a')),
      store.save(bad),
      store.append(nextStep(sampleRecord('before')).delta),
      store.claim('a', 'one', 60_000),
      store.append(nextStep(nextStep(sampleRecord('before')).record).delta),
      store.save({ ...bad, meta: { ...bad.meta, runId: 'a' } }),
      store.save(sampleRecord('b')),
    ]);
    expect(settled.map(({ status }) => status === 'fulfilled')).toEqual([true, false, true, true, true, false, true]);
    expect(settled[1]).toMatchObject({ reason: { code: 'STORE_UNAVAILABLE', cause: { message: 'poisoned' } } });
    expect(settled[5]).toMatchObject({ reason: { code: 'RUN_OWNED_ELSEWHERE' } });
    expect((await store.load('before'))?.revision).toBe(3);
    expect((await store.listInterrupted()).map((run) => run.runId).sort()).toEqual(['a', 'b', 'before']);
    expect(await store.load('bad')).toBe(null);
  });

  test('a write that fails alone leaves the record before it', async () => {
    const path = freshPath();
    await using store = sqliteStore({ path });
    await store.save(sampleRecord('run'));
    sql(path, poison);
    await expect(store.save(sampleRecord('run', { messages: [userMessage('poison')] }))).rejects.toThrow();
    expect(await store.load('run')).toEqual(sampleRecord('run'));
  });

  test('share one commit', async () => {
    const path = freshPath();
    await using store = sqliteStore({ path });
    await store.save(sampleRecord('run-0'));
    const watcher = sqliteStore({ path });
    await watcher.load('run-0');
    const saves = Array.from({ length: 20 }, (_, i) => store.save(sampleRecord(`run-${i + 1}`)));
    // The first that has settled finds all of them there.
    await saves[0];
    expect((await watcher.listInterrupted()).length).toBe(21);
    await Promise.all(saves);
    await watcher.close();
  });

  test('share few commits if each turn of the event loop brings others: a sync costs as much as many writes', async () => {
    await using store = sqliteStore({ path: freshPath() });
    await store.save(sampleRecord('run-0'));
    const ran = vi.spyOn(StatementSync.prototype, 'run');
    onTestFinished(() => ran.mockRestore());
    const saves: Promise<void>[] = [];
    for (let i = 0; i < 40; i++) {
      saves.push(store.save(sampleRecord(`a-${i}`)), store.save(sampleRecord(`b-${i}`)));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(saves);
    const commits = ran.mock.contexts.filter((statement) => (statement as StatementSync).sourceSQL === 'COMMIT').length;
    expect(commits).toBeGreaterThan(0);
    // A slow machine may take longer than a group waits.
    expect(commits).toBeLessThan(20);
  });

  test('a write that comes alone is committed after one turn of the event loop', async () => {
    await using store = sqliteStore({ path: freshPath() });
    await store.save(sampleRecord('run-0'));
    let isSaved = false;
    void store.save(sampleRecord('run-1')).then(() => {
      isSaved = true;
    });
    let turns = 0;
    for (; !isSaved; turns++) await new Promise((resolve) => setImmediate(resolve));
    expect(turns).toBeLessThanOrEqual(2);
  });

  test('reads see all writes that were asked for before them', async () => {
    await using store = sqliteStore({ path: freshPath() });
    const saving = store.save(sampleRecord('run'));
    const [loaded, listed] = await Promise.all([store.load('run'), store.listInterrupted()]);
    expect(loaded).toEqual(sampleRecord('run'));
    expect(listed.length).toBe(1);
    await saving;
    const deleting = store.delete('run');
    expect(await store.load('run')).toBe(null);
    await deleting;
  });

  test('more than fit into one transaction all land, in order', async () => {
    await using store = sqliteStore({ path: freshPath(), durability: 'process' });
    let record = sampleRecord('run');
    const writes: Promise<void>[] = [store.save(record)];
    for (let i = 0; i < 1_000; i++) {
      const step = nextStep(record, []);
      writes.push(store.append(step.delta));
      record = step.record;
    }
    await Promise.all(writes);
    expect(await store.load('run')).toEqual(record);
  });
});

describe('large records', () => {
  test('load lets the event loop continue between parts, and reads one state of the record', async () => {
    const path = freshPath();
    await using store = sqliteStore({ path, durability: 'process' });
    await using other = sqliteStore({ path, durability: 'process' });
    await expectLoadInParts(store, other, 500_000);
  });

  test('the cached text of a message is given back once it is stored, and only then', async () => {
    const path = freshPath();
    await using store = sqliteStore({ path });
    await store.save(sampleRecord('run'));
    const message = enterMessage(userMessage('hello'));
    const text = encodeMessage(message);
    const { delta } = nextStep(sampleRecord('run'), [message]);
    await expect(store.append({ ...delta, revision: 9 })).rejects.toMatchObject({ code: 'REVISION_GAP' });
    await store.append(delta);
    expect(encodeMessage(message)).toBe(text);
    expect((await store.load('run'))?.messages.at(-1)).toEqual(userMessage('hello'));
  });
});

test('a store can be wrapped by spreading it', async () => {
  const store = sqliteStore({ path: freshPath() });
  const wrapped = { ...store, load: async () => null };
  await wrapped.save(sampleRecord('run'));
  expect(await store.load('run')).toEqual(sampleRecord('run'));
  await wrapped.close();
});
