import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { loadCheckpoint, saveCheckpoint, snapshotFromPartial } from 'pawl/fan-out';
import { describe, expect, test } from 'vitest';
import { CheckpointWriter } from '../../src/fan-out/checkpoint-writer.ts';
import type { FileSystem } from '../../src/files/file-system.ts';
import { type Call, type Fault, faultyFiles } from '../files/faulty.ts';
import { freshFolder } from './fresh-folder.ts';

const codes = { ENOSPC: 'STORE_FULL', EIO: 'STORE_UNAVAILABLE', EROFS: 'STORE_UNAVAILABLE' } as const;
const turn = (modelId: string, steps: number) => snapshotFromPartial(modelId, { text: 'x'.repeat(500), steps });
const old = { version: 1, prompt: 'Which?', timestamp: 0, adapterIds: ['a', 'b'], verbose: false } as const;
const writerOn = (path: string, files: FileSystem) =>
  new CheckpointWriter({ ...old, path }, { files, now: () => 0, supersede: true });
const stepsIn = async (path: string) =>
  (await loadCheckpoint(path))?.responses.map(({ modelId, steps }) => `${modelId} ${steps}`);
const codeOf = (settling: Promise<unknown>): Promise<unknown> =>
  settling.then(
    () => undefined,
    (error: { code?: unknown }) => error.code,
  );

/** A file from before, and a disk that is about to fail. */
async function scene() {
  const path = join(freshFolder(), 'ask.json');
  await saveCheckpoint(path, { ...old, responses: [turn('a', 1)] });
  const faults = faultyFiles();
  return { path, faults, writer: writerOn(path, faults.files) };
}

/** Only the new name may be on the disk already. */
const isUnclear = ({ method }: Call) => method === 'syncFolder';
/** What is left over where a removal failed: it says whose it is, and goes with a later process. */
const leftOver = (path: string) => readdirSync(dirname(path)).filter((name) => name !== 'ask.json');

describe('a disk that fails', () => {
  test.for(Object.keys(codes) as (keyof typeof codes)[])(
    '%s at any single call: a typed error or none, the old file whole, and the next update brings the lost turn too (fan-out 4)',
    { timeout: 180_000 },
    async (fault) => {
      let fired = 0;
      for (let at = 0; at === fired; at++) {
        const { path, faults, writer } = await scene();
        faults.plan(() => (faults.calls.length === at + 1 ? fault : undefined));
        const code = await codeOf(writer.put(turn('a', 2)));
        faults.plan(() => undefined);
        const failed = faults.calls[at];
        const where = `call ${at}: ${JSON.stringify(failed)}`;
        expect([undefined, codes[fault]], where).toContain(code);
        const found = await stepsIn(path);
        if (code !== undefined && failed && !isUnclear(failed)) expect(found, where).toEqual(['a 1']);
        if (code === undefined) expect(found, where).toEqual(['a 2']);
        await writer.put(turn('b', 7));
        expect(await stepsIn(path), where).toEqual(['a 2', 'b 7']);
        await writer.close();
        if (failed?.method !== 'remove') expect(leftOver(path), where).toEqual([]);
        fired += faults.fired;
      }
      expect(fired).toBeGreaterThan(12);
    },
  );

  test('one that fails for a while, at each call from any one on: it works again as soon as the disk does (fan-out 4)', async () => {
    for (let at = 0; at < 16; at++) {
      const { path, faults, writer } = await scene();
      faults.plan(() => (faults.calls.length > at ? 'EIO' : undefined));
      const settled = await Promise.all([codeOf(writer.put(turn('a', 2))), codeOf(writer.put(turn('b', 1)))]);
      for (const code of settled) expect([undefined, 'STORE_UNAVAILABLE'], `${at}`).toContain(code);
      await codeOf(writer.put(turn('b', 2)));
      const found = await stepsIn(path);
      expect(found?.[0], `${at}`).toMatch(/^a [12]$/);
      faults.plan(() => undefined);
      await writer.put(turn('b', 3));
      expect(await stepsIn(path), `${at}`).toEqual(['a 2', 'b 3']);
      await writer.close();
      expect(readdirSync(dirname(path)), `${at}`).not.toContain('ask.json.lock');
    }
  });

  test('a file that cannot be released is refused by a typed error, and the same process can have it again (fan-out 4)', async () => {
    const { path, faults, writer } = await scene();
    await writer.put(turn('a', 2));
    faults.plan(({ method }) => (method === 'remove' ? 'EROFS' : undefined));
    await expect(writer.close()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(leftOver(path)).toContain('ask.json.lock');
    faults.plan(() => undefined);
    const next = writerOn(path, faults.files);
    await next.put(turn('b', 1));
    expect(await stepsIn(path)).toEqual(['a 2', 'b 1']);
    await next.close();
    expect(leftOver(path)).toEqual([]);
  });

  test('leftovers that may not be removed disturb no write (fan-out 4)', async () => {
    const { path, faults, writer } = await scene();
    faults.plan(({ method }) => (method === 'names' ? 'EACCES' : undefined) satisfies Fault | undefined);
    await writer.put(turn('a', 2));
    expect(await stepsIn(path)).toEqual(['a 2']);
    await writer.close();
  });

  test('a turn that comes while a write fails is in a write of its own, which brings the other turn too (fan-out 4)', async () => {
    const { path, faults, writer } = await scene();
    await writer.put(turn('a', 2));
    let syncs = 0;
    faults.plan(({ method }) => (method === 'sync' && syncs++ === 0 ? 'EIO' : undefined));
    const settled = [codeOf(writer.put(turn('a', 3))), codeOf(writer.put(turn('b', 1)))];
    expect(await Promise.all(settled)).toEqual(['STORE_UNAVAILABLE', undefined]);
    expect(await stepsIn(path)).toEqual(['a 3', 'b 1']);
    await writer.close();
  });

  test('turns that share a write which fails all get its error, and all are in the next (fan-out 4)', async () => {
    const { path, faults, writer } = await scene();
    await writer.put(turn('a', 2));
    faults.plan(({ method }) => (method === 'sync' ? 'ENOSPC' : undefined));
    const settled = await Promise.all(['a', 'b', 'a', 'b'].map((id, i) => codeOf(writer.put(turn(id, 3 + i)))));
    expect(settled).toEqual(Array(4).fill('STORE_FULL'));
    expect(await stepsIn(path)).toEqual(['a 2']);
    faults.plan(() => undefined);
    await writer.flush();
    expect(await stepsIn(path)).toEqual(['a 5', 'b 6']);
    await writer.close();
  });
});
