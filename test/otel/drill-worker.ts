// One worker of the drill: node -C pawl-source drill-worker.ts <JSON of WorkerJob>. It says its port, and that a payment begins.
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createExecutor, defineAgent, defineTool } from 'pawl';
import { postgresStore } from 'pawl/stores/postgres';
import { callTool, reply, scriptedModel } from 'pawl/testing';
import pg from 'pg';
import { spelled } from '../deploy/spelling.ts';
import { measuring } from './measuring.ts';

export interface WorkerJob {
  readonly url: string;
  readonly schema: string;
  readonly ledger: string;
  readonly deployment: number;
  /** It lacks the key of its model. */
  readonly isBad?: boolean;
  /** How far its clock is ahead, ms. */
  readonly skewMs?: number;
}

const job = JSON.parse(process.argv[2] ?? '') as WorkerJob;
const { now } = Date;
Date.now = () => now() + (job.skewMs ?? 0);

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  input: { type: 'object' },
  effect: 'once',
  needsApproval: true,
  execute: async (_, { runId }) => {
    appendFileSync(job.ledger, `${runId}\n`);
    process.stdout.write(`paying ${runId}\n`);
    await sleep(30);
    return 'paid';
  },
});
const script = Array.from(
  { length: 20_000 },
  () =>
    ({ messages }: { readonly messages: readonly { role: string }[] }) =>
      messages.some(({ role }) => role === 'tool') ? reply('done') : callTool('pay', {}),
);
const agent = defineAgent({ id: 'payer', instructions: 'Pay.', tools: [pay], model: 'fast' });
const { tracing, read } = measuring();
const pool = new pg.Pool({ connectionString: job.url, max: 6 });
pool.on('error', () => {});
const executor = createExecutor({
  models: { [job.isBad ? 'other' : 'fast']: scriptedModel(script) },
  agents: [agent],
  store: postgresStore({ pool, schema: job.schema, timeoutMs: 2_000 }),
  deployment: job.deployment,
  defaults: { leaseMs: 2_000, maxAttempts: 20 },
  tracing,
  logger: { warn: () => {} },
});
executor.shutdownOnSignals({ drainMs: 2_000 });
executor.work({ concurrency: 8 });

/** What has been measured, as the exporter of the SDK writes it. */
async function scraped(): Promise<string> {
  const { points } = await read();
  const lines = points.flatMap(({ name, attributes, value }) => {
    const labels = Object.entries(attributes).map(([key, text]) => `${spelled(key, 'scrape')}=${JSON.stringify(text)}`);
    const line = (part: string, count: number) =>
      `${spelled(`${name}${part}`, 'scrape')}{${labels.join(',')}} ${count}`;
    if (typeof value === 'number') return [line('', value)];
    const { count, sum = 0 } = value as { count: number; sum?: number };
    return [line('_count', count), line('_sum', sum)];
  });
  return `${lines.join('\n')}\n`;
}

const server = createServer((_, response) => {
  scraped().then(
    (text) => response.setHeader('content-type', 'text/plain; version=0.0.4').end(text),
    (error) => response.writeHead(500).end(String(error)),
  );
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address && typeof address === 'object') process.stdout.write(`port ${address.port}\n`);
});
