import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { IncrementalSaver, loadCheckpoint, snapshotFromPartial } from 'pawl/fan-out';
import { describe, expect, test } from 'vitest';
import { CheckpointWriter } from '../../src/fan-out/checkpoint-writer.ts';
import { diskFiles, type FileSystem } from '../../src/files/file-system.ts';
import { gate } from '../fixtures/host.ts';
import { startChild } from '../store/child-process.ts';
import { freshFolder } from './fresh-folder.ts';

const ownedElsewhere = { code: 'FAN_OUT_OWNED_ELSEWHERE' };
const freshPath = () => join(freshFolder(), 'ask.json');
const saverOf = (path: string) => new IncrementalSaver(path, 'Which?', ['a', 'b'], false);
const turn = (modelId: string, steps: number) => snapshotFromPartial(modelId, { text: `turn ${steps}`, steps });
const stepsIn = async (path: string) =>
  (await loadCheckpoint(path))?.responses.map(({ modelId, steps }) => `${modelId} ${steps}`);
const childOf = (role: string, path: string, argument = '') =>
  startChild({ role, path, argument, script: '../fan-out/saver-child.ts' });

describe('two processes on one path', () => {
  test('the second is refused while the first lives, and takes over as soon as the first was killed (fan-out 4, faults 34)', async () => {
    const path = freshPath();
    const child = childOf('hold', path);
    expect(await child.next()).toBe('held');
    const [lock] = readdirSync(dirname(path)).filter((name) => name.endsWith('.lock'));
    const bytes = readFileSync(path);
    await using saver = saverOf(path);
    for (let times = 0; times < 2; times++) {
      const refused = saver.update('b', turn('b', 1));
      await expect(refused).rejects.toMatchObject({
        ...ownedElsewhere,
        message: expect.stringMatching(/process \d+ of/),
      });
    }
    expect(readFileSync(path).equals(bytes)).toBe(true);
    expect(readdirSync(dirname(path)).sort()).toEqual(['ask.json', lock].sort());
    await child.kill();
    expect(existsSync(join(dirname(path), String(lock)))).toBe(true);
    await saver.update('b', turn('b', 2));
    expect(await stepsIn(path)).toEqual(['a 1', 'b 2']);
  });

  test('the lock goes with a process that ends without closing (fan-out 4)', async () => {
    const path = freshPath();
    const child = childOf('hold', path);
    expect(await child.next()).toBe('held');
    child.tell();
    await child.exited;
    expect(readdirSync(dirname(path))).toEqual(['ask.json']);
  });

  test('a process that ends while it is being refused leaves the other’s lock alone (fan-out 4)', async () => {
    const path = freshPath();
    await using saver = saverOf(path);
    await saver.update('a', turn('a', 1));
    await childOf('tryAndExit', path).exited;
    expect(existsSync(`${path}.lock`)).toBe(true);
    expect(await childOf('hold', path).next()).toBe(ownedElsewhere.code);
    await saver.update('a', turn('a', 2));
    expect(await stepsIn(path)).toEqual(['a 2']);
  });

  test('a lock without a text, as the loss of power may leave one, is taken over (fan-out 4)', async () => {
    const path = freshPath();
    writeFileSync(`${path}.lock`, '');
    await using saver = saverOf(path);
    await saver.update('a', turn('a', 1));
    expect(await stepsIn(path)).toEqual(['a 1']);
  });

  test('a lock of another machine keeps others out, since no process here can know whether its process lives (fan-out 4)', async () => {
    const path = freshPath();
    writeFileSync(`${path}.lock`, 'elsewhere|boot|namespace|7|1|nonce');
    await using saver = saverOf(path);
    const refused = { ...ownedElsewhere, message: expect.stringContaining('process 7 of elsewhere') };
    await expect(saver.update('a', turn('a', 1))).rejects.toMatchObject(refused);
    expect(existsSync(path)).toBe(false);
  });

  test('of two processes that save at once the file is always the one or the other, and nothing else is left (fan-out 3)', {
    timeout: 180_000,
  }, async () => {
    const path = freshPath();
    const children = ['x', 'y'].map((name) => childOf('save', path, `${name}:60`));
    for (const child of children) expect(await child.next()).toBe('ready');
    for (const child of children) child.tell();
    const seen = new Set<string>();
    let isDone = false;
    const ended = Promise.all(children.map((child) => child.exited)).then(() => {
      isDone = true;
    });
    for (let found = await loadCheckpoint(path); !isDone; found = await loadCheckpoint(path)) {
      if (found) expect(['x'.repeat(20_000), 'y'.repeat(20_000)]).toContain(found.prompt);
      if (found) seen.add(found.prompt[0] ?? '');
    }
    await ended;
    expect(seen.size).toBeGreaterThan(0);
    expect(readdirSync(dirname(path))).toEqual(['ask.json']);
  });
});

describe('two savers of one process', () => {
  test('the second takes over from one that was never closed, and the first gets an error (fan-out 4)', async () => {
    const path = freshPath();
    const first = saverOf(path);
    await first.update('a', turn('a', 1));
    await using second = saverOf(path);
    await second.update('b', turn('b', 1));
    await expect(first.update('a', turn('a', 2))).rejects.toMatchObject(ownedElsewhere);
    await first.close();
    expect(existsSync(`${path}.lock`)).toBe(true);
    expect(await stepsIn(path)).toEqual(['a 1', 'b 1']);
  });

  test('what the first is writing lands before what the second writes: a turn that resolved is never lost (fan-out 4)', async () => {
    for (let times = 0; times < 40; times++) {
      const path = freshPath();
      const first = saverOf(path);
      await first.update('a', turn('a', 1));
      const writing = first.update('a', turn('a', 2)).then(
        () => 2,
        () => 1,
      );
      for (let turns = 0; turns < times % 8; turns++) await new Promise((resolve) => setImmediate(resolve));
      await using second = saverOf(path);
      await second.update('b', turn('b', 1));
      const steps = await writing;
      expect(await stepsIn(path)).toEqual([`a ${steps}`, 'b 1']);
    }
  });

  test('one that is begun while the other releases its lock has the file for itself (fan-out 4)', async () => {
    const path = freshPath();
    const letting = gate();
    const remove: FileSystem['remove'] = async (removed) => {
      if (removed === `${path}.lock`) await letting.pass();
      await diskFiles.remove(removed);
    };
    const subject = { path, prompt: 'Which?', adapterIds: ['a', 'b'], verbose: false };
    const first = new CheckpointWriter(subject, { files: { ...diskFiles, remove }, now: Date.now });
    await first.put(turn('a', 1));
    const closing = first.close();
    await letting.reached;
    await using second = saverOf(path);
    const updated = second.update('b', turn('b', 1));
    letting.open();
    await Promise.all([closing, updated]);
    expect(existsSync(`${path}.lock`)).toBe(true);
    expect(await childOf('hold', path).next()).toBe(ownedElsewhere.code);
    expect(await stepsIn(path)).toEqual(['a 1', 'b 1']);
  });

  test('the same file under another name is another saver’s (fan-out 4)', async () => {
    const path = freshPath();
    const link = join(freshFolder(), 'link');
    symlinkSync(dirname(path), link);
    await using first = saverOf(path);
    await first.update('a', turn('a', 1));
    await using second = saverOf(join(link, 'ask.json'));
    await expect(second.update('b', turn('b', 1))).rejects.toMatchObject(ownedElsewhere);
    await first.update('a', turn('a', 2));
    expect(await stepsIn(path)).toEqual(['a 2']);
  });

  test('however many savers there are, the process has one listener for all, and none when they are closed (fan-out 4)', async () => {
    const before = process.listenerCount('exit');
    const savers = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const saver = saverOf(freshPath());
        await saver.update('a', turn('a', 1));
        return saver;
      }),
    );
    expect(process.listenerCount('exit')).toBeLessThanOrEqual(before + 1);
    for (const saver of savers) await saver.close();
    expect(process.listenerCount('exit')).toBe(before);
  });
});
