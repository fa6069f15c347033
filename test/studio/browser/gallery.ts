import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createBudget, createPalette, defineAgent, defineTool, memoryStore, type Tool } from 'pawl';
import { fanOut } from 'pawl/fan-out';
import { callTool, callTools, fail, reply, type ScriptedRequest, scriptedModel } from 'pawl/testing';
import { promptOf, turnsOf } from '../../fixtures/answering-model.ts';
import { hostOf, toolOf, until } from '../../fixtures/host.ts';
import { Site } from './site.ts';

/** What an answer says that no page may render. */
export const hostile = '<img src=x onerror="window.hit=1">\u202e**bold** greeting.txt:1';

const tools = [
  toolOf('look'),
  toolOf(
    'hang',
    'idempotent',
    (_, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      }),
  ),
  toolOf('paid', 'read', (_, context) => context.waitFor('invoice.paid', { key: context.runId })),
  defineTool({
    name: 'refund',
    description: 'Pays money back.',
    effect: 'once',
    needsApproval: true,
    approval: {
      prompt: ({ cents }) => `Refund ${cents} cents?`,
      editable: true,
      expiresInMs: 3_600_000,
    },
    input: {
      type: 'object',
      properties: { order: { type: 'string', description: 'Whose money it is.' }, cents: { type: 'integer' } },
      required: ['order', 'cents'],
    },
    execute: () => 'paid back',
  }) as unknown as Tool,
  defineTool({
    name: 'ask',
    description: 'Asks a person.',
    input: { type: 'object' },
    execute: (_, context) => context.ask({ question: 'Which one?', options: ['the first', 'the second'] }),
  }) as unknown as Tool,
];

const calls: { readonly [word: string]: ReturnType<typeof callTool> } = {
  hang: callTool('hang'),
  paid: callTool('paid'),
  refund: callTool('refund', { order: 'A1', cents: 4_200 }),
  ask: callTool('ask'),
  below: callTool('agent__clerk', { prompt: 'refund' }),
};

/** A run makes the calls that its prompt names, one a turn; a phase those of its instructions. */
function step(request: ScriptedRequest) {
  const turn = turnsOf(request);
  const words = promptOf(request) === MONTHLY ? (request.system ?? '') : promptOf(request);
  if (words === 'fail') return fail(Object.assign(new Error('no credit'), { isRetryable: false }));
  const word = words.split(' ')[turn] ?? '';
  if (word === 'look')
    return callTools(['a', 'b'].map((name) => ({ name: 'look', input: { at: `${name}${turn}.txt` } })));
  return calls[word] ?? reply(hostile);
}
const MONTHLY = 'The month.';

/** A folder with a fan-out whose answer proposes changes. */
async function folderWithFanOut(): Promise<string> {
  const root = mkdtempSync(join(tmpdir(), 'pawl-gallery-'));
  writeFileSync(join(root, 'greeting.txt'), 'Hello!\n');
  writeFileSync(join(root, 'run.sh'), 'true\n');
  chmodSync(join(root, 'run.sh'), 0o755);
  const editor = scriptedModel([
    callTool('read_file', { path: 'greeting.txt' }),
    callTool('write_file', { path: 'greeting.txt', content: 'Hello, world!\n' }),
    callTool('read_file', { path: 'run.sh' }),
    callTool('write_file', { path: 'run.sh', content: 'false\n' }),
    reply(hostile),
  ]);
  const models = { editor, other: scriptedModel([reply('As it is: greeting.txt:1 may stay.')]) };
  const path = join(root, '.pawl', 'ask.json');
  await fanOut({ prompt: 'Greet.', models, root, path, judge: () => ['editor', 'other'] });
  return root;
}

const clerk = defineAgent({ id: 'clerk', name: 'Clerk', instructions: 'Pay.', description: 'Pays.', tools });
const line = defineAgent({
  id: 'line',
  name: 'Line',
  instructions: 'Work in phases.',
  tools,
  phases: [
    { name: 'collect', instructions: 'look' },
    { name: 'settle', instructions: 'refund' },
    { name: 'report', instructions: 'look' },
  ],
});

/** The runs of the gallery: an id says what becomes of it. */
const prompts = {
  asks: 'look refund',
  question: 'ask',
  below: 'below',
  works: 'look hang',
  waits: 'paid',
  fails: 'fail',
  done: 'look look look look look',
  parked: 'paid',
  cut: 'hang',
} as const;

/** A Studio with a run in each state, a thread and a fan-out; nothing changes by itself. */
export async function gallery(): Promise<{ readonly site: Site; readonly root: string; stop(): Promise<void> }> {
  const store = memoryStore();
  const budget = createBudget({ tokens: 2_000, usd: 1, prices: ({ usage }) => usage.outputTokens / 1_000 });
  const host = hostOf({
    store,
    script: Array.from({ length: 200 }, () => step),
    tools,
    agent: { name: 'Worker', subAgents: ['clerk'] },
    ports: { palette: createPalette({ agents: [clerk] }), budget },
    journal: { flushMs: 5 },
    retention: { records: Number.POSITIVE_INFINITY },
    defaults: { waitLingerMs: 1 },
  });
  const { executor } = host;
  const runs = new Map<string, Awaited<ReturnType<typeof host.start>>>();
  for (const [runId, prompt] of Object.entries(prompts))
    runs.set(runId, await host.start({ runId, prompt, callerId: 'shop', labels: { tenant: 'acme' } }));
  runs.set('phases', await executor.start(line, { runId: 'phases', prompt: MONTHLY, callerId: 'shop' }));
  const thread = executor.thread('chat-42', { agent: host.agent, callerId: 'ada' });
  await thread.send({ id: 'm1', text: 'What colour is the sky?' });
  runs.get('cut')?.cancel('too dear');
  for (const [runId, { result }] of runs) if (runId !== 'works') await result;
  await executor.park('parked', 'the ledger is closed');
  await until(async () => (await thread.turns({ limit: 1 }))[0]?.state === 'ended');
  const root = await folderWithFanOut();
  const site = await Site.on(
    store,
    { ports: { budget } },
    { place: '.pawl/runs.db', fanOuts: join(root, '.pawl'), apply: { root } },
  );
  const stop = async () => {
    await site.stop();
    await executor.shutdown({ drainMs: 0 });
    rmSync(root, { recursive: true, force: true });
  };
  return { site, root, stop };
}
