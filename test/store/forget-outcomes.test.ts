import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileStore } from 'pawl/stores/file';
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
  ['file', (folder: string, clock: ReturnType<typeof testClock>) => fileStore({ dir: folder, clock })],
] as const)('the %s store removes on demand the outcomes whose time is over, and no others', async (_, open) => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-forget-'));
  const clock = testClock();
  const store = open(folder, clock);
  onTestFinished(async () => {
    await store.close();
    rmSync(folder, { recursive: true });
  });
  for (const runId of ['a', 'b']) await store.keepOutcome(runId, sampleOutcome(runId), HOUR);
  await store.keepOutcome('late', sampleOutcome('late'), 10 * HOUR);
  expect(await store.forgetOutcomes?.()).toBe(0);
  clock.wallJump(2 * HOUR);
  expect(await store.forgetOutcomes?.({ dryRun: true })).toBe(2);
  expect(await store.forgetOutcomes?.({ dryRun: true })).toBe(2);
  expect(await store.forgetOutcomes?.()).toBe(2);
  expect(await store.forgetOutcomes?.()).toBe(0);
  expect(await store.outcome('a')).toBeNull();
  expect(await store.outcome('late')).not.toBeNull();
});
