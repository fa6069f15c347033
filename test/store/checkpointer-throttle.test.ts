import { describe, expect, test } from 'vitest';
import { gate } from '../fixtures/host.ts';
import { at, setUp, states, T } from '../fixtures/timed-checkpointer.ts';
import { isWrite } from '../fixtures/watched-store.ts';

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
    'a wall clock that jumps by %i ms causes neither a burst nor silence (checkpoint 17)',
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

  test('a put-off write that fails is told, and tried again when the next window ends (checkpoint 18, 21)', async () => {
    let isDown = false;
    const { clock, checkpointer, writes, errors } = setUp({
      before: (call) => isWrite(call) && isDown && Promise.reject(new Error('down')),
    });
    await checkpointer.save(at(0));
    await checkpointer.save(at(1));
    isDown = true;
    await clock.advance(T);
    expect(errors).toMatchObject([{ message: 'down' }]);
    isDown = false;
    await clock.advance(T);
    expect(writes.at(-1)).toEqual({ at: 2 * T, iteration: 1 });
    expect(errors).toHaveLength(1);
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
