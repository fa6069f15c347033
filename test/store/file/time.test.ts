import { readFileSync, statSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { decodeLine, encodeLine, splitLines } from '../../../src/files/lines.ts';
import { fileStore } from '../../../src/store/file/index.ts';
import { nextStep, sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { testClock } from '../../../src/testing/test-clock.ts';
import { freshDir, journalOf, replaceFile } from './folder.ts';

describe('leases of the file store (recovery 3)', () => {
  test('a lease from before a reboot has run out', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir, durability: 'process' });
    const claim = await store.claim('run', 'one', 600_000);
    if (claim) await store.renew(claim, 600_000);
    expect(await store.claim('run', 'two', 600_000)).toBe(null);
    const lines = splitLines(readFileSync(journalOf(dir, 'run'))).map(({ bytes }) => {
      const line = decodeLine(bytes);
      if (line?.kind !== 'lease') return bytes;
      const [epoch = '', attempts = '', expiresAt = '', boot = '', owner = ''] = line.fields;
      // As long as the other one: nothing after it moves.
      return encodeLine('lease', [epoch, attempts, expiresAt, boot.replaceAll(/[0-9a-f]/g, '0'), owner]);
    });
    replaceFile(journalOf(dir, 'run'), Buffer.concat(lines));
    expect(await store.claim('run', 'two', 600_000)).toMatchObject({ epoch: 2 });
  });

  test('the renewal of an earlier claim makes no later one longer', async () => {
    const clock = testClock(1_000_000);
    await using store = fileStore({ dir: freshDir(), clock });
    const first = await store.claim('run', 'one', 1_000);
    if (!first) throw new Error('nobody else has the run');
    await store.renew(first, 600_000);
    await store.release(first);
    expect(await store.claim('run', 'two', 1_000)).toMatchObject({ epoch: 2 });
    await clock.advance(1_000);
    expect(await store.claim('run', 'three', 1_000)).toMatchObject({ epoch: 3 });
  });

  test('a journal that looks like ours, and is another’s, is not taken for ours', async () => {
    const clock = testClock(1_000_000);
    const dir = freshDir();
    await using store = fileStore({ dir, clock });
    await using other = fileStore({ dir, clock });
    const lost = (await store.claim('run', 'one', 1_000)) ?? undefined;
    await store.save(sampleRecord('run'), { claim: lost });
    const { size } = statSync(journalOf(dir, 'run'));
    await clock.advance(1_000);
    await other.delete('run');
    const claim = (await other.claim('run', 'two', 1_000)) ?? undefined;
    await other.save(sampleRecord('run'), { claim });
    expect(statSync(journalOf(dir, 'run')).size, 'it has the same size').toBe(size);
    const late = nextStep(sampleRecord('run'));
    await expect(store.append(late.delta, { claim: lost })).rejects.toMatchObject({ code: 'LEASE_LOST' });
    expect(await other.load('run')).toEqual(sampleRecord('run'));
  });
});
