import { createPalette, defineAgent, memoryStore } from 'pawl';
import { callTool, hang, testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { childId } from '../fixtures/child-id.ts';
import { type HostOptions, hostOf, settle, until } from '../fixtures/host.ts';
import { afterCrash } from '../fixtures/watched-store.ts';

const palette = createPalette({ agents: [defineAgent({ id: 'kid', instructions: 'kid' })] });

const hostWith = (options: HostOptions) => hostOf({ agent: { subAgents: ['kid'] }, ports: { palette }, ...options });

test('the `maxAttempts` of recover() counts for the agents that a recovered run puts to work (recovery 2)', async () => {
  let store = memoryStore();
  const first = hostWith({ store, script: [callTool('agent__kid', { prompt: 'do' }, 'c'), hang()] });
  await first.start({ runId: 'r' });
  await until(() => first.model.calls.length === 2);
  for (let boot = 2; boot <= 5; boot++) {
    store = await afterCrash(store);
    const next = hostWith({ store, script: [hang()] });
    // It waits for the last start's progress, and there is none.
    void next.executor.recover({ maxAttempts: 5 });
    await until(() => next.model.calls.length === 1);
    expect((await store.load(childId('r', 'c')))?.attempts).toBe(boot);
  }
  store = await afterCrash(store);
  await hostWith({ store }).executor.recover({ maxAttempts: 5 });
  expect((await store.load('r'))?.parked?.reason).toContain('5 times');
});

test('a message for a run and its children, which finds no place in the run, is heard by the children once: when it has one (supervision 9)', async () => {
  const clock = testClock();
  const store = memoryStore({ clock });
  const script = [callTool('agent__kid', { prompt: 'do' }, 'c'), hang()];
  const host = hostWith({ clock, store, script });
  const run = await host.start({ runId: 'r' });
  await until(() => host.model.calls.length === 2);
  await run.steer('hello', { children: true });
  expect((await store.load(childId('r', 'c')))?.undelivered).toHaveLength(1);
  await Promise.all(Array.from({ length: 999 }, (_, i) => run.steer(`message ${i}`)));
  await hostOf({ clock, store }).executor.control('r').steer('one too many', { children: true });
  for (let look = 0; look < 4; look++) {
    await clock.advance(500);
    await settle();
  }
  expect((await store.load(childId('r', 'c')))?.undelivered).toHaveLength(1);
  expect(await store.commands.inbox({ runId: 'r' })).toHaveLength(1);
});
