import { existsSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Claim } from '../../../src/store/port.ts';
import { sqliteStore } from '../../../src/store/sqlite/index.ts';
import { nextStep, sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { startChild } from '../child-process.ts';
import { freshPath, sql } from './files.ts';

const hasProc = existsSync('/proc/self/stat');

describe('several processes on one file', () => {
  test('of several that claim all runs at once, each run goes to one', async () => {
    const path = freshPath();
    await using store = sqliteStore({ path });
    const ids = Array.from({ length: 60 }, (_, i) => `run-${i}`);
    await Promise.all(ids.map((runId) => store.save(sampleRecord(runId))));
    const children = Array.from({ length: 4 }, () => startChild({ role: 'race', path }));
    await Promise.all(children.map((child) => child.next()));
    for (const child of children) child.tell();
    const claimed = (await Promise.all(children.map((child) => child.next()))) as string[][];
    expect(claimed.flat().sort()).toEqual([...ids].sort());
    for (const child of children) child.tell();
    await Promise.all(children.map((child) => child.exited));
  });

  test.skipIf(!hasProc)('the run of a process that was killed is free at once, not when its lease ends', async () => {
    const path = freshPath();
    await using store = sqliteStore({ path });
    await store.save(sampleRecord('run'));
    const child = startChild({ role: 'hold', path, argument: 'run' });
    const held = (await child.next()) as Claim;
    expect(await store.claim('run', 'heir', 1_000)).toBe(null);
    expect(await store.listInterrupted()).toMatchObject([{ owner: held.owner }]);
    await child.kill();
    expect(await store.listInterrupted()).toMatchObject([{ runId: 'run' }]);
    expect((await store.listInterrupted())[0]).not.toHaveProperty('owner');
    const claim = await store.claim('run', 'heir', 1_000);
    expect(claim).toMatchObject({ epoch: held.epoch + 1, attempts: held.attempts + 1 });
    await expect(store.save(sampleRecord('run'), { claim: held })).rejects.toMatchObject({ code: 'LEASE_LOST' });
  });

  test('two that add to one run lose none of each other’s steps, and mix up none (faults 34)', async () => {
    const path = freshPath();
    await using store = sqliteStore({ path, durability: 'process' });
    await store.save(sampleRecord('run'));
    const children = [1, 2].map(() => startChild({ role: 'share', path, argument: '25' }));
    await Promise.all(children.map((each) => each.next()));
    for (const each of children) each.tell();
    expect(await Promise.all(children.map((each) => each.next()))).toEqual([25, 25]);
    await Promise.all(children.map((each) => each.exited));
    const texts = (await store.load('run'))?.messages.slice(1).map((message) => JSON.stringify(message.content));
    expect([texts?.length, new Set(texts).size]).toEqual([50, 50]);
  });

  test('what several processes send while the owner takes it out arrives once each, in the order of each sender (recovery 3)', async () => {
    const path = freshPath();
    await using store = sqliteStore({ path, durability: 'process' });
    await store.save(sampleRecord('run'));
    const claim = await store.claim('run', 'me', 600_000);
    if (!claim) throw new Error('nobody else has the run');
    const children = [1, 2].map(() => startChild({ role: 'send', path, argument: '20' }));
    await Promise.all(children.map((each) => each.next()));
    for (const each of children) each.tell();
    const taken: string[] = [];
    while (taken.length < 40) {
      const ids = (await store.commands.inbox({ owner: 'me' })).map(({ command }) => command.id);
      await store.commands.acknowledge(claim, ids);
      taken.push(...ids);
    }
    expect(await Promise.all(children.map((each) => each.next()))).toEqual(['sent', 'sent']);
    expect(await store.commands.inbox({ runId: 'run' })).toEqual([]);
    expect(new Set(taken).size).toBe(40);
    const senders = Map.groupBy(taken, (id) => id.split('-')[0]);
    for (const ids of senders.values())
      expect(ids.map((id) => Number(id.split('-')[1]))).toEqual([...Array(20).keys()]);
    await Promise.all(children.map((each) => each.exited));
  });

  test('writes wait for the lock of another process, and the event loop continues meanwhile', async () => {
    const path = freshPath();
    await using store = sqliteStore({ path });
    await store.save(sampleRecord('run'));
    const child = startChild({ role: 'lock', path });
    expect(await child.next()).toBe('locked');
    let isSaved = false;
    let record = sampleRecord('run', { iteration: 1 });
    const writes = [store.save(record)];
    for (let step = 0; step < 300; step++) {
      const { delta, record: next } = nextStep(record);
      writes.push(store.append(delta));
      record = next;
    }
    const saving = Promise.all(writes).then(() => {
      isSaved = true;
    });
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setTimeout(resolve, 2));
    expect(isSaved).toBe(false);
    child.tell();
    expect(await child.next()).toBe('released');
    await saving;
    expect(await store.load('run')).toEqual(record);
  });

  test('a write that waited too long is refused; the next one works', async () => {
    const path = freshPath();
    await using store = sqliteStore({ path, busyTimeoutMs: 100 });
    await store.save(sampleRecord('run'));
    const child = startChild({ role: 'lock', path });
    expect(await child.next()).toBe('locked');
    const settled = await Promise.allSettled([
      store.save(sampleRecord('run', { iteration: 1 })),
      store.claim('run', 'one', 1_000),
    ]);
    for (const each of settled) expect(each).toMatchObject({ reason: { code: 'STORE_UNAVAILABLE' } });
    expect(await store.load('run')).toEqual(sampleRecord('run'));
    child.tell();
    await child.exited;
    await store.save(sampleRecord('run', { iteration: 2 }));
    expect(await store.load('run')).toMatchObject({ iteration: 2 });
  });

  test('an aborted write stops waiting for the lock, and writes nothing', async () => {
    const path = freshPath();
    await using store = sqliteStore({ path });
    await store.save(sampleRecord('run'));
    const child = startChild({ role: 'lock', path });
    await child.next();
    const controller = new AbortController();
    const saving = store.save(sampleRecord('run', { iteration: 1 }), { signal: controller.signal });
    controller.abort(new Error('stop'));
    child.tell();
    await expect(saving).rejects.toThrow('stop');
    expect(await store.load('run')).toEqual(sampleRecord('run'));
  });

  test('a process killed within a transaction leaves what was stored before it', async () => {
    const path = freshPath();
    await using store = sqliteStore({ path });
    await store.save(sampleRecord('run'));
    const child = startChild({ role: 'transaction', path });
    expect(await child.next()).toBe('written');
    await child.kill();
    expect(await store.load('run')).toEqual(sampleRecord('run'));
    await store.append(nextStep(sampleRecord('run')).delta);
    expect(sql(path, 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }]);
  });

  test('a process killed at any moment has lost no step that the store confirmed', async () => {
    for (const steps of [1, 2, 3, 5, 8, 13, 21]) {
      const path = freshPath();
      const child = startChild({ role: 'append', path });
      let stored = 0;
      for (let step = 0; step < steps; step++) stored = Number(await child.next());
      await child.kill();
      await using store = sqliteStore({ path });
      const record = await store.load('run');
      expect(record?.revision).toBeGreaterThanOrEqual(stored);
      expect(record?.messages.length).toBe(record?.revision);
      await store.append(nextStep(record ?? sampleRecord('run')).delta);
    }
  });
});
