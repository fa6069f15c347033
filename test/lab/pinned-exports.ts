import { createExecutor, createPalette, defineAgent, memoryStore, type Tool } from 'pawl';
import { exportRuns } from 'pawl/lab';
import { callTool, callTools, fail, reply, scriptedModel } from 'pawl/testing';
import { toolOf } from '../fixtures/host.ts';

const tools: readonly Tool[] = [toolOf('look'), toolOf('book', 'idempotent'), toolOf('pay', 'once')];

/** The agents of the exported runs. What they are may never change: each release replays what the releases before exported. */
export const pinnedAgents = {
  desk: defineAgent({ id: 'desk', instructions: 'Work.', tools, subAgents: ['helper'] }),
  helper: defineAgent({ id: 'helper', instructions: 'Help.' }),
  line: defineAgent({
    id: 'line',
    instructions: 'Work.',
    tools,
    phases: [
      { name: 'plan', instructions: 'Plan {{.Query}}.' },
      { name: 'write', instructions: 'Write {{.plan}}.' },
    ],
  }),
};

const refused = () => fail(Object.assign(new Error('no key'), { statusCode: 400 }));

/** Runs of each kind, as lines of a file: calls with all effects, a child, a pipeline, a bad end, a retry, a fork. */
export async function exportedRuns(): Promise<string[]> {
  const { desk, helper, line } = pinnedAgents;
  const script = [
    callTools([
      { name: 'look', input: { n: 1 }, callId: 'a' },
      { name: 'book', input: { n: 2 }, callId: 'b' },
      { name: 'pay', input: { n: 3 }, callId: 'c' },
    ]),
    callTool('agent__helper', { prompt: 'Help.' }, 'd'),
    reply('Helped.'),
    callTool('gone', {}, 'e'),
    reply('Done.'),
    ...[callTool('look', { n: 4 }, 'f'), reply('The plan.'), callTool('pay', { n: 5 }, 'g'), reply('The text.')],
    ...[callTool('pay', { n: 6 }, 'h'), refused()],
    ...[callTool('pay', { n: 7 }, 'i'), refused(), reply('Paid.')],
    reply('Forked.'),
  ];
  const executor = createExecutor({
    models: { fast: scriptedModel(script) },
    agents: [desk, line],
    store: memoryStore(),
    retention: { records: '1h' },
    ports: { palette: createPalette({ agents: [helper] }) },
    logger: { warn: () => {} },
  });
  await executor.run(desk, { runId: 'desk', prompt: 'Work.', labels: { order: '17' }, inputs: { depth: 2 } });
  await executor.run(line, { runId: 'line', prompt: 'a text' });
  await executor.run(desk, { runId: 'failed', prompt: 'Pay.' });
  await executor.run(desk, { runId: 'retried', prompt: 'Pay.' });
  await (await executor.retry('retried')).result;
  await (await executor.fork('desk', { at: 1, runId: 'forked', effects: 'refuse' })).result;
  const lines: string[] = [];
  for await (const text of exportRuns(executor, ['desk', 'line', 'failed', 'retried', 'forked'])) lines.push(text);
  return lines;
}
