import { createExecutor, defineAgent, defineTool, memoryStore } from 'pawl';
import { callTool, reply, scriptedModel, testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { deskOf, notedStore } from '../../fixtures/approval-desk.ts';
import { settle } from '../../fixtures/host.ts';

const DUE_MS = 1_000;
const CONTROL_MS = 500;

test('a call that is approved on a host that takes up no runs starts on another host within controlMs and dueMs (waiting 19, 36)', async () => {
  const clock = testClock();
  const store = memoryStore({ clock });
  const startedAt: number[] = [];
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    input: { type: 'object' },
    needsApproval: true,
    execute: () => {
      startedAt.push(clock.now());
      return 'paid';
    },
  });
  const agent = defineAgent({ id: 'desk', instructions: 'Pay.', tools: [pay] });
  // A random number of 1 is the latest look.
  const rest = { store, clock, random: () => 1, defaults: { dueMs: DUE_MS, controlMs: CONTROL_MS } };
  const worker = createExecutor({
    models: { fast: scriptedModel([callTool('pay'), reply('done')]) },
    agents: [agent],
    ...rest,
  });
  const office = createExecutor({ models: { fast: scriptedModel([]) }, ...rest });
  const running = worker.run(agent, { runId: 'r', prompt: 'Pay.' });
  for (let i = 0; i < 20; i++) {
    await settle(2);
    await clock.advance(100);
  }
  expect((await running).status).toBe('waiting');
  const [wait] = await office.waiting();
  const approvedAt = clock.now();
  expect(await office.control('r').approve(wait?.id ?? '')).toBe('sent');
  for (let i = 0; i < 20 && startedAt.length === 0; i++) {
    await settle(2);
    await clock.advance(100);
  }
  expect(startedAt).toHaveLength(1);
  expect((startedAt[0] ?? 0) - approvedAt).toBeLessThanOrEqual(DUE_MS + CONTROL_MS);
});

test('a store that refuses each leave does not hold up the start of a run that rests: it waits in the process (waiting 16, 20)', async () => {
  const inner = memoryStore();
  const first = deskOf({ noted: { ...notedStore(testClock(1_000_000)), store: inner } });
  await first.begin();
  await first.linger();
  const record = await inner.load('r');
  expect(record?.waiting?.waits).toHaveLength(1);
  let asked = 0;
  const refusing = {
    ...inner,
    due: {
      ...inner.due,
      leave: async () => {
        asked += 1;
        if (asked > 1_000) throw new Error('asked without end');
        return false;
      },
    },
  };
  const second = deskOf({ noted: { ...notedStore(testClock(1_000_000)), store: refusing } });
  const run = await second.start({ runId: 'r' });
  expect(run.actor.getSnapshot().hasTag('waiting')).toBe(true);
  expect(asked).toBeLessThan(10);
  await second.executor.shutdown();
});
