import { hash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { encrypt } from '../../../src/index.ts';
import type { RunCheckpoint } from '../../../src/record/checkpoint.ts';
import { type OpenStep, resultsMessage } from '../../../src/run/open-step.ts';
import type { Claim } from '../../../src/store/port.ts';
import { postgresStore } from '../../../src/store/postgres/index.ts';
import { seededRandom } from '../../../src/testing/store-contract/random.ts';
import { nextStep, sampleRecord, userMessage } from '../../../src/testing/store-contract/records.ts';
import type { Message } from '../../../src/values/message.ts';
import { torture } from '../../crash/random.ts';
import { postgresServer, whyNoPostgres } from '../../fixtures/postgres-server.ts';

/** Of the runs that are measured. */
const steps = torture > 1 ? 400 : 120;

const server = postgresServer(['fsync=off', 'autovacuum=off']);

interface Sizes {
  readonly payload: number;
  /** Bytes of the write-ahead log. */
  readonly wal: number;
  /** Bytes of all tables, indexes included. */
  readonly stored: number;
}

/** Letters at random: the server cannot compress them, as it can real text. */
function letters(count: number): string {
  const random = seededRandom(count);
  return Array.from({ length: count }, () => String.fromCharCode(33 + random.below(94))).join('');
}

/** What a step is saved as: its deltas' messages and open steps. Half of it is the input of its call, half the result. */
type Saves = readonly { readonly messages: readonly Message[]; readonly openStep?: OpenStep }[];

/** A step of a `read` tool is one save. */
const plainStep = (text: string): Saves => [{ messages: [userMessage(text)] }];

/** One call of a `once` tool: its intent, its result where it is saved by itself, and the step. */
function onceStep(text: string, n: number, { isResultSaved }: { isResultSaved: boolean }): Saves {
  const half = (text.length >> 1) - 100;
  const input = { text: text.slice(0, half) };
  const line = { callId: `call-${n}`, name: 'send', input, effect: 'once' as const, attempt: 1 };
  const content = [{ type: 'tool-call' as const, toolCallId: line.callId, toolName: 'send', input }];
  const message = { role: 'assistant' as const, content };
  const done: OpenStep = {
    message,
    calls: [{ ...line, state: 'done', result: { type: 'text', value: text.slice(-half) } }],
  };
  const result = isResultSaved ? [{ messages: [], openStep: done }] : [];
  return [
    { messages: [], openStep: { message, calls: [{ ...line, state: 'started' }] } },
    ...result,
    { messages: [message, resultsMessage(done)] },
  ];
}

/** Makes a run of steps, each of them about so many bytes, and measures what the server writes for it. */
async function measure(steps: number, bytes: number, savesOf: (text: string, n: number) => Saves): Promise<Sizes> {
  const schema = server.freshSchema();
  const store = postgresStore({ pool: server.pool(), schema });
  const claim = (await store.claim('run', 'one', 600_000)) as Claim;
  let record = sampleRecord('run');
  await store.save(record, { claim });
  // The first change of each page after a checkpoint writes the whole page; once per checkpoint, whatever the length of the run.
  await server.sql('CHECKPOINT');
  const text = letters(2 * bytes);
  const before = await sizes(schema);
  let payload = 0;
  for (let step = 0; step < steps; step++) {
    for (const { messages, openStep } of savesOf(text.slice(step % bytes, (step % bytes) + bytes), step)) {
      const { openStep: _, ...rest } = record;
      const next = nextStep(rest, messages, openStep ? { openStep } : {});
      await store.append(next.delta, { claim });
      record = next.record;
      for (const message of messages) payload += JSON.stringify(message).length;
    }
  }
  const after = await sizes(schema);
  expect(await store.load('run')).toEqual(record);
  await store.close();
  return { payload, wal: after.wal - before.wal, stored: after.stored - before.stored };
}

/** How much was ever written to the log, and what the tables take now. */
async function sizes(schema: string): Promise<Omit<Sizes, 'payload'>> {
  const [found] = await server.sql(
    `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') AS wal, (SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c
     JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r') AS stored`,
    schema,
  );
  return { wal: Number(found?.wal), stored: Number(found?.stored) };
}

describe.skipIf(whyNoPostgres)('what a run of many steps costs the server', () => {
  test.for([
    [steps, 5_000],
    [steps, 2_500],
  ] as const)(
    '%i steps of %i bytes write at most 1.5 times that to the log, and keep at most 1.3 times (recovery 4)',
    async ([steps, bytes]) => {
      const { payload, wal, stored } = await measure(steps, bytes, plainStep);
      expect(wal / payload).toBeLessThan(1.5);
      expect(stored / payload).toBeLessThan(1.3);
    },
  );

  test.for([
    { steps, bytes: 5_000, isResultSaved: false },
    { steps, bytes: 5_000, isResultSaved: true },
    { steps, bytes: 2_500, isResultSaved: false },
  ])(
    'so do $steps steps of a `once` call, $bytes bytes each, its result saved apart: $isResultSaved',
    async (shape) => {
      const { bytes } = shape;
      const { payload, wal, stored } = await measure(steps, bytes, (text, n) => onceStep(text, n, shape));
      expect(wal / payload).toBeLessThan(1.5);
      expect(stored / payload).toBeLessThan(1.5);
    },
  );

  test.for([
    { codec: undefined, isWhole: false },
    { codec: encrypt({ keys: { k: hash('sha256', 'a key', 'buffer') }, current: 'k' }), isWhole: true },
  ])(
    'a stored head repeats none of the columns of its row, unless it is encrypted: $isWhole (recovery 4)',
    async ({ codec, isWhole }) => {
      const schema = server.freshSchema();
      await using store = postgresStore({ pool: server.pool(), schema, codec });
      const { delta, record } = nextStep(sampleRecord('run'));
      await store.save(sampleRecord('run'));
      await store.append(delta);
      const [row] = await server.sql(`SELECT head FROM "${schema}".runs`);
      const stored = String(row?.head);
      const head = codec ? codec.open(stored.replace('sealed:', ''), { runId: 'run', part: 'head' }) : stored;
      for (const field of ['version', 'revision', 'updatedAt']) expect(head.includes(`"${field}":`)).toBe(isWhole);
      expect(await store.load('run')).toEqual(record);
    },
  );

  test('a head whose first fields are not those of an executor is stored as it is (recovery 4)', async () => {
    await using store = postgresStore({ pool: server.pool(), schema: server.freshSchema() });
    const { revision: _, ...unnumbered } = sampleRecord('run');
    const { version, ...rest } = sampleRecord('other');
    const records = [unnumbered as RunCheckpoint, { ...rest, version }];
    for (const record of records) {
      await store.save(record);
      expect(await store.load(record.meta.runId)).toEqual(record);
    }
  });

  test('both grow with the length of the run, and not faster (recovery 4)', async () => {
    const short = await measure(steps / 4, 3_000, plainStep);
    const long = await measure(steps, 3_000, plainStep);
    expect(long.wal / long.payload).toBeLessThan(1.1 * (short.wal / short.payload));
    expect(long.stored / long.payload).toBeLessThan(1.1 * (short.stored / short.payload));
  });
});
