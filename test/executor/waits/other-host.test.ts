import { createExecutor, defineAgent, defineTool, memoryStore } from 'pawl';
import { callTool, reply, scriptedModel, testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { settle } from '../../fixtures/host.ts';

const DUE_MS = 1_000;
const CONTROL_MS = 500;

test('a call that is approved on a host that takes up no runs starts on another host within controlMs and dueMs (waiting 19, 36)', async () => {
  const clock = testClock();
  const checkpoints = memoryStore({ clock });
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
  const rest = { checkpoints, clock, random: () => 1, defaults: { dueMs: DUE_MS, controlMs: CONTROL_MS } };
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
