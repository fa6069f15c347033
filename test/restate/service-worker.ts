// A service that Restate calls, to be killed and stopped: node -C pawl-source service-worker.ts '<job as JSON>'
import http2 from 'node:http2';
import { join } from 'node:path';
import { createEndpointHandler } from '@restatedev/restate-sdk';
import { createExecutor, type Executor } from 'pawl';
import { restateRuns } from 'pawl/restate';
import { orderDesk } from '../../docs/examples/restate/agent.ts';
import type { ServiceJob } from '../../docs/examples/restate/service.ts';
import { sharedStore } from './shared-store.ts';

/** The job of a service of the example, and the PostgreSQL that it uses. */
export interface WorkerJob extends ServiceJob {
  readonly url?: string | undefined;
}

const job = JSON.parse(process.argv[2] ?? '') as WorkerJob;
const { agent, model } = orderDesk({ ...job, ledger: join(job.folder, 'ledger.jsonl') });
const executor: Executor = createExecutor({
  models: { fast: model },
  agents: [agent],
  store: sharedStore(job),
  retention: { records: 3_600_000 },
  // Where a process lives for two seconds, a run may be started several times before it records anything.
  defaults: { leaseMs: 2_000, maxAttempts: 10 },
  logger: { warn: () => {} },
  onDue: (runId, at) => runs.onDue(runId, at),
});
const runs = restateRuns(executor, { ingress: job.ingress, budgetMs: 2_500, graceMs: 3_000, dueMs: 1_000 });
console.warn = () => {};
const server = http2.createServer(createEndpointHandler({ services: [runs.object], logger: () => {} }));
server.listen(job.port, '127.0.0.1', () => process.stdout.write('listening\n'));
void runs.sweep({ signal: new AbortController().signal });
