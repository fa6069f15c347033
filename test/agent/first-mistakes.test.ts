// What users of the AI SDK write first: each is refused where it is written, with Pawl's word for it.
import { expect, test } from 'vitest';
import { createExecutor, defineAgent, defineTool, type Executor, memoryStore } from '../../src/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { reply, scriptedModel } from '../../src/testing/index.ts';

const agentWith = (more: object) => () => defineAgent({ id: 'a', instructions: '', ...more });
const toolWith = (more: object) => () =>
  defineTool({ name: 't', description: '', input: { type: 'object' }, execute: () => '', ...more });
const executorWith = (more: object) => () => createExecutor(more);
/** As a schema of zod 3.25 looks from outside: a Standard Schema without a JSON Schema. */
const zod3 = { _def: {}, '~standard': { version: 1, vendor: 'zod', validate: () => ({ value: {} }) } };

test.for<[what: string, work: () => unknown, words: string]>([
  ['system of an agent', agentWith({ system: 'Help.' }), 'Pawl calls the system prompt instructions'],
  ['messages of an agent', agentWith({ messages: [] }), 'as history: executor.run(agent, { prompt, history })'],
  ['stopWhen of an agent', agentWith({ stopWhen: [] }), 'maxSteps is the most steps of a run'],
  ['temperature of an agent', agentWith({ temperature: 0 }), 'did you mean settings.temperature?'],
  ['parameters of a tool', toolWith({ parameters: {} }), 'the schema of its input is input'],
  ['a schema of zod 3', toolWith({ input: zod3 }), 'install zod@4, or pass a JSON Schema'],
  ['{ t } with a tool of another name', agentWith({ tools: { other: toolWith({})() } }), 'the names must be the same'],
  ["store: 'file'", executorWith({ store: 'file' }), "sqliteStore({ path: 'runs.db' })"],
  ["models: { fast: 'openai/gpt-5' }", executorWith({ models: { fast: 'openai/gpt-5' } }), 'gateway("openai/gpt-5")'],
  ["sqliteStore('runs.db')", () => sqliteStore('runs.db' as never), "write sqliteStore({ path: 'runs.db' })"],
  ["sqliteStore({ path: '' })", () => sqliteStore({ path: '' }), "path is empty: write a file, or ':memory:'"],
  ['half a step', agentWith({ maxSteps: 1.5 }), 'maxSteps must be a whole number above 0, not 1.5'],
  ['half a call', agentWith({ toolConcurrency: 0.5 }), 'toolConcurrency must be a whole number above 0, not 0.5'],
  ['no phases', agentWith({ phases: [] }), 'phases is empty: leave it out'],
  ['a long id', agentWith({ id: 'x'.repeat(201) }), 'the id of an agent has 1 to 200 characters'],
  ['an id of two lines', agentWith({ id: 'a\nb' }), 'none of them a control character: not "a\\nb"'],
  ['half a character as an id', agentWith({ id: '\ud800' }), 'the id of an agent has'],
])('%s is refused where it is written, and the error says what to write', ([, work, words]) => {
  expect(work).toThrow(TypeError);
  expect(work).toThrow(words);
});

test.for<[what: string, work: (executor: Executor) => Promise<unknown>, words: string]>([
  [
    'approve',
    (executor) => executor.control('r').approve(undefined as never),
    'approve: waitId must be the id of a wait',
  ],
  ['deny', (executor) => executor.control('r').deny('' as never), 'deny: waitId must be the id of a wait'],
  ['answer', (executor) => executor.control('r').answer({} as never, 1), 'answer: waitId must be the id of a wait'],
  ['pause', ({ schedules }) => schedules.pause(undefined as never), 'schedules.pause needs the id of a schedule'],
  ['resume', ({ schedules }) => schedules.resume(7 as never), 'schedules.resume needs the id of a schedule'],
])('%s without an id is a TypeError that names it', async ([, work, words]) => {
  await using executor = createExecutor({ store: memoryStore() });
  await expect(work(executor)).rejects.toThrow(TypeError);
  await expect(work(executor)).rejects.toThrow(words);
});

test.for([
  ['messages', 'history takes the earlier messages, and prompt the new one'],
  ['system', 'the system prompt is instructions of an agent'],
  ['temperature', 'it is one of the settings of an agent: defineAgent({ settings })'],
  ['model', 'a model is that of an agent, or of the executor'],
  ['abortSignal', 'an abort signal is an option: run(agent, { prompt }, { signal })'],
] as const)('%s of a run is refused, and the error says where it belongs', async ([word, words]) => {
  await using executor = createExecutor({});
  const agent = defineAgent({ id: 'a', instructions: '', model: scriptedModel([reply('Hi')]) });
  const run = executor.run(agent, { prompt: 'Hi', [word]: 1 } as never);
  await expect(run).rejects.toThrow(`invocation: unknown option ${word}; ${words}`);
});
