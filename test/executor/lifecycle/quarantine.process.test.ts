import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { memoryStore } from 'pawl';
import type { ControlStore } from 'pawl/stores/kit';
import { postgresStore } from 'pawl/stores/postgres';
import { sqliteStore } from 'pawl/stores/sqlite';
import { reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { CheckpointCorruptError } from '../../../src/values/errors.ts';
import { hostOf } from '../../fixtures/host.ts';
import { postgresServer, whyNoPostgres } from '../../fixtures/postgres-server.ts';
import { watchedStore } from '../../fixtures/watched-store.ts';
import { filesBelow, freshDir } from '../../store/folder.ts';
import { sql } from '../../store/sqlite/files.ts';

const server = postgresServer();

type Store = ControlStore & { close(): Promise<void> };

/** A place with stored runs; the transcript of the run `r` can be damaged and mended while no store is open. */
interface Place {
  open(): Store;
  alter(from: string, to: string): Promise<void>;
  /** All that is stored, to compare. */
  bytes(): Promise<string>;
}

const TEXT = 'the first message';

const places: readonly { kind: string; skip?: string | undefined; make(): Place }[] = [
  {
    kind: 'SQLite',
    make: () => {
      const dir = freshDir();
      const path = join(dir, 'runs.db');
      return {
        open: () => sqliteStore({ path }),
        alter: async (from, to) =>
          void sql(path, `UPDATE messages SET messages = replace(messages, '${from}', '${to}')`),
        bytes: async () => bytesBelow(dir),
      };
    },
  },
  {
    kind: 'PostgreSQL',
    skip: whyNoPostgres,
    make: () => {
      const schema = server.freshSchema();
      const query = async (text: string) => (await server.pool().query(text)).rows;
      return {
        open: () => postgresStore({ pool: server.pool(), schema }),
        alter: async (from, to) =>
          void (await query(`UPDATE "${schema}".messages SET messages = replace(messages, '${from}', '${to}')`)),
        bytes: async () => {
          const tables = ['runs', 'starts', 'messages', 'pieces', 'outcomes', 'commands'];
          const rows = await Promise.all(tables.map((table) => query(`SELECT * FROM "${schema}".${table} ORDER BY 1`)));
          return JSON.stringify(rows);
        },
      };
    },
  },
];

function bytesBelow(dir: string): string {
  return JSON.stringify(filesBelow(dir).map((file) => [file, readFileSync(join(dir, file), 'latin1')]));
}

async function damaged({ open, alter }: Place): Promise<void> {
  const store = open();
  const sample = sampleRecord('r', {
    attempts: 1,
    messages: [{ role: 'user', content: [{ type: 'text', text: TEXT }] }],
  });
  await store.save({ ...sample, meta: { ...sample.meta, agentId: 'worker', prompt: 'Go.' } });
  await store.close();
  await alter('the first', 'the worst');
}

/** What a process does that starts, and ends in good order. */
async function boot({ open }: Place) {
  const store = open();
  const host = hostOf({ store, script: [reply('done')] });
  const { resumed, failed, skipped, parked } = await host.executor.recover();
  for (const { runId } of resumed) await host.executor.get(runId)?.result;
  const listed = await store.listInterrupted();
  await host.executor.shutdown();
  await store.close();
  return { report: { resumed, failed, skipped, parked }, listed };
}

const reason = expect.stringMatching(/^CHECKPOINT_CORRUPT: this record is damaged/);
const left = expect.stringMatching(/^CHECKPOINT_CORRUPT: it cannot be read: this record is damaged/);

describe.each(places.filter(({ skip }) => !skip))('a record whose transcript is damaged, on $kind,', ({ make }) => {
  test('is quarantined by the first boot, and no later one writes a byte of it or counts an attempt', async () => {
    const place = make();
    await damaged(place);
    const first = await boot(place);
    expect(first.report).toEqual({ resumed: [], failed: [{ runId: 'r', reason }], skipped: [], parked: [] });
    expect(first.listed).toEqual([expect.objectContaining({ runId: 'r', status: 'quarantined', reason })]);
    const bytes = await place.bytes();
    for (let later = 2; later <= 3; later++) {
      const { report, listed } = await boot(place);
      expect(report).toEqual({ resumed: [], failed: [], skipped: [{ runId: 'r', reason: left }], parked: [] });
      expect(listed).toEqual(first.listed);
      expect((await place.bytes()) === bytes, `the bytes after boot ${later}`).toBe(true);
    }
  });

  test('refuses a start by its id and a cancel, and its bytes stay', async () => {
    const place = make();
    await damaged(place);
    await boot(place);
    const bytes = await place.bytes();
    const store = place.open();
    const host = hostOf({ store });
    expect(await host.run({ runId: 'r' })).toMatchObject({ status: 'error', error: { code: 'CHECKPOINT_CORRUPT' } });
    await expect(host.executor.control('r').cancel()).rejects.toMatchObject({ code: 'CHECKPOINT_CORRUPT' });
    await expect(host.executor.unpark('r')).rejects.toMatchObject({ code: 'CHECKPOINT_CORRUPT' });
    await host.executor.shutdown();
    await store.close();
    expect((await place.bytes()) === bytes).toBe(true);
  });

  test('continues from where it was once its bytes are restored and it is unparked', async () => {
    const place = make();
    await damaged(place);
    await boot(place);
    await place.alter('the worst', 'the first');
    const store = place.open();
    await hostOf({ store }).executor.unpark('r');
    await store.close();
    expect((await boot(place)).report).toMatchObject({ resumed: [{ runId: 'r' }], failed: [], skipped: [] });
  });

  test('can be deleted', async () => {
    const place = make();
    await damaged(place);
    await boot(place);
    const store = place.open();
    await store.delete('r');
    expect(await store.listInterrupted()).toEqual([]);
    await store.close();
  });
});

test('a start by its id alone quarantines nothing: a process with the wrong key must not', async () => {
  const place = places[0]?.make() as Place;
  await damaged(place);
  const store = place.open();
  expect((await hostOf({ store }).run({ runId: 'r' })).error?.code).toBe('CHECKPOINT_CORRUPT');
  expect(await store.listInterrupted()).toEqual([expect.objectContaining({ status: 'interrupted', attempts: 1 })]);
  await store.close();
});

test('a record that is read wrong once, and right the second time, continues and is not quarantined', async () => {
  let reads = 0;
  const misread = ({ method }: { method: string }) => {
    if (method === 'load' && ++reads === 1)
      throw new CheckpointCorruptError('this record is damaged: a checksum is wrong');
  };
  const store = watchedStore({ before: misread }, memoryStore());
  const sample = sampleRecord('r', { attempts: 0 });
  await store.save({ ...sample, meta: { ...sample.meta, agentId: 'worker', prompt: 'Go.' } });
  const { executor } = hostOf({ store });
  expect(await executor.recover()).toMatchObject({ resumed: [{ runId: 'r' }], failed: [], skipped: [] });
  expect((await executor.get('r')?.result)?.status).toBe('ok');
});
