import { setTimeout as sleep } from 'node:timers/promises';
import { createExecutor, defineAgent, memoryStore } from 'pawl';
import { callTools, reply, scriptedModel } from 'pawl/testing';
import { expect, test } from 'vitest';
import { torture } from '../../crash/random.ts';
import { refundTool } from '../../fixtures/approval-desk.ts';

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

const COUNT = torture > 1 ? 2_000 : 1_000;

test(`${COUNT} calls that expire at the same time do not hold the event loop until the last one (waiting 4)`, {
  timeout: 120_000,
}, async () => {
  const calls = Array.from({ length: COUNT }, (_, n) => ({ name: 'refund', input: { cents: n } }));
  const paid: unknown[] = [];
  let expired = 0;
  const agent = defineAgent({
    id: 'desk',
    instructions: 'Refund.',
    tools: [refundTool({ needsApproval: true, approval: { expiresInMs: 1_000 } }, paid)],
  });
  const executor = createExecutor({
    models: { fast: scriptedModel([callTools(calls), reply('done')]) },
    store: memoryStore(),
    defaults: { waitLingerMs: 60_000 },
    inspect: (inspected) => {
      if (inspected.type === '@xstate.event' && inspected.event.type === 'wait.answer') expired += 1;
    },
  });
  const run = await executor.start(agent, { runId: 'r', prompt: 'Go.' });
  const open = new Set<number>();
  let isOver = false;
  const result = run.result.finally(() => {
    isOver = true;
  });
  // Each turn of the event loop sees how many calls still wait. As long as all of them do, it is asked less often.
  for (let all = 0; !isOver; await (all === COUNT ? sleep(1) : nextTurn())) {
    all = run.actor.getSnapshot().context.progress.waiting?.waits.length ?? 0;
    open.add(all);
  }
  expect((await result).status).toBe('ok');
  expect(paid).toEqual([]);
  // Each end of a wait changes the waits of the run, and none begins the others again.
  expect(expired).toBe(COUNT);
  // A loop that is held sees that nearly all wait, then nearly none, and at most one number between.
  const between = [...open].filter((count) => count > COUNT / 10 && count < COUNT - COUNT / 10);
  expect(between.length).toBeGreaterThan(1);
  await executor.shutdown();
});
