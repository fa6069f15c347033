import { readFileSync } from 'node:fs';
import type { RunCheckpoint } from 'pawl';
import { expect, test, vi } from 'vitest';
import { RECORD_VERSION } from '../../src/record/checkpoint.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { freshFolder } from '../fixtures/pinned-stores.ts';
import { requestIn } from '../fixtures/records.ts';

const text = readFileSync(new URL('../fixtures/records/v2/hosted.json', import.meta.url), 'utf8');
const record: RunCheckpoint = { ...JSON.parse(text), version: RECORD_VERSION };

/** The modules of a Pawl that reads records of the version before. */
async function olderPawl() {
  vi.resetModules();
  vi.doMock('../../src/record/checkpoint.ts', async (original) => ({
    ...(await original<object>()),
    RECORD_VERSION: RECORD_VERSION - 1,
  }));
  const { sqliteStore: open } = await import('../../src/store/sqlite/index.ts');
  return { open, ...(await import('../fixtures/host.ts')) };
}

test('a reader of the version before says CHECKPOINT_TOO_NEW of a record, in a list too, and leaves it as it is (checkpoint 6)', async () => {
  const path = `${freshFolder()}/runs.db`;
  const today = sqliteStore({ path });
  await today.save(record);

  const older = await olderPawl();
  const store = older.open({ path });
  await expect(store.load('run-1')).rejects.toMatchObject({ code: 'CHECKPOINT_TOO_NEW' });
  expect(await store.listInterrupted()).toMatchObject([
    { runId: 'run-1', status: 'quarantined', reason: expect.stringContaining('CHECKPOINT_TOO_NEW') },
  ]);
  const host = older.hostOf({ store });
  expect(await host.run(requestIn(record))).toMatchObject({ error: { code: 'CHECKPOINT_TOO_NEW' } });
  expect(host.model.calls).toEqual([]);
  await store.close();

  expect(await today.load('run-1')).toEqual(record);
  await today.close();
});
