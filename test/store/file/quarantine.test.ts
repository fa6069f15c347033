import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { encodeLine, splitLines } from '../../../src/files/lines.ts';
import { safeName } from '../../../src/files/safe-name.ts';
import { fileStore } from '../../../src/store/file/index.ts';
import { nextStep, sampleOutcome, sampleRecord, userMessage } from '../../../src/testing/store-contract/records.ts';
import { testClock } from '../../../src/testing/test-clock.ts';
import { freshDir, journalOf } from './folder.ts';
import { found, history, listed, owner, storeWith } from './journals.ts';

describe('what is done with a damaged journal (recovery 6, checkpoint 7)', () => {
  /** The journal of a run that nobody holds, its last state damaged. */
  async function damagedRun() {
    const dir = freshDir();
    const store = fileStore({ dir, durability: 'process' });
    await store.save(sampleRecord('run'));
    await store.append(nextStep(sampleRecord('run')).delta);
    const bytes = readFileSync(journalOf(dir, 'run'));
    const at = bytes.lastIndexOf('"iteration"');
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(journalOf(dir, 'run'), bytes);
    return { dir, store: fileStore({ dir, durability: 'process' }), bytes };
  }

  test('a whole record takes its place, and its bytes stay beside it', async () => {
    const { dir, store, bytes } = await damagedRun();
    await store.save(sampleRecord('run', { revision: 7 }));
    expect(await found(store)).toEqual(sampleRecord('run', { revision: 7 }));
    const folder = dirname(journalOf(dir, 'run'));
    const [aside = ''] = readdirSync(folder).filter((name) => name.includes('damaged'));
    expect(readFileSync(join(folder, aside)).equals(bytes)).toBe(true);
    await store.delete('run');
    expect(readdirSync(join(dir, 'runs'))).toEqual([]);
  });

  test('a delta is refused as one that does not follow, so that its writer sends all it has', async () => {
    const { store } = await damagedRun();
    const { delta } = nextStep(nextStep(sampleRecord('run')).record);
    await expect(store.append(delta)).rejects.toMatchObject({ code: 'REVISION_GAP' });
  });

  test('nobody can claim it, and it can be deleted', async () => {
    const { store } = await damagedRun();
    await expect(store.claim('run', 'one', 1_000)).rejects.toMatchObject({ code: 'CHECKPOINT_CORRUPT' });
    expect(await listed(store)).toEqual(['run quarantined']);
    await store.delete('run');
    expect(await found(store)).toBe(null);
  });

  test('its lease is still respected, and still its owner’s to use', async () => {
    const { journals } = await history(sampleRecord('run'));
    const bytes = Buffer.from(journals[2] as Buffer);
    const at = bytes.lastIndexOf('"iteration"');
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    const { store } = storeWith(bytes);
    await expect(store.delete('run')).rejects.toMatchObject({ code: 'RUN_OWNED_ELSEWHERE' });
    const claim = { runId: 'run', owner, epoch: 1, attempts: 1 };
    await store.renew(claim, 600_000);
    await store.save(sampleRecord('run', { revision: 9 }), { claim });
    expect(await found(store)).toEqual(sampleRecord('run', { revision: 9 }));
    await expect(store.save(sampleRecord('run'))).rejects.toMatchObject({ code: 'RUN_OWNED_ELSEWHERE' });
  });

  test('damage that only writing it anew would find makes the writer send all it has', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir, durability: 'process' });
    const big = (n: number) => ({ undelivered: [userMessage(`${n}`.repeat(40_000))] });
    let record = sampleRecord('run', { messages: [userMessage('seed')] });
    await store.save(record);
    const bytes = readFileSync(journalOf(dir, 'run'));
    const at = bytes.indexOf('seed');
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(journalOf(dir, 'run'), bytes);
    const codes: unknown[] = [];
    for (let n = 1; n < 5; n++) {
      const step = nextStep(record, [], big(n));
      const code = await store.append(step.delta).catch((error: { code?: unknown }) => error.code);
      if (code === undefined) record = step.record;
      else codes.push(code);
    }
    expect(codes[0]).toBe('REVISION_GAP');
    await store.save(record);
    expect(await found(store)).toEqual(record);
  });
});

describe('damage elsewhere (recovery 6)', () => {
  test('a kept outcome with a flipped bit at any offset is refused, and takes part in nothing', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir, durability: 'process' });
    await store.keepOutcome('run', sampleOutcome('run'), 4e12);
    const path = join(dir, 'outcomes', safeName('run'));
    const bytes = readFileSync(path);
    for (const offset of bytes.keys()) {
      const damaged = Buffer.from(bytes);
      damaged[offset] = (damaged[offset] ?? 0) ^ (1 << (offset % 8));
      writeFileSync(path, damaged);
      await expect(store.outcome('run')).rejects.toMatchObject({ code: 'CHECKPOINT_CORRUPT' });
    }
    const claim = (await store.claim('run', 'one', 1_000)) ?? undefined;
    await store.delete('run', { claim });
    cpSync(path, join(dir, 'outcomes', safeName('other')));
    await expect(store.outcome('other')).rejects.toMatchObject({ code: 'CHECKPOINT_CORRUPT' });
    await store.keepOutcome('run', sampleOutcome('run'), 4e12);
    expect(await store.outcome('run')).toEqual(sampleOutcome('run'));
  });

  test('a renewal that cannot be read counts for nothing: the epoch still tells who has the run', async () => {
    const dir = freshDir();
    const clock = testClock();
    await using store = fileStore({ dir, durability: 'process', clock });
    const claim = await store.claim('run', 'one', 1_000);
    if (!claim) throw new Error('nobody else has the run');
    await store.renew(claim, 600_000);
    await clock.advance(1_000);
    expect(await store.claim('run', 'two', 600_000)).toBe(null);
    writeFileSync(join(dirname(journalOf(dir, 'run')), 'expiry'), 'nonsense\n');
    expect(await store.claim('run', 'two', 600_000)).toMatchObject({ epoch: 2 });
    await expect(store.save(sampleRecord('run'), { claim })).rejects.toMatchObject({ code: 'LEASE_LOST' });
  });
});

describe('what a newer version wrote (checkpoint 6, faults 12)', () => {
  const refusal = { code: 'CHECKPOINT_TOO_NEW', message: expect.stringContaining('upgrade') };

  test('a journal of a newer layout is refused by every call, listed by its id, and left as it is', async () => {
    const lines = splitLines((await history(sampleRecord('run'))).journals[0] as Buffer).map((line) => line.bytes);
    const newer = Buffer.concat([encodeLine('run', [2, '"run"', 'more']), ...lines.slice(1)]);
    const { store, dir } = storeWith(newer);
    const { delta } = nextStep(sampleRecord('run'));
    await expect(store.load('run')).rejects.toMatchObject(refusal);
    await expect(store.save(sampleRecord('run'))).rejects.toMatchObject(refusal);
    await expect(store.append(delta)).rejects.toMatchObject(refusal);
    await expect(store.claim('run', 'one', 1_000)).rejects.toMatchObject(refusal);
    await expect(store.delete('run')).rejects.toMatchObject(refusal);
    expect(await store.listInterrupted()).toMatchObject([
      { runId: 'run', status: 'quarantined', reason: expect.stringContaining('CHECKPOINT_TOO_NEW') },
    ]);
    expect(readFileSync(journalOf(dir, 'run')).equals(newer)).toBe(true);
  });

  test('a folder of a newer layout is refused by every call', async () => {
    const { store, dir } = storeWith((await history(sampleRecord('run'))).journals[0] as Buffer);
    writeFileSync(join(dir, 'layout'), '2\n');
    await expect(store.load('run')).rejects.toMatchObject(refusal);
    await expect(store.listInterrupted()).rejects.toMatchObject(refusal);
    await expect(store.save(sampleRecord('run'))).rejects.toMatchObject(refusal);
    expect(readdirSync(dir).sort()).toEqual(['layout', 'runs']);
  });
});
