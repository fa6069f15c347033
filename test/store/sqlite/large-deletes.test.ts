import { join } from 'node:path';
import type { Message } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { eventually } from '../../fixtures/eventually.ts';
import { countIn as countOf, freshDir } from '../folder.ts';
import { sql } from './files.ts';

const SECRET = 'hunter2-of-ada';
const said = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] });
/** 6 MB in messages of 60 KB. */
const large = Array.from({ length: 100 }, (_, i) => said(`${i} ${SECRET} ${'x'.repeat(60_000)}`));
const largeRecord = (runId: string) => sampleRecord(runId, { messages: large } as never);

const countIn = (dir: string) => countOf(dir, SECRET);

const rowsLeft = (path: string) => Number(sql(path, 'SELECT count(*) AS count FROM messages')[0]?.count);

describe('a large record in SQLite', () => {
  test('is gone for all readers when its delete resolves, and its bytes are removed in pieces', async () => {
    const dir = freshDir();
    const path = join(dir, 'runs.db');
    await using store = sqliteStore({ path });
    await using other = sqliteStore({ path });
    await store.save(largeRecord('run'));
    const all = rowsLeft(path);
    await store.delete('run');
    const left = rowsLeft(path);
    // One piece is a megabyte.
    expect(left).toBeGreaterThan(all / 2);
    expect(left).toBeLessThan(all);
    expect([await store.load('run'), await other.load('run')]).toEqual([null, null]);
    expect([await store.listInterrupted(), await other.listInterrupted()]).toEqual([[], []]);
    await eventually(() => expect(rowsLeft(path)).toBe(0), 20);
    await eventually(() => expect(countIn(dir)).toBe(0), 100);
  });

  test('leaves nothing to runs that begin while it is removed, not to one of its own id either', async () => {
    const dir = freshDir();
    const path = join(dir, 'runs.db');
    const store = sqliteStore({ path });
    await store.save(largeRecord('run'));
    await store.delete('run');
    const again = sampleRecord('run', { messages: [said('again')] } as never);
    await Promise.all([store.save(again), store.save(sampleRecord('other'))]);
    expect(rowsLeft(path)).toBeGreaterThan(2);
    await store.close();
    expect(countIn(dir)).toBe(0);
    await using later = sqliteStore({ path });
    expect(await later.load('run')).toEqual(again);
    expect(await later.load('other')).toEqual(sampleRecord('other'));
  });

  test('that a whole record replaces leaves nothing either', async () => {
    const dir = freshDir();
    const path = join(dir, 'runs.db');
    const store = sqliteStore({ path });
    await store.save(largeRecord('run'));
    const next = sampleRecord('run', { messages: [said('next')], revision: 2 } as never);
    await store.save(next);
    expect(await store.load('run')).toEqual(next);
    await store.close();
    expect(countIn(dir)).toBe(0);
    await using later = sqliteStore({ path });
    expect(await later.load('run')).toEqual(next);
  });

  test('whose process died while it removed it is removed by another within a minute', async () => {
    const dir = freshDir();
    const path = join(dir, 'runs.db');
    const clock = testClock(1_000);
    const dying = sqliteStore({ path, clock });
    await dying.save(sampleRecord('before'));
    await dying.save(largeRecord('run'));
    await dying.save(sampleRecord('after'));
    await dying.close();
    // What a first piece leaves.
    sql(path, "DELETE FROM heads WHERE no = (SELECT no FROM runs WHERE run_id = 'run')");
    sql(path, "DELETE FROM runs WHERE run_id = 'run'");
    await using later = sqliteStore({ path, clock });
    await later.claim('before', 'us', 60_000);
    await clock.advance(60_000);
    await eventually(() => expect(countIn(dir)).toBe(0), 100);
    expect(await later.load('before')).toMatchObject({ messages: sampleRecord('before').messages });
    expect(await later.load('after')).toEqual(sampleRecord('after'));
  });
});
