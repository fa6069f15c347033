import { createCheckpointer } from 'pawl/stores/kit';
import { testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate } from '../fixtures/host.ts';
import { metaOf } from '../fixtures/states.ts';
import { at, setUp, states, T } from '../fixtures/timed-checkpointer.ts';
import { isWrite, watchedStore } from '../fixtures/watched-store.ts';

describe('the throttle', () => {
  test('lets the first save through, puts off what comes inside the window, and counts its last moment as outside (checkpoint 16)', async () => {
    const { clock, checkpointer, writes } = setUp();
    await checkpointer.save(at(0));
    await clock.advance(T - 1);
    await checkpointer.save(at(1));
    expect(writes.map((write) => write.at)).toEqual([0]);
    await clock.advance(1);
    await checkpointer.save(at(2));
    expect(writes.map((write) => write.at).slice(0, 2)).toEqual([0, T]);
  });

  test('at exactly the end of the window a save is written at once, not put off again (checkpoint 16)', async () => {
    const { clock, checkpointer, writes } = setUp();
    await checkpointer.save(at(0));
    await clock.advance(T);
    await checkpointer.save(at(1));
    expect(writes).toEqual([
      { at: 0, iteration: 0 },
      { at: T, iteration: 1 },
    ]);
  });

  test.for([0, -1])('of %i ms writes every save (checkpoint 16)', async (throttleMs) => {
    const { checkpointer, writes } = setUp({ throttleMs });
    for (const state of states.slice(0, 5)) await checkpointer.save(state);
    expect(writes.map(({ iteration }) => iteration)).toEqual([0, 1, 2, 3, 4]);
  });

  test('a save inside its window resolves at once and is written when the window ends (checkpoint 18)', async () => {
    const { clock, checkpointer, writes, stored } = setUp();
    await checkpointer.save(at(0));
    await clock.advance(300);
    await checkpointer.save(at(1));
    await clock.advance(200);
    await checkpointer.save(at(2));
    expect((await stored())?.iteration).toBe(0);
    await clock.advance(499);
    expect(writes).toHaveLength(1);
    await clock.advance(1);
    expect(writes).toEqual([
      { at: 0, iteration: 0 },
      { at: T, iteration: 2 },
    ]);
  });

  test('a burst of 20 quick steps before a long silence is all in the store when the window ends (checkpoint 18)', async () => {
    const { clock, checkpointer, stored } = setUp();
    for (const state of states.slice(0, 21)) await checkpointer.save(state);
    await clock.advance(T);
    expect(await stored()).toMatchObject({ iteration: 20, messages: { length: 21 } });
    expect(clock.pending).toBe(0);
  });

  test('a forced save inside the window is written at once, with what was put off before it (checkpoint 18)', async () => {
    const { clock, checkpointer, writes } = setUp();
    await checkpointer.save(at(0));
    await checkpointer.save(at(1));
    await checkpointer.save(at(2), { force: true });
    expect(writes.map(({ iteration }) => iteration)).toEqual([0, 2]);
    expect(clock.pending).toBe(0);
    await clock.advance(10 * T);
    expect(writes).toHaveLength(2);
  });

  test('a failed write does not throttle the next (checkpoint 17)', async () => {
    let isDown = true;
    const { checkpointer, writes } = setUp({
      before: (call) => isWrite(call) && isDown && Promise.reject(new Error('down')),
    });
    await expect(checkpointer.save(at(0))).rejects.toThrow('down');
    isDown = false;
    await checkpointer.save(at(1));
    expect(writes).toEqual([{ at: 0, iteration: 1 }]);
  });

  test('a failed write leaves the window where the last good write put it (checkpoint 17)', async () => {
    let isDown = false;
    const { clock, checkpointer, writes } = setUp({
      before: (call) => isWrite(call) && isDown && Promise.reject(new Error('down')),
    });
    await checkpointer.save(at(0));
    await clock.advance(T);
    isDown = true;
    await expect(checkpointer.save(at(1))).rejects.toThrow('down');
    isDown = false;
    await checkpointer.save(at(2));
    expect(writes.map((write) => [write.at, write.iteration]).at(-1)).toEqual([T, 2]);
  });

  test.for([-3_600_000, 3_600_000])(
    'a wall clock that jumps by %i ms causes neither a burst nor silence (checkpoint 17, faults 7)',
    async (jump) => {
      const { clock, checkpointer, writes } = setUp({ start: 10_000_000 });
      await checkpointer.save(at(0));
      clock.wallJump(jump);
      await checkpointer.save(at(1));
      expect(writes).toHaveLength(1);
      await clock.advance(T);
      expect(writes.map((write) => write.at)).toEqual([0, T]);
    },
  );

  test('a put-off write that fails is reported, and tried again when the next window ends (checkpoint 18, 21)', async () => {
    let isDown = false;
    const { clock, checkpointer, writes, errors } = setUp({
      before: (call) => isWrite(call) && isDown && Promise.reject(new Error('down')),
    });
    await checkpointer.save(at(0));
    await checkpointer.save(at(1));
    isDown = true;
    await clock.advance(T);
    expect(errors).toMatchObject([{ code: 'STORE_UNAVAILABLE', cause: { message: 'down' } }]);
    isDown = false;
    await clock.advance(T);
    expect(writes.at(-1)).toEqual({ at: 2 * T, iteration: 1 });
    expect(errors).toHaveLength(1);
  });

  test('after a forced save has failed nothing is put off before one has succeeded (checkpoint 18, 21)', async () => {
    let failing = 0;
    const { checkpointer, writes } = setUp({
      before: (call) => isWrite(call) && failing-- > 0 && Promise.reject(new Error('blip')),
    });
    await checkpointer.save(at(0));
    failing = 2;
    await expect(checkpointer.save(at(1), { force: true })).rejects.toThrow('blip');
    await expect(checkpointer.save(at(2))).rejects.toThrow('blip');
    await checkpointer.save(at(3));
    await checkpointer.save(at(4));
    expect(writes.map(({ iteration }) => iteration)).toEqual([0, 1, 3]);
  });

  test('a save that waits behind a forced one that fails is not put off either (checkpoint 18, 21)', async () => {
    const slow = gate();
    let isDown = false;
    const { checkpointer, writes } = setUp({
      before: async (call) => {
        if (!isWrite(call) || !isDown) return;
        await slow.pass();
        isDown = false;
        throw new Error('blip');
      },
    });
    await checkpointer.save(at(0));
    isDown = true;
    const forced = expect(checkpointer.save(at(1), { force: true })).rejects.toThrow('blip');
    const unforced = checkpointer.save(at(2));
    slow.open();
    await forced;
    await unforced;
    expect(writes.map(({ iteration }) => iteration)).toEqual([0, 1, 2]);
  });

  test.for(['LEASE_LOST', 'RUN_OWNED_ELSEWHERE'])(
    'a put-off write that is refused with %s is not tried again: another has the run (checkpoint 21, recovery 3)',
    async (code) => {
      let isTaken = false;
      const { clock, checkpointer, store, errors } = setUp({
        before: (call) => isWrite(call) && isTaken && Promise.reject(Object.assign(new Error('taken'), { code })),
      });
      await checkpointer.save(at(0));
      await checkpointer.save(at(1));
      isTaken = true;
      await clock.advance(T);
      store.log.length = 0;
      await clock.advance(100 * T);
      expect([errors.length, store.log.length, clock.pending]).toEqual([1, 0, 0]);
    },
  );

  test('a host that throws at the report of a failed put-off write changes nothing: it is tried again (checkpoint 18, 21)', async () => {
    const clock = testClock();
    let isDown = false;
    const store = watchedStore({ before: (call) => isWrite(call) && isDown && Promise.reject(new Error('down')) });
    const onFlushError = () => {
      throw new Error('of the host');
    };
    const checkpointer = createCheckpointer(store, metaOf(), { throttleMs: T, clock, onFlushError });
    await checkpointer.save(at(0));
    await checkpointer.save(at(1));
    isDown = true;
    await clock.advance(T);
    isDown = false;
    await clock.advance(T);
    expect((await store.load('run-1'))?.iteration).toBe(1);
  });

  test('a put-off write that fails never replaces a newer state that came meanwhile (checkpoint 19)', async () => {
    const failing = gate();
    let isDown = false;
    const { clock, checkpointer, stored } = setUp({
      before: async (call) => {
        if (!isWrite(call) || !isDown) return;
        await failing.pass();
        throw new Error('down');
      },
    });
    await checkpointer.save(at(0));
    await checkpointer.save(at(1));
    isDown = true;
    await clock.advance(T);
    const newer = checkpointer.save(at(2));
    isDown = false;
    failing.open();
    await newer;
    await clock.advance(5 * T);
    expect((await stored())?.iteration).toBe(2);
  });
});
