import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import type { JournalEntry, RunCheckpoint } from 'pawl';
import { describe, expect, test } from 'vitest';
import { fileStoreOn } from '../../../src/store/file/file-store.ts';
import { type FileStore, fileStore } from '../../../src/store/file/index.ts';
import { nextStep, sampleRecord, userMessage } from '../../../src/testing/store-contract/records.ts';
import { faultyFiles } from '../../files/faulty.ts';
import { freshDir, journalOf, replaceFile } from './folder.ts';

const entry = (place: number, keep: 'kept' | 'passing' = 'kept', text = 'x'): JournalEntry => ({
  ...{ place, keep },
  event: { type: 'model.delta', step: 1, kind: 'text', block: 0, offset: 0, text, runId: 'run', seq: place, at: 1 },
});

async function begun(store: FileStore) {
  const claim = await store.claim('run', 'me', 600_000);
  if (!claim) throw new Error('no claim');
  await store.save(sampleRecord('run'), { claim });
  return claim;
}

const placesOf = async (store: FileStore, after = 0) =>
  (await store.readEvents('run', { after, limit: 1_000 }))?.entries.map(({ place }) => place);
const publishedOf = (dir: string) => journalOf(dir, 'run').replace(/journal$/, 'published');

describe('the journal of events in files', () => {
  test('takes no sync of its own: publishing takes none, and a save with events as many as one without (web 1, 2, 38)', async () => {
    const { files, calls } = faultyFiles();
    const syncs = () => calls.filter(({ method }) => method === 'sync' || method === 'syncFolder').length;
    await using store = fileStoreOn(files, { dir: freshDir() });
    const claim = await begun(store);
    const plain = nextStep(sampleRecord('run'));
    const before = syncs();
    await store.append(plain.delta, { claim });
    const ofAppend = syncs() - before;
    await store.publish('run', [entry(1, 'passing'), entry(2)], { claim });
    await store.publish('run', [entry(3, 'passing')], { claim });
    expect(syncs() - before).toBe(ofAppend);
    const events = { entries: [entry(4)], dropTo: 3 };
    await store.append(nextStep(plain.record).delta, { claim, events });
    expect(syncs() - before).toBe(2 * ofAppend);
    expect(await placesOf(store)).toEqual([2, 4]);
  });

  test('is not opened by a reader for whom it has nothing new, and only its end is read by one for whom it has (web 7)', async () => {
    const { files, calls } = faultyFiles();
    const dir = freshDir();
    await using writer = fileStore({ dir });
    await using store = fileStoreOn(files, { dir });
    const claim = await begun(writer);
    await writer.publish('run', [entry(1), entry(2, 'passing')], { claim });
    expect(await placesOf(store)).toEqual([1, 2]);
    const opened = () => calls.filter(({ method }) => method === 'open').length;
    const before = opened();
    for (let i = 0; i < 10; i++) expect(await placesOf(store, 2)).toEqual([]);
    expect(opened()).toBe(before);
    await writer.publish('run', [entry(3, 'passing')], { claim });
    expect(await placesOf(store, 2)).toEqual([3]);
    expect(opened()).toBe(before + 1);
  });

  test('outlives each rewrite of the file of its run, also by a whole record (web 1)', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir, durability: 'process' });
    const claim = await begun(store);
    let record: RunCheckpoint = sampleRecord('run');
    const size = () => statSync(journalOf(dir, 'run')).size;
    let [rewrites, before] = [0, size()];
    const kept: number[] = [];
    for (let place = 1; place <= 60; place++) {
      // Heads that differ: what they replace is superseded.
      const undelivered = [userMessage(`${place} ${'x'.repeat(5_000)}`)];
      const next = nextStep(record, [], { undelivered });
      await store.append(next.delta, { claim, events: { entries: [entry(place)] } });
      record = next.record;
      kept.push(place);
      if (size() < before) rewrites += 1;
      before = size();
      if (place % 20 === 0) expect(await placesOf(store)).toEqual(kept);
    }
    expect(rewrites).toBeGreaterThan(2);
    await store.save({ ...record, revision: (record.revision ?? 0) + 1 }, { claim, events: { entries: [entry(61)] } });
    expect(await placesOf(store)).toEqual([...kept, 61]);
    await using other = fileStore({ dir });
    expect(await placesOf(other)).toEqual([...kept, 61]);
    expect((await other.load('run'))?.revision).toBe((record.revision ?? 0) + 1);
  });

  test('a write of passing events that broke off is cut away by the next one, and no reader gets it (web 2, 35)', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir });
    const claim = await begun(store);
    await store.publish('run', [entry(1, 'passing')], { claim });
    const whole = readFileSync(publishedOf(dir));
    for (const torn of ['0123', whole.subarray(0, -1), whole.subarray(0, 20)]) {
      appendFileSync(publishedOf(dir), torn);
      await using reader = fileStore({ dir });
      expect(await placesOf(reader)).toEqual([1]);
      await using next = fileStore({ dir });
      await next.publish('run', [entry(2, 'passing')], { claim });
      expect(await placesOf(reader)).toEqual([1, 2]);
      replaceFile(publishedOf(dir), whole);
    }
  });

  test('of a commit that was never finished has none of its events (web 1, 35)', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir });
    const claim = await begun(store);
    const { delta } = nextStep(sampleRecord('run'));
    const before = readFileSync(journalOf(dir, 'run'));
    await store.append(delta, { claim, events: { entries: [entry(1)] } });
    const after = readFileSync(journalOf(dir, 'run'));
    await using reader = fileStore({ dir });
    expect(await placesOf(reader)).toEqual([1]);
    const lastLine = after.lastIndexOf('\n', after.length - 2) + 1;
    writeFileSync(journalOf(dir, 'run'), after.subarray(0, lastLine));
    expect(await placesOf(reader)).toEqual([]);
    writeFileSync(journalOf(dir, 'run'), before);
    await using next = fileStore({ dir });
    await next.append(delta, { claim, events: { entries: [entry(7)] } });
    expect(await placesOf(reader)).toEqual([7]);
  });

  test('a changed byte in kept events is found (web 6)', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir });
    const claim = await begun(store);
    const { delta } = nextStep(sampleRecord('run'));
    await store.append(delta, { claim, events: { entries: [entry(1, 'kept', 'hello')] } });
    const bytes = readFileSync(journalOf(dir, 'run'));
    const at = bytes.indexOf('hello');
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    replaceFile(journalOf(dir, 'run'), bytes);
    await using reader = fileStore({ dir });
    await expect(reader.readEvents('run', { limit: 9 })).rejects.toMatchObject({ code: 'CHECKPOINT_CORRUPT' });
  });

  test('passing events that the disk has no room for are refused alone: the save of their group is stored (web 36)', async () => {
    const { files, plan } = faultyFiles();
    const dir = freshDir();
    await using store = fileStoreOn(files, { dir });
    const claim = await begun(store);
    plan(({ method, path }) => (method === 'write' && path.endsWith('published') ? 'ENOSPC' : undefined));
    const { delta, record } = nextStep(sampleRecord('run'));
    const [published, saved] = await Promise.allSettled([
      store.publish('run', [entry(1, 'passing')], { claim }),
      store.append(delta, { claim, events: { entries: [entry(2)], dropTo: 1 } }),
    ]);
    expect(published).toMatchObject({ status: 'rejected', reason: { code: 'STORE_FULL' } });
    expect(saved).toMatchObject({ status: 'fulfilled' });
    plan(() => undefined);
    expect(await store.load('run')).toEqual(record);
    expect(await placesOf(store)).toEqual([2]);
    await store.publish('run', [entry(3, 'passing')], { claim });
    expect(await placesOf(store)).toEqual([2, 3]);
  });

  test('published events that are kept become part of the run at its next step, once (web 1, 4)', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir });
    const claim = await begun(store);
    await store.publish('run', [entry(1), entry(2, 'passing'), entry(3), entry(4, 'passing')], { claim });
    await using reader = fileStore({ dir });
    expect(await placesOf(reader)).toEqual([1, 2, 3, 4]);
    const left = readFileSync(publishedOf(dir));
    const { delta } = nextStep(sampleRecord('run'));
    await store.append(delta, { claim, events: { entries: [entry(5)], dropTo: 4 } });
    expect(existsSync(publishedOf(dir))).toBe(false);
    expect(await placesOf(reader)).toEqual([1, 3, 5]);
    // As a crash between the two writes leaves it.
    writeFileSync(publishedOf(dir), left);
    expect(await placesOf(reader, 4)).toEqual([5]);
    const found = await placesOf(reader);
    expect(found).toEqual([1, 2, 3, 4, 5]);
  });

  test('with many rows and pages gives each event once, in order, whichever of its files has it (web 6)', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir, durability: 'process' });
    const claim = await begun(store);
    const large = 'x'.repeat(200_000);
    for (let place = 1; place <= 24; place++) {
      await store.publish('run', [entry(place, place % 3 === 0 ? 'kept' : 'passing', large)], { claim });
    }
    for (const limit of [1, 4, 100]) {
      const read: number[] = [];
      for (let after = 0; ; ) {
        const page = await store.readEvents('run', { after, limit });
        if (!page || page.next === after) break;
        expect(page.entries.length).toBeLessThanOrEqual(limit);
        read.push(...page.entries.map(({ place }) => place));
        after = page.next;
      }
      expect(read).toEqual(Array.from({ length: 24 }, (_, i) => i + 1));
    }
  });
});
