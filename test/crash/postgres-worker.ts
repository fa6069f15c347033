// One process of a host on PostgreSQL, to be killed: node -C pawl-source postgres-worker.ts '<job as JSON>'
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createExecutor, type Model, type RunResult } from 'pawl';
import type { AppendingStore } from 'pawl/stores/kit';
import { postgresStore } from 'pawl/stores/postgres';
import pg from 'pg';
import { Failpoints, failingModel, failingStore } from './failpoints.ts';
import { heldModel } from './held-model.ts';
import type { Job } from './job.ts';
import { note } from './ledger.ts';
import { twelveTools } from './twelve-tools.ts';

/** One run, begun or gone on with; or, with `runs`, a boot that starts that many, and at a later one recovers them. */
export interface PostgresJob extends Job {
  readonly url: string;
  readonly schema: string;
  readonly runs?: number;
  readonly isFirstBoot?: boolean;
}

const job = JSON.parse(process.argv[2] ?? '') as PostgresJob;
const { folder, runId, url, schema, runs = 0 } = job;
const points = new Failpoints(job.failpoint);
const pool = new pg.Pool({ connectionString: url, max: 6, application_name: schema });
const storage = failingStore(postgresStore({ pool, schema }), points);
const { agent } = twelveTools(folder, points);

const executor = createExecutor({
  models: { fast: failingModel(job.isFirstBoot ? heldModel(manyAnswers()) : manyAnswers(), points) },
  agents: [agent],
  store: noting(storage),
  defaults: job.leaseMs === undefined ? {} : { leaseMs: job.leaseMs },
});

process.stdout.write('started\n');
if (runs === 0) await one();
else if (job.isFirstBoot) await start();
else await recover();
await storage.close();
await pool.end();

async function one(): Promise<void> {
  const result = await executor.run(agent, { runId, prompt: 'Begin.' });
  const code = result.error?.code;
  if (result.status !== 'interrupted' && code !== 'RUN_OWNED_ELSEWHERE') finish(result);
  process.stdout.write(`ended ${code ?? result.status}\n`);
}

async function start(): Promise<void> {
  const ids = Array.from({ length: runs }, (_, i) => `run-${i}`);
  await Promise.all(ids.map((id) => executor.start(agent, { runId: id, prompt: 'Begin.' })));
  process.stdout.write('all begun\n');
}

async function recover(): Promise<void> {
  const { resumed } = await executor.recover();
  const results = await Promise.all(resumed.map((run) => executor.get(run.runId)?.result));
  process.stdout.write(
    `ended ${results.every((result) => result?.status === 'ok') ? 'ok' : JSON.stringify(results)}\n`,
  );
}

function finish(ended: RunResult): void {
  writeFileSync(join(folder, 'result.tmp'), JSON.stringify(ended));
  renameSync(join(folder, 'result.tmp'), join(folder, 'result.json'));
}

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

/** One scripted model has a thousand answers, which are not enough for hundreds of runs. */
function manyAnswers(): Model {
  const models = Array.from({ length: 10 }, () => twelveTools(folder, points).model) as [Model, ...Model[]];
  let asked = 0;
  return { ...models[0], doStream: async (options) => (models[asked++ % models.length] as Model).doStream(options) };
}
