import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createExecutor, defineAgent, defineTool } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, reply, type ScriptedRequest, scriptedModel } from 'pawl/testing';
import { appendJsonLine, readJsonLines } from './json-lines.ts';
import { numberOf } from './random.ts';

/** What one boot is told. */
export interface SignalJob {
  readonly folder: string;
  readonly runs: number;
  readonly drainMs: number;
  /** The first SIGTERM comes at this model call or tool call, counted over all runs of this boot; 0: none comes. */
  readonly at: number;
  /** The second one so long after the first, ms. */
  readonly againAfterMs?: number | undefined;
  /** Default: SIGTERM. */
  readonly signal?: 'SIGINT' | undefined;
  /** Nobody listens to the signal: what a host without `shutdownOnSignals` gets. */
  readonly isDeaf?: boolean | undefined;
}

const {
  folder,
  runs,
  drainMs,
  at,
  againAfterMs,
  signal = 'SIGTERM',
  isDeaf,
} = JSON.parse(process.argv[2] ?? '') as SignalJob;
const note = (file: string, line: object) => appendJsonLine(join(folder, file), line);
const noted = (file: string) => readJsonLines<{ runId: string }>(join(folder, file));

let events = 0;
let isTold = false;
/** @param ms how long a call with effects goes on, which the drain waits for: a second signal must find it there */
function count(ms = 0): void {
  events += 1;
  if (isTold || at === 0 || events < at || (againAfterMs !== undefined && ms < 2 * againAfterMs)) return;
  isTold = true;
  process.kill(process.pid, signal);
}

const tools = (['read', 'once', 'idempotent'] as const).map((effect) =>
  defineTool({
    name: effect,
    description: `Does what has the effect ${effect}.`,
    effect,
    input: { type: 'object' },
    execute: async (_, { runId, idempotencyKey: key }) => {
      const ms = effect === 'read' ? 0 : 400 * numberOf(key);
      if (effect !== 'read') note('calls.jsonl', { runId, effect, key });
      count(ms);
      if (ms > 0) await sleep(ms);
      return effect;
    },
  }),
);
const agent = defineAgent({ id: 'busy', instructions: 'Work.', tools });
const plan = ['read', 'once', 'idempotent', 'once'];

/** Where a run is, is told by its transcript alone. */
function turn({ messages }: ScriptedRequest) {
  count();
  const name = plan[messages.filter(({ role }) => role === 'assistant').length];
  return name ? callTool(name, {}) : reply('done');
}

const executor = createExecutor({
  models: { fast: scriptedModel(Array.from({ length: 10 * runs }, () => turn)) },
  agents: [agent],
  store: sqliteStore({ path: join(folder, 'runs.db'), durability: 'process' }),
  onOutcome: ({ runId, outcomeId, status }) => note('outcomes.jsonl', { runId, outcomeId, status }),
  logger: {
    warn: (message, fields) => {
      // A second signal ends the process in the middle of calls: the next one says so of each.
      if (fields.event !== 'call.unknown') console.warn(message, fields);
    },
  },
});
const onSignal = () => {
  note('signals.jsonl', { live: executor.runs.get().length, at: Date.now() });
  if (againAfterMs !== undefined) setTimeout(() => process.kill(process.pid, signal), againAfterMs);
};
if (!isDeaf) executor.shutdownOnSignals({ drainMs, onSignal });

const accepted = new Set(noted('accepted.jsonl').map(({ runId }) => runId));
const recovering = executor.recover({ concurrency: runs });
const names = Array.from({ length: runs }, (_, i) => `r${i}`).filter((runId) => !accepted.has(runId));
await Promise.all(
  names.map(async (runId) => {
    const run = await executor.start(agent, { runId, prompt: 'Work.' });
    if (!['failing', 'settled'].includes(String(run.actor.getSnapshot().value))) note('accepted.jsonl', { runId });
    await run.result;
  }),
);
const { resumed } = await recovering;
await Promise.all(resumed.map(({ runId }) => executor.get(runId)?.result));
