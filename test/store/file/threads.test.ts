import { describe, expect, test } from 'vitest';
import { diskFiles, type FileSystem } from '../../../src/files/file-system.ts';
import { fileStoreOn } from '../../../src/store/file/file-store.ts';
import { type FileStore, fileStore } from '../../../src/store/file/index.ts';
import type { Claim } from '../../../src/store/port.ts';
import { nextStep, sampleOutcome, sampleRecord, userMessage } from '../../../src/testing/store-contract/records.ts';
import type { Message } from '../../../src/values/message.ts';
import { freshDir } from './folder.ts';

const key = { callerId: 'ada', id: 'talk' };

/**
 * A disk whose process dies at its n-th change: neither that one is made nor any later one. Its locks are removed, as the next
 * process does it that finds the owner dead.
 */
function dyingAt(nth: number): FileSystem & { readonly isDead: () => boolean } {
  let count = 0;
  const dead = () => Object.assign(new Error('gone'), { code: 'EIO', errno: -5 });
  const isLock = (path: unknown) => /[/](locks|owners)[/]/.test(String(path));
  const mortal =
    <A extends unknown[], R>(change: (...given: A) => Promise<R>) =>
    async (...given: A): Promise<R> => {
      if (isLock(given[0])) return change(...given);
      count += 1;
      if (count >= nth) throw dead();
      return change(...given);
    };
  return {
    ...diskFiles,
    rename: mortal(diskFiles.rename),
    remove: mortal(diskFiles.remove),
    removeFolder: mortal(diskFiles.removeFolder),
    open: (path, mode) => {
      if (mode !== 'read' && !isLock(path) && ++count >= nth) return Promise.reject(dead());
      return diskFiles.open(path, mode);
    },
    isDead: () => count >= nth,
  };
}

function turn(messageId: string) {
  const record = sampleRecord('x', { messages: [userMessage(messageId)], attempts: 0 });
  return { ...key, messageId, digest: messageId, record, onBusy: 'queue', maxQueued: 10 } as const;
}

/** Plays the live run of the thread to its end. */
async function play(store: FileStore, runId: string): Promise<void> {
  const claim = (await store.claim(runId, 'me', 60_000)) as Claim;
  const record = await store.load(runId);
  if (record && !record.outcome) {
    const answer: Message = { role: 'assistant', content: [{ type: 'text', text: 'ok' }] };
    await store.save({ ...nextStep(record, [answer]).record, outcome: sampleOutcome(runId) }, { claim });
  }
  const ending = { ...key, delivered: [], now: 1 };
  await store.end(claim, { outcome: sampleOutcome(runId), keepUntil: Number.POSITIVE_INFINITY, turn: ending });
}

/** Sends two messages, and plays all runs that the store lists. */
async function talk(store: FileStore): Promise<void> {
  for (const id of ['m1', 'm2']) await store.admit(turn(id));
  for (let listed = await store.listInterrupted(); listed.length > 0; listed = await store.listInterrupted()) {
    for (const { runId } of listed) await play(store, runId);
  }
}

async function said(store: FileStore): Promise<unknown[]> {
  const messages = await store.readThread(key, { limit: 100 });
  return messages.map(({ message }) => (message.content as { text: string }[])[0]?.text);
}

/** More than a whole talk changes. */
const CHANGES = 120;

describe('a thread in files', () => {
  test('whose process dies at any change of the disk has each message once, with its answer, when the next one is done (web 13, 35)', async () => {
    let hasLived = false;
    for (let nth = 1; nth <= CHANGES && !hasLived; nth++) {
      const dir = freshDir();
      await fileStore({ dir, durability: 'process' }).listInterrupted();
      const files = dyingAt(nth);
      const dying = fileStoreOn(files, { dir, durability: 'process' });
      await talk(dying).catch(() => {});
      hasLived = !files.isDead();
      await dying.close().catch(() => {});
      await using store = fileStore({ dir, durability: 'process' });
      await talk(store);
      expect([nth, await said(store)]).toEqual([nth, ['m1', 'ok', 'm2', 'ok']]);
      expect(await store.listThreads()).toMatchObject([{ turns: 2, messages: 4, queued: 0 }]);
    }
    expect(hasLived).toBe(true);
  }, 180_000);

  test('whose process dies while turns are dropped is shorter, or as it was, and leaves no records (web 15, 35)', async () => {
    let hasLived = false;
    for (let nth = 1; nth <= CHANGES && !hasLived; nth++) {
      const dir = freshDir();
      const whole = fileStore({ dir, durability: 'process' });
      await talk(whole);
      const runIds = (await whole.turns(key, { limit: 10 })).map(({ runId }) => runId);
      await whole.close();
      const files = dyingAt(nth);
      const dying = fileStoreOn(files, { dir, durability: 'process' });
      await dying.rewind(key, { messageId: 'm1' }).catch(() => {});
      hasLived = !files.isDead();
      await dying.close().catch(() => {});
      await using store = fileStore({ dir, durability: 'process' });
      await store.rewind(key, { messageId: 'm1' });
      expect([nth, await said(store)]).toEqual([nth, ['m1', 'ok']]);
      await store.admit(turn('m3'));
      const kept = await Promise.all(runIds.map((runId) => store.load(runId, { ended: true })));
      expect([nth, ...kept.map((record) => record !== null)]).toEqual([nth, false, true]);
    }
    expect(hasLived).toBe(true);
  }, 180_000);
});
