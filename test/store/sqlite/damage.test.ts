import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { RunCheckpoint } from '../../../src/record/checkpoint.ts';
import { type SqliteStore, sqliteStore } from '../../../src/store/sqlite/index.ts';
import { seededRandom } from '../../../src/testing/store-contract/random.ts';
import { fullRecord, nextStep, sampleOutcome, sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { seed } from '../../crash/random.ts';
import { freshPath, sql } from './files.ts';

/** Two runs, the first with all fields and two rows of messages; the file is closed. */
async function stored(): Promise<{ path: string; record: RunCheckpoint }> {
  const path = freshPath();
  await using store = sqliteStore({ path });
  const { messages } = fullRecord('run');
  const first = { ...fullRecord('run'), messages: [...messages, ...messages] };
  const step = nextStep(first);
  await store.save(first);
  await store.append(step.delta);
  await store.save(sampleRecord('other'));
  await store.outcomes.keep('kept', sampleOutcome('kept'), 4e12);
  return { path, record: step.record };
}

const REFUSALS = ['CHECKPOINT_CORRUPT', 'STORE_UNAVAILABLE', 'CHECKPOINT_TOO_NEW'];

const DAMAGED_BITS = process.env.PAWL_TORTURE ? 5_000 : 60;

/** Loads a run: the record, or the code of the refusal. */
const found = (store: SqliteStore, runId: string): Promise<unknown> =>
  store.load(runId).catch((error: { code?: unknown }) => error.code);

const texts = [
  { name: 'heads.head', table: 'heads', column: 'head', key: 'no = 1', isListed: false },
  { name: 'runs.meta', table: 'runs', column: 'meta', key: 'no = 1', isListed: false },
  // A list reads neither of these: it shows the run, and loading it is refused.
  { name: 'runs.extras', table: 'runs', column: 'extras', key: 'no = 1', isListed: true },
  {
    name: 'messages.messages',
    table: 'messages',
    column: 'messages',
    key: 'id = (SELECT min(id) FROM messages)',
    isListed: true,
  },
] as const;

describe('damage (recovery 6, faults 13)', () => {
  test.for(texts)('a flipped bit anywhere in $name is found', async ({ table, column, key, isListed }) => {
    const { path, record } = await stored();
    await using store = sqliteStore({ path });
    const [row] = sql(path, `SELECT CAST(${column} AS BLOB) AS bytes FROM ${table} WHERE ${key}`);
    const bytes = Buffer.from(row?.bytes as Uint8Array);
    const put = (value: Uint8Array) => sql(path, `UPDATE ${table} SET ${column} = CAST(? AS TEXT) WHERE ${key}`, value);
    expect(await found(store, 'run')).toEqual(record);
    let flipped = 0;
    for (let offset = 0; offset < bytes.length; offset += 1 + (bytes.length >> 6)) {
      const damaged = Buffer.from(bytes);
      damaged[offset] = (damaged[offset] ?? 0) ^ (1 << (offset % 8));
      put(damaged);
      flipped += 1;
      expect(await found(store, 'run'), `offset ${offset}`).toBe('CHECKPOINT_CORRUPT');
      const listed = await store.listInterrupted();
      const expected = isListed ? 'parked' : 'quarantined';
      expect(Object.fromEntries(listed.map((run) => [run.runId, run.status]))).toEqual({
        run: expected,
        other: 'interrupted',
      });
    }
    expect(flipped).toBeGreaterThan(20);
    put(bytes);
    expect(await found(store, 'run')).toEqual(record);
  });

  test.for([
    'UPDATE heads SET message_count = message_count - 1',
    'UPDATE heads SET message_count = message_count + 1',
    'UPDATE heads SET revision = revision + 1',
    'UPDATE heads SET updated_at = updated_at + 1',
    'UPDATE heads SET generation = generation + 1',
    'UPDATE heads SET checksum = checksum + 1',
    'UPDATE runs SET meta_checksum = 0',
    'UPDATE runs SET extras = NULL',
    'UPDATE runs SET run_id = upper(run_id)',
    'DELETE FROM heads',
    'DELETE FROM messages',
    'DELETE FROM messages WHERE id = (SELECT max(id) FROM messages WHERE id < 2 * 16777216)',
    'UPDATE messages SET id = id + 1000 WHERE id < 2 * 16777216',
    'UPDATE messages SET id = id + 1 WHERE id = 16777216',
    "UPDATE messages SET messages = '[]', checksum = 223132457 WHERE id < 2 * 16777216",
  ])('a record is refused after %s', async (change) => {
    const { path } = await stored();
    sql(path, change);
    await using store = sqliteStore({ path });
    const id = change.includes('upper') ? 'RUN' : 'run';
    expect(await found(store, id)).toBe('CHECKPOINT_CORRUPT');
    expect(await store.listInterrupted()).toHaveLength(2);
  });

  test('a kept outcome that is damaged is refused, not given back', async () => {
    const path = freshPath();
    await using store = sqliteStore({ path });
    await store.outcomes.keep('run', sampleOutcome('run'), 4e12);
    sql(path, "UPDATE outcomes SET outcome = replace(outcome, 'a line', 'a lime')");
    await expect(store.outcomes.find('run')).rejects.toMatchObject({ code: 'CHECKPOINT_CORRUPT' });
  });

  test('a write-ahead log that is torn anywhere gives a record that was once stored, and never none (faults 2)', async () => {
    const path = freshPath();
    await using store = sqliteStore({ path });
    const records = [sampleRecord('run')];
    await store.save(records[0] as RunCheckpoint);
    // From here on the file has the first record, and the log what comes.
    sql(path, 'PRAGMA wal_checkpoint(TRUNCATE)');
    for (let i = 0; i < 5; i++) {
      const step = nextStep(records.at(-1) as RunCheckpoint);
      await store.append(step.delta);
      records.push(step.record);
    }
    const [file, log] = [readFileSync(path), readFileSync(`${path}-wal`)];
    const copy = `${path}-torn`;
    const found = new Set<number>();
    for (let bytes = 0; bytes <= log.length; bytes += 997) {
      writeFileSync(copy, file);
      writeFileSync(`${copy}-wal`, log.subarray(0, bytes));
      await using torn = sqliteStore({ path: copy });
      const record = await torn.load('run');
      expect(records, `${bytes} bytes`).toContainEqual(record);
      found.add(record?.revision ?? 0);
    }
    expect([...found].sort()).toEqual([1, 2, 3, 4, 5, 6].slice(0, found.size));
    expect(found.size).toBeGreaterThan(3);
  });

  test(`a flipped bit anywhere in the file never gives another record, and no error without a code (seed ${seed})`, async () => {
    const { path, record } = await stored();
    const random = seededRandom(seed);
    const original = readFileSync(path);
    const copy = `${path}-damaged`;
    const seen = new Map<string, number>();
    for (let i = 0; i < DAMAGED_BITS; i++) {
      const damaged = Buffer.from(original);
      const offset = random.below(damaged.length);
      damaged[offset] = (damaged[offset] ?? 0) ^ (1 << random.below(8));
      for (const suffix of ['', '-wal', '-shm']) rmSync(`${copy}${suffix}`, { force: true });
      writeFileSync(copy, damaged);
      await using store = sqliteStore({ path: copy });
      const value = await found(store, 'run');
      const kind = value === null || typeof value === 'string' ? String(value) : 'record';
      seen.set(kind, (seen.get(kind) ?? 0) + 1);
      if (kind === 'record') expect(value, `byte ${offset}`).toEqual(record);
      else expect(kind, `byte ${offset}`).toBeOneOf([...REFUSALS, 'null']);
      const uses = [
        store.listInterrupted(),
        store.outcomes.find('kept'),
        store.claim('run', 'another', 1_000),
        store.save(sampleRecord('other')),
        store.delete('other'),
      ];
      for (const use of await Promise.allSettled(uses)) {
        if (use.status === 'rejected') expect(use.reason.code, `byte ${offset}`).toBeOneOf(REFUSALS);
      }
    }
    expect(seen.get('CHECKPOINT_CORRUPT') ?? 0).toBeGreaterThan(0);
  }, 600_000);

  test('a file whose layout is damaged is refused as a whole', async () => {
    const { path } = await stored();
    const bytes = readFileSync(path);
    // The name of a column in another case is the same to SQLite, and another field to JavaScript.
    const at = bytes.indexOf('owner TEXT');
    bytes[at] = 'O'.charCodeAt(0);
    writeFileSync(path, bytes);
    await using store = sqliteStore({ path });
    await expect(store.load('run')).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringContaining('layout'),
    });
    await expect(store.claim('run', 'me', 1_000)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });
});
