import { memoryStore } from 'pawl';
import { callTool, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { wrapStore } from '../../../src/store/read-only.ts';
import { hostOf, settle, toolOf } from '../../fixtures/host.ts';

type Store = ReturnType<typeof memoryStore>;

/** The store as a function reaches it: when its platform has killed it, no call comes through. */
function reachedBy(store: Store, isAlive: () => boolean): Store {
  return wrapStore(
    store,
    (_, call) =>
      (...args) =>
        isAlive() ? call(...args) : new Promise(() => {}),
  );
}

describe('a function with a time limit', () => {
  test('that is killed three times before it has recorded anything leaves a run that is parked at its fourth start (engine 37)', async () => {
    const clock = testClock(1_000_000);
    const store = memoryStore({ clock });
    const { executor, agent } = hostOf({ clock, store });
    await executor.start(agent, { runId: 'r', prompt: 'Go.' }, { drive: 'later' });
    let asked = 0;
    for (let invocation = 1; invocation <= 3; invocation++) {
      let isAlive = true;
      const host = hostOf({ clock, store: reachedBy(store, () => isAlive), script: [hang()] });
      void host.executor.drive('r', { budgetMs: 60_000 });
      await clock.advance(5_000);
      await settle();
      isAlive = false;
      asked += host.model.calls.length;
      await clock.advance(31_000);
    }
    const next = hostOf({ clock, store, script: [reply('never')] });
    expect(await next.executor.drive('r')).toEqual({ runId: 'r', state: 'waiting', code: 'RUN_PARKED', boundaries: 0 });
    expect(await store.listInterrupted()).toMatchObject([{ status: 'parked', code: 'TOO_MANY_ATTEMPTS' }]);
    expect([asked, next.model.calls.length]).toEqual([3, 0]);
  });
});

test('ten minutes and one more call, in slices of 5 s, are 121 slices, and the model is asked as often as without slices (engine 41)', async () => {
  const clock = testClock(1_000_000);
  const steps = 240;
  const later = (ms: number) => new Promise<void>((resolve) => clock.setTimeout(resolve, ms));
  const script = Array.from({ length: steps + 1 }, (_, i) => async () => {
    await later(2_500);
    return i < steps ? callTool('look', { i }) : reply('done');
  });
  const host = hostOf({
    ...{ clock, store: memoryStore({ clock }), script, defaults: { maxRuntimeMs: 3_600_000 } },
    agent: { tools: [toolOf('look')], maxSteps: steps + 1 },
  });
  await host.executor.start(host.agent, { runId: 'r', prompt: 'Go.' }, { drive: 'later' });
  let slices = 0;
  for (let state = 'more'; state === 'more'; slices++) {
    const driving = host.executor.drive('r', { budgetMs: 4_900, graceMs: 10_000 });
    for (let isOver = false; !isOver; await clock.advance(2_500))
      isOver = await Promise.race([driving.then(() => true), settle().then(() => false)]);
    ({ state } = await driving);
  }
  expect(host.model.calls).toHaveLength(steps + 1);
  expect(slices).toBe(121);
});
