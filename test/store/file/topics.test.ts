import { expect, test } from 'vitest';
import { diskFiles, type FileSystem } from '../../../src/files/file-system.ts';
import { fileStoreOn } from '../../../src/store/file/file-store.ts';
import { fileStore } from '../../../src/store/file/index.ts';
import type { Claim } from '../../../src/store/port.ts';
import { sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { freshDir } from './folder.ts';

const topic = 'd9'.repeat(32);
const signal = { topic, id: 'one', value: 1, untilMs: Date.now() + 600_000 };

/** A file system on which the n-th write of a topic fails: what a process has done that dies there. */
function failingAt(nth: number): FileSystem {
  let count = 0;
  const rename: FileSystem['rename'] = async (from, to) => {
    if (to.includes('/topics/') && ++count === nth) throw Object.assign(new Error('gone'), { code: 'EIO', errno: -5 });
    return diskFiles.rename(from, to);
  };
  return { ...diskFiles, rename };
}

test.for([1, 2])(
  'a signal whose delivery ends at its write number %i is delivered once, by the next process that looks (waiting 12, 32)',
  async (nth) => {
    const dir = freshDir();
    await using store = fileStore({ dir });
    const claim = (await store.claim('run', 'me', 60_000)) as Claim;
    await store.save(sampleRecord('run'), { claim });
    await store.expect(claim, { waitId: 'w', topic });

    await using dying = fileStoreOn(failingAt(nth), { dir });
    await expect(dying.signal(signal)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(await store.signal(signal)).toEqual({ to: 'run' });
    expect(await store.inbox({ runId: 'run' })).toHaveLength(1);
    expect(await store.signal({ ...signal, id: 'two' })).toEqual({});
  },
);

test('a damaged topic counts as empty, and takes the next signals', async () => {
  const dir = freshDir();
  await using store = fileStore({ dir });
  await store.signal(signal);
  await diskFiles.open(`${dir}/topics/${topic}`, 'update').then(async (file) => {
    await file.write(Buffer.from('x'), 3);
    await file.close();
  });
  expect(await store.signal({ ...signal, id: 'two' })).toEqual({});
});
