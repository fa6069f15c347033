import { copyFileSync, cpSync, readdirSync, readlinkSync, renameSync, rmSync, statSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { fileStoreOn } from '../../../src/store/file/file-store.ts';
import { type FileStore, fileStore } from '../../../src/store/file/index.ts';
import { nextStep, sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { alteredFiles } from '../../files/altered.ts';
import { faultyFiles } from '../../files/faulty.ts';
import { freshDir, journalOf } from './folder.ts';

const isLinux = process.platform === 'linux';

/** The journals below a folder that this process has open, those without a name among them. */
function openIn(dir: string): string[] {
  const open = readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)];
    } catch {
      return [];
    }
  });
  return open.filter((path) => path.startsWith(dir));
}

/** A run that is held and has taken a step: its journal is open. */
async function begun(store: FileStore) {
  const claim = await store.claim('run', 'one', 600_000);
  if (!claim) throw new Error('nobody else has the run');
  const { delta, record } = nextStep(sampleRecord('run'));
  await store.save(sampleRecord('run'), { claim });
  await store.append(delta, { claim });
  return { claim, record };
}

describe.skipIf(process.platform === 'win32')('a journal that stays open between two steps', () => {
  test('is opened once for many steps', async () => {
    const { files, calls } = faultyFiles();
    await using store = fileStoreOn(files, { dir: freshDir() });
    const { claim, record } = await begun(store);
    const from = calls.length;
    let last = record;
    for (let i = 0; i < 10; i++) {
      const { delta, record } = nextStep(last);
      await store.append(delta, { claim });
      last = record;
    }
    expect(calls.slice(from).map(({ method }) => method)).not.toContain('open');
    expect(await store.load('run')).toEqual(last);
  });

  test.skipIf(!isLinux)('is closed when its run is let go, deleted or saved anew, and with the store', async () => {
    const dir = freshDir();
    const store = fileStore({ dir });
    const { claim } = await begun(store);
    expect(openIn(dir)).toEqual([journalOf(dir, 'run')]);
    await store.release(claim);
    expect(openIn(dir)).toEqual([]);
    const again = (await store.claim('run', 'one', 600_000)) ?? claim;
    const { delta } = nextStep(nextStep(sampleRecord('run')).record);
    await store.append(delta, { claim: again });
    expect(openIn(dir)).toHaveLength(1);
    await store.delete('run', { claim: again });
    expect(openIn(dir)).toEqual([]);
    await begun(store);
    await store.save(sampleRecord('run'), { claim: (await store.claim('run', 'one', 600_000)) ?? claim });
    expect(openIn(dir)).toEqual([]);
    await store.delete('run', { claim: (await store.claim('run', 'one', 600_000)) ?? claim });
    await begun(store);
    expect(openIn(dir)).toHaveLength(1);
    await store.close();
    expect(openIn(dir)).toEqual([]);
  });

  test('is left for the one that another process has put in its place', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir });
    await using other = fileStore({ dir });
    const { claim } = await begun(store);
    await other.save({ ...sampleRecord('run'), revision: 7 }, { claim });
    const { delta, record } = nextStep({ ...sampleRecord('run'), revision: 7 });
    await store.append(delta, { claim });
    expect(await other.load('run')).toMatchObject({ revision: 8, messages: record.messages });
  });

  test('goes on with what another process has added to it', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir });
    await using other = fileStore({ dir });
    const { claim, record } = await begun(store);
    const second = nextStep(record);
    await other.append(second.delta, { claim });
    const third = nextStep(second.record);
    await store.append(third.delta, { claim });
    expect(await other.load('run')).toEqual(third.record);
  });

  test('is left for its copy, where the store was moved away and copied back with all its locks', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir });
    const { claim, record } = await begun(store);
    cpSync(dir, `${dir}.copy`, { recursive: true });
    renameSync(dir, `${dir}.aside`);
    renameSync(`${dir}.copy`, dir);
    const { size } = statSync(journalOf(`${dir}.aside`, 'run'));
    const next = nextStep(record);
    await store.append(next.delta, { claim });
    expect(statSync(journalOf(`${dir}.aside`, 'run')).size).toBe(size);
    expect(await store.load('run')).toEqual(next.record);
  });

  test('is not written to once the folder of the store is gone: a typed refusal, and the next write makes it anew', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir });
    const { claim, record } = await begun(store);
    rmSync(dir, { recursive: true });
    await expect(store.append(nextStep(record).delta, { claim })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await store.save(record);
    expect(await store.load('run')).toEqual(record);
  });

  test('is not written to once it alone was removed: the step is refused, and a whole record is stored', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir });
    const { claim, record } = await begun(store);
    copyFileSync(journalOf(dir, 'run'), `${dir}.copy`);
    rmSync(journalOf(dir, 'run'));
    await expect(store.append(nextStep(record).delta, { claim })).rejects.toMatchObject({ code: 'LEASE_LOST' });
    await store.save(record);
    expect(await store.load('run')).toEqual(record);
  });

  test.skipIf(!isLinux)('is closed after a step that could not be written', async () => {
    const dir = freshDir();
    const { files, plan } = faultyFiles();
    await using store = fileStoreOn(files, { dir });
    const { claim, record } = await begun(store);
    plan(({ method }) => (method === 'write' ? 'ENOSPC' : undefined));
    await expect(store.append(nextStep(record).delta, { claim })).rejects.toMatchObject({ code: 'STORE_FULL' });
    expect(openIn(dir)).toEqual([]);
    plan(() => undefined);
    await store.append(nextStep(record).delta, { claim });
    expect(await store.load('run')).toEqual(nextStep(record).record);
  });

  test.skipIf(!isLinux)('is one of 32 at most, of however many runs', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir, durability: 'process' });
    for (let i = 0; i < 40; i++) {
      const runId = `run ${i}`;
      const claim = (await store.claim(runId, 'one', 600_000)) ?? undefined;
      await store.save(sampleRecord(runId), { claim });
      await store.append(nextStep(sampleRecord(runId)).delta, { claim });
    }
    expect(openIn(dir)).toHaveLength(32);
  });
});

describe('a disk whose syncs are fast', () => {
  test('is waited for in place by a run that is alone, and elsewhere by runs that write at once', async () => {
    const places: (boolean | undefined)[] = [];
    let both: PromiseWithResolvers<void> | undefined;
    const sync = async (isInPlace?: boolean) => {
      places.push(isInPlace);
      if (places.length === 2) both?.resolve();
      await both?.promise;
    };
    const files = alteredFiles(() => ({ sync }));
    await using store = fileStoreOn(files, { dir: freshDir() });
    const { claim, record } = await begun(store);
    let last = record;
    for (let i = 0; i < 40; i++) {
      const { delta, record } = nextStep(last);
      await store.append(delta, { claim });
      last = record;
    }
    expect(places.slice(-10)).toContain(true);
    const other = await store.claim('other', 'one', 600_000);
    await store.save(sampleRecord('other'), { claim: other ?? undefined });
    places.length = 0;
    both = Promise.withResolvers();
    await Promise.all([
      store.append(nextStep(last).delta, { claim }),
      store.append(nextStep(sampleRecord('other')).delta, { claim: other ?? undefined }),
    ]);
    expect(places).toEqual([false, false]);
  });
});
