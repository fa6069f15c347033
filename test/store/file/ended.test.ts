import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HistoryStore, Message, RunOutcome } from 'pawl';
import { fileStore } from 'pawl/stores/file';
import { testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { diskFiles } from '../../../src/files/file-system.ts';
import { safeName } from '../../../src/files/safe-name.ts';
import { fileStoreOn } from '../../../src/store/file/file-store.ts';
import { sampleMeta, sampleOutcome, sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { eventually } from '../../fixtures/eventually.ts';
import { countIn as countOf, freshDir } from './folder.ts';

const SECRET = 'hunter2-of-ada';
const HOUR = 3_600_000;
const said = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] });
const messages = [said(`${SECRET} ${'x'.repeat(60_000)}`)];

const outcomeOf = (runId: string): RunOutcome => ({ ...sampleOutcome(runId), run: { meta: sampleMeta(runId) } });

async function owned(store: HistoryStore, runId: string) {
  const claim = await store.claim(runId, 'us', 60_000);
  if (!claim) throw new Error('held');
  await store.save(sampleRecord(runId, { messages }), { claim });
  return claim;
}

async function ended(store: HistoryStore, runId: string, keepUntil = HOUR) {
  await store.end(await owned(store, runId), { outcome: outcomeOf(runId), keepUntil });
}

const countIn = (dir: string) => countOf(dir, SECRET);
const runsIn = (dir: string) => readdirSync(join(dir, 'runs')).length;
const endedIn = (dir: string) => (existsSync(join(dir, 'ended')) ? readdirSync(join(dir, 'ended')).length : 0);

describe('the kept record of a run that ended, in files', () => {
  test('is the folder of the run, which its end moves: its journal is not written again (web 16)', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir, clock: testClock(1_000) });
    const claim = await owned(store, 'run');
    const journal = join(dir, 'runs', safeName('run'), 'journal');
    const { ino, mtimeMs, size } = statSync(journal);
    await store.end(claim, { outcome: outcomeOf('run'), keepUntil: HOUR });
    const moved = statSync(join(dir, 'ended', safeName('run'), 'journal'));
    expect(moved).toMatchObject({ ino, mtimeMs, size });
    expect([runsIn(dir), endedIn(dir)]).toEqual([0, 1]);
  });

  test.for(['sweep', 'erase', 'replace'] as const)('leaves nothing after %s (web 16)', async (how) => {
    const dir = freshDir();
    const clock = testClock(1_000);
    await using store = fileStore({ dir, clock });
    await ended(store, 'run');
    expect(countIn(dir)).toBe(1);
    if (how === 'erase') await store.erase('run');
    else if (how === 'replace') await store.save(sampleRecord('run'));
    else {
      clock.wallJump(2 * HOUR);
      expect(await store.load('run', { ended: true })).toBeNull();
      expect(await store.forgetEnded?.({ dryRun: true })).toBe(1);
      expect(await store.forgetEnded?.()).toBe(1);
      expect(await store.forgetEnded?.()).toBe(0);
    }
    expect([countIn(dir), endedIn(dir)]).toEqual([0, 0]);
  });

  test('is removed by the first end of a later process, and by the minute (web 16)', async () => {
    const dir = freshDir();
    const clock = testClock(1_000);
    await using store = fileStore({ dir, clock });
    for (let i = 0; i < 5; i++) await ended(store, `run-${i}`);
    clock.wallJump(2 * HOUR);
    expect(endedIn(dir)).toBe(5);
    await using other = fileStore({ dir, clock });
    await ended(other, 'later', 4 * HOUR);
    await eventually(() => expect(endedIn(dir)).toBe(1));
    clock.wallJump(3 * HOUR);
    clock.advance(60_000);
    await eventually(() => expect(endedIn(dir)).toBe(0));
  });

  test('comes after a crash before its folder is moved: the run is live still, and ends again (web 16)', async () => {
    const dir = freshDir();
    let isDown = true;
    const files = {
      ...diskFiles,
      rename: async (path: string, name: string) => {
        if (isDown && name.includes(join(dir, 'ended')))
          throw Object.assign(new Error('killed'), { code: 'EIO', errno: -5 });
        return diskFiles.rename(path, name);
      },
    };
    await using store = fileStoreOn(files, { dir, clock: testClock(1_000) });
    const claim = await owned(store, 'run');
    const end = { outcome: outcomeOf('run'), keepUntil: HOUR };
    await expect(store.end(claim, end)).rejects.toThrow();
    expect((await store.load('run'))?.messages).toEqual(messages);
    expect((await store.listInterrupted()).map(({ runId }) => runId)).toEqual(['run']);
    expect(await store.listEnded({ limit: 9 })).toEqual([]);
    isDown = false;
    await store.end(claim, end);
    expect(await store.listInterrupted()).toEqual([]);
    expect((await store.load('run', { ended: true }))?.messages).toEqual(messages);
  });

  test('is alone in its commit: what is asked for at the same time comes before or after it (web 16)', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir, clock: testClock(1_000) });
    const claim = await owned(store, 'run');
    const late = sampleRecord('run', { messages, revision: 2, iteration: 7 });
    const [, , claimed] = await Promise.all([
      store.save(late, { claim }),
      store.end(claim, { outcome: outcomeOf('run'), keepUntil: HOUR }),
      store.claim('run', 'another', 60_000),
    ]);
    expect(claimed?.epoch).toBe(claim.epoch + 1);
    expect(await store.load('run', { ended: true })).toMatchObject({ iteration: 7 });
    expect(await store.load('run')).toBeNull();
  });

  test('with a damaged entry is listed as quarantined, and hides no other (web 16)', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir, clock: testClock(1_000) });
    for (const runId of ['a', 'b']) await ended(store, runId);
    const path = join(dir, 'ended', safeName('a'), 'entry');
    writeFileSync(path, readFileSync(path, 'utf8').replace('agent-1', 'agent-2'));
    const runs = await store.listEnded({ limit: 10 });
    expect(runs.map(({ runId, status }) => [runId, status])).toEqual([
      ['b', 'ok'],
      [safeName('a'), 'quarantined'],
    ]);
  });
});
