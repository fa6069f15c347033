import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { splitLines } from '../../../src/files/lines.ts';
import { fileStoreOn } from '../../../src/store/file/file-store.ts';
import { type FileStore, fileStore } from '../../../src/store/file/index.ts';
import { nextStep, sampleRecord, userMessage } from '../../../src/testing/store-contract/records.ts';
import { testClock } from '../../../src/testing/test-clock.ts';
import { faultyFiles } from '../../files/faulty.ts';
import { freshDir, journalOf } from './folder.ts';
import { storeWith } from './journals.ts';

const first = sampleRecord('run');
/** A step whose head has parts that are stored beside it, which the step after it makes messages of. */
const open = nextStep(first, [], { undelivered: [userMessage('x'.repeat(500)), userMessage('y'.repeat(500))] });
const closed = nextStep(open.record, open.record.undelivered, { undelivered: [] });

/** What a commit adds to the journal of a run, and the journal before. */
async function commitOf(work: (store: FileStore) => Promise<unknown>, before: (store: FileStore) => Promise<unknown>) {
  const dir = freshDir();
  await using store = fileStore({ dir, durability: 'process' });
  await before(store);
  const journal = readFileSync(journalOf(dir, 'run'));
  await work(store);
  const grown = readFileSync(journalOf(dir, 'run'));
  expect(grown.subarray(0, journal.length).equals(journal)).toBe(true);
  return { journal, lines: splitLines(grown.subarray(journal.length)).map(({ bytes }) => bytes) };
}

const commits = {
  claim: commitOf(
    (store) => store.claim('run', 'somebody', 600_000),
    (store) => store.save(first),
  ),
  'step with a large head': commitOf(
    (store) => store.append(open.delta),
    (store) => store.save(first),
  ),
};

describe.for(Object.entries(commits))('a %s that was torn (recovery 5, 6)', ([, committing]) => {
  test('between any two of its lines leaves a run that others can write to, and read', async () => {
    const { journal, lines } = await committing;
    expect(lines.length).toBeGreaterThan(1);
    for (let whole = 1; whole < lines.length; whole++) {
      const torn = [journal, ...lines.slice(0, whole), Buffer.from('0123abc')];
      const { store } = storeWith(Buffer.concat(torn));
      expect(await store.load('run')).toEqual(first);
      await store.append(open.delta);
      expect(await store.load('run')).toEqual(open.record);
      await store.append(closed.delta);
      expect(await store.load('run')).toEqual(closed.record);
      expect(await store.claim('run', 'heir', 60_000)).toMatchObject({ attempts: 2 });
      await store.close();
    }
  });
});

test.for([true, false])(
  'a run that is damaged in its first commit is not deleted by somebody else while its owner holds it (claimed before its first save: %s) (recovery 3, 6)',
  async (isBefore) => {
    const dir = freshDir();
    await using store = fileStore({ dir });
    const claim = isBefore ? await store.claim('run', 'me', 600_000) : undefined;
    await store.save(first, claim ? { claim } : {});
    if (!claim) await store.claim('run', 'me', 600_000);
    const bytes = readFileSync(journalOf(dir, 'run'));
    bytes[bytes.lastIndexOf('write a line')] = 0;
    const { store: found } = storeWith(Buffer.concat([bytes, Buffer.from('0123abc')]));
    await expect(found.load('run')).rejects.toMatchObject({ code: 'CHECKPOINT_CORRUPT' });
    await expect(found.delete('run')).rejects.toMatchObject({ code: 'RUN_OWNED_ELSEWHERE' });
  },
);

test('what is damaged still says whose it is: its owner may save the whole record (recovery 6)', async () => {
  const dir = freshDir();
  await using store = fileStore({ dir, durability: 'process' });
  await store.save(first);
  await store.append(nextStep(first).delta);
  const claim = (await store.claim('run', 'me', 600_000)) ?? undefined;
  const bytes = readFileSync(journalOf(dir, 'run'));
  bytes[bytes.indexOf('message 1')] = 0;
  // A torn end, so that the whole journal is looked at.
  const { store: found } = storeWith(Buffer.concat([bytes, Buffer.from('0123abc')]));
  await expect(found.load('run')).rejects.toMatchObject({ code: 'CHECKPOINT_CORRUPT' });
  await expect(found.save(first)).rejects.toMatchObject({ code: 'RUN_OWNED_ELSEWHERE' });
  await found.save(nextStep(first).record, { claim });
  expect(await found.load('run')).toEqual(nextStep(first).record);
});

describe('what is left of a run whose removal was cut short (recovery 3)', () => {
  test.for([
    ['shorter', 1_000, 600_000, null],
    ['longer', 600_000, 1_000, { epoch: 2 }],
  ] as const)('makes the lease of the next run of that id no %s', async ([, ttlBefore, ttlMs, expected]) => {
    const options = { dir: freshDir(), durability: 'process', clock: testClock() } as const;
    await using store = fileStore(options);
    const before = await store.claim('run', 'before', ttlBefore);
    if (!before) throw new Error('nobody else has the run');
    await store.save(first, { claim: before });
    await store.renew(before, ttlBefore);
    // A removal takes two steps, and this is the first.
    rmSync(journalOf(options.dir, 'run'));
    await using next = fileStore(options);
    expect(await next.claim('run', 'next', ttlMs)).toMatchObject({ epoch: 1 });
    await options.clock.advance(1_000);
    await using other = fileStore(options);
    const claim = await other.claim('run', 'other', 1_000);
    if (expected) expect(claim).toMatchObject(expected);
    else expect(claim).toBe(null);
  });
});

describe('the names of folders, before anybody is told that something is stored (recovery 4)', () => {
  const storeBelow = (base: string) => join(base, 'x', 'y', 'store');

  /** The folders that were synced since, by their paths from `from`. */
  const synced = (faults: ReturnType<typeof faultyFiles>, from: string, since = 0) =>
    faults.calls
      .slice(since)
      .filter(({ method }) => method === 'syncFolder')
      .map(({ path }) => relative(from, path));

  test('are on the disk, up to the first folder that was there', async () => {
    const base = dirname(freshDir());
    const faults = faultyFiles();
    await using store = fileStoreOn(faults.files, { dir: storeBelow(base) });
    await store.save(first);
    expect(new Set(synced(faults, base))).toEqual(
      new Set([
        '',
        'x',
        'x/y',
        'x/y/store',
        'x/y/store/runs',
        relative(base, dirname(journalOf(storeBelow(base), 'run'))),
      ]),
    );
  });

  test('are synced by whoever comes next, when the process that made them was killed before', async () => {
    const dir = freshDir();
    mkdirSync(join(dir, 'runs'), { recursive: true });
    const faults = faultyFiles();
    await using store = fileStoreOn(faults.files, { dir });
    await store.save(first);
    expect(synced(faults, dir)).toEqual(expect.arrayContaining(['', '..', 'runs']));
    expect(readFileSync(join(dir, 'layout'), 'utf8')).toBe('1\n');
  });

  test.for(['', 'x', 'x/y', 'x/y/store'])('are synced again when that failed (%s)', async (path) => {
    const base = dirname(freshDir());
    const faults = faultyFiles();
    await using store = fileStoreOn(faults.files, { dir: storeBelow(base) });
    faults.plan((call) => (call.method === 'syncFolder' && call.path === join(base, path) ? 'EIO' : undefined));
    await expect(store.save(first)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    faults.plan(() => undefined);
    const since = faults.calls.length;
    await store.save(first);
    expect(synced(faults, base, since)).toContain(path);
  });

  test('are synced again when a save failed at that, and is asked for once more', async () => {
    const dir = freshDir();
    const faults = faultyFiles();
    await using store = fileStoreOn(faults.files, { dir });
    const claim = (await store.claim('run', 'me', 60_000)) ?? undefined;
    const runs = join(dir, 'runs');
    faults.plan((call) => (call.method === 'syncFolder' && call.path === runs ? 'EIO' : undefined));
    await expect(store.save(first, { claim })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    faults.plan(() => undefined);
    const since = faults.calls.length;
    await store.save(first, { claim });
    expect(synced(faults, dir, since)).toContain('runs');
  });
});
