// One boot of a host with many runs, one of which kills it: node -C pawl-source fleet.ts '<job as JSON>'
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createExecutor, defineAgent, defineTool } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, reply, scriptedModel } from 'pawl/testing';
import { Failpoints } from './failpoints.ts';
import { heldModel } from './held-model.ts';
import type { FleetJob } from './job.ts';
import { appendJsonLine } from './json-lines.ts';
import { note } from './ledger.ts';
import { twelveTools } from './twelve-tools.ts';

const { folder, healthy, isPoisoned } = JSON.parse(process.argv[2] ?? '') as FleetJob;
const path = join(folder, 'runs.db');
const isFirstBoot = !existsSync(path);
const { agent, model } = twelveTools(folder, new Failpoints(undefined));

/** Like a native module that brings the process down: no error, no chance to write anything. */
const abort = defineTool({
  name: 'abort',
  description: 'Ends the process.',
  input: { type: 'object' },
  effect: 'idempotent',
  execute: (_, { runId, callId, idempotencyKey: key, attempt }) => {
    const call = { tool: 'abort', effect: 'idempotent', callId, key, attempt } as const;
    note(folder, { phase: 'begin', pid: process.pid, runId, ...call });
    process.abort();
  },
});
const poison = defineAgent({ id: 'poison', instructions: 'Abort.', tools: [abort], model: 'poison' });

const executor = createExecutor({
  models: {
    fast: isFirstBoot && !isPoisoned ? heldModel(model) : model,
    poison: scriptedModel([callTool('abort', {}, 'abort-0'), reply('never said')]),
  },
  agents: [agent, poison],
  store: sqliteStore({ path }),
  onOutcome: (outcome) => appendJsonLine(join(folder, 'outcomes.jsonl'), outcome),
});

if (isFirstBoot) {
  const starts = Array.from({ length: healthy }, (_, i) =>
    executor.start(agent, { runId: `healthy-${i}`, prompt: 'Begin.' }),
  );
  if (isPoisoned) starts.push(executor.start(poison, { runId: 'poison', prompt: 'Abort.' }));
  const runs = await Promise.all(starts);
  process.stdout.write('started\n');
  await Promise.all(runs.map((run) => run.result));
} else {
  const { resumed } = await executor.recover();
  await Promise.all(resumed.map(({ runId }) => executor.get(runId)?.result));
}
