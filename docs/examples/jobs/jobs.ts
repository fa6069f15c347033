// A host with a table of durable jobs of its own, on SQLite.
//
// In a project that has installed pawl (Node runs no TypeScript below node_modules, so copy the folder first):
//
//   npm pkg set type=module
//   cp -r node_modules/pawl/docs/examples/jobs .
//   node jobs/jobs.ts "Count to 3." "Count to 40."
//   node jobs/jobs.ts
//
// Killed in the middle, the second command works on what is left. JOBS=jobs.db, COUNT_MS=50
import { setTimeout as sleep } from 'node:timers/promises';
import { type Clock, createExecutor, defineAgent, defineTool, type Logger, type Model, type StepInfo } from 'pawl';
import { callTool, reply, type ScriptedRequest, scriptedModel } from 'pawl/testing';
import { type JobTable, openJobs } from './job-table.ts';
import { lazily } from './lazily.ts';
import type { SizeCap } from './size-cap.ts';

export interface JobsOptions {
  readonly path: string;
  readonly model: Model;
  readonly clock?: Clock;
  readonly cap?: SizeCap;
  readonly tools?: readonly ReturnType<typeof counter>[];
  readonly onStep?: (step: StepInfo) => void;
  readonly logger?: Logger;
}

const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout: (callback, ms) => setTimeout(callback, ms),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
};

/** Each count is a line of the host's own `counts`: what was done twice can be seen. */
export function counter(table: JobTable, ms: number) {
  table.db.exec('CREATE TABLE IF NOT EXISTS counts (job TEXT NOT NULL, n INTEGER NOT NULL)');
  const insert = table.db.prepare('INSERT INTO counts (job, n) VALUES (?, ?)');
  return defineTool({
    name: 'count',
    description: 'Counts one further.',
    effect: 'idempotent',
    input: { type: 'object', properties: { to: { type: 'integer' } }, required: ['to'] },
    execute: async ({ to }: { to: number }, { runId, signal }) => {
      await sleep(ms, undefined, { signal });
      insert.run(runId, to);
      return { counted: to };
    },
  });
}

/** The jobs of one table: `boot` works on all that are open, `stop` leaves them for the next process. */
export function jobService({ path, model, clock = systemClock, cap = { maxBytes: 1_000_000 }, ...rest }: JobsOptions) {
  const table = openJobs(path, { cap });
  const tools = rest.tools ?? [counter(table, Number(process.env.COUNT_MS ?? 50))];
  const agent = defineAgent({ id: 'counter', instructions: 'Count.', tools, maxSteps: 1_000 });
  const checkpointer = lazily(table.store, { clock, afterSteps: 5, afterMs: 30_000, throttleMs: 1_000 });
  const executor = createExecutor({
    models: { fast: model },
    agents: [agent],
    ports: { checkpointer },
    // A lazy run has no record to deliver its end from: the row must have it before the run counts as ended.
    onOutcome: async (outcome) => table.finish(outcome),
    // The row has the answer; no other process ends a job.
    retention: { outcomes: 0 },
    clock,
    ...(rest.onStep ? { onStep: rest.onStep } : {}),
    ...(rest.logger ? { logger: rest.logger } : {}),
  });
  const start = ({ id, prompt }: { readonly id: string; readonly prompt: string }) =>
    executor.start(agent, { runId: id, prompt });
  return {
    table,
    executor,
    /** Stored runs continue where they were. The other open jobs have no stored run, and begin again. */
    boot: async () => {
      const { resumed, parked } = await executor.recover();
      for (const job of table.unstored()) if (!executor.get(job.id)) await start(job);
      return { resumed, parked };
    },
    add: (id: string, prompt: string) => {
      table.add(id, prompt);
      return start({ id, prompt });
    },
    stop: async () => {
      checkpointer.storeAll();
      await executor.shutdown();
      table.db.close();
    },
  };
}

/** Counts to what the prompt says, one tool call a step; put a model of the AI SDK in its place. */
export const countingModel = () => scriptedModel(Array.from({ length: 10_000 }, () => turn));

function turn({ messages }: ScriptedRequest) {
  const goal = Number(/\d+/.exec(JSON.stringify(messages[0]?.content ?? ''))?.[0] ?? 3);
  const counted = messages.filter((message) => message.role === 'tool').length;
  return counted < goal ? callTool('count', { to: counted + 1 }) : reply(`Counted to ${counted}.`);
}

if (import.meta.main) {
  const service = jobService({
    path: process.env.JOBS ?? 'jobs.db',
    model: countingModel(),
    onStep: ({ runId, iteration }) =>
      console.log(`${runId}: step ${iteration}, durable: ${service.executor.run$(runId)?.get().durable}`),
  });
  const { resumed, parked } = await service.boot();
  for (const { runId } of resumed) console.log(`${runId}: continues`);
  for (const { runId, reason } of parked) console.log(`${runId}: parked, ${reason}`);
  for (const prompt of process.argv.slice(2)) await service.add(`job-${service.table.jobs().length + 1}`, prompt);
  const runs = service.executor.runs.get().map(({ runId }) => service.executor.get(runId));
  for (const run of runs) {
    const { runId, output, durable } = (await run?.result) ?? {};
    console.log(`${runId}: ${output} durable: ${durable}`);
  }
  await service.stop();
}
