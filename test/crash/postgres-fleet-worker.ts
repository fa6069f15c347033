// One process of a fleet on PostgreSQL: node -C pawl-source postgres-fleet-worker.ts '<job as JSON>'
import { appendFileSync } from 'node:fs';
import { createExecutor, defineAgent, defineTool } from 'pawl';
import { type PostgresStore, postgresStore } from 'pawl/stores/postgres';
import { callTool, reply, scriptedModel } from 'pawl/testing';
import pg from 'pg';

export interface FleetWorkerJob {
  readonly ledger: string;
  readonly url: string;
  readonly schema: string;
  /** Of the deployment. */
  readonly version: number;
  /** Model calls of a run; all but the last one call a tool, the first one a tool with effect `once`. */
  readonly steps: number;
  readonly modelMs: number;
  readonly dueMs: number;
  /** Of a slice. */
  readonly budgetMs: number;
  readonly leaseMs: number;
  /** Starts in a row of which nothing was recorded, before a run is parked. */
  readonly maxAttempts: number;
  /** Whether a connection of its own listens for due runs. */
  readonly listens: boolean;
}

const job = JSON.parse(process.argv[2] ?? '') as FleetWorkerJob;
/** The last word of each line is the time. */
const note = (...words: (string | number)[]) => appendFileSync(job.ledger, `${words.join(' ')} ${Date.now()}\n`);
const pause = () => new Promise((resolve) => setTimeout(resolve, job.modelMs));
const runIdIn = (value: unknown) => /run-\d+/.exec(JSON.stringify(value))?.[0] ?? '';

/** A call whose answer names it, so that a saved record says which calls it has. */
async function called(runId: string, call: string): Promise<string> {
  note('called', runId, call, process.pid);
  await pause();
  // Long enough to be seen from outside.
  for (let i = 0; i < 3 && call.startsWith('pay-'); i++) await pause();
  return `<${runId}:${call}>`;
}

const toolOf = (name: string, effect: 'once' | 'idempotent') =>
  defineTool({
    name,
    description: `${name}.`,
    input: { type: 'object' },
    effect,
    execute: (input, { runId }) => called(runId, `${name}-${(input as { step: number }).step}`),
  });
const agent = defineAgent({
  id: 'worker',
  instructions: 'Work.',
  tools: [toolOf('pay', 'once'), toolOf('look', 'idempotent')],
});

const turn = async ({ messages }: { readonly messages: readonly { readonly role: string }[] }) => {
  const step = messages.filter(({ role }) => role === 'assistant').length;
  const text = await called(runIdIn(messages[0]), `model-${step}`);
  return step + 1 < job.steps ? callTool(step === 0 ? 'pay' : 'look', { step, text }) : reply(text);
};

/** Notes what has been taken, and which calls a record in the store has. */
function noting(store: PostgresStore): PostgresStore {
  const recorded = new Set<string>();
  const record = (saved: unknown) => {
    for (const [text, runId = '', call = ''] of JSON.stringify(saved).matchAll(/<(run-\d+):([a-z]+-\d+)>/g)) {
      if (!recorded.has(text)) note('recorded', runId, call, process.pid);
      recorded.add(text);
    }
  };
  return {
    ...store,
    due: {
      ...store.due,
      take: async (options) => {
        const taken = await store.due.take(options);
        for (const { runId, attempts, epoch } of taken.claims)
          note('taken', runId, job.version, attempts, process.pid, epoch);
        return taken;
      },
    },
    claim: async (runId, ...rest) => {
      const claim = await store.claim(runId, ...rest);
      note('claimed', runId, claim ? 'yes' : 'no', process.pid);
      return claim;
    },
    save: async (saved, options) => {
      await store.save(saved, options);
      record(saved);
    },
    append: async (delta, options) => {
      await store.append(delta, options);
      record(delta);
    },
  };
}

const pool = new pg.Pool({ connectionString: job.url, max: 4 });
const executor = createExecutor({
  models: { fast: scriptedModel(Array.from({ length: 100_000 }, () => turn)) },
  agents: [agent],
  store: noting(postgresStore({ pool, schema: job.schema, notify: job.listens })),
  deployment: job.version,
  defaults: { leaseMs: job.leaseMs, maxAttempts: job.maxAttempts },
  onOutcome: ({ runId, outcomeId, status }) => note('ended', runId, outcomeId, status),
});

async function listen(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: job.url, application_name: job.schema });
  await client.connect();
  return client;
}

executor.work({ concurrency: 4, dueMs: job.dueMs, budgetMs: job.budgetMs, ...(job.listens ? { listen } : {}) });
executor.shutdownOnSignals({ drainMs: 10_000 });
note('began', process.pid);
