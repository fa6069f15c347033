// One process of a fleet that says how large its heap is: node --expose-gc -C pawl-source fleet-hour-worker.ts '<job as JSON>'
import { getHeapSpaceStatistics } from 'node:v8';
import { createExecutor, defineAgent, defineTool } from 'pawl';
import { postgresStore } from 'pawl/stores/postgres';
import { callTool, reply, type ScriptedModel, scriptedModel } from 'pawl/testing';
import pg from 'pg';

export interface HourJob {
  readonly url: string;
  readonly schema: string;
  /** How often it says how large its heap is, ms; absent: it does not. */
  readonly sampleMs?: number;
}

const job = JSON.parse(process.argv[2] ?? '') as HourJob;
const say = (...words: (string | number)[]) => process.stdout.write(`${words.join(' ')}\n`);

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input: { type: 'object' },
  effect: 'once',
  execute: async () => 'seen '.repeat(100),
});
const rest = defineTool({
  name: 'rest',
  description: 'Rests.',
  input: { type: 'object' },
  effect: 'read',
  execute: async (_, { sleep }) => {
    await sleep(1_000);
    return 'rested';
  },
});
const agent = defineAgent({ id: 'worker', instructions: 'Work.', tools: [look, rest] });

/** A model keeps its requests: each call gets a new one, so that only Pawl could keep a run. */
function modelOf(): ScriptedModel {
  const asked = ({
    messages,
  }: {
    readonly messages: readonly { readonly role: string; readonly content: unknown }[];
  }) => {
    const step = messages.filter(({ role }) => role === 'assistant').length;
    const rests = /rests/.test(JSON.stringify(messages[0]));
    if (step === (rests ? 2 : 1)) return reply('done');
    return callTool(step === 1 ? 'rest' : 'look', { step }, `call-${step}`);
  };
  return scriptedModel([asked]);
}

const model: ScriptedModel = { ...modelOf(), doStream: (options) => modelOf().doStream(options) };
let ended = 0;
const pool = new pg.Pool({ connectionString: job.url, max: 3 });
const executor = createExecutor({
  models: { fast: model },
  agents: [agent],
  store: postgresStore({ pool, schema: job.schema }),
  fairBy: 'tenant',
  defaults: { waitLingerMs: 50 },
  onOutcome: ({ runId, outcomeId, status }) => {
    ended += 1;
    say('ended', runId, outcomeId, status);
  },
});

/** V8 compiles more and more of a process that works for an hour: its spaces for code grow, whatever the program keeps. */
function compiledBytes(): number {
  const spaces = getHeapSpaceStatistics().filter(({ space_name: name }) => /code|trusted/.test(name));
  return spaces.reduce((bytes, { space_used_size: used }) => bytes + used, 0);
}

/** What the program keeps, bytes. */
function heapBytes(): number {
  for (let i = 0; i < 2; i++) globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external - compiledBytes();
}

executor.work({ concurrency: 8, perKey: 4, dueMs: 1_000 });
executor.shutdownOnSignals({ drainMs: 30_000 });
if (job.sampleMs !== undefined) setInterval(() => say('heap', ended, heapBytes()), job.sampleMs).unref();
process.once('exit', () => {
  const { user, system } = process.cpuUsage();
  say('cpu', user + system);
});
say('began');
