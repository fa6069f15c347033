import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { safeName } from '../../../src/files/safe-name.ts';
import { fileStoreOn } from '../../../src/store/file/file-store.ts';
import { fileStore } from '../../../src/store/file/index.ts';
import { sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { faultyFiles } from '../../files/faulty.ts';
import { startChild } from '../child-process.ts';
import { filesBelow, freshDir, journalOf, replaceFile } from './folder.ts';

const steer = (id: string) => ({ id, kind: 'steer', text: `say ${id}` }) as const;
const mailOf = (dir: string) => join(dir, 'mail', safeName('run'));

describe('commands in a folder (recovery 3)', () => {
  test('what several processes send while the owner takes it out arrives once each, in the order of each sender', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir, durability: 'process' });
    await store.save(sampleRecord('run'));
    const claim = await store.claim('run', 'me', 600_000);
    if (!claim) throw new Error('nobody else has the run');
    const children = [1, 2].map(() =>
      startChild({ script: './file/child.ts', role: 'send', path: dir, argument: '20' }),
    );
    await Promise.all(children.map((each) => each.next()));
    for (const each of children) each.tell();
    const taken: string[] = [];
    while (taken.length < 40) {
      const ids = (await store.inbox({ owner: 'me' })).map(({ command }) => command.id);
      await store.acknowledge(claim, ids);
      taken.push(...ids);
    }
    expect(await Promise.all(children.map((each) => each.next()))).toEqual(['sent', 'sent']);
    expect(await store.inbox({ runId: 'run' })).toEqual([]);
    expect(new Set(taken).size).toBe(40);
    const senders = Map.groupBy(taken, (id) => id.split('-')[0]);
    for (const ids of senders.values())
      expect(ids.map((id) => Number(id.split('-')[1]))).toEqual([...Array(20).keys()]);
    expect(filesBelow(join(dir, 'mail'))).toEqual([]);
    await Promise.all(children.map((each) => each.exited));
  });

  test('one with a flipped bit is not believed, and hides none of the others', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir, durability: 'process' });
    await store.save(sampleRecord('run'));
    for (const id of ['a', 'b', 'c']) await store.send('run', steer(id));
    const bytes = readFileSync(mailOf(dir));
    for (let offset = 0; offset < bytes.length; offset++) {
      const damaged = Buffer.from(bytes);
      damaged[offset] = (damaged[offset] ?? 0) ^ (1 << (offset % 8));
      replaceFile(mailOf(dir), damaged);
      const left = (await store.inbox({ runId: 'run' })).map(({ command }) => command);
      // A line end in the middle makes two damaged lines of one; one that is gone makes one of two.
      expect([1, 2], `offset ${offset}`).toContain(left.length);
      for (const command of left) expect([steer('a'), steer('b'), steer('c')]).toContainEqual(command);
    }
  });

  test('a disk that fails at any call leaves all that was sent before; sent again, a command waits once', async () => {
    const count = async (faultAt: number) => {
      const dir = freshDir();
      const faults = faultyFiles();
      await using store = fileStoreOn(faults.files, { dir });
      await store.save(sampleRecord('run'));
      await store.send('run', steer('a'));
      const from = faults.calls.length;
      faults.plan(() => (faults.calls.length - from === faultAt ? 'EIO' : undefined));
      const code = await store.send('run', steer('b')).catch((error: { code?: unknown }) => error.code);
      faults.plan(() => undefined);
      if (faults.fired === 0) return false;
      expect([undefined, 'STORE_UNAVAILABLE'], `call ${faultAt}`).toContain(code);
      const waiting = (await store.inbox({ runId: 'run' })).map(({ command }) => command.id);
      expect([['a'], ['a', 'b']]).toContainEqual(waiting);
      await store.send('run', steer('b'));
      expect((await store.inbox({ runId: 'run' })).map(({ command }) => command.id)).toEqual(['a', 'b']);
      return true;
    };
    let fired = 0;
    while (await count(fired + 1)) fired += 1;
    expect(fired).toBeGreaterThan(8);
  });

  test('a record whose removal fails half way is there without its commands, never gone with them left behind', async () => {
    const dir = freshDir();
    const faults = faultyFiles();
    await using store = fileStoreOn(faults.files, { dir });
    await store.save(sampleRecord('run'));
    await store.send('run', steer('a'));
    faults.plan(({ method, path }) => (method === 'remove' && path === journalOf(dir, 'run') ? 'EIO' : undefined));
    await expect(store.delete('run')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(faults.fired).toBe(1);
    expect(await store.load('run')).toEqual(sampleRecord('run'));
    expect(await store.inbox({ runId: 'run' })).toEqual([]);
  });

  test('nothing is sent to a run whose record cannot be read', async () => {
    const dir = freshDir();
    await using store = fileStore({ dir, durability: 'process' });
    await store.save(sampleRecord('run'));
    const bytes = readFileSync(journalOf(dir, 'run'));
    replaceFile(journalOf(dir, 'run'), bytes.fill('?', bytes.length - 60, bytes.length - 30));
    await expect(store.send('run', steer('a'))).rejects.toMatchObject({ code: 'CHECKPOINT_CORRUPT' });
  });
});
