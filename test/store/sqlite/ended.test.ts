import { statSync } from 'node:fs';
import { join } from 'node:path';
import { type Codec, encrypt, type Message, type RunOutcome } from 'pawl';
import type { KeepingStore } from 'pawl/stores/kit';
import { type SqliteStore, sqliteStore } from 'pawl/stores/sqlite';
import { testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { sampleMeta, sampleOutcome, sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { codecOf, first, second } from '../../codec/keys.ts';
import { eventually } from '../../fixtures/eventually.ts';
import { countIn as countOf, freshDir } from '../folder.ts';
import { freshPath, sql } from './files.ts';

const SECRET = 'hunter2-of-ada';
const HOUR = 3_600_000;
const said = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] });
/** 6 MB in messages of 60 KB. */
const large = Array.from({ length: 100 }, (_, i) => said(`${i} ${SECRET} ${'x'.repeat(60_000)}`));

const outcomeOf = (runId: string, callerId = 'ada'): RunOutcome => ({
  ...sampleOutcome(runId),
  run: { meta: { ...sampleMeta(runId), agentId: 'writer', callerId } },
});

interface Ending {
  readonly keepUntil?: number;
  readonly messages?: readonly Message[];
  readonly callerId?: string;
  readonly isCounted?: boolean;
}

async function ended(store: KeepingStore, runId: string, { messages, callerId, ...ending }: Ending = {}) {
  const claim = await store.claim(runId, 'us', 60_000);
  if (!claim) throw new Error('held');
  await store.save(sampleRecord(runId, messages ? { messages } : {}), { claim });
  await store.history.end(claim, { keepUntil: HOUR, ...ending, outcome: outcomeOf(runId, callerId) });
}

const rowsLeft = (path: string) => Number(sql(path, 'SELECT count(*) AS count FROM messages')[0]?.count);
const countIn = (dir: string, text = SECRET) => countOf(dir, text);

describe('the kept record of a run that ended, in SQLite', () => {
  test('costs its end a few kilobytes, however long its transcript is (web 16)', async () => {
    const written = async (messages: readonly Message[]) => {
      const path = freshPath();
      await using store = sqliteStore({ path, clock: testClock(1_000) });
      const claim = await store.claim('run', 'us', 60_000);
      if (!claim) throw new Error('held');
      await store.save(sampleRecord('run', { messages }), { claim });
      sql(path, 'PRAGMA wal_checkpoint(TRUNCATE)');
      await store.history.end(claim, { outcome: outcomeOf('run'), keepUntil: HOUR });
      return statSync(`${path}-wal`).size;
    };
    const short = await written([said('short')]);
    expect(short).toBeLessThan(40_000);
    expect(await written(large)).toBe(short);
  });

  test('leaves nothing when its time is over: its bytes are removed in pieces (web 16)', async () => {
    const dir = freshDir();
    const path = join(dir, 'runs.db');
    const clock = testClock(1_000);
    await using store = sqliteStore({ path, clock });
    await ended(store, 'run', { messages: large });
    await ended(store, 'later', { keepUntil: 3 * HOUR });
    const all = rowsLeft(path);
    // The search after the last end is over then.
    expect(await store.history.forget?.()).toBe(0);
    clock.wallJump(2 * HOUR);
    expect(await store.load('run', { ended: true })).toBeNull();
    expect(rowsLeft(path)).toBe(all);
    expect(await store.history.forget?.({ dryRun: true })).toBe(1);
    expect(await store.history.forget?.()).toBe(1);
    expect(rowsLeft(path)).toBeGreaterThan(all / 2);
    await eventually(() => expect(rowsLeft(path)).toBe(1), 20);
    await eventually(() => expect(countIn(dir)).toBe(0), 100);
    expect(await store.load('later', { ended: true })).toEqual(sampleRecord('later'));
  });

  test.for(['the minute', 'the next end'])('is removed at %s (web 16)', async (when) => {
    const path = freshPath();
    const clock = testClock(1_000);
    await using store = sqliteStore({ path, clock });
    for (let i = 0; i < 50; i++) await ended(store, `run-${i}`);
    clock.wallJump(2 * HOUR);
    expect(rowsLeft(path)).toBe(50);
    if (when === 'the minute') clock.advance(60_000);
    else await ended(store, 'another', { keepUntil: 4 * HOUR });
    await eventually(() => expect(rowsLeft(path)).toBe(when === 'the minute' ? 0 : 1));
  });

  test('is erased from the bytes of the store, with its outcome (web 16)', async () => {
    const dir = freshDir();
    await using store = sqliteStore({ path: join(dir, 'runs.db') });
    await ended(store, 'run', { messages: large, callerId: `${SECRET}-caller`, keepUntil: Number.POSITIVE_INFINITY });
    expect(countIn(dir)).toBeGreaterThan(50);
    await store.history.erase('run');
    await eventually(() => expect(countIn(dir)).toBe(0), 100);
  });

  test('that a new run of its id replaces leaves nothing either (web 16)', async () => {
    const dir = freshDir();
    const store = sqliteStore({ path: join(dir, 'runs.db') });
    await ended(store, 'run', { messages: large, keepUntil: Number.POSITIVE_INFINITY });
    await store.save(sampleRecord('run'));
    expect(await store.load('run')).toEqual(sampleRecord('run'));
    await store.close();
    expect(countIn(dir)).toBe(0);
  });

  test('with a damaged entry is listed as quarantined, and hides no other (web 16)', async () => {
    const path = freshPath();
    await using store = sqliteStore({ path, clock: testClock(1_000) });
    for (const runId of ['a', 'b', 'c']) await ended(store, runId);
    sql(path, "UPDATE ended SET line = replace(line, 'ada', 'eve') WHERE run_id = 'b'");
    const runs = await store.history.list({ limit: 10 });
    expect(runs.map(({ runId, status }) => [runId, status])).toEqual([
      ['a', 'ok'],
      ['b', 'quarantined'],
      ['c', 'ok'],
    ]);
    expect(runs[1]).toMatchObject({ reason: expect.stringContaining('checksum') });
    expect((await store.history.list({ limit: 10, callerId: 'ada' })).map(({ runId }) => runId)).toEqual(['a', 'c']);
  });

  test('is found by a process of the version before as no run, because that process refuses the layout', async () => {
    const path = freshPath();
    await using store = sqliteStore({ path });
    await ended(store, 'run');
    expect(sql(path, 'PRAGMA user_version')).toEqual([{ user_version: 10 }]);
  });
});

test('a file of the layout before totals keeps its ended runs, and counts those that end from now on (checkpoint 6)', async () => {
  const path = freshPath();
  const before = sqliteStore({ path, clock: testClock(1_000) });
  await ended(before, 'before');
  await before.close();
  sql(path, 'DROP TABLE totals');
  sql(path, 'DROP TABLE schedules');
  sql(path, 'DROP TABLE limits');
  sql(path, 'ALTER TABLE due DROP COLUMN paused_by');
  sql(path, 'PRAGMA user_version = 6');
  await using store = sqliteStore({ path, clock: testClock(1_000) });
  await ended(store, 'after', { isCounted: true });
  expect((await store.history.list({ limit: 10 })).map(({ runId }) => runId)).toEqual(['after', 'before']);
  expect(await store.history.totals?.()).toMatchObject([{ status: 'ok', runs: 1 }]);
  expect(sql(path, 'PRAGMA user_version')).toEqual([{ user_version: 10 }]);
});

test('a file of the layout before pauses counts its waits as other, until their record is written again (checkpoint 6, otel 15)', async () => {
  const path = freshPath();
  const timer = { id: 'w', kind: 'timer', createdAt: 1, step: 1 } as const;
  const record = sampleRecord('waits', { waiting: { waits: [timer], settled: [] } });
  const before = sqliteStore({ path });
  await before.save(record);
  await before.close();
  sql(path, 'UPDATE due SET due_at = 9007199254740991');
  sql(path, 'ALTER TABLE due DROP COLUMN paused_by');
  sql(path, 'DROP TABLE schedules');
  sql(path, 'DROP TABLE limits');
  sql(path, 'PRAGMA user_version = 7');
  await using store = sqliteStore({ path });
  expect((await store.due.countRuns()).waiting).toEqual({ other: 1 });
  await store.save(record);
  expect((await store.due.countRuns()).waiting).toEqual({ timer: 1 });
});

test('a file of the layout before schedules keeps its runs, and keeps schedules from now on (checkpoint 6, schedules 5)', async () => {
  const path = freshPath();
  const before = sqliteStore({ path });
  await before.save(sampleRecord('run'));
  await before.close();
  sql(path, 'DROP TABLE schedules');
  sql(path, 'DROP TABLE limits');
  sql(path, 'PRAGMA user_version = 8');
  await using store = sqliteStore({ path });
  expect(await store.schedules.list()).toEqual([]);
  const none = { count: 0 };
  const schedule = { id: 'nightly', revision: 1, every: '1h', isEnabled: true, definedAt: 1, since: 1 };
  expect(await store.schedules.note({ ...schedule, skipped: none, missed: none, failed: none })).toBe(true);
  expect(await store.load('run')).not.toBeNull();
  expect(await store.schedules.list()).toMatchObject([schedule]);
});

test('a file of the layout before limits keeps its runs, and gives turns from now on (checkpoint 6)', async () => {
  const path = freshPath();
  const before = sqliteStore({ path });
  await before.save(sampleRecord('run'));
  await before.close();
  sql(path, 'DROP TABLE limits');
  sql(path, 'PRAGMA user_version = 9');
  await using store = sqliteStore({ path });
  expect((await store.limits.takeTurns([[[{ bucket: 'a', costMs: 1, lagMs: 0 }]]])).turns).toHaveLength(1);
  expect(await store.load('run')).not.toBeNull();
  expect(sql(path, 'SELECT id FROM limits')).toEqual([{ id: 'a' }]);
});

describe('agents and callers of ended runs, in an encrypted SQLite file', () => {
  const find = async (store: SqliteStore, callerId: string) =>
    (await store.history.list({ limit: 10, callerId })).map(({ runId }) => runId).sort();

  test('are found, and are not in its bytes (web 16)', async () => {
    const dir = freshDir();
    await using store = sqliteStore({ path: join(dir, 'runs.db'), codec: codecOf() });
    await ended(store, 'run', { callerId: SECRET, keepUntil: Number.POSITIVE_INFINITY });
    await ended(store, 'other', { keepUntil: Number.POSITIVE_INFINITY });
    expect(await find(store, SECRET)).toEqual(['run']);
    expect([countIn(dir), countIn(dir, 'writer')]).toEqual([0, 0]);
  });

  test('are found under the key of before, and those that were not encrypted too (web 16)', async () => {
    const path = freshPath();
    const store = async (codec: Codec | undefined, runId: string) => {
      await using opened = sqliteStore({ path, codec, clock: testClock(1_000) });
      await ended(opened, runId);
      return find(opened, 'ada');
    };
    expect(await store(undefined, 'plain')).toEqual(['plain']);
    expect(await store(encrypt({ keys: first, current: 'first', plain: 'read' }), 'first')).toEqual(['first', 'plain']);
    const both = { ...first, ...second };
    expect(await store(encrypt({ keys: both, current: 'second', plain: 'read' }), 'second')).toEqual([
      'first',
      'plain',
      'second',
    ]);
  });

  test("are found with a host's codec that cannot hash, because the entries are read (web 16)", async () => {
    const { seal, open } = codecOf();
    const path = freshPath();
    await using store = sqliteStore({ path, codec: { seal, open } });
    for (let i = 0; i < 5; i++) {
      await ended(store, `ada-${i}`, { keepUntil: Number.POSITIVE_INFINITY });
      await ended(store, `eve-${i}`, { callerId: 'eve', keepUntil: Number.POSITIVE_INFINITY });
    }
    expect(await find(store, 'eve')).toEqual(['eve-0', 'eve-1', 'eve-2', 'eve-3', 'eve-4']);
    expect(await store.history.list({ limit: 3, callerId: 'eve' })).toHaveLength(3);
    expect(sql(path, 'SELECT DISTINCT agent, caller FROM ended')).toEqual([{ agent: null, caller: null }]);
  });
});
