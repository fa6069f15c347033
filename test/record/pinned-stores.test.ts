import { memoryStore, type OutcomeStore, type OwningStore } from 'pawl';
import { describe, expect, test } from 'vitest';
import { isControlling } from '../../src/store/port.ts';
import { sqliteStore } from '../../src/store/sqlite.ts';
import { until } from '../fixtures/host.ts';
import { KEPT_UNTIL, leaveRuns, pinnedHost, recordsIn, steered } from '../fixtures/pinned-runs.ts';
import { copyOfPinned, freshFolder, hashOfPinned, pinnedRecords } from '../fixtures/pinned-stores.ts';
import { sql } from '../store/sqlite-files.ts';

type Store = OwningStore & OutcomeStore & { close(): Promise<void> };

interface PinnedStore {
  readonly name: string;
  readonly pin: string;
  /** What a released version wrote is never edited. */
  readonly hash: string;
  open(path: string): Store;
  /** Everything that is stored of the records, as text, but for what is another one each time. */
  texts(path: string): unknown;
}

const stores: readonly PinnedStore[] = [
  {
    name: 'SQLite',
    pin: 'runs.db',
    hash: '71e375f1ab228b90deb0fa24781a108e14c72156b9cd99dc50348ca841fea43b',
    open: (path) => sqliteStore({ path }),
    texts: sqliteTexts,
  },
];

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
    commands: sql(path, 'SELECT run_id, command_id, checksum, command FROM commands'),
  };
}

describe.for(stores)('a $name store as version 1 left it', ({ pin, hash, open, texts }) => {
  test('is what it was, byte for byte (checkpoint 6)', () => expect(hashOfPinned(pin)).toBe(hash));

  test('gives every record as it was: loop, open step, pipeline, parent and child, outcome (checkpoint 2, 3)', async () => {
    const store = open(copyOfPinned(pin));
    expect(await recordsIn(store)).toEqual(pinnedRecords());
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    await store.close();
  });

  test('hands on the command that waits for a run', async () => {
    const store = open(copyOfPinned(pin));
    if (isControlling(store)) {
      expect(await store.inbox({ runId: 'single' })).toEqual([{ runId: 'single', command: steered }]);
    }
    await store.close();
  });

  test('lets all of its runs go on to their ends, with no call made twice (recovery 8, executor 12)', async () => {
    const store = open(copyOfPinned(pin));
    const { executor, called, delivered } = pinnedHost(store, 'next');
    const { resumed } = await executor.recover();
    await until(async () => (await store.listInterrupted()).length === 0, 'the end of the runs', 1_000_000);
    expect(resumed.map(({ runId }) => runId).sort()).toEqual(['effects', 'parent', 'pipeline', 'single', 'told']);
    expect(called.sort()).toEqual(['n1 attempt 2', 'n2 attempt 1']);
    expect(delivered.map(({ runId, output, outcomeId }) => [runId, output, outcomeId]).sort()).toEqual(ends);
    expect(await store.outcome('kept')).toEqual(pinnedRecords().kept);
    await executor.shutdown();
    await store.close();
  });

  test('gets the same bytes of the same records today: others need a new version and a step to it (checkpoint 6)', async () => {
    const path = `${freshFolder()}/fresh`;
    const store = open(path);
    const { records, kept } = pinnedRecords();
    for (const record of records) await store.save(record);
    if (kept) await store.keepOutcome('kept', kept, KEPT_UNTIL);
    if (isControlling(store)) await store.send('single', steered);
    await store.close();
    expect(texts(path)).toEqual(texts(copyOfPinned(pin)));
  });
});

/** The outcome that was told before the crash is told again, with the id it had. */
const ends = [
  ['effects', 'Do all. done', 'effects:2'],
  ['parent', 'Ask it. done', 'parent:2'],
  ['parent~c1', 'helped', 'parent~c1:2'],
  ['pipeline', 'all seen', 'pipeline:2'],
  ['single', 'Find it. done', 'single:2'],
  ['told', 'Say it. done', 'told:1'],
];

test('runs leave the records today that they left with version 1: fields may come, none may change or go', async () => {
  const store = memoryStore();
  await leaveRuns(store);
  const { records, kept } = pinnedRecords();
  expect((await recordsIn(store)).records).toMatchObject(records);
  expect(await store.outcome('kept')).toMatchObject(kept ?? {});
});
