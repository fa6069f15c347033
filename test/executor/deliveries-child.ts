/*
 * A process for the tests of deliveries: `node deliveries-child.ts <path> <log> <when it dies>`. It ends a run, or delivers the ends of
 * others, and is killed on the way.
 */
import { appendFileSync } from 'node:fs';
import { createExecutor, defineAgent } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { reply, scriptedModel } from 'pawl/testing';

const [path = '', log = '', dies = ''] = process.argv.slice(2);
const die = (): Promise<never> => {
  process.kill(process.pid, 'SIGKILL');
  return new Promise(() => {});
};
const store = sqliteStore({ path });
const agent = defineAgent({ id: 'worker', instructions: 'Work.' });
const executor = createExecutor({
  models: { fast: scriptedModel([reply('done')]) },
  agents: [agent],
  store: { ...store, ...(dies === 'before the mark' ? { deliveries: { ...store.deliveries, mark: die } } : {}) },
  onOutcome: async ({ outcomeId }) => {
    if (dies === 'before the delivery') await die();
    appendFileSync(log, `${outcomeId}\n`);
    if (dies === 'after the delivery') await die();
  },
});
if (await store.load('r')) await executor.recover();
else if (await store.outcomes.find('r')) await executor.recover({ follow: true });
else await executor.run(agent, { runId: 'r', prompt: 'Go.' });
