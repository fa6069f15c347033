import { memoryStore } from 'pawl';
import type { Claim, OwningStore, StoreGroups } from 'pawl/stores/kit';
import { describe, expect, test } from 'vitest';
import { isDue } from '../../src/store/capabilities.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import type { PinnedVersion } from '../fixtures/fixed-writes.ts';
import { expectAllEnds, expectAllRecords, expectSameRecords, withTodaysId } from '../fixtures/pinned-ends.ts';
import { KEPT_UNTIL, leaveRuns, steered } from '../fixtures/pinned-runs.ts';
import {
  copyOfPinned,
  freshFolder,
  hashOfPinned,
  pinnedRecords,
  pinnedVersions,
  writtenRecords,
} from '../fixtures/pinned-stores.ts';
import { sql } from '../store/sqlite/files.ts';

type Store = OwningStore & Pick<StoreGroups, 'outcomes'> & AsyncDisposable;

interface PinnedStore {
  readonly name: string;
  /** The version of the records. */
  readonly version: PinnedVersion;
  readonly pin: string;
  /** What a released version wrote is never edited: the hash of the file as it was. */
  readonly hash: string;
  open(path: string): Store;
  /** What is stored today for something that was written then, and what was stored then. */
  bytes(): Promise<readonly [today: unknown, then: unknown]>;
}

const sqlite = (version: PinnedVersion, hash: string): PinnedStore => ({
  name: 'SQLite',
  version,
  pin: 'runs.db',
  hash,
  open: (path) => sqliteStore({ path }),
  bytes: async () => [
    sqliteTexts(await refilled(version)),
    sqliteTexts(await upgraded(copyOfPinned('runs.db', version))),
  ],
});

const stores: readonly PinnedStore[] = [
  sqlite(1, '71e375f1ab228b90deb0fa24781a108e14c72156b9cd99dc50348ca841fea43b'),
  sqlite(2, '47ed3f2fb77411b09530816d6f7d70cd0dd487391b29affa1d9ee83f6ce9837c'),
];

/** A new SQLite file with the records of the pinned one. Its pages differ, its texts must not. */
async function refilled(version: PinnedVersion): Promise<string> {
  const path = `${freshFolder()}/fresh`;
  await using store = sqliteStore({ path });
  const { records, kept } = writtenRecords(version);
  for (const record of records) await store.save(record);
  if (kept) await store.outcomes.keep('kept', kept, KEPT_UNTIL);
  await store.commands.send('single', steered);
  return path;
}

/** A pinned file in today's layout: its first use brings it there. */
async function upgraded(path: string): Promise<string> {
  await using store = sqliteStore({ path });
  await store.listInterrupted();
  return path;
}

function sqliteTexts(path: string): unknown {
  const rows = sql(
    path,
    `SELECT r.run_id, r.meta_checksum, r.meta, r.extras_checksum, r.extras, h.version, h.revision, h.updated_at, h.message_count,
       h.head, (SELECT group_concat(substr(messages, 2, length(messages) - 2), ',') FROM
         (SELECT messages FROM messages m WHERE m.id / 16777216 = r.no ORDER BY m.id)) AS messages
     FROM runs r JOIN heads h ON h.no = r.no ORDER BY r.run_id`,
  );
  return {
    layout: sql(path, 'SELECT sql FROM sqlite_schema ORDER BY sql'),
    rows,
    outcomes: sql(path, 'SELECT run_id, until, checksum, outcome FROM outcomes'),
    due: sql(path, 'SELECT run_id, due_at FROM due ORDER BY run_id'),
    commands: sql(path, 'SELECT run_id, command_id, checksum, command FROM commands'),
  };
}

describe.for(stores)('a $name store as version $version left it', ({ version, pin, hash, open, bytes }) => {
  test('is what it was, byte for byte (checkpoint 6)', () => {
    expect(hashOfPinned(pin, version)).toBe(hash);
  });

  test('gives every record as it was: loop, open step, pipeline, parent and child, outcome, command (checkpoint 2, 3)', async () => {
    await using store = open(copyOfPinned(pin, version));
    await expectAllRecords(store, version);
  });

  test('has all of its runs for processes that take them (engine 16)', async () => {
    await using store = open(copyOfPinned(pin, version));
    if (!isDue(store)) return;
    const wish = { owner: 'me', ttlMs: 60_000, limit: 100, version: 1 };
    const { records } = pinnedRecords(version);
    const agentIds = records.map(({ meta }) => meta.agentId);
    expect((await store.due.take({ ...wish, agentIds: ['none of them'] })).claims).toEqual([]);
    const { claims } = await store.due.take({ ...wish, agentIds });
    expect(claims.map(({ runId }) => runId).sort()).toEqual(records.map(({ meta }) => meta.runId).sort());
  });

  test('has all of its runs due, its command too, and they can rest (waiting 18)', async () => {
    await using store = open(copyOfPinned(pin, version));
    if (!isDue(store)) return;
    const { runs } = await store.due.list({ limit: 100 });
    expect(runs.map(({ runId }) => runId).sort()).toEqual(
      pinnedRecords(version)
        .records.map(({ meta }) => meta.runId)
        .sort(),
    );
    for (const { runId } of runs) {
      const claim = (await store.claim(runId, 'me', 60_000)) as Claim;
      const leave = { dueAt: Number.POSITIVE_INFINITY, readUpTo: 0 };
      expect(await store.due.leave(claim, leave)).toBe(runId !== 'single');
      await store.release(claim);
    }
    expect((await store.due.list({ limit: 100 })).runs.map(({ runId }) => runId)).toEqual(['single']);
    expect(await store.listInterrupted({ status: 'waiting' })).toHaveLength(runs.length - 1);
  });

  test('lets all of its runs continue to their ends, with no call made twice (recovery 8, executor 12)', async () => {
    await using store = open(copyOfPinned(pin, version));
    await expectAllEnds(store, version);
  });

  test('gets the same bytes today for what is written: others need a new version and a step to it (checkpoint 6)', async () => {
    const [today, then] = await bytes();
    expect(today).toEqual(then);
  });
});

test.for(pinnedVersions)(
  'runs leave the records today that they left with version %i: fields may come, none may change or go',
  async (version) => {
    const store = memoryStore();
    await leaveRuns(store);
    await expectSameRecords(store, version);
    const { kept } = pinnedRecords(version);
    expect(await store.outcomes.find('kept')).toMatchObject(kept ? withTodaysId(kept) : {});
  },
);
