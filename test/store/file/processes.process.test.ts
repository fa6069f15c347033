import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { safeName } from '../../../src/files/safe-name.ts';
import { fileStore } from '../../../src/store/file/index.ts';
import { newOwner } from '../../../src/store/owner.ts';
import type { Claim } from '../../../src/store/port.ts';
import { seededRandom } from '../../../src/testing/store-contract/random.ts';
import { nextStep, sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { seed } from '../../crash/random.ts';
import { type ChildOptions, canRun, startChild } from '../child-process.ts';
import { filesBelow, freshDir, journalOf } from './folder.ts';

const hasProc = existsSync('/proc/self/stat');
const child = (options: Omit<ChildOptions, 'script'>) => startChild({ ...options, script: './file/child.ts' });

describe('several processes in one folder (recovery 3)', () => {
  test('of several that claim all runs at once, each run goes to one', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir, durability: 'process' });
    const ids = Array.from({ length: 60 }, (_, i) => `run-${i}`);
    await Promise.all(ids.map((runId) => store.save(sampleRecord(runId))));
    const children = Array.from({ length: 4 }, () => child({ role: 'race', path: dir }));
    await Promise.all(children.map((each) => each.next()));
    for (const each of children) each.tell();
    const claimed = (await Promise.all(children.map((each) => each.next()))) as string[][];
    expect(claimed.flat().sort()).toEqual([...ids].sort());
    for (const each of children) each.tell();
    await Promise.all(children.map((each) => each.exited));
  });

  test('two that add to one run lose none of each other’s steps, and mix up none', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir, durability: 'process' });
    await store.save(sampleRecord('run'));
    const children = [1, 2].map(() => child({ role: 'share', path: dir, argument: '25' }));
    await Promise.all(children.map((each) => each.next()));
    for (const each of children) each.tell();
    expect(await Promise.all(children.map((each) => each.next()))).toEqual([25, 25]);
    await Promise.all(children.map((each) => each.exited));
    const texts = (await store.load('run'))?.messages.slice(1).map((message) => JSON.stringify(message.content));
    expect([texts?.length, new Set(texts).size]).toEqual([50, 50]);
    expect(filesBelow(join(dir, 'locks'))).toEqual([]);
  });

  test.skipIf(!hasProc)('the run of a process that was killed is free at once, not when its lease ends', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir });
    await store.save(sampleRecord('run'));
    const holder = child({ role: 'hold', path: dir, argument: 'run' });
    const held = (await holder.next()) as Claim;
    expect(await store.claim('run', 'heir', 1_000)).toBe(null);
    expect(await store.listInterrupted()).toMatchObject([{ owner: held.owner }]);
    await holder.kill();
    expect((await store.listInterrupted())[0]).not.toHaveProperty('owner');
    const claim = await store.claim('run', 'heir', 1_000);
    expect(claim).toMatchObject({ epoch: held.epoch + 1, attempts: held.attempts + 1 });
    await expect(store.save(sampleRecord('run'), { claim: held })).rejects.toMatchObject({ code: 'LEASE_LOST' });
  });
});

describe('a process that holds the lock of a run (recovery 3)', () => {
  test('keeps nobody waiting who only asks for a run that has an owner', async () => {
    const dir = freshDir();
    const before = fileStore({ dir });
    await before.save(sampleRecord('run'));
    expect(await before.claim('run', newOwner(), 600_000)).toMatchObject({ epoch: 1 });
    await before.close();
    await using store = fileStore({ dir, busyTimeoutMs: 100 });
    // As another thread of this process would hold it.
    writeFileSync(join(dir, 'locks', safeName('run')), newOwner());
    expect(await store.claim('run', 'other', 1_000)).toBe(null);
    await expect(store.append(nextStep(sampleRecord('run')).delta)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    });
    rmSync(join(dir, 'locks', safeName('run')));
  });

  test.skipIf(!hasProc)('and is killed is in nobody’s way, and leaves nothing behind', async () => {
    const dir = freshDir();
    const holder = child({ role: 'lock', path: dir, argument: 'run' });
    expect([await holder.next(), await holder.next()].sort()).toEqual(['locked', 'saved']);
    await holder.kill();
    expect(readdirSync(join(dir, 'locks'))).toHaveLength(1);
    const store = fileStore({ dir });
    const started = performance.now();
    await store.append(nextStep(sampleRecord('run', { iteration: 7 })).delta);
    expect(performance.now() - started).toBeLessThan(9_000);
    await store.close();
    expect(readdirSync(join(dir, 'locks'))).toEqual([]);
    expect(readdirSync(join(dir, 'owners'))).toEqual([]);
  });

  test.skipIf(!hasProc)('and that ended with an earlier boot of this machine is in nobody’s way', async () => {
    const dir = freshDir();
    const [host, , ...rest] = newOwner().split('|');
    const before = [host, '11111111-2222-3333-4444-555555555555', ...rest].join('|');
    await using store = fileStore({ dir, busyTimeoutMs: 100 });
    await store.save(sampleRecord('run'));
    writeFileSync(join(dir, 'locks', safeName('run')), before);
    await store.append(nextStep(sampleRecord('run')).delta);
    expect(readdirSync(join(dir, 'locks'))).toEqual([]);
  });

  test.skipIf(!hasProc)('and dies while we wait for it makes room for us', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir });
    await store.save(sampleRecord('other'));
    const holder = child({ role: 'lock', path: dir, argument: 'run' });
    await Promise.all([holder.next(), holder.next()]);
    let isSaved = false;
    const saving = store.save(sampleRecord('run', { iteration: 8 })).then(() => {
      isSaved = true;
    });
    await store.save(sampleRecord('other', { iteration: 1 }));
    expect(isSaved).toBe(false);
    await holder.kill();
    await saving;
    expect((await store.load('run'))?.iteration).toBe(8);
  });

  test('and lives keeps others from writing to this run for as long as they care to wait, and from no other', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir, busyTimeoutMs: 100 });
    const holder = child({ role: 'lock', path: dir, argument: 'run' });
    await Promise.all([holder.next(), holder.next()]);
    const settled = await Promise.allSettled([
      store.save(sampleRecord('run')),
      store.claim('run', 'one', 1_000),
      store.save(sampleRecord('other')),
    ]);
    const refusal = { reason: { code: 'STORE_UNAVAILABLE', message: expect.stringContaining('locked') } };
    expect(settled).toMatchObject([refusal, refusal, { status: 'fulfilled' }]);
    // Reading needs no lock.
    expect((await store.load('run'))?.iteration).toBe(7);
    expect(await store.listInterrupted()).toHaveLength(2);
  });

  test('makes an aborted write wait for nothing that it would write', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir, busyTimeoutMs: 10_000 });
    const holder = child({ role: 'lock', path: dir, argument: 'run' });
    await Promise.all([holder.next(), holder.next()]);
    const controller = new AbortController();
    const saving = store.save(sampleRecord('run', { iteration: 1 }), { signal: controller.signal });
    controller.abort(new Error('stop'));
    await holder.kill();
    await expect(saving).rejects.toThrow('stop');
    expect((await store.load('run'))?.iteration).toBe(7);
  });
});

describe('a process that is killed while it writes (recovery 5, faults 1)', () => {
  const random = seededRandom(seed);

  /** What its next process finds: all that it was told is stored, nothing half done, and nothing in the way. */
  const judge = async (dir: string, last: number) => {
    const store = fileStore({ dir });
    const record = await store.load('run');
    expect(record?.revision ?? 0, `seed ${seed}`).toBeGreaterThanOrEqual(last);
    expect(record?.revision ?? 0).toBeLessThanOrEqual(last + 1);
    expect(record?.messages.length).toBe(record?.revision);
    const step = nextStep(record ?? sampleRecord('run'));
    await (record ? store.append(step.delta) : store.save(step.record));
    expect(await store.load('run')).toEqual(step.record);
    await store.close();
    expect(readdirSync(dirname(journalOf(dir, 'run'))), 'no temporary file stays').toEqual(['journal']);
    expect([...readdirSync(join(dir, 'locks')), ...readdirSync(join(dir, 'owners'))]).toEqual([]);
  };

  /** The last revision that it said is stored, when it has ended. */
  const lastSaid = async (writer: ReturnType<typeof child>): Promise<number> => {
    let last = 0;
    for (let said = await writer.next(); said !== undefined; said = await writer.next()) last = Number(said);
    return last;
  };

  test('at any moment has lost no step that it was told is stored', { timeout: 180_000 }, async () => {
    for (let kill = 0; kill < 8; kill++) {
      const dir = freshDir();
      const writer = child({ role: 'write', path: dir });
      let last = Number(await writer.next());
      for (let steps = random.below(30); steps > 0; steps--) last = Number(await writer.next());
      await sleep(random.below(4));
      await writer.kill();
      await judge(dir, Math.max(last, await lastSaid(writer)));
    }
  });

  const calls = 'pwrite64,fdatasync,fsync,rename,link,unlink,mkdir';
  const canTrace = canRun('strace', '-qq', '-e', `trace=${calls}`, 'true');
  test.skipIf(!canTrace)('at its n-th change to the disk has lost no such step', { timeout: 180_000 }, async () => {
    let killed = 0;
    for (const first of [1, 9, 17, 30, 50, 80]) {
      const dir = freshDir();
      const n = first + random.below(8);
      const inject = `inject=${calls}:signal=SIGKILL:when=${n}`;
      const trace = ['strace', '-f', '-qq', '-o', `${dir}.log`, '-e', `trace=${calls}`, '-e', inject];
      // One thread makes all calls to the disk, so that their number means the same each time.
      const writer = child({ role: 'write', path: dir, under: ['env', 'UV_THREADPOOL_SIZE=1', ...trace] });
      const last = await lastSaid(writer);
      // Its threads are gone with the tracer.
      await writer.exited;
      const log = readFileSync(`${dir}.log`, 'utf8');
      if (log.includes('killed by SIGKILL')) killed += 1;
      await judge(dir, last);
    }
    expect(killed).toBe(6);
  });
});
