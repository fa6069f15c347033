import { createExecutor, defineAgent, defineTool, memoryStore } from 'pawl';
import { callTool, reply, scriptedModel } from 'pawl/testing';
import { expect, test } from 'vitest';

/** An executor on a store, with a tool that needs an approval. */
function desk(store = memoryStore(), script = [callTool('refund', { cents: 700 }), reply('done')]) {
  const paid: unknown[] = [];
  const refund = defineTool({
    name: 'refund',
    description: 'Pays money back.',
    input: { type: 'object', properties: { cents: { type: 'number' } }, required: ['cents'] },
    needsApproval: true,
    execute: async ({ cents }) => {
      paid.push(cents);
      return `paid ${cents}`;
    },
  });
  const model = scriptedModel(script);
  const agent = defineAgent({ id: 'desk', instructions: 'Refund.', tools: [refund] });
  const executor = createExecutor({
    models: { fast: model },
    agents: [agent],
    store,
    defaults: { waitLingerMs: 5, dueMs: 10 },
  });
  return { executor, agent, paid, model, store };
}

test('a call that needs an approval waits, and its run rests in the store without a claim (waiting 2, 16)', async () => {
  const { executor, agent, paid, store } = desk();
  const run = await executor.start(agent, { runId: 'r', prompt: 'Refund 700.' });
  const result = await run.result;
  expect(result.status).toBe('waiting');
  if (result.status !== 'waiting') return;
  expect(result.waits).toMatchObject([{ kind: 'approval', tool: 'refund', step: 1, quorum: 1, votes: [] }]);
  expect(paid).toEqual([]);
  expect(await store.claim('r', 'another', 1_000)).not.toBeNull();
  await executor.shutdown();
});

test('an approved call starts once, in any process, and the run goes to its end (waiting 4, 10)', async () => {
  const first = desk();
  const run = await first.executor.start(first.agent, { runId: 'r', prompt: 'Refund 700.' });
  const result = await run.result;
  await first.executor.shutdown();
  const waitId = result.status === 'waiting' ? result.waits[0]?.id : undefined;
  const second = desk(first.store);
  const third = desk(first.store, [reply('done')]);
  await third.executor.recover();
  expect(await second.executor.control('r').approve(waitId ?? '', { by: { id: 'ada' } })).toBe('sent');
  await expect.poll(() => first.store.outcomes.find('r')).toMatchObject({ status: 'ok', output: 'done' });
  expect([first.paid, second.paid, third.paid]).toEqual([[], [], [700]]);
  await second.executor.shutdown();
  await third.executor.shutdown();
});
