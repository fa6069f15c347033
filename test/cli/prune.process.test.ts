import { join } from 'node:path';
import { type InterruptedRun, memoryStore, type RunCheckpoint } from 'pawl';
import { beforeEach, describe, expect, test } from 'vitest';
import { chosenOf } from '../../src/cli/commands/store/prune-choice.ts';
import { removeUnchanged } from '../../src/cli/commands/store/prune-command.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import {
  CheckpointCorruptError,
  CheckpointTooNewError,
  KeyMismatchError,
  StoreUnavailableError,
} from '../../src/values/errors.ts';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { emptyFolder, pawl, type Settings } from './pawl.ts';
import { damageMessages, interruptedRun, storeRuns } from './stored-runs.ts';

const parked = { code: 'PARKED', reason: 'a person looks' };
let store: ReturnType<typeof memoryStore>;
let entry: InterruptedRun;

describe('a record that `pawl prune` has chosen', () => {
  beforeEach(async () => {
    store = memoryStore();
    await store.save(interruptedRun({ parked }));
    [entry] = (await store.listInterrupted()) as [InterruptedRun];
  });

  test('goes', async () => {
    expect(await removeUnchanged(store, entry)).toBeUndefined();
    expect(await store.load('r1')).toBeNull();
  });

  test('stays when a process has taken it up meanwhile', async () => {
    await store.claim('r1', 'somebody', 60_000);
    expect(await removeUnchanged(store, entry)).toBe('a process works on it now');
    expect(await store.load('r1')).not.toBeNull();
  });

  test('stays, and is free for others with all its attempts, when it was unparked meanwhile', async () => {
    await store.save({ ...interruptedRun(), revision: 2, attempts: 0 });
    expect(await removeUnchanged(store, entry)).toBe('it has changed meanwhile');
    expect(await store.claim('r1', 'somebody', 60_000)).toMatchObject({ attempts: 1 });
  });

  test('stays when it was unreadable for a moment only', async () => {
    const wasTorn: InterruptedRun = { runId: 'r1', status: 'quarantined', reason: 'CHECKPOINT_CORRUPT: torn' };
    await store.save({ ...interruptedRun(), revision: 2 });
    expect(await removeUnchanged(store, wasTorn)).toBe('it has changed meanwhile');
    expect(await store.load('r1')).not.toBeNull();
  });

  test('stays when it was unreadable for a moment only, and is parked', async () => {
    const { updatedAt } = entry as { updatedAt: number };
    const wasTorn: InterruptedRun = {
      runId: 'r1',
      status: 'quarantined',
      reason: 'CHECKPOINT_CORRUPT: torn',
      updatedAt,
    };
    expect(await removeUnchanged(store, wasTorn)).toBe('it has changed meanwhile');
    expect(await store.load('r1')).not.toBeNull();
  });

  test('stays when it was chosen as a parked one and cannot be read: the reason says so', async () => {
    store.load = () => Promise.reject(new CheckpointCorruptError('its messages are damaged'));
    expect(await removeUnchanged(store, entry)).toContain('its messages are damaged');
    expect(await store.listInterrupted()).toHaveLength(1);
  });
});

async function all(entries: AsyncIterable<InterruptedRun>): Promise<InterruptedRun[]> {
  const list: InterruptedRun[] = [];
  for await (const entry of entries) list.push(entry);
  return list;
}

describe('`pawl prune --quarantined`', () => {
  const damaged = { quarantined: true, parked: false, before: undefined };

  /** A store in which reading the record of a run fails as its id says. */
  function storeWith(...runIds: readonly (keyof typeof errors | 'whole')[]) {
    const inner = memoryStore();
    const reads: string[] = [];
    let atOnce = 0;
    const load = async (runId: string) => {
      reads.push(runId);
      atOnce += 1;
      expect(atOnce, 'records are read one at a time').toBe(1);
      await new Promise(setImmediate);
      atOnce -= 1;
      const error = errors[runId as keyof typeof errors];
      if (error) throw error;
      return inner.load(runId);
    };
    const ready = Promise.all(runIds.map((runId) => inner.save(interruptedRun({ runId }))));
    return { store: { ...inner, load }, reads, ready };
  }

  const errors = {
    torn: new CheckpointCorruptError('its messages are damaged'),
    newer: new CheckpointTooNewError('version 99'),
    sealed: new KeyMismatchError('no key'),
    away: new StoreUnavailableError('the database is gone'),
  };

  test('reads each record whole, one at a time, and takes the damaged ones: none that a key or a newer version reads', async () => {
    const { store, reads, ready } = storeWith('whole', 'torn', 'newer', 'sealed');
    await ready;
    const told: unknown[] = [];
    const chosen = await all(chosenOf(store, damaged, (...so) => told.push(so)));
    expect(chosen).toEqual([
      {
        runId: 'torn',
        status: 'quarantined',
        reason: 'CHECKPOINT_CORRUPT: its messages are damaged',
        updatedAt: expect.any(Number),
      },
    ]);
    expect(reads.toSorted()).toEqual(['newer', 'sealed', 'torn', 'whole']);
    expect(told).toEqual([1, 2, 3, 4].map((n) => [n, 4]));
  });

  test('reads no record that a process works on, or that is not old enough', async () => {
    const { store, reads, ready } = storeWith('torn');
    await ready;
    const young = { ...damaged, before: Date.now() - 60_000 };
    expect(await all(chosenOf(store, young))).toEqual([]);
    await store.claim('torn', 'somebody', 60_000);
    expect(await all(chosenOf(store, damaged))).toEqual([]);
    expect(reads).toEqual([]);
  });

  test('gives up when the store fails: that says nothing about a record', async () => {
    const { store, ready } = storeWith('away');
    await ready;
    await expect(all(chosenOf(store, damaged))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });

  test('removes what the doctor sends there, damage in the middle of a SQLite record', async () => {
    const cwd = emptyFolder();
    await storeRuns(join(cwd, 'runs.db'), ...records);
    damageMessages(join(cwd, 'runs.db'), 'torn');
    await isMended({ cwd, env: { PAWL_STORE: 'runs.db' } });
  });

  describe.skipIf(whyNoPostgres)('in PostgreSQL', () => {
    const server = postgresServer();

    test('removes what the doctor sends there, damage in the messages of a record', async () => {
      const schema = server.freshSchema();
      const pool = server.pool({ max: 2 });
      await using store = postgresStore({ pool, schema });
      for (const record of records) await store.save(record);
      const body = `SELECT body FROM ${schema}.runs WHERE run_id = 'torn'`;
      const { rowCount } = await pool.query(
        `UPDATE ${schema}.messages SET messages = replace(messages, 'number', 'numbed') WHERE body = (${body})`,
      );
      expect(rowCount).toBe(1);
      const url = new URL(server.url);
      url.searchParams.set('schema', schema);
      await isMended({ cwd: emptyFolder(), env: { PAWL_STORE: url.href } });
    });
  });

  const records: RunCheckpoint[] = [interruptedRun({ runId: 'fine' }), interruptedRun({ runId: 'torn' })];

  /** The doctor finds the damaged run `torn`, `pawl prune` removes it and no other, and the doctor is content. */
  async function isMended(settings: Settings) {
    const found = await pawl(['doctor'], settings);
    expect(found).toMatchObject({ code: 1, stdout: expect.stringMatching(/^! unreadable torn: .*--quarantined/m) });
    const dry = await pawl(['prune', '--quarantined', '--dry-run'], settings);
    expect(dry).toMatchObject({ code: 0, stderr: expect.stringMatching(/^would delete torn .*: CHECKPOINT_CORRUPT/) });
    const sure = await pawl(['prune', '--quarantined', '--yes', '--json'], settings);
    expect(JSON.parse(sure.stdout)).toMatchObject({ deleted: ['torn'], kept: [] });
    const now = await pawl(['doctor'], settings);
    expect(now).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^ {2}resumes {4}fine: it continues after 1 step[^\n]*\n$/),
    });
  }
});
