import { join } from 'node:path';
import { createExecutor, defineAgent, defineTool, memoryStore } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTools, reply, scriptedModel } from 'pawl/testing';
import { type Cost, inFolder, measured, median } from './measure.ts';
import { amount, type Part, type Row } from './report.ts';

const counts = [500, 1_000, 2_000] as const;
const stores = ['memory', 'SQLite'] as const;
type StoreName = (typeof stores)[number];

const look = defineTool({
  name: 'look',
  description: 'Looks at nothing.',
  input: { type: 'object' },
  effect: 'read',
  execute: () => 'seen',
});
const agent = defineAgent({ id: 'bench', instructions: 'Look.', tools: [look] });

/** What a call costs where a model asks for very many at once. */
export async function callRows(isQuick: boolean): Promise<Part> {
  const rows: Row[] = [];
  for (const store of stores) rows.push(...(await rowsOf(store, isQuick ? 2 : 9)));
  return { rows, broken: [] };
}

async function rowsOf(store: StoreName, rounds: number): Promise<Row[]> {
  const found = new Map<number, Cost[]>(counts.map((count) => [count, []]));
  // The first round warms up.
  for (let round = 0; round <= rounds; round++) {
    for (const [count, costs] of found) {
      const cost = await costOf(store, count);
      if (round > 0) costs.push(cost);
    }
  }
  const cpu = (count: number) => median((found.get(count) ?? []).map(({ cpuMs }) => cpuMs / count));
  const wall = (count: number) => median((found.get(count) ?? []).map(({ wallMs }) => wallMs / count));
  const [least, , most] = counts;
  return [
    ...counts.map(
      (count): Row => ({
        what: `CPU a call, ${count} no-op reads in one message, ${store}`,
        value: cpu(count),
        unit: 'ms',
        budget: 0.2,
        note: `wall time ${amount(wall(count), 'ms')} a call`,
      }),
    ),
    {
      what: `CPU a call, ${most} reads in one message to ${least}, ${store}`,
      value: cpu(most) / cpu(least),
      unit: 'x',
      budget: 1.2,
      note: 'linear: a call does not cost more among more calls',
    },
  ];
}

/** A run whose model asks for so many reads in its one message, and then answers. */
function costOf(name: StoreName, count: number): Promise<Cost> {
  return inFolder(async (folder) => {
    const store = name === 'SQLite' ? sqliteStore({ path: join(folder, 'pawl.db') }) : memoryStore();
    const calls = callTools(Array.from({ length: count }, (_, n) => ({ name: 'look', input: { n } })));
    const executor = createExecutor({
      models: { fast: scriptedModel([calls, reply('done')]) },
      agents: [agent],
      store,
    });
    const cost = await measured(async () => {
      const result = await executor.run(agent, { prompt: 'Look.' });
      if (result.status !== 'ok' || result.iterations !== 2) throw new Error(`a run ended ${JSON.stringify(result)}`);
    });
    await executor.shutdown();
    return cost;
  });
}
