// One process of a host whose run is read elsewhere, to be killed: node -C pawl-source journal-worker.ts '<job as JSON>'
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { createExecutor, defineAgent, defineTool } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';

/** What the process works on. */
export interface JournalJob {
  readonly folder: string;
  readonly runId: string;
  /** Pieces of each text, and the pause between two of them, ms. */
  readonly pieces: number;
  readonly pauseMs: number;
}

const STEPS = 4;
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** Each attempt has a text of its own: a reader that mixed two would have one that no record has. */
function talkative({ pieces, pauseMs }: JournalJob): LanguageModelV4 {
  async function* parts(step: number): AsyncGenerator<LanguageModelV4StreamPart> {
    yield { type: 'text-start', id: 't' };
    for (let i = 0; i < pieces; i++) {
      await sleep(pauseMs);
      yield { type: 'text-delta', id: 't', delta: `${step}/${process.pid}/${i} ` };
    }
    yield { type: 'text-end', id: 't' };
    if (step < STEPS)
      yield {
        type: 'tool-call',
        toolCallId: `c${step}`,
        toolName: step % 2 ? 'note' : 'look',
        input: `{"at":${step}}`,
      };
    yield { type: 'finish', finishReason: { unified: step < STEPS ? 'tool-calls' : 'stop', raw: undefined }, usage };
  }
  return {
    specificationVersion: 'v4',
    provider: 'test',
    modelId: 'talkative',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('only streams')),
    doStream: async ({ prompt }) => {
      const step = 1 + prompt.filter(({ role }) => role === 'assistant').length;
      return { stream: ReadableStream.from(parts(step)) };
    },
  };
}

const tool = (name: string, effect: 'read' | 'once') =>
  defineTool({
    name,
    description: name,
    input: { type: 'object' },
    effect,
    execute: async () => {
      await sleep(20);
      return `${name} done`;
    },
  });

async function work(job: JournalJob): Promise<void> {
  const agent = defineAgent({
    id: 'talker',
    instructions: 'Talk.',
    tools: [tool('note', 'once'), tool('look', 'read')],
  });
  const store = sqliteStore({ path: join(job.folder, 'runs.db'), durability: 'process' });
  const executor = createExecutor({
    models: { fast: talkative(job) },
    agents: [agent],
    store,
    journal: { flushMs: 5 },
    retention: { records: 600_000 },
    defaults: { maxAttempts: 1_000 },
  });
  process.stdout.write('started\n');
  const result = await executor.run(agent, { runId: job.runId, prompt: 'Begin.' });
  if (result.status === 'ok') {
    // The process before may have been killed right after the end of the run: its answer is kept without messages.
    const messages = result.kept ? await executor.messages(job.runId) : result.messages;
    writeFileSync(join(job.folder, 'result.tmp'), JSON.stringify({ messages }));
    renameSync(join(job.folder, 'result.tmp'), join(job.folder, 'result.json'));
  }
  await executor.shutdown();
  await store.close();
}

if (process.argv[2]?.startsWith('{')) await work(JSON.parse(process.argv[2]) as JournalJob);
