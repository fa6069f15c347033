import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  fromModelResponse,
  IncrementalSaver,
  loadCheckpoint,
  type ResponseSnapshot,
  saveCheckpoint,
  snapshotFromPartial,
} from 'pawl/fan-out';
import { describe, expect, test } from 'vitest';
import { CheckpointWriter } from '../../src/fan-out/checkpoint-writer.ts';
import { diskFiles, type FileSystem } from '../../src/files/file-system.ts';
import { freshFolder } from './fresh-folder.ts';
import { answer } from './sample-answers.ts';

const prompt = 'Which?';
const freshPath = () => join(freshFolder(), 'ask.json');
const saverOf = (path: string, ids: readonly string[] = ['a', 'b']) => new IncrementalSaver(path, prompt, ids, false);
const turn = (modelId: string, steps: number, text = `turn ${steps}`) => snapshotFromPartial(modelId, { text, steps });
const stepsIn = async (path: string) =>
  (await loadCheckpoint(path))?.responses.map(({ modelId, steps }) => `${modelId} ${steps}`);
/** The id of a process that is certainly gone. */
const deadPid = () => spawnSync('true').pid;

/** The disk, with what is written to it counted. */
function countingFiles() {
  const counted = { bytes: 0, writes: 0 };
  const open: FileSystem['open'] = async (path, mode) => {
    const file = await diskFiles.open(path, mode);
    const write: typeof file.write = (bytes, position) => {
      counted.bytes += bytes.length;
      return file.write(bytes, position);
    };
    const close = () => file.close();
    const sync = () => file.sync();
    return { ...file, write, close, sync };
  };
  const rename: FileSystem['rename'] = (path, name) => {
    counted.writes += 1;
    return diskFiles.rename(path, name);
  };
  return { counted, files: { ...diskFiles, open, rename } };
}

describe('many models at once', () => {
  const ids = Array.from({ length: 8 }, (_, i) => `m${i}`);

  test('8 models, 200 turns each: the file parses at any moment, in adapter order, and no turn that resolved is missing (fan-out 4)', {
    timeout: 180_000,
  }, async () => {
    const path = freshPath();
    const { counted, files } = countingFiles();
    const writer = new CheckpointWriter({ path, prompt, adapterIds: ids, verbose: false }, { files, now: Date.now });
    const resolved = new Map<string, number>();
    const work = async (id: string) => {
      for (let steps = 1; steps <= 200; steps++) {
        await writer.put(turn(id, steps, 'x'.repeat(100)));
        resolved.set(id, steps);
        if (steps % (1 + ids.indexOf(id)) === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    };
    let isDone = false;
    let reads = 0;
    const read = async () => {
      while (!isDone) {
        const before = new Map(resolved);
        const found = await loadCheckpoint(path);
        const order = (found?.responses ?? []).map(({ modelId }) => modelId);
        expect(order).toEqual(ids.filter((id) => order.includes(id)));
        for (const [id, steps] of before) {
          expect(found?.responses.find(({ modelId }) => modelId === id)?.steps, id).toBeGreaterThanOrEqual(steps);
        }
        reads += 1;
      }
    };
    const reading = read();
    await Promise.all(ids.map(work));
    isDone = true;
    await reading;
    expect(await stepsIn(path)).toEqual(ids.map((id) => `${id} 200`));
    expect(reads).toBeGreaterThan(50);
    // 1600 turns: all that come while the file is being written share the next write, and none is larger for what was before.
    expect(counted.writes).toBeLessThan(800);
    expect(counted.bytes).toBeLessThan(counted.writes * 8 * 400);
    await writer.close();
    expect(readdirSync(dirname(path))).toEqual(['ask.json']);
  });

  test('turns that come at once are one write or two, and each of them resolves (fan-out 4)', async () => {
    const path = freshPath();
    const { counted, files } = countingFiles();
    const writer = new CheckpointWriter({ path, prompt, adapterIds: ids, verbose: false }, { files, now: Date.now });
    await Promise.all(ids.flatMap((id) => Array.from({ length: 200 }, (_, i) => writer.put(turn(id, i + 1)))));
    expect(counted.writes).toBeLessThanOrEqual(2);
    expect(await stepsIn(path)).toEqual(ids.map((id) => `${id} 200`));
    await writer.close();
  });
});

describe('what is handed over', () => {
  test('a model that is none of the fan-out’s is refused, and nothing is written (fan-out 4)', async () => {
    const path = freshPath();
    await using saver = saverOf(path);
    await expect(saver.update('c', turn('c', 1))).rejects.toThrow(
      new TypeError('"c" is not a model of this checkpoint'),
    );
    expect(readdirSync(dirname(path))).toEqual([]);
  });

  test('the id that is named counts, and not the one in the snapshot (fan-out 4)', async () => {
    const path = freshPath();
    await using saver = saverOf(path);
    await saver.update('a', turn('b', 1));
    expect(await stepsIn(path)).toEqual(['a 1']);
  });

  test('a snapshot that JSON cannot hold is refused by itself: the turns of the other models are stored (fan-out 4)', async () => {
    const path = freshPath();
    await using saver = saverOf(path);
    await saver.update('a', turn('a', 1));
    await expect(saver.update('a', turn('a', Number.NaN))).rejects.toMatchObject({ code: 'NOT_JSON' });
    const none = null as unknown as ResponseSnapshot;
    await expect(saver.update('a', none)).rejects.toMatchObject({ code: 'NOT_JSON' });
    await saver.update('b', turn('b', 1));
    expect(await stepsIn(path)).toEqual(['a 1', 'b 1']);
  });

  test('what a host does to its snapshot later changes nothing that is written (fan-out 4)', async () => {
    const path = freshPath();
    await using saver = saverOf(path);
    const proposedWrites = [{ path: 'a.txt', content: 'as handed over' }];
    const saved = saver.update('a', { ...turn('a', 1), proposedWrites });
    proposedWrites.length = 0;
    await saved;
    expect((await loadCheckpoint(path))?.responses[0]?.proposedWrites).toHaveLength(1);
  });

  test('after close nothing is taken any more, and the file is anybody’s (fan-out 4)', async () => {
    const path = freshPath();
    const saver = saverOf(path);
    const last = saver.markCompleted('a', fromModelResponse(answer));
    await saver.close();
    await last;
    expect(readdirSync(dirname(path))).toEqual(['ask.json']);
    await expect(saver.update('a', turn('a', 1))).rejects.toThrow(`the writer of ${path} is closed`);
    await saver.close();
    expect(await stepsIn(path)).toEqual(['a 3']);
  });
});

describe('what is in the file', () => {
  test('what an earlier process left stays until there is something newer of that model (fan-out 4)', async () => {
    const path = freshPath();
    const first = saverOf(path);
    await Promise.all([first.update('a', turn('a', 5)), first.markCompleted('b', fromModelResponse(answer))]);
    await first.close();
    await using second = saverOf(path, ['b', 'a']);
    await second.update('a', turn('a', 6));
    expect(await stepsIn(path)).toEqual(['b 3', 'a 6']);
    expect((await loadCheckpoint(path))?.responses[0]).toMatchObject({ completed: true, text: 'Yes.' });
  });

  const model = (modelId: string) => fromModelResponse({ ...answer, modelId });
  test.for([
    ['of another prompt', { prompt: 'Who?', responses: [] }, 'another prompt'],
    ['with an answer of a model that is not asked', { prompt, responses: [model('c')] }, 'an answer of c'],
  ] as const)('a file %s is refused, and nothing of it is lost (fan-out 4)', async ([, found, why]) => {
    const path = freshPath();
    await saveCheckpoint(path, { version: 1, timestamp: 0, adapterIds: ['a', 'b', 'c'], verbose: false, ...found });
    const bytes = readFileSync(path);
    await using saver = saverOf(path);
    for (let times = 0; times < 2; times++) {
      const refused = saver.update('a', turn('a', 1));
      await expect(refused).rejects.toMatchObject({ code: 'FAN_OUT_CONFLICT', message: expect.stringContaining(why) });
    }
    expect(readFileSync(path).equals(bytes)).toBe(true);
    expect(readdirSync(dirname(path))).toEqual(['ask.json']);
  });

  test.for([
    ['CHECKPOINT_CORRUPT', '{"version":1,"prompt":"Wh'],
    ['CHECKPOINT_CORRUPT', ''],
    ['CHECKPOINT_TOO_NEW', '{"version":2}'],
  ])(
    'a file that is refused as %s stays as it is, byte for byte, and has no lock (fan-out 3)',
    async ([code, text = '']) => {
      const path = freshPath();
      writeFileSync(path, text);
      await using saver = saverOf(path);
      await expect(saver.update('a', turn('a', 1))).rejects.toMatchObject({ code });
      await expect(loadCheckpoint(path)).rejects.toMatchObject({ code });
      expect(readFileSync(path, 'utf8')).toBe(text);
      expect(readdirSync(dirname(path))).toEqual(['ask.json']);
    },
  );

  test('what is no file is refused by a typed error (fan-out 3)', async () => {
    const path = freshPath();
    mkdirSync(path);
    await expect(loadCheckpoint(path)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await expect(saverOf(path).update('a', turn('a', 1))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    const below = join(path, 'x.json');
    writeFileSync(below, '');
    const checkpoint = { version: 1, prompt, timestamp: 0, adapterIds: [], responses: [], verbose: false } as const;
    await expect(saveCheckpoint(join(below, 'y.json'), checkpoint)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    });
  });
});

test('a file of which a half was written is not there under the name, and goes with the next process (fan-out 3)', async () => {
  const path = freshPath();
  const [dead, files] = [deadPid(), dirname(path)];
  const left = [`ask.json.${dead}.0123abcd.tmp`, `ask.json.lock.${dead}.0123abcd.tmp`];
  const others = [
    'ask.json.bak',
    `ask.json.${process.pid}.0123abcd.tmp`,
    'ask.json.1.tmp',
    `other.json.${dead}.0123abcd.tmp`,
  ];
  for (const name of [...left, ...others]) writeFileSync(join(files, name), 'half');
  expect(await loadCheckpoint(path)).toBeNull();
  await using saver = saverOf(path);
  await saver.update('a', turn('a', 1));
  expect(readdirSync(files).sort()).toEqual(['ask.json', 'ask.json.lock', ...others].sort());
  expect(existsSync(path)).toBe(true);
});
