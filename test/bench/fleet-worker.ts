// One process of the measured fleet: node fleet-worker.ts <url> <schema> <steps> <ms of a model call>. It begins to work at a line
// on its input, and writes a line for each run that has ended.
import { createInterface } from 'node:readline';
import { createExecutor } from 'pawl';
import { postgresStore } from 'pawl/stores/postgres';
import pg from 'pg';
import { fleetAgent, pausingModel } from './fleet-work.ts';

const [url, schema, steps, modelMs] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: url, max: 4 });
const store = postgresStore({ pool, schema });
const executor = createExecutor({
  models: { fast: pausingModel(Number(steps), Number(modelMs)) },
  agents: [fleetAgent],
  store,
  onOutcome: ({ runId, status }) => console.log(`${status} ${runId}`),
});
await store.due.list({ limit: 1 });
console.log('ready');
for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'go') executor.work({ concurrency: 32, dueMs: 50 });
  if (line === 'end') break;
}
await executor.shutdown();
await store.close();
await pool.end();
