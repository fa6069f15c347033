import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type StoreDriver, storeFrom } from 'pawl/stores/kit';
import { sqliteStore } from 'pawl/stores/sqlite';
import { testClock } from 'pawl/testing';
import { expect, onTestFinished, test } from 'vitest';
import { sampleOutcome } from '../../src/testing/store-contract/records.ts';

const HOUR = 3_600_000;

test.each([
  [
    'sqlite',
    (folder: string, clock: ReturnType<typeof testClock>) => sqliteStore({ path: join(folder, 'runs.db'), clock }),
  ],
] as const)('the %s store removes on demand the outcomes whose time is over, and no others', async (_, open) => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-forget-'));
  const clock = testClock();
  const store = open(folder, clock);
  onTestFinished(async () => {
    await store.close();
    rmSync(folder, { recursive: true });
  });
  for (const runId of ['a', 'b']) await store.outcomes.keep(runId, sampleOutcome(runId), HOUR);
  await store.outcomes.keep('late', sampleOutcome('late'), 10 * HOUR);
  expect(await store.outcomes.forget()).toBe(0);
  clock.wallJump(2 * HOUR);
  expect(await store.outcomes.forget({ dryRun: true })).toBe(2);
  expect(await store.outcomes.forget({ dryRun: true })).toBe(2);
  expect(await store.outcomes.forget()).toBe(2);
  expect(await store.outcomes.forget()).toBe(0);
  expect(await store.outcomes.find('a')).toBeNull();
  expect(await store.outcomes.find('late')).not.toBeNull();
});

test("what a host's driver throws when outcomes are forgotten by the minute ends neither the process nor the next try", async () => {
  const clock = testClock();
  let tries = 0;
  const driver: StoreDriver = {
    write: async () => null as never,
    load: async () => null,
    list: async () => [],
    outcomes: {
      find: async () => null,
      forget: () => {
        tries += 1;
        throw new Error('not a promise that rejects');
      },
    },
    commands: { inbox: async () => [] },
  };
  const store = storeFrom(driver, { clock });
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => void unhandled.push(reason);
  process.on('unhandledRejection', note);
  onTestFinished(() => void process.off('unhandledRejection', note));
  await store.claim('run', 'owner', 1_000);
  for (let minute = 0; minute < 2; minute++) {
    await clock.advance(60_000);
  }
  expect({ tries, unhandled }).toEqual({ tries: 2, unhandled: [] });
  await store.close();
});

test('a process that only looks for due runs removes what is over, 500 of a kind in a minute at most, and prune the rest (operations 16)', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-forget-'));
  const clock = testClock();
  const path = join(folder, 'runs.db');
  const before = sqliteStore({ path, clock });
  for (let i = 0; i < 1_200; i++) await before.outcomes.keep(`r${i}`, sampleOutcome(`r${i}`), HOUR);
  await before.close();
  clock.wallJump(2 * HOUR);
  const store = sqliteStore({ path, clock });
  onTestFinished(async () => {
    await store.close();
    rmSync(folder, { recursive: true });
  });
  const left = () => store.outcomes.forget({ dryRun: true });
  await clock.advance(120_000);
  expect(await left()).toBe(1_200);
  await store.due.take({ owner: 'w', ttlMs: 1_000, limit: 1 });
  const counts: unknown[] = [];
  for (let minute = 0; minute < 2; minute++) {
    await clock.advance(60_000);
    counts.push(await left());
  }
  expect(counts).toEqual([700, 200]);
  expect(await store.outcomes.forget()).toBe(200);
});

test('the write of an outcome removes at most 100 that are over: it does not wait for a million of them (operations 16)', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-forget-'));
  const clock = testClock();
  const store = sqliteStore({ path: join(folder, 'runs.db'), clock });
  onTestFinished(async () => {
    await store.close();
    rmSync(folder, { recursive: true });
  });
  for (let i = 0; i < 250; i++) await store.outcomes.keep(`r${i}`, sampleOutcome(`r${i}`), HOUR);
  clock.wallJump(2 * HOUR);
  await store.outcomes.keep('one', sampleOutcome('one'), 9 * HOUR);
  expect(await store.outcomes.forget({ dryRun: true })).toBe(150);
});
