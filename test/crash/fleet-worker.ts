// One process of a fleet on one SQLite file: node -C pawl-source fleet-worker.ts <folder>
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { createExecutor, defineAgent, defineTool } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, reply, scriptedModel } from 'pawl/testing';

const [folder = ''] = process.argv.slice(2);
const note = (what: string, runId: string) => appendFileSync(join(folder, 'ledger'), `${what} ${runId}\n`);
const pause = () => new Promise((resolve) => setTimeout(resolve, 5));

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  input: { type: 'object' },
  effect: 'once',
  execute: async (_, { invocation }) => {
    note('paid', String(invocation.prompt));
    await pause();
    return 'paid';
  },
});
const agent = defineAgent({ id: 'worker', instructions: 'Work.', tools: [pay] });
const turn = async ({ messages }: { readonly messages: readonly unknown[] }) => {
  await pause();
  return messages.length === 1 ? callTool('pay') : reply('done');
};
const executor = createExecutor({
  models: { fast: scriptedModel(Array.from({ length: 10_000 }, () => turn)) },
  agents: [agent],
  store: sqliteStore({ path: join(folder, 'runs.db') }),
  // Sixty kills in a row meet one run three times before its call has a result: by chance, not by its fault.
  defaults: { leaseMs: 2_000, dueMs: 100, maxAttempts: 20 },
  onOutcome: ({ runId }) => note('ended', runId),
});
executor.work({ concurrency: 4, dueMs: 100 });
executor.shutdownOnSignals({ drainMs: 5_000 });
