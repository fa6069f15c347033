// One process of a host, to be killed: node -C pawl-source worker.ts '<job as JSON>'
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createExecutor, type RunResult } from 'pawl';
import type { AppendingStore } from 'pawl/stores/kit';
import { sqliteStore } from 'pawl/stores/sqlite';
import { naiveStore } from '../fixtures/naive-store.ts';
import { Failpoints, failingModel, failingStore, refusingStore } from './failpoints.ts';
import type { Job } from './job.ts';
import { note } from './ledger.ts';
import { pipeline } from './pipeline-agent.ts';
import { survey } from './survey-agent.ts';
import { twelveTools } from './twelve-tools.ts';

const job = JSON.parse(process.argv[2] ?? '') as Job;
const { folder, runId } = job;
const points = new Failpoints(job.failpoint);
const storage = sqliteStore({ path: join(folder, 'runs.db') });
const agents = { survey, pipeline, 'twelve-tools': twelveTools } as const;
const { agent, model, prompt } = { prompt: 'Begin.', ...agents[job.agent](folder, points) };

const store = job.lies
  ? naiveStore(storage, { lies: job.lies })
  : failingStore(refusingStore(storage, job.late), points);
const executor = createExecutor({
  models: { fast: failingModel(model, points) },
  agents: [agent],
  store: noting(store),
  defaults: job.leaseMs === undefined ? {} : { leaseMs: job.leaseMs },
});

process.on('SIGTERM', async () => {
  await executor.shutdown();
  await storage.close();
  process.exit(0);
});
process.stdout.write('started\n');
const result = await executor.run(agent, { runId, prompt });
const code = result.error?.code;
if (result.status !== 'interrupted' && code !== 'RUN_OWNED_ELSEWHERE') finish(result);
process.stdout.write(`ended ${code ?? result.status}\n`);
// The naive store has writes under way of which nobody knows; it is left to its fate, as it leaves others.
if (!job.lies) await storage.close();

/** The store, writing down what it promised: a record that is said to be safe must be there after a kill. */
function noting(store: AppendingStore): AppendingStore {
  const saved = (revision: number) => note(folder, { phase: 'saved', pid: process.pid, runId, revision });
  return {
    ...store,
    save: async (record, options) => {
      await store.save(record, options);
      saved(record.revision);
    },
    append: async (delta, options) => {
      await store.append(delta, options);
      saved(delta.revision);
    },
  };
}

function finish(ended: RunResult): void {
  writeFileSync(join(folder, 'result.tmp'), JSON.stringify(ended));
  renameSync(join(folder, 'result.tmp'), join(folder, 'result.json'));
}
