import { copyFileSync, existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { RunCheckpoint } from 'pawl';
import { backupStore, restoreStore, sqliteStore } from 'pawl/stores/sqlite';
import { reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { sampleRecord } from '../../../../src/testing/store-contract/records.ts';
import { codecOf } from '../../../codec/keys.ts';
import { hostOf } from '../../../fixtures/host.ts';
import { startChild } from '../../child-process.ts';
import { damageRun, freshPath, sql } from '../files.ts';

/** A store with these records, the path of a backup, and that of a store to restore it to. */
async function stored(records: readonly RunCheckpoint[], codec = undefined as ReturnType<typeof codecOf> | undefined) {
  const path = freshPath();
  await using store = sqliteStore({ path, codec });
  for (const record of records) await store.save(record);
  return { path, backup: join(dirname(path), 'runs.backup'), restored: join(dirname(path), 'restored.db') };
}

const record = (runId: string, more: Partial<RunCheckpoint> = {}): RunCheckpoint => {
  const sample = sampleRecord(runId, more as never);
  return { ...sample, meta: { ...sample.meta, agentId: 'worker', prompt: 'Go.' } };
};

const openStep = (effect: 'read' | 'idempotent' | 'once', state: 'started' | 'done' = 'started') => ({
  message: {
    role: 'assistant' as const,
    content: [{ type: 'tool-call' as const, toolCallId: 'c', toolName: 'pay', input: {} }],
  },
  calls: [
    {
      ...{ callId: 'c', name: 'pay', input: {}, effect, state, attempt: 1 },
      ...(state === 'done' ? { result: { type: 'text' as const, value: 'paid' } } : {}),
    },
  ],
});

test('a store that a process writes to is copied as of one moment, and what the copy is restored to runs nothing until it is unparked (edges 27)', async () => {
  const { path, backup, restored } = await stored(Array.from({ length: 40 }, (_, i) => record(`other-${i}`)));
  const writer = startChild({ role: 'append', path });
  let said = 0;
  while (said < 20) said = Number(await writer.next());
  const shown: number[] = [];
  const { bytes } = await backupStore({ path, target: backup, onProgress: (copied) => shown.push(copied) });
  for (let more = 0; more < 20; more++) await writer.next();
  await writer.kill();
  const source = sqliteStore({ path });
  const last = (await source.load('run'))?.revision ?? 0;
  await source.close();
  expect(statSync(backup).size).toBe(bytes);
  expect(readdirSync(dirname(backup)).filter((name) => name.includes('backup'))).toEqual(['runs.backup']);

  const report = await restoreStore({ backup, path: restored });
  expect([report.parked.length, report.resumed, report.unreadable]).toEqual([41, [], []]);
  await using store = sqliteStore({ path: restored });
  const copied = await store.load('run');
  // The restore has added one revision.
  expect(copied?.revision).toBeGreaterThanOrEqual(said + 1);
  expect(copied?.revision).toBeLessThanOrEqual(last + 1);
  expect(copied?.messages).toHaveLength((copied?.revision ?? 0) - 1);
  expect(copied?.parked).toMatchObject({ code: 'RESTORED', reason: expect.stringContaining('from a backup of 20') });
  expect(sql(restored, 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }]);

  const host = hostOf({ store, script: [reply('done')] });
  const first = await host.executor.recover();
  expect([first.resumed, first.parked.length]).toEqual([[], 41]);
  expect((await store.due.list({ limit: 100 })).runs).toEqual([]);
  await host.executor.unpark('other-0');
  expect((await host.executor.recover()).resumed).toEqual([{ runId: 'other-0' }]);
  expect((await host.executor.get('other-0')?.result)?.status).toBe('ok');
  expect(host.model.calls).toHaveLength(1);
});

describe('a restore that lets reads continue (edges 27)', () => {
  test('parks each run with an open call that has effects, whole trees, and what cannot be read stays as it is', async () => {
    const inTree = (root: string, parent = root) => ({ parent: { runId: parent, callId: 'c', rootRunId: root } });
    const parked = { code: 'PARKED', reason: 'by hand' };
    const { path, backup, restored } = await stored([
      record('between steps'),
      record('reading', { openStep: openStep('read') }),
      record('once', { openStep: openStep('once') }),
      record('once done', { openStep: openStep('once', 'done') }),
      record('idempotent', { openStep: openStep('idempotent') }),
      record('root', { openStep: openStep('read') }),
      record('child', inTree('root')),
      record('grandchild', { ...inTree('root', 'child'), openStep: openStep('once') }),
      record('whole root', { openStep: openStep('read') }),
      record('whole child', inTree('whole root')),
      record('by hand', { parked }),
      record('damaged'),
    ]);
    damageRun(path, 'damaged', 'corrupt');
    await backupStore({ path, target: backup });
    const report = await restoreStore({ backup, path: restored, resumeReads: true });
    expect(report.resumed.toSorted()).toEqual(['between steps', 'reading', 'whole child', 'whole root']);
    expect(report.parked.toSorted()).toEqual(['child', 'grandchild', 'idempotent', 'once', 'once done', 'root']);
    expect([report.parkedBefore, report.unreadable]).toEqual([['by hand'], ['damaged']]);
    await using store = sqliteStore({ path: restored });
    expect((await store.load('by hand'))?.parked).toEqual(parked);
    expect((await store.load('reading'))?.parked).toBeUndefined();
    expect((await store.due.list({ limit: 100 })).runs.map(({ runId }) => runId).toSorted()).toEqual(
      report.resumed.toSorted(),
    );
  });
});

describe('a restored store (edges 27)', () => {
  test('has no owner of the time of the backup, also if that process works on', async () => {
    const { path, backup, restored } = await stored([record('run')]);
    await using store = sqliteStore({ path });
    await store.claim('run', 'of that time', 600_000);
    await backupStore({ path, target: backup });
    await restoreStore({ backup, path: restored });
    await using copy = sqliteStore({ path: restored });
    expect(await copy.listInterrupted()).toMatchObject([{ runId: 'run', status: 'parked', code: 'RESTORED' }]);
    expect(await copy.claim('run', 'me', 1_000)).toMatchObject({ attempts: 3, epoch: 3 });
  });

  test('has its resting runs parked too: no time and no answer makes them due', async () => {
    const timer = { id: 'w', kind: 'timer', createdAt: 1, step: 1 } as const;
    const { path, backup, restored } = await stored([record('run', { waiting: { waits: [timer], settled: [] } })]);
    const store = sqliteStore({ path });
    const claim = await store.claim('run', 'me', 60_000);
    expect(claim && (await store.due.leave(claim, { dueAt: 1, readUpTo: 0 }))).toBe(true);
    if (claim) await store.release(claim);
    await store.close();
    await backupStore({ path, target: backup });
    expect((await restoreStore({ backup, path: restored })).parked).toEqual(['run']);
    await using copy = sqliteStore({ path: restored });
    await copy.commands.send('run', { id: 'c', kind: 'steer', text: 'Go on.' });
    expect((await copy.due.list({ limit: 10 })).runs).toEqual([]);
  });

  test('of an encrypted store needs its codec, and without it no store is made', async () => {
    const { path, backup, restored } = await stored([record('run')], codecOf());
    await backupStore({ path, target: backup });
    await expect(restoreStore({ backup, path: restored })).rejects.toMatchObject({ code: 'KEY_MISMATCH' });
    const left = readdirSync(dirname(path)).filter((name) => !name.startsWith('runs.db'));
    expect(left).toEqual(['runs.backup']);
    expect((await restoreStore({ backup, path: restored, codec: codecOf() })).parked).toEqual(['run']);
  });
});

describe('a backup (edges 27)', () => {
  const unavailable = (text: string) => ({ code: 'STORE_UNAVAILABLE', message: expect.stringContaining(text) });

  test('is opened by no process as a store, and is for this user only', async () => {
    const { path, backup } = await stored([record('run')]);
    await backupStore({ path, target: backup });
    await using store = sqliteStore({ path: backup });
    await expect(store.load('run')).rejects.toMatchObject(unavailable('is a backup; restore it first'));
    expect(statSync(backup).mode & 0o777).toBe(0o600);
  });

  test('overwrites nothing, and neither does its restore', async () => {
    const { path, backup, restored } = await stored([record('run')]);
    writeFileSync(backup, 'mine');
    await expect(backupStore({ path, target: backup })).rejects.toMatchObject(unavailable('exists, and is not'));
    const other = `${backup}-2`;
    await backupStore({ path, target: other });
    for (const name of [restored, `${restored}-wal`]) {
      writeFileSync(name, 'mine');
      await expect(restoreStore({ backup: other, path: restored })).rejects.toMatchObject(
        unavailable('exists, and is not overwritten'),
      );
    }
    await expect(restoreStore({ backup: other, path })).rejects.toMatchObject(unavailable('is not overwritten'));
  });

  test('is neither taken of a store without its -wal file, nor restored from a file that is none', async () => {
    const { path, backup, restored } = await stored([record('run')]);
    await using store = sqliteStore({ path });
    await store.save(record('other'));
    const copy = `${path}-copy`;
    copyFileSync(path, copy);
    await expect(backupStore({ path: copy, target: backup })).rejects.toMatchObject(unavailable('-wal is missing'));
    await expect(restoreStore({ backup: copy, path: restored })).rejects.toMatchObject(unavailable('is no backup'));
    writeFileSync(`${path}-text`, 'no database at all');
    await expect(restoreStore({ backup: `${path}-text`, path: restored })).rejects.toMatchObject(
      unavailable('is no backup'),
    );
    await expect(backupStore({ path: `${path}-none`, target: backup })).rejects.toMatchObject(unavailable('not exist'));
    expect([existsSync(backup), existsSync(restored)]).toEqual([false, false]);
  });
});
