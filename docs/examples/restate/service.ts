// One of the services behind the balancer: node service.ts '<job as JSON>'. Any of them may be killed at any time.
import http2 from 'node:http2';
import { join } from 'node:path';
import { createEndpointHandler } from '@restatedev/restate-sdk';
import { createExecutor, type Executor } from 'pawl';
import { restateRuns } from 'pawl/restate';
import { sqliteStore } from 'pawl/stores/sqlite';
import { type Desk, orderDesk } from './agent.ts';

export interface ServiceJob extends Omit<Desk, 'ledger'> {
  /** The folder of the store and of the ledger, which all services share. */
  readonly folder: string;
  readonly port: number;
  /** The URL of Restate's ingress. */
  readonly ingress: string;
}

const job = JSON.parse(process.argv[2] ?? '') as ServiceJob;
const { agent, model } = orderDesk({ ...job, ledger: join(job.folder, 'ledger.jsonl') });

const executor: Executor = createExecutor({
  models: { fast: model },
  agents: [agent],
  store: sqliteStore({ path: join(job.folder, 'runs.db') }),
  onDue: (runId, at) => runs.onDue(runId, at),
  retention: { records: 3_600_000 },
});
const runs = restateRuns(executor, { ingress: job.ingress, budgetMs: 2_000, graceMs: 2_000, dueMs: 2_000 });

const server = http2.createServer(createEndpointHandler({ services: [runs.object] })).listen(job.port, '127.0.0.1');
const ending = new AbortController();
void runs.sweep({ signal: ending.signal });
executor.shutdownOnSignals({
  onSignal: () => {
    ending.abort();
    server.close();
  },
});
server.on('listening', () => console.log(`listening on port ${job.port}`));
