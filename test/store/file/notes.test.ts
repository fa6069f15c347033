import { lstatSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { safeName } from '../../../src/files/safe-name.ts';
import { fileStore } from '../../../src/store/file/index.ts';
import { sampleOutcome } from '../../../src/testing/store-contract/records.ts';
import { freshDir } from './folder.ts';

const MINUTE = 60_000;

test('the notes of when kept outcomes are over are names of one file, anew where that one is gone, and each is found when its time comes', async () => {
  const [dir, clock] = [freshDir(), testClock(1_000)];
  const store = fileStore({ dir, clock });
  const keep = (runId: string, minutes = 1) => store.keepOutcome(runId, sampleOutcome(runId), minutes * MINUTE);
  const note = (runId: string, minutes = 1) => join(dir, 'due', `${minutes * MINUTE}`, safeName(runId));
  const fileOf = (path: string) => lstatSync(path).ino;
  for (const runId of ['a', 'b', 'b', 'c']) await keep(runId);
  expect([fileOf(note('b')), fileOf(note('c'))]).toEqual([fileOf(note('a')), fileOf(note('a'))]);
  rmSync(note('a'));
  await keep('d');
  await keep('e');
  expect(fileOf(note('e'))).toBe(fileOf(note('d')));
  await keep('f', 3);
  expect(fileOf(note('f', 3))).not.toBe(fileOf(note('e')));
  await store.close();
  await clock.advance(2 * MINUTE);
  await using later = fileStore({ dir, clock });
  // The note of the first was removed: it is as good as gone, and goes from the disk when it is written over.
  expect(await later.forgetOutcomes?.({ dryRun: true })).toBe(4);
  expect(await later.forgetOutcomes?.()).toBe(4);
  expect(await later.outcome('f')).toEqual(sampleOutcome('f'));
});
