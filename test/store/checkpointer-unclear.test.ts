import fc from 'fast-check';
import { createCheckpointer, type RunDelta } from 'pawl/stores/kit';
import { testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { torture } from '../crash/random.ts';
import { metaOf, statesOf } from '../fixtures/states.ts';
import { at, setUp } from '../fixtures/timed-checkpointer.ts';
import { isWrite, plainStore, type StoreCall, watchedStore } from '../fixtures/watched-store.ts';

const deltas = (log: readonly StoreCall[]) =>
  log.filter(({ method }) => method === 'append').map(({ args }) => JSON.stringify(args[0] as RunDelta));
const texts = (messages: readonly { content: unknown }[] | undefined) =>
  messages?.slice(1).map(({ content }) => (content as unknown as [{ text: string }])[0].text);

/** A store whose appends take effect or not, and are confirmed or not, as it is told. */
function unclearStore(next: () => { lands: boolean; confirms: boolean }) {
  let fate = { lands: true, confirms: true };
  const store = watchedStore({
    before: (call) => {
      if (!isWrite(call)) return;
      fate = next();
      if (!fate.lands) throw new Error('refused');
    },
    after: (call) => {
      if (isWrite(call) && !fate.confirms) throw new Error('connection lost');
    },
  });
  return store;
}

describe('a write whose end is unclear', () => {
  test('that had landed is sent again byte for byte, and nothing is doubled (checkpoint 19, 21)', async () => {
    const fates = [
      { lands: true, confirms: true },
      { lands: true, confirms: false },
    ];
    const store = unclearStore(() => fates.shift() ?? { lands: true, confirms: true });
    const checkpointer = createCheckpointer(store, metaOf());
    await checkpointer.save(at(0));
    await expect(checkpointer.save(at(1))).rejects.toThrow('connection lost');
    await checkpointer.save(at(2));
    const [first, again] = deltas(store.log);
    expect(again).toBe(first);
    expect(texts((await store.load('run-1'))?.messages)).toEqual(['step 1', 'step 2']);
  });

  test('that had not landed is sent again byte for byte, and nothing is lost (checkpoint 19, 21)', async () => {
    const fates = [
      { lands: true, confirms: true },
      { lands: false, confirms: false },
    ];
    const store = unclearStore(() => fates.shift() ?? { lands: true, confirms: true });
    const checkpointer = createCheckpointer(store, metaOf());
    await checkpointer.save(at(0));
    await expect(checkpointer.save(at(1))).rejects.toThrow('refused');
    await checkpointer.save(at(3));
    const [first, again] = deltas(store.log);
    expect(again).toBe(first);
    expect(texts((await store.load('run-1'))?.messages)).toEqual(['step 1', 'step 2', 'step 3']);
  });

  test('a gap makes it save the whole record (checkpoint 19)', async () => {
    const { checkpointer, store, stored } = setUp({ throttleMs: 0 });
    await checkpointer.save(at(0));
    await store.delete('run-1');
    await checkpointer.save(at(2));
    expect(texts((await stored())?.messages)).toEqual(['step 1', 'step 2']);
    expect(store.methods.filter((name) => name === 'save')).toHaveLength(2);
  });

  test('a gap met while an unclear delta is sent again ends in a whole save too, not in an error (checkpoint 19)', async () => {
    let isDown = false;
    const { checkpointer, store, stored } = setUp({
      throttleMs: 0,
      before: (call) => isWrite(call) && isDown && Promise.reject(new Error('down')),
    });
    await checkpointer.save(at(0));
    isDown = true;
    await expect(checkpointer.save(at(1))).rejects.toThrow('down');
    isDown = false;
    await store.delete('run-1');
    await checkpointer.save(at(2));
    expect(texts((await stored())?.messages)).toEqual(['step 1', 'step 2']);
  });

  test('however the single writes end, the record at the end is that of the last state (checkpoint 19, 21)', async () => {
    const fate = fc.record({ lands: fc.boolean(), confirms: fc.boolean() });
    const states = statesOf(12);
    await fc.assert(
      fc.asyncProperty(fc.array(fate, { maxLength: 24 }), fc.boolean(), async (fates, appends) => {
        const rest = [...fates];
        const watched = unclearStore(() => rest.shift() ?? { lands: true, confirms: true });
        const store = appends ? watched : plainStore(watched);
        const checkpointer = createCheckpointer(store, metaOf());
        for (const state of states) await checkpointer.save(state).catch(() => {});
        await checkpointer.save(states.at(-1) as (typeof states)[0]).catch(() => {});
        rest.length = 0;
        await checkpointer.save(states.at(-1) as (typeof states)[0]);
        const record = await store.load('run-1');
        expect(record?.iteration).toBe(12);
        expect(texts(record?.messages)).toEqual(states.slice(1).map((_, i) => `step ${i + 1}`));
      }),
      { numRuns: 120 * torture },
    );
  });
});

test(
  'after complete no record is left, in any order of the answers of a slow store (checkpoint 20)',
  async () => {
    const RUNS = 2_000 * torture;
    let finished = 0;
    const plan = fc.record({
      latencies: fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 6 }),
      saves: fc.array(fc.record({ force: fc.boolean(), wait: fc.boolean(), tick: fc.constantFrom(0, 0, 400, 1_000) }), {
        maxLength: 6,
      }),
      after: fc.integer({ min: 0, max: 2 }),
      fails: fc.boolean(),
    });
    const states = statesOf(10);
    const turns = async (count: number) => {
      for (let turn = 0; turn < count; turn++) await Promise.resolve();
    };
    await fc.assert(
      fc.asyncProperty(plan, async ({ latencies, saves, after, fails }) => {
        let calls = 0;
        let time = 0;
        const timers = new Set<{ due: number; callback: () => void }>();
        const clock = {
          now: () => time,
          monotonic: () => time,
          setTimeout: (callback: () => void, ms: number) => {
            const timer = { due: time + ms, callback };
            timers.add(timer);
            return timer;
          },
          clearTimeout: (timer: unknown) => void timers.delete(timer as never),
        };
        const store = watchedStore({
          before: () => turns((latencies[calls++ % latencies.length] ?? 0) * 3),
          after: () => turns(latencies[calls % latencies.length] ?? 0),
        });
        const checkpointer = createCheckpointer(store, metaOf(), { throttleMs: 1_000, clock });
        const pending: Promise<void>[] = [];
        for (const [i, { force, wait, tick }] of saves.entries()) {
          const save = checkpointer.save(states[i] as (typeof states)[0], { force });
          pending.push(save);
          if (wait) await save;
          time += tick;
          for (const timer of [...timers]) if (timer.due <= time && timers.delete(timer)) timer.callback();
        }
        const ended = fails ? checkpointer.fail(new Error('x')) : checkpointer.complete();
        for (let i = 0; i < after; i++)
          pending.push(checkpointer.save(states[7 + i] as (typeof states)[0], { force: i === 0 }));
        await Promise.all([...pending, ended]);
        time += 10_000;
        for (const timer of [...timers]) timer.callback();
        await turns(30);
        expect(await store.listInterrupted()).toEqual([]);
        finished += 1;
      }),
      { numRuns: RUNS },
    );
    expect(finished).toBe(RUNS);
  },
  60_000 * torture,
);

test('testClock moves deferred flushes of many runs without one being forgotten (checkpoint 18)', async () => {
  const clock = testClock();
  const store = watchedStore();
  const runs = Array.from({ length: 200 }, (_, i) => `run-${i}`);
  for (const runId of runs) {
    const checkpointer = createCheckpointer(store, metaOf(runId), { throttleMs: 1_000, clock });
    for (const state of statesOf(3, runId)) await checkpointer.save(state);
  }
  await clock.advance(1_000);
  const listed = await store.listInterrupted();
  expect(listed).toHaveLength(200);
  expect(listed.every((entry) => 'iteration' in entry && entry.iteration === 3)).toBe(true);
});
