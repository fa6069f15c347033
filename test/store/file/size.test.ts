import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { FileSystem } from '../../../src/files/file-system.ts';
import { type OpenStep, resultsMessage } from '../../../src/run/open-step.ts';
import { fileStoreOn } from '../../../src/store/file/file-store.ts';
import { fileStore } from '../../../src/store/file/index.ts';
import { nextStep, sampleRecord, userMessage } from '../../../src/testing/store-contract/records.ts';
import { alteredFiles } from '../../files/altered.ts';
import { faultyFiles } from '../../files/faulty.ts';
import { expectLoadInParts } from '../large-records.ts';
import { filesBelow, freshDir, journalOf } from './folder.ts';

const STEP = 5_000;
const text = 'x'.repeat(STEP - 60);

/** The bytes that a store hands to the disk. */
function countingFiles(): { files: FileSystem; written: () => number } {
  let bytes = 0;
  const files = alteredFiles((file) => ({
    write: async (data, position) => {
      bytes += data.length;
      await file.write(data, position);
    },
  }));
  return { files, written: () => bytes };
}

/** So many calls in a step of the size, each with a share of it: half in its input, half in its result. */
function openSteps(n: number, { calls, size }: { calls: number; size: number }): OpenStep[] {
  const share = text.slice(0, (size / calls - 400) / 2);
  const content = Array.from({ length: calls }, (_, i) => ({
    type: 'tool-call' as const,
    toolCallId: `call-${n}-${i}`,
    toolName: 'send',
    input: { to: `${n}-${i}`, share },
  }));
  const message = { role: 'assistant' as const, content };
  // First the intent, then a save with each result.
  return Array.from({ length: calls + 1 }, (_, done) => ({
    message,
    calls: content.map(({ toolCallId: callId, toolName: name, input }, i) => {
      const line = { callId, name, input, effect: 'once' as const, attempt: 1 };
      const result = { type: 'text' as const, value: `${callId} ${share}` };
      return i < done ? { ...line, state: 'done' as const, result } : { ...line, state: 'started' as const };
    }),
  }));
}

/**
 * A run of so many steps; what is written and kept, as multiples of what its steps say.
 * @param calls of `once` tools in each step; 0: `read` tools, which are recorded with their step
 */
async function sizes(steps: number, calls: number, size = STEP): Promise<{ written: number; kept: number }> {
  const dir = freshDir();
  const { files, written } = countingFiles();
  await using store = fileStoreOn(files, { dir, durability: 'process' });
  const claim = (await store.claim('run', 'one', 600_000)) ?? undefined;
  let record = sampleRecord('run');
  await store.save(record, { claim });
  for (let n = 0; n < steps; n++) {
    for (const openStep of calls > 0 ? openSteps(n, { calls, size }) : []) {
      const open = nextStep(record, [], { openStep });
      await store.append(open.delta, { claim });
      record = open.record;
    }
    const { openStep, ...closed } = record;
    const step = nextStep(closed, openStep ? [openStep.message, resultsMessage(openStep)] : [userMessage(text)]);
    await store.append(step.delta, { claim });
    record = step.record;
  }
  const said = record.messages.reduce((sum, message) => sum + JSON.stringify(message).length, 0);
  expect(await store.load('run')).toEqual(record);
  const all = filesBelow(dir).map((path) => statSync(join(dir, path)).size);
  return { written: written() / said, kept: all.reduce((sum, size) => sum + size, 0) / said };
}

describe('the size of a run (recovery 4)', () => {
  test('400 steps of 5 KB keep at most 1.5 times what they say, and write at most 3 times that', async () => {
    const { written, kept } = await sizes(400, 0);
    expect(kept).toBeLessThan(1.2);
    expect(written).toBeLessThan(1.3);
  });

  test('it grows with the number of steps, and no faster', async () => {
    const [short, long] = [await sizes(50, 0), await sizes(800, 0)];
    expect(long.written / short.written).toBeLessThan(1.05);
    expect(long.kept / short.kept).toBeLessThan(1.05);
  });

  test.for([
    [400, 1, STEP],
    [200, 1, STEP / 2],
    [20, 8, 4 * STEP],
  ] as const)(
    'intents and results of `once` calls are paid for once: %i steps of %i calls, %i bytes a step',
    async ([steps, calls, size]) => {
      const { written, kept } = await sizes(steps, calls, size);
      expect(kept).toBeLessThan(1.5);
      expect(written).toBeLessThan(3);
    },
  );

  test('many small results of one step cost no more than their heads', async () => {
    const { written, kept } = await sizes(40, 8);
    expect(kept).toBeLessThan(1.6);
    expect(written).toBeLessThan(8);
  });

  test('a journal that is written anew loses nothing of its run, and no epoch', { timeout: 180_000 }, async () => {
    const dir = freshDir();
    await using store = fileStore({ dir, durability: 'process' });
    const claim = (await store.claim('run', 'one', 600_000)) ?? undefined;
    const inputs = { ticket: 7 };
    let record = sampleRecord('run', { inputs, messages: Array.from({ length: 40 }, (_, i) => userMessage(`${i}`)) });
    await store.save(record, { claim });
    let smaller = 0;
    let last = 0;
    for (let n = 0; n < 30; n++) {
      const step = nextStep(record, n % 3 === 0 ? [userMessage(`step ${n}`)] : [], {
        undelivered: [userMessage(`${n}`.repeat(20_000))],
      });
      await store.append(step.delta, { claim });
      record = step.record;
      const { size } = statSync(journalOf(dir, 'run'));
      if (size < last) smaller += 1;
      last = size;
      expect(await store.load('run')).toEqual(record);
    }
    expect(smaller).toBeGreaterThan(3);
    await expect(store.save(record)).rejects.toMatchObject({ code: 'RUN_OWNED_ELSEWHERE' });
    expect(await store.claim('run', 'one', 1_000)).toMatchObject({ epoch: 2 });
  });
});

describe('writes that are asked for at once (recovery 4)', () => {
  test('share one sync, while one is under way', async () => {
    const faults = faultyFiles();
    await using store = fileStoreOn(faults.files, { dir: freshDir() });
    let record = sampleRecord('run');
    await store.save(record);
    const from = faults.calls.length;
    const writes: Promise<void>[] = [];
    for (let i = 0; i < 100; i++) {
      const step = nextStep(record);
      writes.push(store.append(step.delta));
      record = step.record;
      // Some are asked for when others are being written.
      if (i % 10 === 0) await nextTurn();
    }
    await Promise.all(writes);
    const syncs = faults.calls.slice(from).filter(({ method }) => method === 'sync').length;
    expect(syncs).toBeGreaterThan(0);
    expect(syncs).toBeLessThan(12);
    expect(await store.load('run')).toEqual(record);
  });

  test('are never synced twice at the same time', async () => {
    let underWay = 0;
    let most = 0;
    const files = alteredFiles((file) => ({
      sync: async () => {
        underWay += 1;
        most = Math.max(most, underWay);
        await file.sync();
        underWay -= 1;
      },
    }));
    await using store = fileStoreOn(files, { dir: freshDir() });
    let record = sampleRecord('run');
    const writes = [store.save(record)];
    for (let i = 0; i < 50; i++) {
      const step = nextStep(record);
      writes.push(store.append(step.delta), nextTurn());
      record = step.record;
      await nextTurn();
    }
    await Promise.all(writes);
    expect(most).toBe(1);
  });

  test('are not synced at all where only the death of the process is to be survived', async () => {
    const faults = faultyFiles();
    await using store = fileStoreOn(faults.files, { dir: freshDir(), durability: 'process' });
    await store.save(sampleRecord('run'));
    await store.append(nextStep(sampleRecord('run')).delta);
    await store.delete('run');
    expect(faults.calls.filter(({ method }) => method.startsWith('sync'))).toEqual([]);
  });

  test('more than fit into one group all land, in order', async () => {
    await using store = fileStore({ dir: freshDir(), durability: 'process' });
    let record = sampleRecord('run');
    const writes: Promise<void>[] = [store.save(record)];
    for (let i = 0; i < 1_500; i++) {
      const step = nextStep(record, []);
      writes.push(store.append(step.delta));
      record = step.record;
    }
    await Promise.all(writes);
    expect(await store.load('run')).toEqual(record);
  });

  test('reads see all writes that were asked for before them', async () => {
    await using store = fileStore({ dir: freshDir() });
    const saving = store.save(sampleRecord('run'));
    const [loaded, listed] = await Promise.all([store.load('run'), store.listInterrupted()]);
    expect([loaded, listed.length]).toEqual([sampleRecord('run'), 1]);
    await saving;
    const deleting = store.delete('run');
    expect(await store.load('run')).toBe(null);
    await deleting;
  });
});

describe('large records', () => {
  test('load lets the event loop go on between parts, and reads one state of the record', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir, durability: 'process' });
    await using other = fileStore({ dir, durability: 'process' });
    await expectLoadInParts(store, other, 500_000);
  });

  test('one more step does not read the record, however long it is', async () => {
    const dir = freshDir();
    const writer = fileStore({ dir, durability: 'process' });
    const messages = Array.from({ length: 20 }, (_, i) => userMessage(`${i}`.padEnd(200_000, 'x')));
    const old = sampleRecord('run', { messages });
    await writer.save(old);
    await writer.close();
    const faults = faultyFiles();
    await using store = fileStoreOn(faults.files, { dir, durability: 'process' });
    const claim = (await store.claim('run', 'one', 600_000)) ?? undefined;
    await store.append(nextStep(old).delta, { claim });
    const reads = faults.calls.filter(({ method, path }) => method === 'read' && path.endsWith('journal')).length;
    expect(reads).toBeLessThan(8);
    expect(readFileSync(journalOf(dir, 'run')).length).toBeGreaterThan(4_000_000);
  });

  test('a message that holds a tab, a line end or half a character stands in a line like any other', async () => {
    await using store = fileStore({ dir: freshDir(), durability: 'process' });
    const record = sampleRecord('run', { messages: [userMessage('a\tb\nc\r\u2028\ud800\0')], inputs: { tab: '\t\n' } });
    await store.save(record);
    expect(await store.load('run')).toEqual(record);
  });
});
