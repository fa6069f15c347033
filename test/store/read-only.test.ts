import { closeSync, cpSync, existsSync, openSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { nextStep, sampleOutcome, sampleRecord } from '../../src/testing/store-contract/records.ts';
import { testClock } from '../../src/testing/test-clock.ts';
import { copyOfPinned, freshFolder } from '../fixtures/pinned-stores.ts';
import { sql } from './sqlite/files.ts';

const file = 'runs.db';
const open = (path: string, options = {}) => sqliteStore({ path, ...options });

/** The names and bytes of what a store has, without the index of the WAL: readers note in it where they read. */
function contentOf(folder: string): string {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
  const kept = names.filter((name) => !name.endsWith('-shm') && statSync(join(folder, name)).isFile());
  return kept.map((name) => `${name} ${readFileSync(join(folder, name), 'base64')}`).join('\n');
}

describe('a store in SQLite that is open for reading only', () => {
  test('reads what another one writes meanwhile, and changes no byte of it (studio 17, 33)', async () => {
    const folder = freshFolder();
    const path = join(folder, file);
    const record = sampleRecord('run');
    await using writer = open(path);
    await writer.save(record);
    await using reader = open(path, { readOnly: true });
    const before = contentOf(folder);
    expect(await reader.load('run')).toEqual(record);
    expect(await reader.listInterrupted()).toMatchObject([{ runId: 'run' }]);
    expect(await reader.outcomes.find('run')).toBeNull();
    expect(await reader.commands.inbox({ runId: 'run' })).toEqual([]);
    expect(await reader.due.list({ limit: 10 })).toMatchObject({ runs: [{ runId: 'run' }] });
    expect(await reader.history.list({ limit: 10 })).toEqual([]);
    expect(await reader.threads.list()).toEqual([]);
    expect(contentOf(folder)).toBe(before);
    const { record: next, delta } = nextStep(record);
    await writer.append(delta);
    expect(await reader.load('run')).toEqual(next);
  });

  test('refuses each write with UNSUPPORTED (studio 17)', async () => {
    const path = join(freshFolder(), file);
    await using writer = open(path);
    await writer.save(sampleRecord('run'));
    const claim = await writer.claim('run', 'me', 60_000);
    if (!claim) throw new Error('the run is free');
    await using reader = open(path, { readOnly: true });
    const command = { id: 'c', kind: 'steer', text: 'x' } as const;
    const writes = [
      () => reader.save(sampleRecord('other')),
      () => reader.delete('run'),
      () => reader.claim('run', 'you', 1_000),
      () => reader.renew(claim, 1_000),
      () => reader.release(claim),
      () => reader.commands.send('run', command),
      () => reader.history.erase('run'),
      () => reader.waits.signal({ id: 's', name: 'paid', key: '', value: 1, until: 1 } as never),
      () => reader.outcomes.forget(),
    ];
    for (const write of writes) await expect(write()).rejects.toMatchObject({ code: 'UNSUPPORTED' });
  });

  test('an expired outcome is null, and stays where it is (studio 17)', async () => {
    const folder = freshFolder();
    const clock = testClock();
    await using writer = open(join(folder, file), { clock });
    await writer.save(sampleRecord('run'));
    await writer.outcomes.keep('run', sampleOutcome('run'), clock.now() + 1_000);
    await using reader = open(join(folder, file), { clock, readOnly: true });
    expect(await reader.outcomes.find('run')).toMatchObject({ runId: 'run' });
    const before = contentOf(folder);
    await clock.advance(2_000);
    expect(await reader.outcomes.find('run')).toBeNull();
    expect(contentOf(folder)).toBe(before);
  });

  test('is not made, and works as soon as it is there, and again after it was away (studio 27)', async () => {
    const folder = freshFolder();
    const path = join(folder, file);
    await using reader = open(path, { readOnly: true });
    await expect(reader.listInterrupted()).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: `the store ${path} does not exist`,
    });
    expect(existsSync(path)).toBe(false);
    const elsewhere = join(freshFolder(), file);
    const writer = open(elsewhere);
    await writer.save(sampleRecord('run'));
    await writer.close();
    cpSync(elsewhere, path, { recursive: true });
    expect(await reader.listInterrupted()).toMatchObject([{ runId: 'run' }]);
  });
});

test('a SQLite store that is open for reading only names an empty file and an older layout, and changes neither (studio 17, 27)', async () => {
  const empty = join(freshFolder(), 'runs.db');
  closeSync(openSync(empty, 'wx'));
  await using none = sqliteStore({ path: empty, readOnly: true });
  const complaint = `the store ${empty} is an empty file: no run was recorded in it yet`;
  await expect(none.listInterrupted()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', message: complaint });
  expect(statSync(empty).size).toBe(0);

  const old = copyOfPinned('runs.db');
  const before = readFileSync(old);
  await using reader = sqliteStore({ path: old, readOnly: true });
  await expect(reader.listInterrupted()).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringMatching(/has layout \d, and this Pawl reads layout 10: the first process that writes to it/),
  });
  expect(readFileSync(old)).toEqual(before);
  await using writer = sqliteStore({ path: old });
  const runs = await writer.listInterrupted();
  expect(await reader.listInterrupted()).toEqual(runs);
});

test('a SQLite store that is open for reading only names a newer layout (studio 27)', async () => {
  const path = join(freshFolder(), 'runs.db');
  const writer = sqliteStore({ path });
  await writer.save(sampleRecord('run'));
  await writer.close();
  sql(path, 'PRAGMA user_version = 99');
  await using reader = sqliteStore({ path, readOnly: true });
  await expect(reader.listInterrupted()).rejects.toMatchObject({ code: 'CHECKPOINT_TOO_NEW' });
});

test('readOnly must be true or false', () => {
  const wrong = 'yes' as never;
  expect(() => sqliteStore({ path: 'x', readOnly: wrong })).toThrow('sqliteStore: readOnly must be true or false');
});
