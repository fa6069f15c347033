import { encrypt, memoryStore } from 'pawl';
import type { ControlStore } from 'pawl/stores/kit';
import { postgresStore } from 'pawl/stores/postgres';
import { sqliteStore } from 'pawl/stores/sqlite';
import { describe, expect, test } from 'vitest';
import { sampleRecord } from '../../src/testing/store-contract/records.ts';
import { CheckpointCorruptError, CheckpointTooNewError, KeyMismatchError } from '../../src/values/errors.ts';
import { keyOf } from '../codec/keys.ts';
import { hostOf } from '../fixtures/host.ts';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { requestIn } from '../fixtures/records.ts';
import { freshDir } from '../store/folder.ts';

const server = postgresServer(['fsync=off']);

interface Kind {
  readonly kind: string;
  readonly skip?: string | undefined;
  open(): ControlStore;
}

const kinds: readonly Kind[] = [
  { kind: 'memory', open: () => memoryStore() },
  { kind: 'SQLite', open: () => sqliteStore({ path: `${freshDir()}.db` }) },
  {
    kind: 'PostgreSQL',
    skip: whyNoPostgres,
    open: () => postgresStore({ pool: server.pool(), schema: server.freshSchema() }),
  },
];

const reasons = [
  new CheckpointTooNewError('written by a newer version'),
  new KeyMismatchError('sealed with a key that is not there'),
  new CheckpointCorruptError('damaged'),
];

const record = (attempts: number) => {
  const sample = sampleRecord('r', { attempts });
  return { ...sample, meta: { ...sample.meta, agentId: 'worker', prompt: 'Go.' } };
};

/** A store whose record cannot be read for now. */
function unreadable(store: ControlStore, error: Error): ControlStore {
  return { ...store, load: () => Promise.reject(error) };
}

describe.each(kinds.filter(({ skip }) => !skip))('a start of a record that cannot be read, on $kind,', ({ open }) => {
  test.each(reasons)('counts no attempt: after four with $code a good start continues (recovery 2)', async (error) => {
    const store = open();
    await store.save(record(2));
    for (let start = 1; start <= 4; start++) {
      const refused = await hostOf({ store: unreadable(store, error) }).run(requestIn(record(0)));
      expect(refused).toMatchObject({ status: 'error', error: { code: error.code } });
    }
    expect((await store.load('r'))?.attempts).toBe(2);
    expect(await hostOf({ store }).run(requestIn(record(0)))).toMatchObject({
      status: 'ok',
      output: 'done',
    });
  });
});

describe('what a person does with a record that cannot be read', () => {
  test.each(['park', 'unpark', 'cancel'] as const)('counts no attempt when it is refused: %s', async (action) => {
    const store = memoryStore();
    await store.save(record(1));
    const { executor } = hostOf({ store: unreadable(store, new KeyMismatchError('no such key')) });
    const asked = {
      park: () => executor.park('r', 'for now'),
      unpark: () => executor.unpark('r'),
      cancel: () => executor.control('r').cancel(),
    };
    await expect(asked[action]()).rejects.toMatchObject({ code: 'KEY_MISMATCH' });
    expect((await store.load('r'))?.attempts).toBe(1);
    expect((await store.claim('r', 'next', 1_000))?.attempts).toBe(2);
  });
});

test('a start that has no model counts no attempt of a run that has no record yet (recovery 2)', async () => {
  const store = memoryStore();
  for (let start = 1; start <= 3; start++) {
    const refused = await hostOf({ store, agent: { model: 'none' } }).run({ runId: 'r' });
    expect(refused).toMatchObject({ status: 'error', error: { code: 'UNKNOWN_TIER' } });
  }
  expect((await store.claim('r', 'next', 1_000))?.attempts).toBe(1);
});

test('a run that was started with the wrong key again and again continues with the right one (recovery 2)', async () => {
  const path = `${freshDir()}.db`;
  const withKey = (letter: string) =>
    sqliteStore({ path, codec: encrypt({ keys: { [letter]: keyOf(letter) }, current: letter }) });
  const right = withKey('a');
  await right.save(record(0));
  const wrong = withKey('b');
  for (let start = 1; start <= 4; start++) {
    const refused = await hostOf({ store: wrong }).run(requestIn(record(0)));
    expect(refused).toMatchObject({ status: 'error', error: { code: 'KEY_MISMATCH' } });
  }
  expect(await hostOf({ store: right }).run(requestIn(record(0)))).toMatchObject({ status: 'ok' });
  await Promise.all([right.close(), wrong.close()]);
});
