import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { decodeLine, encodeLine, splitLines } from '../../src/files/lines.ts';
import { safeName } from '../../src/files/names.ts';
import type { RunCheckpoint } from '../../src/record/checkpoint.ts';
import { type FileStore, fileStore } from '../../src/store/file.ts';
import {
  fullRecord,
  nextStep,
  sampleOutcome,
  sampleRecord,
  userMessage,
} from '../../src/testing/store-contract-records.ts';
import { freshDir, journalOf } from './file-folder.ts';

const owner = 'somebody';

/** A run of a whole record and two steps, held by somebody: its records, and its journal after each. */
interface History {
  readonly records: readonly RunCheckpoint[];
  readonly journals: readonly Buffer[];
  readonly last: ReturnType<typeof nextStep>;
}

async function history(first: RunCheckpoint): Promise<History> {
  const dir = freshDir();
  await using store = fileStore({ dir, durability: 'process' });
  const claim = (await store.claim('run', owner, 600_000)) ?? undefined;
  const steps = [nextStep(first), nextStep(nextStep(first).record, [userMessage('ä\n😀')])] as const;
  const journals: Buffer[] = [];
  const look = () => journals.push(readFileSync(journalOf(dir, 'run')));
  await store.save(first, { claim });
  look();
  for (const { delta } of steps) await store.append(delta, { claim }).then(look);
  return { records: [first, ...steps.map((step) => step.record)], journals, last: steps[1] };
}

/** A store in which this is the journal of the run. */
function storeWith(journal: Uint8Array, runId = 'run'): { store: FileStore; dir: string } {
  const dir = freshDir();
  mkdirSync(dirname(journalOf(dir, runId)), { recursive: true });
  writeFileSync(journalOf(dir, runId), journal);
  return { dir, store: fileStore({ dir, durability: 'process' }) };
}

/** The record, or the code of the refusal. */
const found = (store: FileStore, runId = 'run'): Promise<unknown> =>
  store.load(runId).catch((error: { code?: unknown }) => error.code);

async function listed(store: FileStore): Promise<string[]> {
  return (await store.listInterrupted()).map((run) => `${run.runId} ${run.status}`);
}

/** Works on all of them, many at a time: what looks damaged is looked at more than once, with pauses. */
async function eachOf<T>(all: readonly T[], work: (each: T) => Promise<void>): Promise<void> {
  for (let i = 0; i < all.length; i += 200) await Promise.all(all.slice(i, i + 200).map(work));
}

const upTo = (length: number) => Array.from({ length }, (_, i) => i);

describe('damage to a journal (recovery 6, faults F2, F13)', () => {
  let full: History;
  let small: History;
  let journal: Buffer;
  beforeAll(async () => {
    full = await history(fullRecord('run'));
    small = await history(sampleRecord('run'));
    journal = full.journals.at(-1) as Buffer;
  });

  test('a flipped bit at any offset is found when it is loaded, and hides nothing', { timeout: 60_000 }, async () => {
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
    await eachOf(upTo(small.journals[2]?.length ?? 0), (offset) => flip('small', offset));
    await eachOf(upTo(journal.length / 11), (i) => flip('full', i * 11));
    // A list reads neither messages nor images, and no state but the last.
    expect(quarantined.small).toBeGreaterThan(500);
    expect(quarantined.full).toBeGreaterThan(50);
  });

  test('cut off within its last commit, it is the record before; the next write goes on from there', async () => {
    const [before, whole] = [small.journals[1] as Buffer, small.journals[2] as Buffer];
    await eachOf(upTo(whole.length - before.length), async (length) => {
      const { store, dir } = storeWith(whole.subarray(0, before.length + length));
      expect(await found(store), `${length} bytes`).toEqual(small.records[1]);
      expect(await listed(store)).toEqual(['run interrupted']);
      const claim = { runId: 'run', owner, epoch: 1, attempts: 1 };
      await store.append(small.last.delta, { claim });
      expect(await found(store)).toEqual(small.records[2]);
      expect(readFileSync(journalOf(dir, 'run')).equals(whole)).toBe(true);
    });
  });

  test('cut off anywhere, it is refused or a record that it once was, never absent', { timeout: 60_000 }, async () => {
    const [first, , whole] = small.journals as [Buffer, Buffer, Buffer];
    await eachOf(upTo(whole.length), async (length) => {
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

  type Lines = Buffer[];
  const changes: readonly (readonly [name: string, change: (lines: Lines) => Lines])[] = [
    ['nothing in it', () => []],
    ['without its first line', (lines) => lines.slice(1)],
    ['without its meta', (lines) => lines.filter((line) => decodeLine(line)?.kind !== 'base')],
    ['without its lease', (lines) => lines.filter((line) => decodeLine(line)?.kind !== 'lease')],
    ['without its states', (lines) => lines.filter((line) => decodeLine(line)?.kind !== 'state')],
    ['without the messages of a step', (lines) => lines.filter((_, i) => i !== 6)],
    ['with the messages of a step twice', (lines) => lines.flatMap((line, i) => (i === 6 ? [line, line] : [line]))],
    ['with an empty line', (lines) => [...lines, Buffer.from('\n')]],
    ['with a line of another kind', (lines) => [...lines, encodeLine('note', ['1'])]],
    ['with a byte order mark', (lines) => [Buffer.from('\ufeff'), ...lines]],
    ['with {} for a line', (lines) => [...lines, Buffer.from('{}\n')]],
    [
      'with messages that are none',
      (lines) => lines.map((line, i) => (i === 6 ? encodeLine('messages', [1, '{}']) : line)),
    ],
  ];
  test.for(changes)('%s, it is refused', async ([, change]) => {
    const lines = splitLines(journal).map((line) => line.bytes);
    expect(decodeLine(lines[6] as Buffer)?.kind).toBe('messages');
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
    for (const offset of upTo(bytes.length)) {
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
    await using store = fileStore({ dir, durability: 'process' });
    const claim = await store.claim('run', 'one', 1);
    if (!claim) throw new Error('nobody else has the run');
    await store.renew(claim, 600_000);
    expect(await store.claim('run', 'two', 600_000)).toBe(null);
    writeFileSync(join(dirname(journalOf(dir, 'run')), 'expiry'), 'nonsense\n');
    expect(await store.claim('run', 'two', 600_000)).toMatchObject({ epoch: 2 });
    await expect(store.save(sampleRecord('run'), { claim })).rejects.toMatchObject({ code: 'LEASE_LOST' });
  });
});

describe('what a newer version wrote (checkpoint 6, faults F12)', () => {
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
