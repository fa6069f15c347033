import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { decodeLine, encodeLine, splitLines } from '../../../src/files/lines.ts';
import { safeName } from '../../../src/files/safe-name.ts';
import { fileStoreOn } from '../../../src/store/file/file-store.ts';
import { fileStore } from '../../../src/store/file/index.ts';
import { fullRecord, nextStep, sampleRecord, userMessage } from '../../../src/testing/store-contract/records.ts';
import { seed, torture } from '../../crash/random.ts';
import { alteredFiles } from '../../files/altered.ts';
import { freshDir, journalOf } from './folder.ts';
import { found, type History, history, listed, owner, storeWith } from './journals.ts';

/** Works on all of them, many at a time: what looks damaged is looked at more than once, with pauses. */
async function eachOf<T>(all: readonly T[], work: (each: T) => Promise<void>): Promise<void> {
  for (let i = 0; i < all.length; i += 200) await Promise.all(all.slice(i, i + 200).map(work));
}

/** Every so many offsets of a journal are tried, from one on that is drawn; all of them under torture. */
const strides = torture > 1 ? { small: 1, full: 1, last: 1 } : { small: 13, full: 241, last: 4 };

const upTo = (length: number) => Array.from({ length }, (_, i) => i);

describe('damage to a journal (recovery 6, faults 2, 13)', () => {
  let full: History;
  let small: History;
  let journal: Buffer;
  beforeAll(async () => {
    full = await history(fullRecord('run'));
    small = await history(sampleRecord('run'));
    journal = full.journals.at(-1) as Buffer;
  });

  test('a flipped bit at any offset is found when it is loaded, and hides nothing', { timeout: 180_000 }, async () => {
    const quarantined = { small: 0, full: 0 };
    const flip = async (kind: 'small' | 'full', offset: number) => {
      const damaged = Buffer.from({ small, full }[kind].journals[2] as Buffer);
      damaged[offset] = (damaged[offset] ?? 0) ^ (1 << (offset % 8));
      const { store, dir } = storeWith(damaged);
      expect(await found(store), `offset ${offset}`).toBe('CHECKPOINT_CORRUPT');
      const [line] = await listed(store);
      expect(['run quarantined', `run ${kind === 'full' ? 'parked' : 'interrupted'}`], `offset ${offset}`).toContain(
        line,
      );
      if (line === 'run quarantined') quarantined[kind] += 1;
      expect(readFileSync(journalOf(dir, 'run')).equals(damaged), 'its bytes are kept').toBe(true);
    };
    for (const [kind, bytes] of [['small', small.journals[2]] as const, ['full', journal] as const]) {
      const stride = strides[kind];
      const offsets = upTo((bytes?.length ?? 0) / stride - 1).map((i) => i * stride + (seed % stride));
      await eachOf(offsets, (offset) => flip(kind, offset));
    }
    // A list reads neither messages nor images, and no state but the last.
    expect(quarantined.small, `PAWL_SEED=${seed}`).toBeGreaterThan(400 / strides.small);
    expect(quarantined.full, `PAWL_SEED=${seed}`).toBeGreaterThan(400 / strides.full);
  });

  test('cut off within its last commit, it is the record before; the next write goes on from there', async () => {
    const [before, whole] = [small.journals[1] as Buffer, small.journals[2] as Buffer];
    const lengths = upTo(whole.length - before.length);
    const tried = lengths.filter(
      (length) => length % strides.last === seed % strides.last || length === lengths.at(-1),
    );
    await eachOf(tried, async (length) => {
      const { store, dir } = storeWith(whole.subarray(0, before.length + length));
      expect(await found(store), `${length} bytes`).toEqual(small.records[1]);
      expect(await listed(store)).toEqual(['run interrupted']);
      const claim = { runId: 'run', owner, epoch: 1, attempts: 1 };
      await store.append(small.last.delta, { claim });
      expect(await found(store)).toEqual(small.records[2]);
      expect(readFileSync(journalOf(dir, 'run')).equals(whole)).toBe(true);
    });
  });

  test('cut off anywhere, it is refused or a record that it once was, never absent', { timeout: 180_000 }, async () => {
    const [first, , whole] = small.journals as [Buffer, Buffer, Buffer];
    const stride = torture > 1 ? 1 : 11;
    await eachOf(upTo(whole.length / stride), async (i) => {
      const length = i * stride + (seed % stride);
      const { store } = storeWith(whole.subarray(0, length));
      const record = await found(store);
      if (length >= first.length) expect(small.records.slice(0, -1), `${length} bytes`).toContainEqual(record);
      else expect(record, `${length} bytes`).toBe('CHECKPOINT_CORRUPT');
      expect(await listed(store)).toHaveLength(1);
    });
  });

  test.for(['zeros', 'what was there before'] as const)(
    'an end that the disk filled with %s is cut off',
    async (what) => {
      const [before, whole] = [small.journals[1] as Buffer, small.journals[2] as Buffer];
      for (const length of [1, 20, 300, whole.length - before.length - 2]) {
        const rest = whole.length - before.length - length;
        const filler = what === 'zeros' ? Buffer.alloc(rest) : Buffer.from('x\0\x07\t'.repeat(rest)).subarray(0, rest);
        const { store } = storeWith(Buffer.concat([whole.subarray(0, before.length + length), filler]));
        expect(await found(store)).toEqual(small.records[1]);
      }
    },
  );

  test('of a long commit that was torn nothing stays behind a short one', async () => {
    const first = sampleRecord('run');
    const { store: whole, dir } = storeWith((await history(first)).journals[0] as Buffer);
    const claim = { runId: 'run', owner, epoch: 1, attempts: 1 };
    await whole.append(nextStep(first, [userMessage('z'.repeat(5_000))]).delta, { claim });
    const { store } = storeWith(readFileSync(journalOf(dir, 'run')).subarray(0, -1));
    const short = nextStep(first, []);
    await store.append(short.delta, { claim });
    expect(await found(store)).toEqual(short.record);
  });

  type Lines = Buffer[];
  /** The messages of the last step. */
  const stepIn = (lines: Lines) => lines.findLast((line) => decodeLine(line)?.kind === 'messages');
  const changes: readonly (readonly [name: string, change: (lines: Lines) => Lines])[] = [
    ['nothing in it', () => []],
    ['without its first line', (lines) => lines.slice(1)],
    ['without its meta', (lines) => lines.filter((line) => decodeLine(line)?.kind !== 'base')],
    ['without its lease', (lines) => lines.filter((line) => decodeLine(line)?.kind !== 'lease')],
    ['without its states', (lines) => lines.filter((line) => decodeLine(line)?.kind !== 'state')],
    ['without the messages of a step', (lines) => lines.filter((line) => line !== stepIn(lines))],
    [
      'with the messages of a step twice',
      (lines) => lines.flatMap((line) => (line === stepIn(lines) ? [line, line] : [line])),
    ],
    ['with an empty line', (lines) => [...lines, Buffer.from('\n')]],
    ['with a line of another kind', (lines) => [...lines, encodeLine('note', ['1'])]],
    ['with a byte order mark', (lines) => [Buffer.from('\ufeff'), ...lines]],
    ['with {} for a line', (lines) => [...lines, Buffer.from('{}\n')]],
    [
      'with messages that are none',
      (lines) => lines.map((line) => (line === stepIn(lines) ? encodeLine('messages', [1, '{}']) : line)),
    ],
  ];
  test.for(changes)('%s, it is refused', async ([, change]) => {
    const lines = splitLines(journal).map((line) => line.bytes);
    expect(lines).toContain(stepIn(lines));
    const { store } = storeWith(Buffer.concat(change(lines)));
    expect(await found(store)).toBe('CHECKPOINT_CORRUPT');
    expect(await listed(store)).toHaveLength(1);
  });

  test('the journal of another run, under this run’s name, is refused', async () => {
    const { store } = storeWith(journal, 'other');
    expect(await found(store, 'other')).toBe('CHECKPOINT_CORRUPT');
    expect(await listed(store)).toEqual([`${safeName('other')} quarantined`]);
    expect(await found(store)).toBe(null);
  });
});

test('a torn end that a writer cuts off while somebody reads is not taken for damage (recovery 6)', async () => {
  const dir = freshDir();
  const messages = [userMessage('x'.repeat(150_000)), userMessage('y'.repeat(90_000))];
  const first = sampleRecord('run', { messages });
  await using writer = fileStore({ dir, durability: 'process' });
  await writer.save(first);
  const journal = readFileSync(journalOf(dir, 'run'));
  const torn = nextStep(first, [userMessage('t'.repeat(60_000))]);
  await writer.append(torn.delta);
  const { store, dir: other } = storeWith(readFileSync(journalOf(dir, 'run')).subarray(0, journal.length + 50_000));
  await using late = store;
  const step = nextStep(first, [userMessage('s'.repeat(60_000))]);
  let parts = 0;
  const files = alteredFiles((file) => ({
    read: async (length, position) => {
      const bytes = await file.read(length, position);
      parts += 1;
      if (parts === 1) await late.append(step.delta);
      return bytes;
    },
  }));
  expect(await fileStoreOn(files, { dir: other }).load('run')).toEqual(step.record);
  expect(parts).toBeGreaterThan(2);
});
