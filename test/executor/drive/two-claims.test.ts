import { memoryStore } from 'pawl';
import { callTool, reply, testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { wrapStore } from '../../../src/store/read-only.ts';
import { gate, hostOf, settle, toolOf } from '../../fixtures/host.ts';

test('a run that was taken as due goes back if another slice of this process has claimed it meanwhile: no call begins with a claim that was replaced (engine 7, 10)', async () => {
  const clock = testClock(1_000_000);
  const store = memoryStore({ clock });
  const door = gate<true>();
  // All claims of one executor have the same owner: the store grants the second one, and the first is worth nothing.
  const held = wrapStore(store, (name, call) => async (...args) => {
    if (name === 'claim') await door.pass();
    return call(...args);
  });
  const looked: string[] = [];
  const tools = [
    toolOf('look', 'read', async (_, { callId }) => {
      looked.push(callId);
    }),
  ];
  const sleep = (ms: number) => new Promise<void>((resolve) => clock.setTimeout(resolve, ms));
  const script = Array.from({ length: 4 }, (_, i) => async () => {
    await sleep(100);
    return i < 3 ? callTool('look', { i }) : reply('found');
  });
  const host = hostOf({ clock, store: held, script, tools, agent: { tools } });
  const admitting = hostOf({ clock, store });
  await admitting.executor.start(host.agent, { runId: 'r', prompt: 'Go.' }, { drive: 'later' });

  const named = host.executor.drive('r', { budgetMs: 50, graceMs: 1_000 });
  await door.reached;
  const due = host.executor.drive('due', { budgetMs: 5_000, graceMs: 1_000 });
  await settle();
  door.open(true);
  await clock.advance(200);
  expect(await named).toMatchObject({ state: 'more' });
  await clock.advance(5_000);
  expect(await due).toMatchObject({ state: 'ended', runs: 1 });
  expect(host.warnings).toEqual([]);
  expect([looked.length, new Set(looked).size, host.model.calls.length]).toEqual([3, 3, 4]);
});
