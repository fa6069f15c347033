import { memoryStore } from 'pawl';
import type { AppendingStore, OwningStore } from 'pawl/stores/kit';
import { callTool, callTools, reply, testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { gate, hostOf, settle, toolOf } from '../../fixtures/host.ts';
import { withoutMarks } from '../../fixtures/watched-store.ts';

test('a shutdown lets a call with effects that is under way end, and its result is recorded (finalize 9)', async () => {
  const store = memoryStore();
  const sending = gate<string>();
  const host = hostOf({
    store,
    tools: [toolOf('send', 'once', () => sending.pass())],
    script: [callTool('send', {})],
  });
  const run = await host.start({ runId: 'r' });
  await sending.reached;
  const shutdown = host.executor.shutdown();
  await settle();
  sending.open('sent');
  await shutdown;
  expect(await run.result).toMatchObject({ status: 'interrupted', error: { code: 'ERR_SHUTDOWN' } });
  const next = hostOf({ store, tools: [toolOf('send', 'once')], script: [reply('done')] });
  const result = await next.run({ runId: 'r' });
  expect(result.status).toBe('ok');
  expect(JSON.stringify(result.messages)).toContain('sent');
  expect(JSON.stringify(result.messages)).not.toContain('Outcome unknown');
});

test('a shutdown waits for calls with effects for three quarters of drainMs at most, and not at all for others', async () => {
  const clock = testClock();
  const sending = gate();
  const looking = gate();
  const host = hostOf({
    clock,
    store: memoryStore({ clock }),
    tools: [toolOf('send', 'once', () => sending.pass()), toolOf('look', 'read', () => looking.pass())],
    script: [callTool('send', {}), callTool('look', {})],
  });
  const busy = await host.start({ runId: 'busy' });
  await sending.reached;
  const idle = await host.start({ runId: 'idle' });
  await looking.reached;
  const shutdown = host.executor.shutdown({ drainMs: 1_000 });
  expect((await idle.result).status).toBe('interrupted');
  await clock.advance(749);
  expect(host.executor.get('busy')?.actor).toBeDefined();
  await clock.advance(2);
  expect((await busy.result).status).toBe('interrupted');
  await shutdown;
});

test('a call whose intent has not landed is not waited for: it never began', async () => {
  const store = memoryStore();
  const landing = gate();
  let calls = 0;
  const checkpoints: AppendingStore = {
    ...store,
    append: async (delta, write) => (delta.head.openStep ? landing.pass() : store.append(delta, write)),
  };
  const host = hostOf({
    store: checkpoints,
    tools: [toolOf('send', 'once', async () => void calls++)],
    script: [callTools([{ name: 'send', input: {} }])],
  });
  const run = await host.start({ runId: 'r' });
  await landing.reached;
  const shutdown = host.executor.shutdown();
  landing.open();
  await shutdown;
  expect((await run.result).status).toBe('interrupted');
  expect(calls).toBe(0);
});

test('a shutdown waits until a run whose outcome was not taken has released its claim, so that the next process has it at once', async () => {
  const store = memoryStore();
  const releasing = gate();
  const checkpoints: OwningStore = {
    ...withoutMarks(store),
    release: async (claim, options) => {
      await releasing.pass();
      await store.release(claim, options);
    },
  };
  const host = hostOf({
    store: checkpoints,
    onOutcome: async () => {
      throw new Error('not now');
    },
  });
  await host.run({ runId: 'r' });
  await releasing.reached;
  let isOver = false;
  const shutdown = host.executor.shutdown().then(() => {
    isOver = true;
  });
  await settle();
  expect(isOver).toBe(false);
  releasing.open();
  await shutdown;
  expect(await store.claim('r', 'next', 60_000)).toMatchObject({ runId: 'r' });
});
