import { createExecutor, createPalette, defineAgent, defineSkill, defineTool, memoryStore, type Tool } from 'pawl';
import { callTool, hang, reply, scriptedModel } from 'pawl/testing';
import { expect, test } from 'vitest';
import { type HostOptions, hostOf, toolOf, until } from '../fixtures/host.ts';

const request = { runId: 'r', prompt: 'Go.' };
const kept = { retention: { records: '1h' } };
const look = toolOf('look');
const pay = toolOf('pay', 'once');
const undeclared = defineTool({
  ...{ name: 'send', description: 'Sends.', input: { type: 'object' }, execute: () => 'sent' },
}) as unknown as Tool;
const skill = (...tools: readonly string[]) =>
  createPalette({
    skills: [
      defineSkill({
        ...{ name: 'sum', description: 'Sums.', input: { type: 'object' }, instructions: 'Sum.', tools, bare: false },
      }),
    ],
  });
const child = (tools: readonly Tool[]) => defineAgent({ id: 'child', instructions: 'Work.', tools });
const phases = (first: readonly string[], second: readonly string[]) => [
  { name: 'a', instructions: 'Begin.', tools: first },
  { name: 'b', instructions: 'End.', tools: second },
];

/** The origin has one step in the first phase, or none. */
const agents: Record<string, { host: HostOptions; at: number; needs: boolean }> = {
  'only tools that read': { host: { tools: [look] }, at: 0, needs: false },
  'a tool that declares no effect': { host: { tools: [undeclared] }, at: 0, needs: true },
  'a skill with tools that read': {
    host: { agent: { skills: ['sum'] }, ports: { palette: skill('look') } },
    at: 0,
    needs: false,
  },
  'a skill with a tool that has an effect': {
    host: { agent: { skills: ['sum'] }, ports: { palette: skill('look', 'pay') } },
    at: 0,
    needs: true,
  },
  'a sub-agent that is not known here': { host: { agent: { subAgents: ['stranger'] } }, at: 0, needs: true },
  'an effect in the phase of the cut': {
    host: { tools: [look, pay], agent: { phases: phases(['pay'], ['look']) } },
    at: 0,
    needs: true,
  },
  'an effect in a phase that is finished before the cut': {
    host: { tools: [look, pay], agent: { phases: phases(['pay'], ['look']) } },
    at: 1,
    needs: false,
  },
  'an effect in a phase after the cut': {
    host: { tools: [look, pay], agent: { phases: phases(['look'], ['pay']) } },
    at: 1,
    needs: true,
  },
};

test.for(Object.entries(agents))(
  'a fork of an agent with %s needs a word on effects where a call of it may have one (lab 13)',
  async ([, { host, at, needs }]) => {
    const store = memoryStore();
    const open = ({ tools = [], agent: definition, ports }: HostOptions) => {
      const agent = defineAgent({ id: 'worker', instructions: 'Work.', tools, ...definition });
      const models = { fast: scriptedModel([reply('one'), reply('two')]) };
      // Skills name tools of the executor.
      const options = { models, agents: [agent], tools: [look, pay], store, ...kept, ...(ports ? { ports } : {}) };
      return { agent, executor: createExecutor(options) };
    };
    // A run of an agent whose sub-agent is not known does not start: its origin had none.
    const first = open(host.agent?.subAgents ? {} : host);
    await first.executor.run(first.agent, request);
    const fork = () => open(host).executor.fork('r', { at, runId: 'f' });
    if (!needs) return expect(await (await fork()).result).toMatchObject({ status: 'ok' });
    await expect(fork()).rejects.toMatchObject({ code: 'FORK_EFFECTS' });
    expect(await store.load('f')).toBeNull();
  },
);

/** A desk whose child pays, on one store over several processes. */
function family() {
  const store = memoryStore();
  const paid: string[] = [];
  const tool = toolOf('pay', 'once', (_, { runId }) => void paid.push(runId));
  const ports = { palette: createPalette({ agents: [child([tool])] }) };
  const open = (script: HostOptions['script'], more: HostOptions = {}) =>
    hostOf({ store, ...kept, agent: { subAgents: ['child'] }, ports, script: script ?? [], ...more });
  return { store, paid, open };
}
const callChild = callTool('agent__child', { prompt: 'Pay.' });

test('`refuse` holds for a child that another process continues (lab 13)', async () => {
  const { paid, open } = family();
  await open([reply('done')]).run(request);
  const first = open([callChild, hang()]);
  await first.executor.fork('r', { at: 0, runId: 'f', effects: 'refuse' });
  await until(() => first.model.calls.length === 2);
  await first.executor.shutdown({ drainMs: 0 });
  const next = open([callTool('pay'), reply('not paid'), reply('forked')]);
  await next.executor.recover();
  await until(async () => (await next.executor.find('f'))?.status === 'ended');
  expect(JSON.stringify(next.model.calls[1]?.messages.at(-1))).toContain('is a fork of another one');
  expect(paid).toEqual([]);
});

test('`ask` holds for a child: a person reads that its run is below a fork, and decides (lab 13)', async () => {
  const { paid, open } = family();
  await open([reply('done')]).run(request);
  const host = open([callChild, callTool('pay'), reply('paid'), reply('forked')], { defaults: { waitLingerMs: 1 } });
  const run = await host.executor.fork('r', { at: 0, runId: 'f', effects: 'ask' });
  await until(async () => (await host.executor.waiting()).some(({ kind }) => kind === 'approval'));
  const wait = (await host.executor.waiting()).find(({ kind }) => kind === 'approval');
  expect(wait).toMatchObject({ prompt: 'This run is below a fork of another run.', tool: 'pay' });
  expect(wait?.runId).not.toBe('f');
  expect(paid).toEqual([]);
  await host.executor.control(wait?.runId ?? '').approve(wait?.id ?? '', { by: { id: 'ada' } });
  await run.result;
  await until(async () => (await host.executor.find('f'))?.status === 'ended');
  expect(paid).toEqual([wait?.runId]);
});

/** A run with a step that looks and one that pays, on a store, and processes for its forks. */
async function payer(agent: HostOptions['agent'] = {}) {
  const paid: unknown[] = [];
  const tools = [look, toolOf('pay', 'once', (input) => void paid.push(input))];
  const options: HostOptions = { ...kept, store: memoryStore(), tools, agent };
  const open = (script: NonNullable<HostOptions['script']>) => hostOf({ ...options, script });
  await open([callTool('look'), callTool('pay'), reply('plan'), reply('done')]).run(request);
  paid.splice(0);
  return { paid, open };
}
const refusing = { runId: 'f', effects: 'refuse' } as const;

test('`refuse`: a model that always asks meets the limit of its steps, which begins at the cut; a retry begins it again, and holds to the word (lab 5, 13)', async () => {
  const { paid, open } = await payer({ maxSteps: 4 });
  for (const inputs of [
    [1, 2, 3, 4],
    [1, 1, 1, 1],
  ]) {
    const host = open(inputs.map((n) => callTool('pay', { n })));
    const { runId, result } = await host.executor.fork('r', { at: 1, effects: 'refuse' });
    const ended = await result;
    expect(ended).toMatchObject({ status: 'error', error: { code: 'STEP_LIMIT' }, iterations: 5 });
    expect(ended.error?.message).toBe('no answer after 5 steps (maxSteps)');
    expect(JSON.stringify(ended.messages).split('calls that may have an effect are refused')).toHaveLength(5);
    const next = open([callTool('pay'), reply('not paid')]);
    expect(await (await next.executor.retry(runId)).result).toMatchObject({ status: 'ok', output: 'not paid' });
  }
  expect(paid).toEqual([]);
});

test('`refuse` holds for a pipeline, for a skill, and for the fork of a turn; a fork of the fork needs its own word (lab 13)', async () => {
  const line = await payer({ phases: phases(['look', 'pay'], ['pay']) });
  const host = line.open([callTool('pay'), reply('not paid')]);
  const fork = await (await host.executor.fork('r', { at: 3, ...refusing })).result;
  expect(fork).toMatchObject({ status: 'ok', output: 'not paid' });
  expect(line.paid).toEqual([]);
  await expect(host.executor.fork('f', { at: 4 })).rejects.toMatchObject({ code: 'FORK_EFFECTS' });
  await (await line.open([callTool('pay'), reply('paid')]).executor.fork('f', { at: 3, effects: 'live' })).result;
  expect(line.paid).toHaveLength(1);

  const desk = await payer();
  const first = desk.open([reply('Hello.')]);
  const thread = first.executor.thread('t', { agent: first.agent, callerId: 'ada' });
  const { runId } = await thread.send({ id: 'm', text: 'Hi.' });
  await until(async () => (await thread.turn({ runId }))?.state === 'ended');
  const next = desk.open([callTool('pay'), reply('not paid')]);
  expect(await (await next.executor.fork(runId, { at: 0, ...refusing })).result).toMatchObject({ output: 'not paid' });
  expect(desk.paid).toEqual([]);
  expect(JSON.stringify(await thread.messages())).not.toContain('not paid');

  const paid: unknown[] = [];
  const tools = [toolOf('pay', 'once', (input) => void paid.push(input))];
  const agent = defineAgent({ id: 'worker', instructions: 'Work.', skills: ['sum'] });
  const script = [reply('done'), callTool('skill__sum'), callTool('pay'), reply('no sum'), reply('not paid')];
  const models = { fast: scriptedModel(script) };
  const options = { models, agents: [agent], tools, store: memoryStore(), ...kept, ports: { palette: skill('pay') } };
  const executor = createExecutor(options);
  await executor.run(agent, request);
  expect(await (await executor.fork('r', { at: 0, ...refusing })).result).toMatchObject({ output: 'not paid' });
  expect([paid, models.fast.calls.length]).toEqual([[], 5]);
});
