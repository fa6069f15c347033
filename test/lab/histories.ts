// Random lives of one run, over several processes: what a recording has to survive.
import fc from 'fast-check';
import {
  type Agent,
  type Compactor,
  type Critic,
  createExecutor,
  defineAgent,
  defineSkill,
  defineTool,
  type Executor,
  type Message,
  type Model,
  type RunResult,
  type Tool,
} from 'pawl';
import { type RecordedRun, readRun } from 'pawl/lab';
import { splitForCompaction } from 'pawl/stores/kit';
import { settle } from '../fixtures/host.ts';
import { type MortalProcess, mortalProcess } from '../fixtures/mortal-process.ts';

interface PlannedCall {
  readonly name: string;
  /** '' and repeated ids are what some models send. */
  readonly id: string;
  /** As its model writes it: it may be no JSON, and no input of the tool. */
  readonly input: string;
}

interface Turn {
  readonly text: string;
  readonly thought: boolean;
  readonly calls: readonly PlannedCall[];
  readonly fails: boolean;
  /** What the host says while the model answers. */
  readonly says: readonly string[];
  /** What the critic says after the step. */
  readonly nudge: boolean;
  readonly cut: boolean;
}

export interface History {
  readonly turns: readonly Turn[];
  readonly phases: readonly {
    readonly isOptional: boolean;
    readonly bare: boolean;
    readonly boundary: boolean;
    readonly maxSteps: number;
  }[];
  readonly hasSchema: boolean;
  readonly maxSteps: number;
  readonly grant: number;
  readonly approves: 'never' | 'yes' | 'no';
  readonly hasEarlier: boolean;
  readonly hasImage: boolean;
  /** Its model has room for few messages. */
  readonly isCompacted: boolean;
  /** The writes after which its processes die. */
  readonly deaths: readonly number[];
  /** The turn in which its host cancels it; -1 = in none. */
  readonly cancelledIn: number;
  /** How often its host retries it after a bad end. */
  readonly retries: number;
}

const oftenNo = fc.constantFrom(false, false, false, true);
const input = fc.constantFrom(
  '{"n":1}',
  '{"n":2}',
  '{"n":1,"of":{"b":1,"a":[2]}}',
  '{"n":"x"}',
  '[]',
  '{"n":',
  '"n"',
  '',
  '{"__proto__":1}',
);
const call: fc.Arbitrary<PlannedCall> = fc.record({
  name: fc.constantFrom('look', 'look', 'pay', 'pay', 'book', 'bad', 'agent__helper', 'skill__sum', 'gone', 'no name!'),
  id: fc.constantFrom('call_0', 'call_1', 'a-p2', 'b', ''),
  input: fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom('{"n":1}', '{"n":2}', '{"prompt":"help"}') },
    { weight: 1, arbitrary: input },
  ),
});
const turn: fc.Arbitrary<Turn> = fc.record({
  text: fc.constantFrom('', 'Well.', '{"ok":true}', '{"ok":1}', 'tür 😀\u2028'),
  thought: oftenNo,
  calls: fc.oneof(
    { weight: 3, arbitrary: fc.array(call, { minLength: 1, maxLength: 3 }) },
    { weight: 1, arbitrary: fc.constant([]) },
  ),
  fails: fc.constantFrom(false, false, false, false, false, false, false, true),
  says: fc.array(fc.constantFrom('And?', 'Hurry.', 'x'.repeat(50)), { maxLength: 2 }),
  nudge: oftenNo,
  cut: oftenNo,
});
const phase = fc.record({
  isOptional: fc.boolean(),
  bare: oftenNo,
  boundary: oftenNo,
  maxSteps: fc.integer({ min: 1, max: 4 }),
});

export const histories: fc.Arbitrary<History> = fc.record({
  turns: fc.array(turn, { minLength: 1, maxLength: 8 }),
  phases: fc.oneof(
    { weight: 2, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(phase, { minLength: 1, maxLength: 3 }) },
  ),
  hasSchema: oftenNo,
  maxSteps: fc.integer({ min: 1, max: 9 }),
  grant: fc.constantFrom(0, 0, 2),
  approves: fc.constantFrom('never', 'never', 'yes', 'no'),
  hasEarlier: oftenNo,
  hasImage: oftenNo,
  isCompacted: fc.boolean(),
  deaths: fc.array(fc.integer({ min: 1, max: 14 }), { maxLength: 3 }),
  cancelledIn: fc.constantFrom(-1, -1, -1, 1, 3),
  retries: fc.constantFrom(0, 0, 1, 2),
});

/** How often the tools of a history ran. */
export interface Count {
  ran: number;
}

const n = { type: 'object', properties: { n: { type: 'number' } } } as const;

/** The agents of a history: the run's own, and one that it calls. @param uncounted tools of these effects are not counted */
export function agentsOf(
  { phases, hasSchema, maxSteps, approves }: History,
  count: Count,
  uncounted: readonly string[] = [],
) {
  const tool = (name: string, effect: 'read' | 'idempotent' | 'once', execute: () => unknown): Tool =>
    defineTool({
      ...{ name, description: `The tool ${name}.`, input: n, effect },
      ...(name === 'pay' && approves !== 'never' ? { needsApproval: true } : {}),
      execute: async () => {
        if (!uncounted.includes(effect)) count.ran += 1;
        return execute();
      },
    }) as unknown as Tool;
  const tools = [
    tool('look', 'read', () => ({ seen: [1, { a: null }] })),
    tool('pay', 'once', () => 'paid'),
    tool('book', 'idempotent', () => 7),
    tool('bad', 'read', () => {
      throw new Error('bad luck');
    }),
  ];
  const agent = defineAgent({
    ...{ id: 'worker', instructions: 'Work.', tools, maxSteps, subAgents: ['helper'], skills: ['sum'] },
    ...(hasSchema
      ? { output: { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] } as const }
      : {}),
    ...(phases.length > 0
      ? {
          phases: phases.map(({ isOptional, bare, boundary, maxSteps: most }, i) => ({
            ...{
              name: `p${i}`,
              instructions: 'Do {{.Query}}.',
              optional: isOptional,
              fallback: 'none',
              maxSteps: most,
            },
            ...(bare ? { bare } : {}),
            recovery: boundary ? ('boundary' as const) : ('step' as const),
          })),
        }
      : {}),
  });
  return { agent: agent as Agent, helper: defineAgent({ id: 'helper', instructions: 'Help.' }) as Agent };
}

const sum = defineSkill({ name: 'sum', description: 'Sums.', input: n, instructions: 'Sum {{.n}}.' });

/** Plays the turns one after another, over all processes; then it answers. */
function modelOf(history: History, played: { turns: number }, executor: () => Executor): Model {
  const doStream = async ({ prompt }: { prompt: readonly Message[] }) => {
    const isChild =
      prompt[0]?.role === 'system' && prompt[0].content !== 'Work.' && !prompt[0].content.startsWith('Do ');
    const at = isChild ? -1 : played.turns++;
    const turn: Turn = history.turns[at] ?? { ...last, text: history.hasSchema ? '{"ok":true}' : 'Fin.' };
    const control = executor().control('r');
    const heard = isChild ? [] : turn.says.map((text) => control.steer(text).catch(() => {}));
    if (at === history.cancelledIn) void control.cancel('no more').catch(() => {});
    await settle(1);
    void heard;
    if (turn.fails) throw Object.assign(new Error('the key is wrong'), { statusCode: 422, isRetryable: false });
    return { stream: ReadableStream.from(partsOf(turn)) };
  };
  return { specificationVersion: 'v4', provider: 'test', modelId: 'm', supportedUrls: {}, doStream } as never;
}

const last: Turn = { text: '', thought: false, calls: [], fails: false, says: [], nudge: false, cut: false };

function partsOf({ text, thought, calls, cut }: Turn): readonly object[] {
  const written = text === '' && calls.length === 0 ? 'Hm.' : text;
  return [
    { type: 'stream-start', warnings: [] },
    ...(thought ? textParts('reasoning', 'Let me see.') : []),
    ...(written === '' ? [] : textParts('text', written)),
    ...calls.map(({ id, name, input }) => ({ type: 'tool-call', toolCallId: id, toolName: name, input })),
    {
      type: 'finish',
      finishReason: { unified: calls.length > 0 ? 'tool-calls' : cut ? 'length' : 'stop', raw: 'x' },
      usage: { inputTokens: { total: 9, cacheRead: 2 }, outputTokens: { total: 4 } },
    },
  ];
}

const textParts = (type: 'text' | 'reasoning', delta: string) => [
  { type: `${type}-start`, id: type },
  { type: `${type}-delta`, id: type, delta },
  { type: `${type}-end`, id: type },
];

/** It says something after some steps, and allows more of them once. */
function criticOf({ turns, grant }: History): Critic {
  return {
    monitor: (_, run) => ({
      onActivity: (activity) => {
        if (activity.type === 'step' && turns[activity.step]?.nudge) run.nudge('Think of the order.');
      },
      onOutOfSteps: async () => {
        if (grant > 0 && run.tallies().iteration < 12) run.raiseSteps(grant);
      },
      stop: () => {},
    }),
  };
}

export const earlier = (has: boolean): Message[] =>
  has
    ? [
        { role: 'user', content: [{ type: 'text', text: 'Hi.' }] },
        { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'call_0', toolName: 'look', input: {} }] },
        {
          role: 'tool',
          content: [
            { type: 'tool-result', toolCallId: 'call_0', toolName: 'look', output: { type: 'text', value: 'seen' } },
          ],
        },
        { role: 'assistant', content: [{ type: 'text', text: 'Hello.' }] },
      ]
    : [];

const isBad = ({ status }: RunResult) => !['ok', 'waiting', 'interrupted'].includes(status);

interface Life {
  retries: number;
  readonly history: History;
  readonly played: { turns: number };
  readonly count: Count;
}

const forget: Compactor = (messages) => {
  const { first, middle, last } = splitForCompaction(messages, { keepFirst: 1, keepLast: 2 });
  const content = [{ type: 'text' as const, text: `${middle.length} left out` }];
  return middle.length < 2 ? messages : [...first, { role: 'user', content }, ...last];
};

function executorOf(life: Life, process: MortalProcess): { executor: Executor; agent: Agent } {
  const { history, played, count } = life;
  const { agent, helper } = agentsOf(history, count);
  const executor: Executor = createExecutor({
    models: { fast: process.model(modelOf(history, played, () => executor)) },
    ...{ agents: [agent, helper], skills: [sum], store: process.store, ports: { critic: criticOf(history) } },
    defaults: { model: 'fast', modelAttempts: 1, modelOutageMs: 0, waitLingerMs: 1 },
    ...(history.isCompacted ? { compactor: forget, contextTokens: () => 60 } : {}),
    retention: { records: '1h' },
    logger: { warn: () => {} },
  });
  return { executor, agent };
}

/** One process of the run. @returns whether the run has ended */
async function live(
  life: Life,
  process: MortalProcess,
): Promise<{ readonly executor: Executor; readonly isOver: boolean }> {
  const { history } = life;
  const { executor, agent } = executorOf(life, process);
  const images = history.hasImage ? [{ mediaType: 'image/png', data: 'iVBORw0KGgo=' }] : [];
  const request = { prompt: 'Go.', runId: 'r', images, history: earlier(history.hasEarlier) };
  for (let starts = 0; starts < 20; starts++) {
    let result = await Promise.race([executor.run(agent, request), process.died]);
    while (result && isBad(result) && life.retries-- > 0) {
      result = await Promise.race([executor.retry('r').then((run) => run.result), process.died]);
    }
    if (result?.status !== 'waiting')
      return { executor, isOver: result !== undefined && result.status !== 'interrupted' };
    for (const wait of (await Promise.race([executor.waiting(), process.died])) ?? []) {
      const control = executor.control(wait.runId);
      const isYes = history.approves !== 'no';
      const answer = isYes ? control.approve(wait.id) : control.deny(wait.id, { reason: 'no' });
      await Promise.race([answer, process.died]);
    }
  }
  throw new Error('the run never ends');
}

/** A run through all its processes: as it is read after each of them, and at its end. */
export async function recordingsOf(
  history: History,
): Promise<{ runs: RecordedRun[]; executors: Executor[]; count: Count }> {
  const life: Life = { history, played: { turns: 0 }, count: { ran: 0 }, retries: history.retries };
  const runs: RecordedRun[] = [];
  const executors: Executor[] = [];
  let left: Parameters<typeof mortalProcess>[0];
  for (const diesAfter of [...history.deaths, Number.POSITIVE_INFINITY]) {
    const process = mortalProcess(left, diesAfter);
    const { executor, isOver } = await live(life, process);
    if (isOver) {
      runs.push(await readRun(executor, 'r'));
      executors.push(executor);
      return { runs, executors, count: life.count };
    }
    left = await process.left();
    if (left.records.some(({ meta }) => meta.runId === 'r')) {
      const reader = executorOf(life, mortalProcess(left)).executor;
      runs.push(await readRun(reader, 'r'));
      executors.push(reader);
    } else if (left.outcomes.length > 0) return { runs, executors, count: life.count };
  }
  throw new Error('the last process cannot die');
}
