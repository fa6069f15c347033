import { crc32 } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { nextStep, sampleOutcome, sampleRecord, userMessage } from '../../src/testing/store-contract/records.ts';
import { freshPath, sql } from '../store/sqlite/files.ts';
import { codecOf } from './keys.ts';

const corrupt = { code: 'CHECKPOINT_CORRUPT' };
const UNTIL = Date.now() * 2;

/** Two runs that are alike, each with inputs, images, and two rows of messages. */
const record = (runId: string) => sampleRecord(runId, { messages: [userMessage('one')], inputs: { a: 1 }, images: [] });

describe('a sealed text in the place of another, with all checksums right (recovery 11)', () => {
  test.for([
    ['the meta of another run', "meta = (SELECT meta FROM runs WHERE run_id = 'b')", 'a'],
    ['the extras of another run', "extras = (SELECT extras FROM runs WHERE run_id = 'b')", 'a'],
    ['the meta as the extras', 'extras = meta', 'a'],
    ['the extras as the meta', 'meta = extras', 'a'],
  ] as const)('%s is damage', async ([, change, runId]) => {
    const path = await filled();
    sql(path, `UPDATE runs SET ${change} WHERE run_id = ?`, runId);
    for (const part of ['meta', 'extras']) {
      const text = String(sql(path, `SELECT ${part} FROM runs WHERE run_id = ?`, runId)[0]?.[part]);
      sql(path, `UPDATE runs SET ${part}_checksum = ? WHERE run_id = ?`, crc32(text), runId);
    }
    await expectDamaged(path);
  });

  test('the head of another run is damage', async () => {
    const path = await filled();
    sql(path, 'UPDATE heads SET head = (SELECT head FROM heads WHERE no = 2) WHERE no = 1');
    const [row] = sql(path, 'SELECT * FROM heads WHERE no = 1');
    const columns = `${row?.generation},${row?.version},${row?.revision},${row?.updated_at},${row?.message_count}`;
    sql(path, 'UPDATE heads SET checksum = ? WHERE no = 1', crc32(String(row?.head), crc32(columns)));
    await expectDamaged(path);
  });

  test.for([
    ['of another run', 2 * 2 ** 24],
    ['from elsewhere in the run', 2 ** 24 + 1],
  ] as const)('messages %s are damage', async ([, id]) => {
    const path = await filled();
    const [row] = sql(path, 'SELECT messages, checksum FROM messages WHERE id = ?', id);
    const values = [String(row?.messages), Number(row?.checksum), 2 ** 24];
    sql(path, 'UPDATE messages SET messages = ?, checksum = ? WHERE id = ?', ...values);
    await expectDamaged(path);
  });

  test('the outcome of another run is damage', async () => {
    const path = await filled();
    const change = "(SELECT outcome, checksum FROM outcomes WHERE run_id = 'b')";
    sql(path, `UPDATE outcomes SET (outcome, checksum) = ${change} WHERE run_id = 'a'`);
    await using store = sqliteStore({ path, codec: codecOf() });
    await expect(store.outcomes.find('a')).rejects.toMatchObject(corrupt);
    expect(await store.outcomes.find('b')).toEqual(sampleOutcome('b'));
  });

  test('a command for another run counts as never sent', async () => {
    const path = await filled();
    sql(path, "UPDATE commands SET run_id = 'a'");
    await using store = sqliteStore({ path, codec: codecOf() });
    expect(await store.commands.inbox({ runId: 'a' })).toEqual([]);
  });
});

async function filled(): Promise<string> {
  const path = freshPath();
  await using store = sqliteStore({ path, codec: codecOf() });
  for (const runId of ['a', 'b']) {
    await store.save(record(runId));
    await store.append(nextStep(record(runId)).delta);
    await store.outcomes.keep(runId, sampleOutcome(runId), UNTIL);
  }
  await store.commands.send('b', { id: 'c', kind: 'steer', text: 'left' });
  return path;
}

async function expectDamaged(path: string): Promise<void> {
  await using store = sqliteStore({ path, codec: codecOf() });
  await expect(store.load('a')).rejects.toMatchObject(corrupt);
  expect(await store.load('b')).toEqual(nextStep(record('b')).record);
}
