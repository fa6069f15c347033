import { createExecutor, defineWorkflow, memoryStore } from 'pawl';
import { expect, test } from 'vitest';
import { setup } from 'xstate';
import { until } from '../fixtures/host.ts';

test('workflows whose timers are due are taken up once each, also where runs rest at once (workflow 6, 28)', async () => {
  const runs = 60;
  const machine = setup({
    types: { input: {} as { ms: number }, context: {} as { ms: number } },
    delays: { asked: ({ context }) => context.ms },
  }).createMachine({
    context: ({ input }) => input,
    initial: 'waiting',
    states: { waiting: { after: { asked: 'done' } }, done: { type: 'final' } },
  });
  const workflow = defineWorkflow({ id: 'timed', machine });
  const store = memoryStore();
  let leaves = 0;
  const leave: typeof store.due.leave = (...args) => {
    leaves += 1;
    return store.due.leave(...args);
  };
  const counted = Object.assign(Object.create(store) as typeof store, { leave });
  const defaults = { waitLingerMs: 1, dueMs: 20 };
  const first = createExecutor({ store, workflows: [workflow], defaults });
  const ms = 500;
  await Promise.all(Array.from({ length: runs }, (_, i) => first.run(workflow, { runId: `r${i}`, input: { ms } })));
  await first.shutdown();
  await new Promise((resolve) => setTimeout(resolve, ms));
  const second = createExecutor({ store: counted, workflows: [workflow], defaults });
  await second.recover();
  await until(async () => (await second.list()).length === 0);
  for (let i = 0; i < runs; i++) expect(await store.outcomes.find(`r${i}`)).toMatchObject({ status: 'ok' });
  expect(leaves).toBe(0);
  await second.shutdown();
});
