import type { Agent, Executor, Model, RunResult, Tracing } from 'pawl';
import * as pawl from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { type BenchStore, PromiseWatch } from './promise-watch.ts';

export type { BenchStore } from './promise-watch.ts';

/*
 * The work of all benchmarks: a fake model in this process asks N times for one call of one tool and then answers. A
 * step adds about 2.5 KB: the model's message of 300 bytes and a result of 2 KB.
 */

const THOUGHT = 'I need one more piece of the answer, so I look it up before I go on with the rest of the task. '
  .repeat(2)
  .trim();
export const RESULT = 'The piece that was looked up, as plain text of a size that tools often give. '
  .repeat(26)
  .slice(0, 2_000);

/** What the model says in a step, as it stands in the transcript. */
export function callMessage(step: number) {
  const call = { type: 'tool-call', toolCallId: `call-${step}`, toolName: 'lookup', input: { key: `piece-${step}` } };
  return { role: 'assistant', content: [{ type: 'text', text: THOUGHT }, call] };
}

/** What the tool answers in a step, as it stands in the transcript. */
export function resultMessage(step: number) {
  const output = { type: 'text', value: RESULT };
  return {
    role: 'tool',
    content: [{ type: 'tool-result', toolCallId: `call-${step}`, toolName: 'lookup', output }],
  };
}

/** Bytes that a run of so many steps has to say: the payload that stored and written bytes are compared with. */
export function payloadOf(steps: number): number {
  let bytes = 0;
  for (let step = 0; step < steps; step++) {
    bytes += Buffer.byteLength(JSON.stringify([callMessage(step), resultMessage(step)]));
  }
  return bytes;
}

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};

/** A model that asks `steps` times, then answers. What it says depends on the transcript alone, also after a restart. */
export function askingModel(steps: number): Model {
  return {
    specificationVersion: 'v4',
    provider: 'bench',
    modelId: 'bench',
    supportedUrls: {},
    async doGenerate() {
      throw new Error('this model only streams');
    },
    async doStream({ prompt }) {
      // A system prompt, the user's prompt, and two messages a step.
      const step = (prompt.length - 2) / 2;
      const parts = step < steps ? callParts(step) : answerParts();
      return {
        stream: new ReadableStream({
          start(controller) {
            for (const part of parts) controller.enqueue(part);
            controller.close();
          },
        }),
      };
    },
  };
}

/** A model that asks `steps` times, and after that never answers. */
export function hangingAfter(steps: number): Model {
  const model = askingModel(steps);
  return {
    ...model,
    doStream: (options) => ((options.prompt.length - 2) / 2 < steps ? model.doStream(options) : new Promise(() => {})),
  };
}

type StreamPart = Awaited<ReturnType<Model['doStream']>>['stream'] extends ReadableStream<infer Part> ? Part : never;

function callParts(step: number): StreamPart[] {
  return [
    { type: 'stream-start', warnings: [] },
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: THOUGHT },
    { type: 'text-end', id: 't' },
    { type: 'tool-call', toolCallId: `call-${step}`, toolName: 'lookup', input: `{"key":"piece-${step}"}` },
    { type: 'finish', finishReason: { unified: 'tool-calls', raw: 'tool_calls' }, usage },
  ];
}

function answerParts(): StreamPart[] {
  return [
    { type: 'stream-start', warnings: [] },
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: 'done' },
    { type: 'text-end', id: 't' },
    { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage },
  ];
}

export interface Bench {
  readonly executor: Executor;
  readonly agent: Agent;
  readonly store: BenchStore;
  /** Counts what the figures depend on: that each step was really recorded before the next one acted. */
  readonly watch: PromiseWatch;
  run(runId?: string): Promise<RunResult>;
  close(): Promise<void>;
}

/** What the work needs of a build of Pawl. */
export type Parts = Pick<typeof pawl, 'createExecutor' | 'defineAgent' | 'defineTool' | 'memoryStore'> & {
  readonly sqliteStore: typeof sqliteStore;
};

/** An executor on a store of its own, as a host would make it. */
export function bench(options: {
  /** The file of an SQLite store, ... */
  readonly path?: string;
  /** ... or another store, which whoever made it closes. */
  readonly store?: BenchStore;
  readonly steps: number;
  readonly effect?: 'read' | 'idempotent' | 'once';
  readonly model?: Model;
  /** The record stays when its run ends, so that its size can be seen. */
  readonly isRecordKept?: boolean;
  /** The events of its runs can be read in other processes. */
  readonly hasJournal?: boolean;
  readonly tracing?: Tracing | undefined;
  /** Another build than the one that is installed here. */
  readonly parts?: Parts;
}): Bench {
  const {
    path = '',
    steps,
    effect = 'read',
    model = askingModel(steps),
    isRecordKept = false,
    hasJournal = false,
    parts = { ...pawl, sqliteStore },
  } = options;
  const watch = new PromiseWatch();
  const own = options.store ? undefined : parts.sqliteStore({ path });
  const store = options.store ?? (own as BenchStore);
  const lookup = parts.defineTool({
    name: 'lookup',
    description: 'Looks a piece up.',
    input: { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] },
    effect,
    execute: async (_input, { runId }) => {
      watch.toolStarted(runId);
      return RESULT;
    },
  });
  const agent = built(parts.defineAgent, {
    id: 'bench',
    instructions: 'Collect all pieces.',
    tools: [lookup],
    maxSteps: steps + 1,
  });
  const executor = built(parts.createExecutor, {
    models: { fast: model },
    agents: [agent],
    store: {
      ...watch.watching(store),
      ...(isRecordKept ? { delete: nothing, outcomes: { ...store.outcomes, keep: nothing } } : {}),
    },
    onStep: ({ runId, iteration }) => watch.stepDone(runId, iteration),
    ...(hasJournal ? { journal: true } : {}),
    ...(options.tracing ? { tracing: options.tracing } : {}),
  });
  return {
    executor,
    agent,
    store,
    watch,
    run: (runId) => executor.run(agent, { prompt: 'Collect the pieces.', ...(runId === undefined ? {} : { runId }) }),
    close: async () => {
      // A sweep that is under way would find its store closed, and say so.
      await executor.shutdown();
      await own?.close();
    },
  };
}

async function nothing(): Promise<void> {}

/** Names of options in builds of before, for `--against`. */
const earlierNames: Readonly<Record<string, string>> = { store: 'checkpoints', maxSteps: 'maxIterations' };

/** Calls a function of a build, with the earlier names of its options where the build refuses those of today. */
function built<Options extends object, Made>(make: (options: Options) => Made, options: Options): Made {
  try {
    return make(options);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    const entries = Object.entries(options).map(([name, value]) => [earlierNames[name] ?? name, value] as const);
    return make(Object.fromEntries(entries) as Options);
  }
}

/** A figure of work that did not end well would be worth nothing. */
export function checkEnded(result: RunResult, steps: number): void {
  if (result.status === 'ok' && result.durable && result.iterations === steps + 1) return;
  const { status, error, durable, iterations } = result;
  throw new Error(`a benchmark's run ended ${JSON.stringify({ status, error, durable, iterations })}`);
}
