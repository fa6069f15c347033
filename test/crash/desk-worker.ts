// One process of a refund desk, to be killed at any moment: node -C pawl-source desk-worker.ts '<job as JSON>'
import { join } from 'node:path';
import { createExecutor, defineAgent, defineTool } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { Bank } from '../../docs/examples/refund-desk/bank.ts';
import { clerk } from '../../docs/examples/refund-desk/clerk.ts';

export interface DeskJob {
  readonly folder: string;
  /** A desk takes up the cases of its own agent only. */
  readonly agentId: string;
  readonly cases: readonly string[];
  /** The expiry of an approval, ms. */
  readonly expiresInMs: number;
}

const { folder, agentId, cases, expiresInMs } = JSON.parse(process.argv[2] ?? '') as DeskJob;
const bank = new Bank(join(folder, 'bank.jsonl'));
const refund = defineTool({
  name: 'refund',
  description: 'Refunds an order, in cents.',
  input: { type: 'object', properties: { order: { type: 'string' }, cents: { type: 'integer' } } },
  effect: 'once',
  needsApproval: true,
  approval: { quorum: 2, expiresInMs },
  execute: ({ order, cents }, { idempotencyKey }) => {
    bank.transfer({ reference: idempotencyKey, order: String(order), cents: Number(cents) });
    return `refunded ${order}`;
  },
});
const agent = defineAgent({ id: agentId, instructions: 'Refund.', tools: [refund] });
const executor = createExecutor({
  models: { fast: clerk() },
  agents: [agent],
  store: sqliteStore({ path: join(folder, 'runs.db') }),
  defaults: { leaseMs: 400, dueMs: 40, waitLingerMs: 30, controlMs: 30, maxAttempts: 1_000 },
  logger: {
    warn: (m, f) => {
      if (process.env.DEBUG) console.error(process.pid, m, JSON.stringify(f));
    },
  },
});
process.stdout.write('started\n');
await Promise.all(cases.map((runId) => executor.start(agent, { runId, prompt: `Refund ${runId} for 49.90, please.` })));
await executor.recover();
// Until it is killed.
setInterval(() => {}, 60_000);
