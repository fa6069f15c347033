import {
  createAudit,
  createBudget,
  createExecutor,
  defineAgent,
  defineTool,
  type ExecutorOptions,
  memoryStore,
} from 'pawl';
import { callTool, fail, hang, reply, scriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { sampleRecord } from '../../src/testing/store-contract/records.ts';
import { asking, askReviewer, family } from '../fixtures/family.ts';
import { plainStore } from '../fixtures/watched-store.ts';
import { ids, noon } from './scene.ts';

const DAY = 86_400_000;

const finding = (name: string, effect: 'read' | 'once') =>
  defineTool({
    name,
    description: 'Looks something up.',
    input: { type: 'object', properties: { id: { type: 'string' } } },
    effect,
    execute: (input) => `found ${JSON.stringify(input)}`,
  });
const tools = [finding('lookup', 'read'), finding('send', 'once')];
const agent = defineAgent({ id: 'researcher', name: 'Researcher', instructions: 'Look up.', tools });
type Script = Parameters<typeof scriptedModel>[0];

function host(script: Script, options: Partial<ExecutorOptions> = {}) {
  const clock = testClock(noon);
  const store = memoryStore({ clock });
  const model = scriptedModel(script);
  const executor = createExecutor({
    models: { fast: model },
    agents: [agent],
    store,
    audit: true,
    clock,
    ...options,
  });
  return { clock, store, model, executor, audit: createAudit({ store: options.store ?? store }) };
}

describe('an executor with an audit', () => {
  test('has its runs in it after they ended: who asked whom for what, steps, tool calls, events, and the end (supervision 5)', async () => {
    const budget = createBudget({ tokens: 1_000_000 });
    const script = [callTool('lookup', { id: '1' }), callTool('send', { id: '2' }), reply('seven')];
    const { audit, executor } = host(script, { ports: { budget } });
    const request = { prompt: 'What is it?', runId: 'run', callerId: 'ada', channelId: 'c', guildId: 'g' };
    const result = await executor.run(agent, { ...request, inputs: { a: 1 } });
    const found = await audit.run('run');
    expect(found).toMatchObject({
      agentId: 'researcher',
      agentName: 'Researcher',
      callerId: 'ada',
      channelId: 'c',
      guildId: 'g',
      modelTier: 'fast',
      prompt: 'What is it?',
      inputs: { a: 1 },
      startedAt: noon,
      endedAt: noon,
      status: 'ok',
      output: 'seven',
      iterations: 3,
      usage: result.usage,
      spend: result.spend,
      isCut: false,
    });
    expect(found?.steps.map(({ step, tools, at }) => [step, tools, at])).toEqual([
      [1, ['lookup'], noon],
      [2, ['send'], noon],
      [3, [], noon],
    ]);
    const text = (id: string) => ({ type: 'text', value: `found {"id":"${id}"}` });
    expect(found?.tools).toMatchObject([
      { step: 1, name: 'lookup', effect: 'read', attempt: 1, input: { id: '1' }, output: text('1') },
      { step: 2, name: 'send', effect: 'once', attempt: 1, input: { id: '2' }, output: text('2') },
    ]);
    expect(found?.events.map(({ type }) => type)).toEqual(['run.started']);
    const [listed] = await audit.runs();
    expect(listed).toMatchObject({ runId: 'run', status: 'ok', iterations: 3, usage: result.usage, startedAt: noon });
    expect(await audit.run('other')).toBe(null);
    await executor.shutdown();
  });

  test('has there what a run failed with (supervision 5)', async () => {
    const down = fail(Object.assign(new Error('the model is down'), { statusCode: 400 }));
    const { audit, executor } = host([down], { defaults: { modelAttempts: 1 } });
    const result = await executor.run(agent, { prompt: 'What is it?', runId: 'run' });
    expect(await audit.run('run')).toMatchObject({ status: 'error', error: result.error });
    await executor.shutdown();
  });

  test('has there its phases, as they begin and end (supervision 5)', async () => {
    const { audit, executor } = host([reply('seen'), reply('told')]);
    const phases = [
      { name: 'survey', instructions: 'Look.' },
      { name: 'report', instructions: 'Tell.' },
    ];
    await executor.run(defineAgent({ id: 'piped', instructions: 'Work.', phases }), { prompt: 'Go.', runId: 'run' });
    expect((await audit.run('run'))?.phases).toMatchObject([
      { index: 0, name: 'survey', state: 'started' },
      { index: 0, name: 'survey', state: 'done', output: 'seen' },
      { index: 1, name: 'report', state: 'started' },
      { index: 1, name: 'report', state: 'done', output: 'told' },
    ]);
    await executor.shutdown();
  });

  test('can be asked while a run continues, with what it has used so far, and with its end once another process ended it (supervision 5)', async () => {
    const { audit, executor, store, clock } = host([callTool('lookup', { id: '1' }), hang()]);
    const run = await executor.start(agent, { prompt: 'What is it?', runId: 'run' });
    for await (const event of run.events()) if (event.type === 'step.started' && event.step === 2) break;
    const open = await audit.run('run');
    expect(open).toMatchObject({ status: 'open', iterations: 1, output: '' });
    expect(open).not.toHaveProperty('endedAt');
    await executor.shutdown();
    expect(await audit.run('run')).toMatchObject({ status: 'open', iterations: 1 });
    expect(await audit.totals({ by: 'day' })).toEqual([]);
    const heir = host([reply('seven')], { store, clock });
    await heir.executor.recover();
    await heir.executor.get('run')?.result;
    const found = await audit.run('run');
    expect(found).toMatchObject({ status: 'ok', output: 'seven', iterations: 2 });
    expect(found?.steps.map(({ step }) => step)).toEqual([1, 2]);
    expect(found?.events.map(({ type }) => type)).toContain('run.resumed');
    expect(await audit.runs()).toHaveLength(1);
    expect(await audit.totals({ by: 'day' })).toMatchObject([{ runs: 1, iterations: 2 }]);
    await heir.executor.shutdown();
  });

  test('an id belongs to its run as long as the audit keeps it: another request is refused, and counts in no total', async () => {
    const { audit, executor, store, clock } = host([reply('first')], { retention: { outcomes: 0 } });
    await executor.run(agent, { prompt: 'One.', runId: 'run' });
    await executor.shutdown();
    const later = host([reply('second')], { store, clock });
    const refused = await later.executor.run(agent, { prompt: 'Two.', runId: 'run' });
    expect(refused.error?.code).toBe('RUN_ID_CONFLICT');
    await later.executor.shutdown();
    expect(await audit.run('run')).toMatchObject({ output: 'first' });
    expect(await audit.totals({ by: 'day' })).toMatchObject([{ runs: 1 }]);
  });

  test('has no secret there that the executor’s redact removes, wherever it stands (supervision 5)', async () => {
    const secret = 'sk-123456';
    const script = [callTool('lookup', { id: secret }), reply(`it is ${secret}`)];
    const { audit, executor } = host(script, { redact: (text) => text.replaceAll(secret, '***') });
    await executor.run(agent, { prompt: secret, runId: 'run', inputs: { key: secret } });
    const found = JSON.stringify([await audit.run('run'), await audit.runs()]);
    expect(found).toContain('it is ***');
    expect(found).not.toContain(secret);
    await executor.shutdown();
  });

  test('of many events is read up to a limit, and says that there are more (supervision 5)', async () => {
    const calls = Array.from({ length: 40 }, (_, i) => callTool('lookup', { id: String(i) }));
    const { audit, executor } = host([...calls, reply('done')], { defaults: { maxSteps: 100 } });
    await executor.run(agent, { prompt: 'Go.', runId: 'run' });
    expect((await audit.run('run'))?.tools).toHaveLength(40);
    const cut = await audit.run('run', { limit: 20 });
    expect(cut?.isCut).toBe(true);
    expect(cut?.tools.length).toBeLessThan(20);
    expect(cut?.tools.map(({ input }) => input)).toEqual(cut?.tools.map((_, i) => ({ id: String(i) })));
    await executor.shutdown();
  });
});

describe('a tree', () => {
  const grown = async () => {
    const store = memoryStore();
    const { run, executor } = family(
      asking(askReviewer, () => reply('fine')),
      { store, audit: true },
    );
    await run({ runId: 'root' });
    await executor.shutdown();
    return createAudit({ store });
  };
  type Tree = NonNullable<Awaited<ReturnType<ReturnType<typeof createAudit>['tree']>>>;
  const shape = ({ run, children }: Tree): unknown => [run.agentId, ...children.map(shape)];

  test('is a run with its children, and theirs (supervision 5)', async () => {
    const audit = await grown();
    const tree = (await audit.tree('root')) as Tree;
    expect(shape(tree)).toEqual(['worker', ['reviewer']]);
    const child = tree.children[0]?.run;
    expect(child).toMatchObject({ status: 'ok', parentRunId: 'root' });
    expect(shape((await audit.tree(child?.runId ?? '')) as Tree)).toEqual(['reviewer']);
    expect(await audit.tree('nobody')).toBe(null);
  });

  test('ends at a depth and at a number of runs, the farthest first (supervision 5)', async () => {
    const audit = await grown();
    expect(shape((await audit.tree('root', { depth: 0 })) as Tree)).toEqual(['worker']);
    expect(shape((await audit.tree('root', { limit: 1 })) as Tree)).toEqual(['worker']);
    expect(shape((await audit.tree('root', { depth: 1, limit: 2 })) as Tree)).toEqual(['worker', ['reviewer']]);
  });
});

describe('retention', () => {
  test('runs that ended longer ago than the days that are set are removed, open ones never, and their totals stay (supervision 5)', async () => {
    const { audit, executor, clock, store } = host([reply('a'), reply('b')], { retention: { audit: '30d' } });
    await executor.run(agent, { prompt: 'One.', runId: 'old' });
    await clock.advance(20 * DAY);
    await executor.run(agent, { prompt: 'Two.', runId: 'young' });
    await executor.shutdown();
    await store.save(sampleRecord('open'));
    await clock.advance(10 * DAY + 1);
    expect(ids(await audit.runs())).toEqual(['young']);
    expect(await audit.run('old')).toBe(null);
    expect(await audit.run('open')).toMatchObject({ status: 'open' });
    expect((await audit.totals({ by: 'day' })).map(({ runs }) => runs)).toEqual([1, 1]);
  });

  test.for([
    ['without an end keeps them all (supervision 5)', Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
    ['of 90 days is the default', undefined, noon + 90 * DAY],
  ] as const)('%s', async ([_, retained, until]) => {
    const store = memoryStore({ clock: testClock(noon) });
    const kept: number[] = [];
    const end: typeof store.history.end = async (claim, options) => {
      kept.push(options.keepUntil);
      return store.history.end(claim, options);
    };
    const retention = retained === undefined ? {} : { audit: retained };
    const { executor } = host([reply('a')], { retention, store: { ...store, history: { ...store.history, end } } });
    await executor.run(agent, { prompt: 'One.', runId: 'run' });
    await executor.shutdown();
    expect(kept).toEqual([until]);
  });
});

describe('an executor without an audit', () => {
  test('keeps nothing for one, and counts nothing', async () => {
    const { audit, executor, store } = host([reply('a')], { audit: false });
    await executor.run(agent, { prompt: 'One.', runId: 'run' });
    expect(await store.load('run', { ended: true })).toBe(null);
    expect(await audit.totals({ by: 'day' })).toEqual([]);
    await executor.shutdown();
  });

  test('is what one on a store that cannot keep it is, and says so', async () => {
    const warned: string[] = [];
    const executor = createExecutor({
      models: { fast: scriptedModel([reply('a')]) },
      store: plainStore(),
      audit: true,
      logger: { warn: (message) => void warned.push(message) },
    });
    expect((await executor.run(agent, { prompt: 'One.' })).status).toBe('ok');
    expect(warned).toEqual([expect.stringContaining('the option audit has no effect')]);
    await executor.shutdown();
  });
});

test('for the audit alone no event is written that is only of interest while it happens', async () => {
  const written = async (options: Partial<ExecutorOptions>) => {
    const clock = testClock(noon);
    const store = memoryStore({ clock });
    const types: string[] = [];
    const publish: typeof store.journal.publish = async (runId, entries, options) => {
      types.push(...entries.map(({ event }) => event.type));
      return store.journal.publish(runId, entries, options);
    };
    const checkpoints = { ...store, journal: { ...store.journal, publish } };
    const { executor } = host([callTool('lookup', { id: '1' }), hang()], { store: checkpoints, clock, ...options });
    const run = await executor.start(agent, { prompt: 'One.' });
    for await (const event of run.events()) if (event.type === 'step.started' && event.step === 2) break;
    await clock.advance(200);
    await executor.shutdown();
    return types;
  };
  expect(await written({ audit: true, journal: true })).toContain('step.started');
  expect(await written({ audit: true })).not.toContain('step.started');
});

test.for([
  [{ audit: 'yes' }, 'audit must be true or false'],
  [{ retention: { audit: 'soon' } }, 'retention.audit must be'],
  [{ retention: { audit: 0 } }, 'retention.audit must be'],
  [{ retention: { audits: 1 } }, 'audits'],
] as const)('createExecutor refuses %j with a TypeError', ([options, message]) => {
  expect(() => createExecutor({ models: { fast: scriptedModel([]) }, ...(options as object) })).toThrow(message);
});

test('a step that a second process makes again, because the first could not store it, is shown once (supervision 5)', async () => {
  const clock = testClock(noon);
  const store = memoryStore({ clock });
  const full = { ...store, append: () => Promise.reject(new Error('the disk is full')) };
  const began = host([callTool('lookup', { id: '1' }), hang()], { store: full, logger: { warn: () => {} } });
  await began.executor.start(agent, { runId: 'run', prompt: 'What is it?' });
  while (began.model.calls.length < 2) await new Promise((resolve) => setImmediate(resolve));
  // The process is gone: its clock, which renews its claim, stands still.
  await clock.advance(600_000);
  const next = host([callTool('lookup', { id: '1' }), reply('seven')], { store, clock });
  const { resumed } = await next.executor.recover();
  expect(resumed.map(({ runId }) => runId)).toEqual(['run']);
  expect(await next.executor.get('run')?.result).toMatchObject({ status: 'ok', output: 'seven' });
  const found = await next.audit.run('run');
  expect(found?.steps.map(({ step }) => step)).toEqual([1, 2]);
  expect(found?.tools.map(({ name }) => name)).toEqual(['lookup']);
});
