// The process that works on the runs of the browser tests: it starts runs when its parent says so, and continues those that were
// answered in Studio. A run does what the first word of its prompt says; the rest of the prompt is JSON for it.
import { createExecutor, createPalette, defineAgent, defineTool, type Tool } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, fail, reply, type ScriptedStep, scriptedModel } from 'pawl/testing';

const [path = ''] = process.argv.slice(2);
const anything = { type: 'object' } as const;

interface Payment {
  readonly to: string;
  readonly cents: number;
  readonly memo?: string;
}

const payment = {
  type: 'object',
  properties: {
    to: { type: 'string', description: 'Who gets it.' },
    cents: { type: 'integer' },
    memo: { type: 'string' },
  },
  required: ['to', 'cents'],
} as const;

const promptOf = ({ to, cents }: Payment) => `Pay ${(cents / 100).toFixed(2)} EUR to ${to}?`;

function payTool(name: string, approval: object): Tool {
  return defineTool({
    name,
    description: 'Pays money.',
    input: payment,
    effect: 'once',
    needsApproval: true,
    approval: { prompt: (input) => promptOf(input as unknown as Payment), ...approval },
    execute: ({ to, cents }) => `paid ${cents} to ${to}`,
  }) as unknown as Tool;
}

const tools = [
  payTool('pay', { editable: true }),
  payTool('pay_twice_seen', { quorum: 2 }),
  payTool('pay_soon', { expiresInMs: 6_000 }),
  defineTool({
    name: 'ask',
    description: 'Asks a person.',
    input: anything,
    execute: async ({ question, ...rest }: { question: string }, context) => {
      const answer = await context.ask({ question, ...rest } as Parameters<typeof context.ask>[0]);
      return `the answer was ${JSON.stringify(answer)}`;
    },
  }),
  defineTool({
    name: 'wait_paid',
    description: 'Waits until an invoice is paid.',
    input: anything,
    execute: async (_, context) => context.waitFor('invoice.paid', { key: '88', timeoutMs: 180_000_000 }),
  }),
  defineTool({
    name: 'sleep_on',
    description: 'Sleeps.',
    input: anything,
    execute: async (_, context) => {
      await context.sleep('8h');
      return 'slept';
    },
  }),
  defineTool({
    name: 'slow',
    description: 'Takes its time.',
    input: anything,
    effect: 'idempotent',
    execute: (_, { signal }) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => resolve('at last'), 60_000);
        signal.addEventListener('abort', () => {
          clearTimeout(timer);
          reject(signal.reason);
        });
      }),
  }),
] as unknown as Tool[];

const calls: { readonly [word: string]: string } = {
  pay: 'pay',
  quorum: 'pay_twice_seen',
  soon: 'pay_soon',
  ask: 'ask',
  event: 'wait_paid',
  sleep: 'sleep_on',
  slow: 'slow',
  child: 'agent__clerk',
};

function stepFor(prompt: string, hasResult: boolean): ScriptedStep {
  const [word = '', ...rest] = prompt.split(' ');
  const tool = Object.hasOwn(calls, word) ? calls[word] : undefined;
  if (word === 'fail') return fail(Object.assign(new Error('no credit'), { isRetryable: false }));
  if (tool === undefined || hasResult) return reply('Done as you said.');
  return callTool(tool, rest.length === 0 ? {} : JSON.parse(rest.join(' ')));
}

const model = scriptedModel(
  Array.from({ length: 2_000 }, () => ({ messages }: { readonly messages: readonly { readonly role: string }[] }) => {
    const said = messages.find(({ role }) => role === 'user') as { readonly content?: unknown } | undefined;
    const text = typeof said?.content === 'string' ? said.content : JSON.stringify(said?.content ?? '');
    const prompt = /"text":"((?:[^"\\]|\\.)*)"/.exec(text)?.[1];
    return stepFor(
      prompt === undefined ? text : (JSON.parse(`"${prompt}"`) as string),
      messages.some(({ role }) => role === 'tool'),
    );
  }),
);

const clerk = defineAgent({ id: 'clerk', name: 'Clerk', instructions: 'Pay.', tools });
const desk = defineAgent({
  id: 'desk',
  name: 'Desk',
  instructions: 'Work.',
  tools,
  subAgents: ['clerk'],
  maxSteps: 40,
});
const line = defineAgent({
  id: 'line',
  name: 'Line',
  instructions: 'Work in phases.',
  tools,
  phases: [
    { name: 'collect', instructions: 'hello' },
    { name: 'settle', instructions: 'pay {"to":"Grace","cents":500}' },
  ],
});

const executor = createExecutor({
  models: { fast: model },
  agents: [desk, clerk, line],
  store: sqliteStore({ path }),
  journal: { flushMs: 20 },
  retention: { records: 3_600_000 },
  ports: { palette: createPalette({ agents: [clerk] }) },
  defaults: { waitLingerMs: 30, dueMs: 100, controlMs: 100 },
});

interface Order {
  readonly runId: string;
  readonly prompt: string;
  readonly agent?: string;
}

process.on('message', async ({ runId, prompt, agent }: Order) => {
  try {
    const run = await executor.start(agent === 'line' ? line : desk, {
      runId,
      prompt,
      callerId: 'shop',
      labels: { tenant: 'acme' },
    });
    await run.accepted;
    process.send?.({ runId });
  } catch (error) {
    process.send?.({ runId, error: String(error) });
  }
});
process.on('disconnect', () => process.exit(0));

void executor.recover({ follow: true });
process.send?.({ isReady: true });
