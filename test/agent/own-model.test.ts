import {
  type Agent,
  type Budget,
  createExecutor,
  createPalette,
  defineAgent,
  defineSkill,
  type ExecutorOptions,
  type Model,
  memoryStore,
} from 'pawl';
import { callTool, crashTest, hang, reply, type ScriptedEntry, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { definitionOf } from '../../src/agent/agent.ts';
import { answeringModel, turnsOf } from '../fixtures/answering-model.ts';
import { toolOf, until } from '../fixtures/host.ts';
import { notingBudget } from '../fixtures/noting-ports.ts';
import { finishes, older } from '../model/older-model.ts';

const newStore = () => memoryStore();
const said = (text: string): Model => scriptedModel([reply(text)]);
const asking = (...script: readonly ScriptedEntry[]): Model => scriptedModel(script);
const agentWith = (fields: object): Agent => defineAgent({ id: 'a', instructions: 'Work.', ...fields });
const prompt = 'Go.';

/** The message of the TypeError that a wrong definition throws. */
function refusal(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError);
    return (error as TypeError).message;
  }
  throw new Error('the call was taken');
}

const quiet: Pick<ExecutorOptions, 'logger'> = { logger: { warn: () => {} } };

describe('an agent with a model of its own', () => {
  test('runs on an executor without models, and its record names no tier', async () => {
    const store = newStore();
    const agent = agentWith({ model: asking(hang()) });
    const executor = createExecutor({ store });
    await executor.start(agent, { prompt, runId: 'r' });
    await until(async () => (await store.load('r')) !== null);
    expect((await store.load('r'))?.meta.modelTier).toBe('');
    await executor.shutdown();
  });

  test.for(['v3', 'v2'] as const)('may have one of specification %s, which is adapted', async (version) => {
    const text = [{ type: 'text-delta', id: '1', delta: 'old' }, finishes[version]];
    const agent = agentWith({ model: older(version, text).model });
    expect(await createExecutor({}).run(agent, { prompt })).toMatchObject({ output: 'old' });
  });

  test('is asked before the models of the executor, which serve the agents that name a tier', async () => {
    const executor = createExecutor({ models: { fast: said('fast'), deep: said('deep') } });
    const outputs = await Promise.all(
      [{ model: said('own') }, { model: 'deep' }, {}].map((fields) => executor.run(agentWith(fields), { prompt })),
    );
    expect(outputs.map(({ output }) => output)).toEqual(['own', 'deep', 'fast']);
  });

  test('continues with it in the next process', async () => {
    const store = newStore();
    const tools = [toolOf('look')];
    const first = createExecutor({ store, ...quiet });
    await first.start(agentWith({ tools, model: asking(callTool('look'), hang()) }), { prompt, runId: 'r' });
    await until(async () => (await store.load('r'))?.iteration === 1);
    await first.shutdown();
    const model = scriptedModel([reply('done')]);
    const next = createExecutor({ store, agents: [agentWith({ tools, model })] });
    await next.recover();
    expect(await next.get('r')?.result).toMatchObject({ status: 'ok', output: 'done' });
    expect(model.calls).toHaveLength(1);
  });

  test('gives a stored run back as SETUP where it names a tier and the executor has no models', async () => {
    const store = newStore();
    const tools = [toolOf('look')];
    const first = createExecutor({ store, models: { fast: asking(callTool('look'), hang()) }, ...quiet });
    await first.start(agentWith({ tools }), { prompt, runId: 'r' });
    await until(async () => (await store.load('r'))?.iteration === 1);
    await first.shutdown();
    const next = createExecutor({ store, ...quiet });
    const result = await next.run(agentWith({ tools }), { prompt, runId: 'r' });
    expect(result).toMatchObject({ status: 'interrupted', error: { code: 'SETUP', cause: { code: 'UNKNOWN_TIER' } } });
    expect(result.error?.message).toContain('the executor has no models: give the agent one, defineAgent({ model })');
  });

  test('is charged under the name of that model, without a tier', async () => {
    const wishes: unknown[] = [];
    const noting = notingBudget();
    const budget: Budget = {
      ...noting,
      reserve: (callerId, wish) => {
        wishes.push(wish);
        return noting.reserve(callerId, wish);
      },
    };
    const executor = createExecutor({ ports: { budget } });
    await executor.run(agentWith({ model: said('done') }), { prompt });
    expect(wishes).toMatchObject([{ modelTier: '', model: 'scripted/scripted' }]);
  });

  test('shows its window under the name of that model', async () => {
    const windows: unknown[] = [];
    const executor = createExecutor({
      compactor: (messages) => messages,
      contextTokens: (name) => {
        windows.push(name);
        return undefined;
      },
    });
    await executor.run(agentWith({ model: said('done') }), { prompt });
    expect(windows).toEqual(['scripted/scripted']);
  });

  test('is crashed with the model of the crash test', async () => {
    const own = scriptedModel([]);
    const phases = [{ name: 'one', instructions: 'Look.', model: own }];
    const agent = agentWith({ model: own, phases });
    const { violations, undisturbed } = await crashTest({
      ...{ agent, prompt, model: () => said('done') },
      ...{ limit: 8, doubleCrashes: 2 },
    });
    expect([violations, undisturbed.output, own.calls]).toEqual([[], 'done', []]);
  });
});

describe('a model of its own serves', () => {
  test('a phase, before that of its agent', async () => {
    const phases = [
      { name: 'one', instructions: 'Look.', model: said('of the phase') },
      { name: 'two', instructions: 'After {{.one}}.' },
    ];
    const model = asking(({ system }) => reply(system));
    expect((await createExecutor({}).run(agentWith({ phases, model }), { prompt })).output).toBe('After of the phase.');
  });

  test('a sub-agent, and not the agent that calls it', async () => {
    const helper = defineAgent({ id: 'helper', instructions: 'Help.', model: said('of the helper') });
    const agent = agentWith({
      subAgents: ['helper'],
      model: asking(callTool('agent__helper', { prompt: 'Help.' }), ({ messages }) =>
        reply(JSON.stringify(messages.at(-1)).includes('of the helper') ? 'helped' : 'alone'),
      ),
    });
    expect(await createExecutor({ agents: [helper] }).run(agent, { prompt })).toMatchObject({ output: 'helped' });
  });

  const input = { type: 'object', properties: { text: { type: 'string' } } } as const;
  const skillWith = (fields: object) =>
    defineSkill({ name: 'shorten', description: 'Shortens.', input, instructions: '{{.text}}', ...fields });

  test('the skills of its agent that name none, also when a skill continues alone', async () => {
    const store = newStore();
    const skill = skillWith({ bare: false, tools: ['ask'] });
    const ask = toolOf('ask', 'read', async (_, context) => {
      await context.waitFor('word', { key: 'k' });
      return 'heard';
    });
    const model = answeringModel((request) => {
      const isFirst = turnsOf(request) === 0;
      if (request.system === 'Work.') return isFirst ? callTool('skill__shorten', { text: 'long' }) : reply('done');
      return isFirst ? callTool('ask') : reply('short');
    });
    const agent = agentWith({ skills: ['shorten'], model });
    const options = { store, tools: [ask], agents: [agent], skills: [skill], ...quiet };
    const defaults = { waitLingerMs: 1, dueMs: 5 };
    const first = createExecutor({ ...options, defaults });
    expect(await first.run(agent, { prompt, runId: 'r' })).toMatchObject({ status: 'waiting' });
    await first.shutdown();
    const next = createExecutor({ ...options, defaults });
    await next.recover();
    await next.signal('word', 1, { key: 'k', id: 's1' });
    await until(async () => (await next.find('r'))?.status === 'ended');
    expect(await next.find('r')).toMatchObject({ outcome: { status: 'ok', output: 'done' } });
    await next.shutdown();
  });

  test('agents and skills that name none, as the default of an executor', async () => {
    const executor = createExecutor({ defaults: { model: said('by default') } });
    expect(await executor.run(agentWith({}), { prompt })).toMatchObject({ output: 'by default' });
  });

  test('a skill of its own', async () => {
    const skill = skillWith({ model: said('short') });
    const model = asking(callTool('skill__shorten', { text: 'long' }), ({ messages }) =>
      reply(JSON.stringify(messages.at(-1))),
    );
    const executor = createExecutor({ ports: { palette: createPalette({ skills: [skill] }) } });
    expect((await executor.run(agentWith({ skills: ['shorten'], model }), { prompt })).output).toContain('short');
  });
});

describe('an executor without models', () => {
  test('lists, finds and answers the runs of others', async () => {
    const store = newStore();
    const tools = [toolOf('send', 'once')].map((tool) => ({ ...tool, needsApproval: true }));
    const defaults = { waitLingerMs: 1 };
    const worker = createExecutor({ store, defaults, models: { fast: asking(callTool('send'), reply('sent')) } });
    await worker.run(agentWith({ tools }), { prompt, runId: 'r' });
    await worker.shutdown();
    const page = createExecutor({ store });
    expect(await page.list()).toMatchObject([{ runId: 'r', status: 'waiting' }]);
    const [wait] = await page.waiting();
    expect(await page.control('r').approve(wait?.id ?? '', { by: { id: 'ada' } })).toBe('sent');
  });
});

describe('what is no model is refused where it is written', () => {
  const gateway = `the string "openai/gpt-5", a name for the AI SDK's gateway; pass the model itself: gateway("openai/gpt-5") of the package ai`;
  const must = 'must be a language model of the AI SDK, or the name of a tier, not';
  const model = 'openai/gpt-5';
  test.for<[string, () => unknown, string]>([
    ['agent a: model', () => agentWith({ model }), gateway],
    [
      'agent a: phases[0] (one): model',
      () => agentWith({ phases: [{ name: 'one', instructions: 'Look.', model }] }),
      gateway,
    ],
    [
      'skill "s": model',
      () => defineSkill({ name: 's', description: 'S.', input: { type: 'object' }, instructions: '', model }),
      gateway,
    ],
    ['createExecutor: defaults.model', () => createExecutor({ defaults: { model } }), gateway],
    ['createExecutor: models.fast', () => createExecutor({ models: { fast: model as never } }), gateway],
    ['agent a: model', () => agentWith({ model: 7 }), 'a value of type number'],
    [
      'agent a: model',
      () => agentWith({ model: Promise.resolve() }),
      'a promise; await it before the executor is made',
    ],
    [
      'agent a: model',
      () => agentWith({ model: { specificationVersion: 'v1', doStream: () => {} } }),
      'a model of spec v1; use a provider package of AI SDK 5, 6 or 7',
    ],
  ])('%s', ([name, call, what]) => {
    expect(refusal(call)).toBe(`${name} ${must} ${what}`);
  });

  const advice = 'model takes the name of a tier, or a language model';
  test.for<[string, () => unknown]>([
    ['agent a: unknown option modelTier', () => agentWith({ modelTier: 'deep' })],
    [
      'agent a: unknown option phases[0].modelTier',
      () => agentWith({ phases: [{ name: 'one', instructions: 'Look.', modelTier: 'deep' }] }),
    ],
    [
      'skill "s": unknown option modelTier',
      () =>
        defineSkill({
          ...{ name: 's', description: 'S.', input: { type: 'object' }, instructions: '' },
          ...{ modelTier: 'deep' },
        } as never),
    ],
    [
      'createExecutor: unknown option defaults.modelTier',
      () => createExecutor({ defaults: { modelTier: 'deep' } as never }),
    ],
  ])('%s', ([what, call]) => {
    expect(refusal(call)).toBe(`${what}; ${advice}`);
  });
});

describe('the hash of a definition', () => {
  const phases = (model: object) => [
    { name: 'x', instructions: 'X.', ...model, maxSteps: 3, tools: [], settings: { temperature: 0.5 } },
    { name: 'y', instructions: 'Y.', bare: true },
  ];
  const hash = (fields: object) => definitionOf(agentWith(fields)).hash;

  test('is that of earlier versions for the name of a tier', () => {
    expect(hash({ model: 'deep', phases: phases({ model: 'cheap' }) })).toBe('Jd-kyRepXaRU6yUW');
    expect(hash({})).toBe('wkk-QFunW8eSlseZ');
  });

  test('has nothing of a language model: another one of the same agent is the same definition', () => {
    expect(hash({ model: said('x') })).toBe(hash({}));
    expect(hash({ phases: phases({ model: said('x') }) })).toBe(hash({ phases: phases({ model: '' }) }));
  });
});
