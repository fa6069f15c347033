import { crc32 } from 'node:zlib';
import type pg from 'pg';
import { describe, expect, test } from 'vitest';
import { resultsMessage } from '../../src/run/open-step.ts';
import { Encryption } from '../../src/store/encoding/encryption.ts';
import { type PostgresStore, postgresStore } from '../../src/store/postgres/index.ts';
import { nextStep, sampleOutcome, sampleRecord } from '../../src/testing/store-contract/records.ts';
import { checkpointStoreContract, type DamageKind } from '../../src/testing/store-contract/store-contract.ts';
import { expectSameRecords } from '../fixtures/pinned-ends.ts';
import { leaveRuns, saidInRuns } from '../fixtures/pinned-runs.ts';

import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { emptyTables } from '../store/postgres/tables.ts';
import { codecOf } from './keys.ts';
import { flipped } from './sqlite-encrypted.ts';

const server = postgresServer(['fsync=off']);
const schema = server.freshSchema();
const encryption = new Encryption(codecOf());
let pool: pg.Pool | undefined;

function open(codec: ReturnType<typeof codecOf> | undefined = codecOf()): PostgresStore {
  pool ??= server.pool();
  return postgresStore({ pool, schema, codec });
}

/** Damages an encrypted run the way the contract asks for; all checksums are right. */
async function damageEncrypted(runId: string, kind: DamageKind): Promise<void> {
  const id = Buffer.from(runId);
  const [row] = await server.sql(`SELECT * FROM "${schema}".runs WHERE run_id = $1`, id);
  const stored = String(row?.head);
  const newer = () => encryption.open(stored, runId, 'head').replace(/"version":\d+/, '"version":999');
  const head = kind === 'newer' ? encryption.seal(newer(), runId, 'head') : flipped(stored);
  const version = kind === 'newer' ? 999 : Number(row?.version);
  const columns = `${row?.body},${version},${row?.revision},${row?.updated_at},${row?.message_count}`;
  const values = [head, version, crc32(head, crc32(columns)), id];
  await server.sql(`UPDATE "${schema}".runs SET head = $1, version = $2, checksum = $3 WHERE run_id = $4`, ...values);
}

/** All that stands in the tables. */
async function bytesOf(): Promise<string> {
  const tables = await server.sql('SELECT table_name FROM information_schema.tables WHERE table_schema = $1', schema);
  const texts = [];
  for (const { table_name: name } of tables) {
    texts.push(...(await server.sql(`SELECT t::text AS row FROM "${schema}"."${name}" t`)).map(({ row }) => row));
  }
  return texts.join('\n');
}

/** The same suite runs on encrypted SQLite and files each time; what is different here is in the tests below. */
const isTorture = process.env.PAWL_TORTURE === '1';

describe.skipIf(whyNoPostgres ?? !isTorture)('encrypted PostgreSQL store', () => {
  const cases = checkpointStoreContract<PostgresStore>({
    create: async () => open(),
    reopen: async () => open(),
    damage: (_, runId, kind) => damageEncrypted(runId, kind),
    dispose: async (store) => {
      await store.close();
      await emptyTables(server, schema);
    },
  });
  for (const { title, run } of cases) test(title, run);
});

describe.skipIf(whyNoPostgres)('runs on an encrypted PostgreSQL store (recovery 11)', () => {
  test('leave nothing there that was typed, said, sent or received; without the codec all of it is there', async () => {
    await using plain = open(null as never);
    await leaveRuns(plain);
    const there = await bytesOf();
    expect(saidInRuns.filter((words) => there.includes(words)).length).toBeGreaterThan(saidInRuns.length / 2);
    await emptyTables(server, schema);

    await using store = open();
    await leaveRuns(store);
    const sealed = await bytesOf();
    expect(saidInRuns.filter((words) => sealed.includes(words))).toEqual([]);
    expect(sealed).toContain('gcm1.first.');
    await expectSameRecords(store, 2);
    await expect(open(null as never).load('single')).rejects.toMatchObject({ code: 'KEY_MISMATCH' });
    await emptyTables(server, schema);
  });

  test.for(['meta', 'extras'] as const)('the %s of another run is damage', async (part) => {
    await using store = open();
    for (const runId of ['a', 'b']) await store.save(sampleRecord(runId, { inputs: { a: 1 } }));
    const other = `SELECT s.${part} FROM "${schema}".starts s JOIN "${schema}".runs r USING (body) WHERE run_id = $1`;
    const [row] = await server.sql(other, Buffer.from('b'));
    const text = String(row?.[part]);
    const where = `body = (SELECT body FROM "${schema}".runs WHERE run_id = $3)`;
    const change = `UPDATE "${schema}".starts SET ${part} = $1, ${part}_checksum = $2 WHERE ${where}`;
    await server.sql(change, text, crc32(text), Buffer.from('a'));
    await expect(store.load('a')).rejects.toMatchObject({ code: 'CHECKPOINT_CORRUPT' });
    expect(await store.load('b')).toMatchObject({ inputs: { a: 1 } });
    await emptyTables(server, schema);
  });

  test('the outcome of another run is damage', async () => {
    await using store = open();
    for (const runId of ['a', 'b']) await store.outcomes.keep(runId, sampleOutcome(runId), Date.now() * 2);
    const other = `SELECT outcome, checksum FROM "${schema}".outcomes WHERE run_id = $1`;
    const change = `UPDATE "${schema}".outcomes SET (outcome, checksum) = (${other}) WHERE run_id = $2`;
    await server.sql(change, Buffer.from('b'), Buffer.from('a'));
    await expect(store.outcomes.find('a')).rejects.toMatchObject({ code: 'CHECKPOINT_CORRUPT' });
    await emptyTables(server, schema);
  });
});

describe.skipIf(whyNoPostgres).for([
  ['plain', null as never],
  ['encrypted', codecOf()],
] as const)('a %s PostgreSQL store', ([, codec]) => {
  test('finds the parts of a step again that takes more than one row', async () => {
    await using store = open(codec);
    const large = (letter: string) => letter.repeat(300_000);
    const content = { type: 'tool-call' as const, toolCallId: 'c', toolName: 'send', input: { text: large('i') } };
    const call = { callId: 'c', name: 'send', input: content.input, effect: 'once' as const, attempt: 1 };
    const result = { type: 'text' as const, value: large('r') };
    const openStep = {
      message: { role: 'assistant' as const, content: [content] },
      calls: [{ ...call, state: 'done' as const, result }],
    };
    const first = sampleRecord('run');
    await store.save(first);
    const opened = nextStep(first, [], { openStep });
    await store.append(opened.delta);
    const { openStep: _, ...closed } = opened.record;
    const done = nextStep(closed, [openStep.message, resultsMessage(openStep)]);
    await store.append(done.delta);
    expect(await store.load('run')).toEqual(done.record);
    await emptyTables(server, schema);
  });
});
