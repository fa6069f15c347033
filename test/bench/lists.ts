import { APICallError } from '@ai-sdk/provider';
import { createExecutor, defineAgent, defineTool, type ModelEntry, memoryStore, type RunEvent } from 'pawl';
import { callTool, fail, reply, type ScriptedEntry, scriptedModel } from 'pawl/testing';
import { RequestView } from '../../src/model/request-view.ts';
import { Transcript } from '../../src/run/transcript.ts';
import { enterMessage, type Message } from '../../src/values/message.ts';
import { type Cost, measured, median } from './measure.ts';
import type { Part, Row } from './report.ts';

const STEPS = 1_000;

const look = defineTool({
  name: 'look',
  description: 'Looks at nothing.',
  input: { type: 'object' },
  effect: 'read',
  execute: () => 'seen',
});
const agent = defineAgent({ id: 'bench', instructions: 'Look.', tools: [look], maxSteps: STEPS + 1 });
const script = Array.from({ length: STEPS }, (_, n) => callTool('look', { n }));

const named = (modelId: string, entries: readonly ScriptedEntry[]) =>
  Object.assign(scriptedModel(entries), { provider: 'bench', modelId });
const sound = (modelId: string) => named(modelId, [...script, reply('done')]);

/** What a list of models costs a step while its first model answers, beside that model alone. */
const forms = {
  'a list of one': () => [sound('a')],
  'a list of two': () => [sound('a'), sound('b')],
} as const;

/** What a list costs, and how soon its second model is asked. */
export async function listRows(isQuick: boolean): Promise<Part> {
  return {
    rows: [
      ...(await costRows(isQuick ? 3 : 15)),
      await viewRow(isQuick ? 3 : 15),
      ...(await delayRows(isQuick ? 5 : 20)),
    ],
    broken: [],
  };
}

async function costRows(rounds: number): Promise<Row[]> {
  const ratios = new Map<string, number[]>(Object.keys(forms).map((form) => [form, []]));
  for (let round = 0; round <= rounds; round++) {
    for (const [form, list] of Object.entries(forms)) {
      // What comes first pays for what is compiled and collected then: they take turns in that too.
      const costs = { alone: 0, listed: 0 };
      for (const which of round % 2 === 0 ? (['alone', 'listed'] as const) : (['listed', 'alone'] as const)) {
        costs[which] = (await costOf(which === 'alone' ? sound('a') : list())).cpuMs;
      }
      if (round > 0) ratios.get(form)?.push(costs.listed / costs.alone);
    }
  }
  return [...ratios].map(
    ([form, all]): Row => ({
      what: `CPU a step, ${form} to its first model alone, memory store`,
      value: median(all),
      unit: 'x',
      budget: 1.01,
      note: `${STEPS} steps, ${rounds} rounds by turns`,
    }),
  );
}

function costOf(models: Parameters<typeof tierOf>[0]): Promise<Cost> {
  return measured(async () => {
    const executor = createExecutor({ models: tierOf(models), agents: [agent], store: memoryStore() });
    const { status } = await executor.run(agent, { prompt: 'Look.' });
    if (status !== 'ok') throw new Error(`a run ended ${status}`);
    await executor.shutdown();
  });
}

/** Steps of a run that begins with this many messages. */
const [HISTORY, LATE_STEPS] = [1_000, 100];

/** What the view of a conversation costs, beside the steps that need it: it is made as often, of as many messages, by turns. */
async function viewRow(rounds: number): Promise<Row> {
  const history = Array.from({ length: HISTORY }, (_, n) =>
    enterMessage({ role: n % 2 === 0 ? 'user' : 'assistant', content: [{ type: 'text', text: `message ${n}` }] }),
  );
  const shares: number[] = [];
  const withFirst: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    const entries = [...script.slice(0, LATE_STEPS - 1), reply('done')];
    const executor = createExecutor({ models: tierOf(named('a', entries)), agents: [agent], store: memoryStore() });
    let messages: readonly Message[] = [];
    const steps = await measured(async () => {
      ({ messages } = await executor.run(agent, { prompt: 'Look.', history }));
    });
    await executor.shutdown();
    // The prompt, then a call with its result for each step.
    const own = messages.slice(-2 * LATE_STEPS);
    const begun = Transcript.of([...history, ...own.slice(0, 1)]);
    const grown: Transcript[] = [];
    // A run makes its transcript with or without a view.
    for (let step = 1; step < LATE_STEPS; step++)
      grown.push((grown.at(-1) ?? begun).append(...own.slice(2 * step - 1, 2 * step + 1)));
    const view = new RequestView('bench/a');
    const first = await measured(() => view.of(begun));
    const others = await measured(() => {
      for (const transcript of grown) view.of(transcript);
    });
    if (round > 0) shares.push((100 * others.cpuMs) / steps.cpuMs);
    if (round > 0) withFirst.push((100 * (first.cpuMs + others.cpuMs)) / steps.cpuMs);
  }
  return {
    what: `CPU for the view of a conversation, of a step with ${HISTORY} messages, memory store`,
    value: median(shares),
    unit: '%',
    budget: 2,
    note: `${LATE_STEPS} steps, ${rounds} rounds; ${median(withFirst).toFixed(1)} % with the first view of a run, which makes each message`,
  };
}

const tierOf = (fast: ReturnType<typeof sound> | readonly (ReturnType<typeof sound> | ModelEntry)[]) => ({ fast });

const away: readonly (readonly [name: string, error: unknown])[] = [
  ['a refused connection', Object.assign(new TypeError('fetch failed'), { cause: { code: 'ECONNREFUSED' } })],
  ['a 529', new APICallError({ message: 'Overloaded', url: '', requestBodyValues: {}, statusCode: 529 })],
];

async function delayRows(rounds: number): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [name, error] of away) {
    for (const maxAttempts of [1, undefined]) {
      const delays: number[] = [];
      for (let round = 0; round < rounds; round++) delays.push(await delayOf(error, maxAttempts));
      rows.push({
        what: `from the first request to the second model, after ${name}, ${maxAttempts ? 'one attempt' : 'by default'}`,
        value: median(delays),
        unit: 'ms',
        budget: maxAttempts ? 50 : 1_500,
        note: `the longest of ${rounds}: ${Math.round(Math.max(...delays))} ms`,
      });
    }
  }
  return rows;
}

/** From the beginning of a step to the request that the second model gets, ms. */
async function delayOf(error: unknown, maxAttempts: number | undefined): Promise<number> {
  let begunAt = 0;
  const first = named('a', [fail(error), fail(error)]);
  const second = Promise.withResolvers<number>();
  const answering: ScriptedEntry = () => {
    second.resolve(performance.now() - begunAt);
    return reply('done');
  };
  const executor = createExecutor({
    models: tierOf([{ model: first, ...(maxAttempts ? { maxAttempts } : {}) }, named('b', [answering])]),
    agents: [agent],
    store: memoryStore(),
    observers: [
      {
        onEvent: (event: RunEvent) => {
          if (event.type === 'step.started') begunAt = performance.now();
        },
      },
    ],
  });
  await executor.run(agent, { prompt: 'Look.' });
  await executor.shutdown();
  return second.promise;
}
