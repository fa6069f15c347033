import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { RunCheckpoint } from '../../../src/record/checkpoint.ts';
import { type PostgresPool, type PostgresStore, postgresStore } from '../../../src/store/postgres/index.ts';
import { fullRecord, nextStep, sampleOutcome, sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { postgresServer, whyNoPostgres } from '../../fixtures/postgres-server.ts';
import { emptyTables } from './tables.ts';

const server = postgresServer(['fsync=off']);
const schema = server.freshSchema();
/** The run that gets damaged, as statements name it. */
const body = "(SELECT body FROM runs WHERE run_id = 'run')";

const texts = [
  { name: 'runs.head', table: 'runs', column: 'head', key: "run_id = 'run'", isListed: false },
  { name: 'starts.meta', table: 'starts', column: 'meta', key: `body = ${body}`, isListed: false },
  // A list reads neither of these: it shows the run, and loading it is refused.
  { name: 'starts.extras', table: 'starts', column: 'extras', key: `body = ${body}`, isListed: true },
  { name: 'messages', table: 'messages', column: 'messages', key: `body = ${body} AND first = 0`, isListed: true },
  { name: 'pieces', table: 'pieces', column: 'bundled', key: `body = ${body}`, isListed: false },
] as const;

describe.skipIf(whyNoPostgres)('damage in the tables', () => {
  let pool: PostgresPool;
  let store: PostgresStore;
  const sql = (text: string, ...values: unknown[]) =>
    server.sql(text.replaceAll(/\b(runs|starts|messages|pieces|outcomes)\b(?! =| \|)/g, `"${schema}".$1`), ...values);

  beforeAll(() => {
    pool = server.pool();
    store = postgresStore({ pool, schema });
  });
  afterEach(() => emptyTables(server, schema));

  /** Two runs, the first with all fields and two rows of messages. */
  async function stored(): Promise<RunCheckpoint> {
    const { messages } = fullRecord('run');
    const first = { ...fullRecord('run'), messages: [...messages, ...messages] };
    const step = nextStep(first);
    await store.save(first);
    await store.append(step.delta);
    await store.save(sampleRecord('other'));
    return step.record;
  }

  /** Loads a run: the record, or the code of the refusal. */
  const found = (runId: string): Promise<unknown> => store.load(runId).catch((error: { code?: unknown }) => error.code);

  test.for(texts)(
    'a changed byte anywhere in $name is found (recovery 6)',
    async ({ table, column, key, isListed }) => {
      const record = await stored();
      const from = `"${schema}".${table}`;
      const where = key.replace('FROM runs', `FROM "${schema}".runs`);
      const [row] = await server.sql(`SELECT ${column} AS text FROM ${from} WHERE ${where}`);
      const original = String(row?.text);
      const put = (text: string) => server.sql(`UPDATE ${from} SET ${column} = $1 WHERE ${where}`, text);
      expect(await found('run')).toEqual(record);
      let changed = 0;
      for (let offset = 0; offset < original.length; offset += 1 + (original.length >> 4)) {
        const other = String.fromCharCode(original.charCodeAt(offset) ^ 1);
        await put(original.slice(0, offset) + other + original.slice(offset + 1));
        changed += 1;
        expect(await found('run'), `offset ${offset}`).toBe('CHECKPOINT_CORRUPT');
        const listed = await store.listInterrupted();
        const expected = isListed ? 'parked' : 'quarantined';
        const statuses = Object.fromEntries(listed.map((run) => [run.runId, run.status]));
        expect(statuses).toEqual({ run: expected, other: 'interrupted' });
      }
      expect(changed).toBeGreaterThan(8);
      await put(original);
      expect(await found('run')).toEqual(record);
    },
  );

  test.for([
    "UPDATE runs SET message_count = message_count - 1 WHERE run_id = 'run'",
    "UPDATE runs SET message_count = message_count + 1 WHERE run_id = 'run'",
    "UPDATE runs SET revision = revision + 1 WHERE run_id = 'run'",
    "UPDATE runs SET updated_at = updated_at + 1 WHERE run_id = 'run'",
    "UPDATE runs SET checksum = checksum + 1 WHERE run_id = 'run'",
    "UPDATE runs SET head = NULL WHERE run_id = 'run'",
    "UPDATE runs SET run_id = 'RUN' WHERE run_id = 'run'",
    "UPDATE runs SET body = body + 1 WHERE run_id = 'run'",
    'UPDATE starts SET meta_checksum = 0',
    'UPDATE starts SET extras = NULL',
    'DELETE FROM starts',
    'DELETE FROM pieces',
    "UPDATE runs SET pieces = '' WHERE run_id = 'run'",
    'DELETE FROM messages',
    'DELETE FROM messages WHERE first > 0',
    'DELETE FROM messages WHERE first = 0',
    'UPDATE messages SET first = first + 1000',
    'UPDATE messages SET first = 1 WHERE first = 0',
    "UPDATE messages SET messages = '[]', checksum = 223132457 WHERE first = 0",
  ])('a record is refused after %s (recovery 6)', async (change) => {
    await stored();
    await sql(change);
    expect(await found(change.includes('RUN') ? 'RUN' : 'run')).toBe('CHECKPOINT_CORRUPT');
    expect(await store.listInterrupted()).toHaveLength(2);
  });

  test('a kept outcome that is damaged is refused, not given back (recovery 6)', async () => {
    await store.outcomes.keep('run', sampleOutcome('run'), 4e12);
    await sql("UPDATE outcomes SET outcome = replace(outcome, 'a line', 'a lime')");
    await expect(store.outcomes.find('run')).rejects.toMatchObject({ code: 'CHECKPOINT_CORRUPT' });
  });
});
