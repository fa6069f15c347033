import { createExecutor, createPalette, defineAgent, defineTool, memoryStore } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { expect, test } from 'vitest';
import { answeringModel } from '../fixtures/answering-model.ts';
import { askNext, ids } from '../fixtures/waiting-tree.ts';
import { freshDir } from '../store/folder.ts';

const { root, mid, leaf } = ids;

/** One process of a host; each opens the store by itself, where it can. */
function host(store: ReturnType<typeof memoryStore>) {
  const paid: unknown[] = [];
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    input: { type: 'object', properties: { cents: { type: 'number' } } },
    effect: 'once',
    needsApproval: true,
    execute: async ({ cents }) => {
      paid.push(cents);
      return `paid ${cents}`;
    },
  });
  const agent = defineAgent({ id: 'root', instructions: 'root', subAgents: ['mid'] });
  const palette = createPalette({
    agents: [
      defineAgent({ id: 'mid', instructions: 'mid', subAgents: ['leaf'] }),
      defineAgent({ id: 'leaf', instructions: 'leaf', tools: [pay] }),
    ],
  });
  const executor = createExecutor({
    models: { fast: answeringModel(askNext) },
    agents: [agent],
    store,
    ports: { palette },
    defaults: { waitLingerMs: 20, dueMs: 20, controlMs: 20 },
  });
  return { executor, agent, paid };
}

const stores: readonly [string, () => () => ReturnType<typeof memoryStore>][] = [
  [
    'memory',
    () => {
      const store = memoryStore();
      return () => store;
    },
  ],
  [
    'SQLite',
    () => {
      const path = `${freshDir()}.db`;
      return () => sqliteStore({ path }) as never;
    },
  ],
];

test.for(stores)(
  'a tree of runs rests whole, is answered at its root, and ends in other processes: %s (waiting 23, 24)',
  async ([, make]) => {
    const open = make();
    const first = host(open());
    const run = await first.executor.start(first.agent, { runId: root, prompt: 'Go.' });
    expect(await run.result).toMatchObject({ status: 'waiting', waits: [{ kind: 'child', childRunId: mid }] });
    await first.executor.shutdown();
    const store = open();
    const [second, third] = [host(store), host(open())];
    await third.executor.recover();
    const [wait] = await second.executor.waiting({ kind: 'approval' });
    expect(wait).toMatchObject({ runId: leaf, rootRunId: root, tool: 'pay', input: { cents: 700 } });
    expect(wait?.path.map(({ runId }) => runId)).toEqual([root, mid, leaf]);
    expect(await second.executor.control(root).approve(wait?.id ?? '', { by: { id: 'ada' } })).toBe('sent');
    await expect
      .poll(() => store.outcomes.find(root), { timeout: 20_000 })
      .toMatchObject({ status: 'ok', output: 'root(mid(leaf(paid 700)))' });
    await expect.poll(() => store.load(root)).toBeNull();
    expect([first.paid, second.paid, third.paid]).toEqual([[], [], [700]]);
    expect(await store.due.countResting()).toBe(0);
    for (const { executor } of [second, third]) await executor.shutdown();
  },
);
