import { mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { safeName } from '../../../src/files/safe-name.ts';
import type { InterruptedRun } from '../../../src/record/interrupted.ts';
import { fileStoreOn } from '../../../src/store/file/file-store.ts';
import { type FileStore, fileStore } from '../../../src/store/file/index.ts';
import type { Cursor } from '../../../src/store/port.ts';
import { nextStep, sampleOutcome, sampleRecord, userMessage } from '../../../src/testing/store-contract/records.ts';
import { testClock } from '../../../src/testing/test-clock.ts';
import { alteredFiles } from '../../files/altered.ts';
import { faultyFiles } from '../../files/faulty.ts';
import { filesBelow, freshDir, journalOf } from './folder.ts';

const open = (dir = freshDir()) => fileStore({ dir, durability: 'process' });
const idsOf = (page: readonly InterruptedRun[]) => page.map((run) => run.runId);

function cursorOf(page: readonly InterruptedRun[]): Cursor {
  const last = page.at(-1);
  return { runId: last?.runId ?? '', updatedAt: last?.updatedAt ?? 0 };
}

async function saveMany(store: FileStore, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, i) => `run-${String(i).padStart(4, '0')}`);
  await Promise.all(ids.map((runId, i) => store.save(sampleRecord(runId, { updatedAt: i }))));
  return ids;
}

describe('a list of runs, page by page (checkpoint 7, recovery 1)', () => {
  test('without a limit ends, and shows each of 2,001 runs once (checkpoint 7)', async () => {
    await using store = open();
    const ids = await saveMany(store, 2_001);
    expect(idsOf(await store.listInterrupted())).toEqual(ids);
  });

  test('reads the end of each journal once for the order, and once more what a page shows', async () => {
    const dir = freshDir();
    await using writer = open(dir);
    const ids = await saveMany(writer, 1_100);
    const faults = faultyFiles();
    await using store = fileStoreOn(faults.files, { dir });
    const seen: string[] = [];
    for (let page = await store.listInterrupted({ limit: 100 }); page.length > 0; ) {
      seen.push(...idsOf(page));
      page = await store.listInterrupted({ limit: 100, after: cursorOf(page) });
    }
    expect(seen).toEqual(ids);
    const opened = faults.calls.filter(({ method, path }) => method === 'open' && path.endsWith('journal'));
    expect(opened.length).toBeLessThanOrEqual(2 * ids.length);
  });

  test('reads no transcripts', async () => {
    const dir = freshDir();
    await using writer = open(dir);
    const messages = Array.from({ length: 20 }, (_, i) => userMessage(`${i}`.padEnd(50_000, 'x')));
    for (const runId of ['a', 'b']) {
      await writer.save(sampleRecord(runId, { messages, inputs: { large: 'y'.repeat(500_000) } }));
      await writer.claim(runId, 'one', 600_000);
    }
    let bytes = 0;
    const files = alteredFiles((file) => ({
      read: async (length, position) => {
        const found = await file.read(length, position);
        bytes += found.length;
        return found;
      },
    }));
    await using store = fileStoreOn(files, { dir });
    expect(await store.listInterrupted()).toMatchObject([{ owner: 'one' }, { owner: 'one' }]);
    expect(bytes).toBeLessThan(40_000);
  });

  test('runs of one time come in the order of their ids’ bytes, as in a database', async () => {
    await using store = open();
    const ids = ['b', 'a', 'ä', 'Z', '\uffff', '😀', '\ue000', 'aa', '~'];
    for (const runId of ids) await store.save(sampleRecord(runId));
    const sorted = [...ids].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    expect(idsOf(await store.listInterrupted())).toEqual(sorted);
  });

  test('what changes between two pages, here or in another process, is shown as it is, and hides nothing', async () => {
    const dir = freshDir();
    await using store = open(dir);
    await using other = open(dir);
    const ids = await saveMany(store, 12);
    const first = await store.listInterrupted({ limit: 4 });
    expect(idsOf(first)).toEqual(ids.slice(0, 4));
    await store.save(sampleRecord('run-0005', { updatedAt: 20 }));
    await other.save(sampleRecord('run-0006', { updatedAt: 21 }));
    await store.delete('run-0007');
    await other.delete('run-0008');
    await store.save(sampleRecord('run-0004b', { updatedAt: 4.5 }));
    const second = await store.listInterrupted({ limit: 4, after: cursorOf(first) });
    expect(idsOf(second)).toEqual(['run-0004', 'run-0004b', 'run-0009', 'run-0010']);
    const third = await store.listInterrupted({ limit: 4, after: cursorOf(second) });
    expect(idsOf(third)).toEqual(['run-0011', 'run-0005', 'run-0006']);
    // A list from the beginning looks at everything again.
    await other.save(sampleRecord('new', { updatedAt: 0.5 }));
    expect(idsOf(await store.listInterrupted({ limit: 3 }))).toEqual(['run-0000', 'new', 'run-0001']);
  });

  test('a list can be given up while it is read', async () => {
    await using store = open();
    await saveMany(store, 200);
    const controller = new AbortController();
    const listing = store.listInterrupted({ signal: controller.signal });
    setImmediate(() => controller.abort(new Error('enough')));
    await expect(listing).rejects.toThrow('enough');
    expect(await store.listInterrupted()).toHaveLength(200);
  });

  test('what somebody else has put there is not taken for a run', async () => {
    const dir = freshDir();
    await using store = open(dir);
    await store.save(sampleRecord('run'));
    mkdirSync(join(dir, 'runs', 'lost+found'));
    writeFileSync(join(dir, 'runs', safeName('a file')), 'not a folder');
    writeFileSync(join(dir, 'runs', '.DS_Store'), '');
    expect(idsOf(await store.listInterrupted())).toEqual(['run']);
  });

  test('says who has a run for as long as the claim is renewed', async () => {
    const clock = testClock(1_000_000);
    await using store = fileStore({ dir: freshDir(), clock });
    const claim = await store.claim('run', 'one', 1_000);
    if (!claim) throw new Error('nobody else has the run');
    await store.save(sampleRecord('run'), { claim });
    for (let i = 0; i < 5; i++) {
      await clock.advance(900);
      await store.renew(claim, 1_000);
      expect(await store.listInterrupted()).toMatchObject([{ owner: 'one' }]);
      expect(await store.claim('run', 'two', 1_000)).toBe(null);
    }
    await clock.advance(1_000);
    expect((await store.listInterrupted())[0]).not.toHaveProperty('owner');
    expect(await store.claim('run', 'two', 1_000)).toMatchObject({ epoch: 2 });
  });
});

describe('what nobody needs any more (checkpoint 8)', () => {
  const anHourAgo = () => new Date(Date.now() - 3_700_000);
  const gone = async (dir: string, names: readonly string[]) => {
    while (readdirSync(join(dir, 'runs')).some((name) => names.includes(name))) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };

  test('claims without a record go when nobody has them, and an hour is over', async () => {
    const dir = freshDir();
    await using store = open(dir);
    for (const runId of ['released', 'young', 'held', 'recorded']) {
      const claim = await store.claim(runId, 'one', 600_000);
      if (runId === 'recorded') await store.save(sampleRecord(runId), { claim: claim ?? undefined });
      if (claim && runId !== 'held') await store.release(claim);
      if (runId !== 'young') utimesSync(journalOf(dir, runId), anHourAgo(), anHourAgo());
    }
    // A process that was killed while it made its first save has left this.
    const unfinished = join(dir, 'runs', safeName('unfinished'));
    mkdirSync(unfinished);
    writeFileSync(join(unfinished, 'journal.new'), 'half of it');
    utimesSync(unfinished, anHourAgo(), anHourAgo());
    expect(idsOf(await store.listInterrupted())).toEqual(['recorded']);
    await gone(dir, [safeName('released'), safeName('unfinished')]);
    const left = ['held', 'recorded', 'young'].map(safeName).sort();
    expect(readdirSync(join(dir, 'runs')).sort()).toEqual(left);
    expect(await store.claim('held', 'two', 1_000)).toBe(null);
  });

  test('kept outcomes leave the disk when their time is over, and no other does', async () => {
    const dir = freshDir();
    const clock = testClock(1_000);
    await using store = fileStore({ dir, clock });
    const minute = 60_000;
    for (const runId of ['a', 'b', 'later']) await store.keepOutcome(runId, sampleOutcome(runId), 2_000);
    await store.keepOutcome('later', sampleOutcome('later'), 5 * minute);
    await clock.advance(minute);
    await store.keepOutcome('c', sampleOutcome('c'), 3 * minute);
    await store.keepOutcome('for ever', sampleOutcome('for ever'), Number.POSITIVE_INFINITY);
    await store.close();
    const names = ['c', 'for ever', 'later'].map(safeName).sort();
    expect(readdirSync(join(dir, 'outcomes')).sort()).toEqual(names);
    expect(readdirSync(join(dir, 'due')).sort()).toEqual([`${3 * minute}`, `${5 * minute}`]);
    await using reopened = fileStore({ dir, clock });
    expect(await reopened.outcome('a')).toBe(null);
    expect(await reopened.outcome('later')).toEqual(sampleOutcome('later'));
    expect(await reopened.outcome('for ever')).toEqual(sampleOutcome('for ever'));
  });

  test('an outcome that is read when its time is over goes with that', async () => {
    const dir = freshDir();
    const clock = testClock(1_000);
    await using store = fileStore({ dir, clock });
    await store.keepOutcome('run', sampleOutcome('run'), 2_000);
    await clock.advance(1_000);
    expect(await store.outcome('run')).toBe(null);
    expect(readdirSync(join(dir, 'outcomes'))).toEqual([]);
    await store.keepOutcome('run', sampleOutcome('run'), 1_500);
    expect(readdirSync(join(dir, 'outcomes'))).toEqual([]);
  });

  test('a run that has ended leaves its outcome, and nothing else', async () => {
    const dir = freshDir();
    const store = open(dir);
    const claim = (await store.claim('run', 'one', 600_000)) ?? undefined;
    await store.save(sampleRecord('run'), { claim });
    await store.append(nextStep(sampleRecord('run')).delta, { claim });
    if (claim) await store.renew(claim, 600_000);
    await store.keepOutcome('run', sampleOutcome('run'), 4e12, { claim });
    await store.delete('run', { claim });
    await store.close();
    expect(filesBelow(dir).filter((path) => dirname(dirname(path)) !== 'due')).toEqual([
      'layout',
      join('outcomes', safeName('run')),
    ]);
    expect(readdirSync(join(dir, 'runs'))).toEqual([]);
  });

  test('a claim of a run that has ended leaves nothing but its epoch', async () => {
    const dir = freshDir();
    const store = open(dir);
    await store.keepOutcome('run', sampleOutcome('run'), 4e12);
    const late = await store.claim('run', 'late', 600_000);
    if (late) await store.release(late);
    expect(readdirSync(join(dir, 'runs'))).toEqual([]);
    expect(await store.claim('run', 'later', 600_000)).toMatchObject({ epoch: 2, attempts: 1 });
    await store.close();
  });
});
