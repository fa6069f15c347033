import type { CheckpointStore } from 'pawl';
import { createCheckpointer } from 'pawl/stores/kit';
import { testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, settle } from '../fixtures/host.ts';
import { metaOf } from '../fixtures/states.ts';
import { at, isSettled, setUp, states, T } from '../fixtures/timed-checkpointer.ts';
import { isWrite, plainStore } from '../fixtures/watched-store.ts';

describe('saves of one run', () => {
  test('updatedAt is the wall clock at the save that wrote the record (checkpoint 5)', async () => {
    const { clock, checkpointer, stored } = setUp({ start: 5_000 });
    await checkpointer.save(at(0));
    expect((await stored())?.updatedAt).toBe(5_000);
    await checkpointer.save(at(1));
    await clock.advance(T);
    expect((await stored())?.updatedAt).toBe(6_000);
  });

  test('are written one at a time, the newest wins, and at most one waits (checkpoint 19, faults 6)', async () => {
    const first = gate();
    let inside = 0;
    let most = 0;
    const { checkpointer, writes, store } = setUp({
      throttleMs: 0,
      before: async (call) => {
        if (!isWrite(call)) return;
        most = Math.max(most, ++inside);
        if (store.log.filter(isWrite).length === 1) await first.pass();
        else await Promise.resolve();
        inside -= 1;
      },
    });
    const saves = states.slice(0, 20).map((state) => checkpointer.save(state));
    await settle();
    expect(store.log.filter(isWrite)).toHaveLength(1);
    first.open();
    await Promise.all(saves);
    expect(most).toBe(1);
    expect(writes.map(({ iteration }) => iteration)).toEqual([0, 19]);
  });

  test('an older state never lands after a newer one, whichever of them was forced (checkpoint 19)', async () => {
    for (const forced of [0, 1, 2]) {
      const slow = gate();
      const { checkpointer, stored, store } = setUp({
        before: (call) => isWrite(call) && store.log.filter(isWrite).length === 1 && slow.pass(),
      });
      const saves = [0, 1, 2].map((index) => checkpointer.save(at(index), { force: index === forced }));
      slow.open();
      await Promise.all(saves);
      await checkpointer.save(at(3), { force: true });
      expect((await stored())?.iteration).toBe(3);
      expect((await stored())?.messages).toHaveLength(4);
    }
  });

  test('a save that waits resolves only when its state, or a newer one, is durable (checkpoint 18)', async () => {
    const first = gate();
    const second = gate();
    const { checkpointer, stored, store } = setUp({
      throttleMs: 0,
      before: (call) => isWrite(call) && (store.log.filter(isWrite).length === 1 ? first : second).pass(),
    });
    const saves = [0, 1, 2].map((index) => checkpointer.save(at(index)));
    first.open();
    await saves[0];
    expect(await isSettled(saves[1] as Promise<void>)).toBe(false);
    second.open();
    await Promise.all(saves);
    expect((await stored())?.iteration).toBe(2);
  });

  test.for([
    ['before', true, false],
    ['after', false, true],
  ] as const)(
    'a forced save that waits together with an unforced one (forced %s it) is written at once (checkpoint 18, 19)',
    async ([, ...forced]) => {
      const first = gate();
      const { checkpointer, stored, store } = setUp({
        before: (call) => isWrite(call) && store.log.filter(isWrite).length === 1 && first.pass(),
      });
      const saves = [checkpointer.save(at(0)), ...forced.map((force, i) => checkpointer.save(at(i + 1), { force }))];
      first.open();
      await Promise.all(saves);
      expect((await stored())?.iteration).toBe(2);
    },
  );

  test("reject with the store's own error, and the next one goes through (checkpoint 21)", async () => {
    const error = Object.assign(new Error('disk full'), { code: 'STORE_FULL' });
    let isFull = false;
    const { checkpointer, stored } = setUp({
      throttleMs: 0,
      before: (call) => isWrite(call) && isFull && Promise.reject(error),
    });
    await checkpointer.save(at(0));
    isFull = true;
    await expect(checkpointer.save(at(1))).rejects.toBe(error);
    isFull = false;
    await checkpointer.save(at(2));
    expect(await stored()).toMatchObject({ iteration: 2, messages: { length: 3 } });
  });

  test('a store that never answers is given up in time, with PORT_TIMEOUT (checkpoint 21)', async () => {
    const clock = testClock();
    const hangs: CheckpointStore = { ...plainStore(), save: () => new Promise(() => {}) };
    const checkpointer = createCheckpointer(hangs, metaOf(), { clock, timeoutMs: 500 });
    const save = expect(checkpointer.save(at(0))).rejects.toMatchObject({ code: 'PORT_TIMEOUT' });
    await clock.advance(500);
    await save;
  });

  test.for(['complete', 'fail'] as const)(
    '%s waits for the write in flight, removes the record and seals the handle (checkpoint 20)',
    async (end) => {
      const slow = gate();
      const { clock, checkpointer, store, stored } = setUp({
        before: (call) => call.method === 'append' && slow.pass(),
      });
      await checkpointer.save(at(0));
      await checkpointer.save(at(1));
      const forced = checkpointer.save(at(2), { force: true });
      const ended = end === 'complete' ? checkpointer.complete() : checkpointer.fail(new Error('x'));
      await settle();
      expect(store.methods).not.toContain('delete');
      slow.open();
      await Promise.all([forced, ended]);
      expect(await stored()).toBeNull();
      await checkpointer.save(at(3), { force: true });
      await clock.advance(10 * T);
      expect(await stored()).toBeNull();
      expect(store.methods.filter((name) => name !== 'load').at(-1)).toBe('delete');
      expect(clock.pending).toBe(0);
    },
  );

  test('a save that waits when the run ends is dropped, and its caller is not left hanging (checkpoint 20)', async () => {
    const slow = gate();
    const { checkpointer, stored } = setUp({ throttleMs: 0, before: (call) => isWrite(call) && slow.pass() });
    const saves = [checkpointer.save(at(0)), checkpointer.save(at(1))];
    const ended = checkpointer.complete();
    slow.open();
    await Promise.all([...saves, ended]);
    expect(await stored()).toBeNull();
  });

  test('complete rejects when the store cannot delete, and stays sealed (checkpoint 20)', async () => {
    const { checkpointer, stored } = setUp({
      throttleMs: 0,
      before: ({ method }) => method === 'delete' && Promise.reject(new Error('read-only')),
    });
    await checkpointer.save(at(0));
    await expect(checkpointer.complete()).rejects.toThrow('read-only');
    await checkpointer.save(at(1));
    expect((await stored())?.iteration).toBe(0);
  });
});
