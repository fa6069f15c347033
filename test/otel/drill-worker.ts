// A worker of the drill, or what `pawl work` gets of one; DRILL_JOB has its job. It says its port, each payment that begins, and each call
// of unknown outcome. The port answers a scrape, and the probes of a program of its own.
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createExecutor, defineAgent, defineTool } from 'pawl';
import { healthHandler, toNodeListener } from 'pawl/http';
import { postgresStore } from 'pawl/stores/postgres';
import { callTool, reply, scriptedModel } from 'pawl/testing';
import pg from 'pg';
import { spelled } from '../deploy/spelling.ts';
import { measuring } from './measuring.ts';

export interface WorkerJob {
  readonly url: string;
  readonly schema: string;
  readonly ledger: string;
  readonly leaseMs: number;
  readonly deployment: number;
  /** It lacks the key of its model. */
  readonly isBad?: boolean;
  /** How far its clock is ahead, ms. */
  readonly skewMs?: number;
  /** `pawl work` takes its runs. */
  readonly isCommand?: boolean;
}

const job = JSON.parse(process.env.DRILL_JOB ?? '') as WorkerJob;
const { now } = Date;
Date.now = () => now() + (job.skewMs ?? 0);

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  input: { type: 'object' },
  effect: 'once',
  needsApproval: true,
  execute: async (_, { runId }) => {
    process.stdout.write(`paying ${runId}\n`);
    // A SIGKILL after this line finds calls that are recorded as begun, and are not made.
    await sleep(100);
    appendFileSync(job.ledger, `${runId}\n`);
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
export default agent;
export const models = { [job.isBad ? 'other' : 'fast']: scriptedModel(script) };
const { tracing: measured, read } = measuring();
export const tracing: typeof measured = {
  ...measured,
  event(event, run) {
    if (event.type === 'call.unknown') process.stdout.write(`unknown ${event.runId}\n`);
    measured.event(event, run);
  },
};
const executor = job.isCommand ? undefined : begin();

/** A program of its own. */
function begin() {
  const pool = new pg.Pool({ connectionString: job.url, max: 6 });
  pool.on('error', () => {});
  const made = createExecutor({
    models,
    agents: [agent],
    store: postgresStore({ pool, schema: job.schema, timeoutMs: 2_000 }),
    deployment: job.deployment,
    defaults: { leaseMs: job.leaseMs, maxAttempts: 20 },
    tracing,
    logger: { warn: () => {} },
  });
  made.shutdownOnSignals({ drainMs: 2_000 });
  made.work({ concurrency: 8 });
  return made;
}

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

const probed = executor && toNodeListener(healthHandler(executor));
const server = createServer((request, response) => {
  if (probed && request.url !== '/metrics') return probed(request, response);
  scraped().then(
    (text) => response.setHeader('content-type', 'text/plain; version=0.0.4').end(text),
    (error) => response.writeHead(500).end(String(error)),
  );
});
// `pawl work` ends by itself, and does not know of this one.
if (job.isCommand) server.unref();
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address && typeof address === 'object') process.stdout.write(`port ${address.port}\n`);
});
