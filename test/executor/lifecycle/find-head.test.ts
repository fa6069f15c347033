import { createExecutor, defineAgent, defineTool, memoryStore } from 'pawl';
import { callTool, scriptedModel } from 'pawl/testing';
import { expect, test } from 'vitest';

test('executor.find reads no message of a stored run: who asks for the run of another caller costs nothing (web 39)', async () => {
  const store = memoryStore();
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    input: { type: 'object' },
    needsApproval: true,
    execute: () => '',
  });
  const agent = defineAgent({ id: 'desk', instructions: 'Pay.', tools: [pay] });
  const models = { fast: scriptedModel([callTool('pay')]) };
  const host = createExecutor({ models, checkpoints: store, defaults: { waitLingerMs: 1 } });
  expect((await host.run(agent, { runId: 'r', callerId: 'ada', prompt: 'Pay.' })).status).toBe('waiting');
  const asked: unknown[] = [];
  const watched = {
    ...store,
    load: (...args: Parameters<typeof store.load>) => {
      asked.push(args[1]?.messages);
      return store.load(...args);
    },
  };
  const other = createExecutor({ models, checkpoints: watched });
  expect(await other.find('r')).toMatchObject({ status: 'waiting', meta: { callerId: 'ada' } });
  expect(await other.find('unknown')).toBe(null);
  expect(new Set(asked)).toEqual(new Set([false]));
});
