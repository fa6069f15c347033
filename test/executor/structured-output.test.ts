import { defineAgent, memoryStore, type Phase } from 'pawl';
import { callTool, fail, hang, reply, type ScriptedEntry } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { gate, hostOf, toolOf } from '../fixtures/host.ts';
import { hostMachine, outputOf, startHost } from '../fixtures/host-machine.ts';
import { look, tell } from '../fixtures/phases.ts';
import { standard } from '../fixtures/standard-schema.ts';

const output = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'], additionalProperties: false };
const withZod = z.object({ n: z.number(), unit: z.string().default('m') });
const good = '{"n":1}';
const run = (answers: readonly (string | ScriptedEntry)[], agent: object = {}) => {
  const script = answers.map((answer) => (typeof answer === 'string' ? reply(answer) : answer));
  const host = hostOf({ agent: { output, ...agent }, tools: [toolOf('look')], script });
  return host.run({ runId: 'r' }).then((result) => ({ ...host, result }));
};

describe('an agent with an output schema', () => {
  test.for([
    ['a JSON Schema', output, { n: 1 }],
    ['zod, which fills defaults in', withZod, { n: 1, unit: 'm' }],
    ['zod, which converts', z.object({ n: z.number() }).transform(({ n }) => [n]), [1]],
  ] as const)('gives its answer as data, as the schema gives it: %s', async ([, schema, data]) => {
    const { result } = await run([good], { output: schema });
    expect(result).toMatchObject({ status: 'ok', output: good, iterations: 1 });
    expect(result.data).toEqual(data);
  });

  test('gives none without a schema, and none when the run does not succeed', async () => {
    expect((await run([good], { output: undefined })).result).not.toHaveProperty('data');
    expect((await run([fail(Object.assign(new Error('down'), { statusCode: 400 }))])).result).not.toHaveProperty(
      'data',
    );
    expect((await run(['no', 'no'])).result).not.toHaveProperty('data');
  });

  test.for([
    ['```json\n{"n":1}\n```'],
    ['```\n{"n":1}\n```'],
    ['\n  ```json\n{\n  "n": 1\n}\n```  \n'],
    ['  {"n":1}\n'],
  ])('reads an answer that is wrapped as models like to wrap it: %j', async ([answer]) => {
    const { result } = await run([answer as string]);
    expect(result).toMatchObject({ status: 'ok', output: answer, data: { n: 1 } });
  });

  test.for([
    ['a string', { type: 'string' }, 'just words', 'just words'],
    ['a string that looks like JSON', { type: 'string' }, '{"n":1}', '{"n":1}'],
    ['a number', { type: 'number' }, '7', 7],
    ['nothing', { type: 'null' }, 'null', null],
    ['a list', z.array(z.string()), '["a"]', ['a']],
    ['one of two', z.union([z.literal('yes'), z.literal('no')]), '"yes"', 'yes'],
  ] as const)('may answer with %s', async ([, schema, answer, data]) => {
    const { result } = await run([answer], { output: schema });
    expect(result.status).toBe('ok');
    expect(result.data).toEqual(data);
  });

  test('may answer with 400,000 line breaks in a code block that never closes without blocking the process', async () => {
    // An expression that looks for the body of the block takes minutes: longer than a test may.
    const { result } = await run([`\`\`\`json${'\n'.repeat(400_000)}x`, good]);
    expect(result).toMatchObject({ status: 'ok', data: { n: 1 } });
  });

  test('may use tools before it answers', async () => {
    const { result, model } = await run([callTool('look'), good]);
    expect(result).toMatchObject({ status: 'ok', data: { n: 1 }, iterations: 2 });
    expect(model.calls[0]?.tools).toHaveLength(1);
  });

  test('gives data that no code can change, and that has no hidden ways', async () => {
    const { result } = await run(['{"n":1,"__proto__":{"polluted":true}}'], { output: { type: 'object' } });
    expect(Object.isFrozen(result.data)).toBe(true);
    expect({}).not.toHaveProperty('polluted');
  });

  test.for([
    ['no JSON Schema can be had of it', z.object({ at: z.date() })],
    ['it is no schema', 'text'],
    ['it gives no JSON Schema', { '~standard': { version: 1, vendor: 'old', validate: () => ({}) } }],
  ] as const)('is refused when it is defined, when %s', ([, schema]) => {
    expect(() => defineAgent({ id: 'worker', instructions: '', output: schema as object })).toThrow(TypeError);
    expect(() => defineAgent({ id: 'worker', instructions: '', output: schema as object })).toThrow(
      /worker \(output\)/,
    );
  });
});

describe('an answer that does not fit', () => {
  test('gets one turn of repair: the next request ends with the answer and what is wrong with it', async () => {
    const { result, model } = await run(['{"n":"one"}', good]);
    expect(result).toMatchObject({ status: 'ok', output: good, data: { n: 1 }, iterations: 2 });
    const [, answer, problem] = model.calls[1]?.messages ?? [];
    expect(answer).toMatchObject({ role: 'assistant', content: [{ text: '{"n":"one"}' }] });
    expect(problem).toMatchObject({ role: 'user', content: [{ text: expect.stringMatching(/n.*number/) }] });
    expect(result.usage.inputTokens).toBe(20);
  });

  test.for([
    ['is no JSON', 'Sure! The number is 1.', /it is not JSON/],
    ['lacks a field', '{}', /"n"|\bn\b/],
    ['has prose around it', 'Here: ```json\n{"n":1}\n```', /it is not JSON/],
  ] as const)('is asked to repair it when it %s', async ([, answer, problem]) => {
    const { result, model } = await run([answer, good]);
    expect(result.status).toBe('ok');
    expect(JSON.stringify(model.calls[1]?.messages.at(-1))).toMatch(problem);
  });

  test('a second time ends the run with OUTPUT_INVALID: there is one repair, and no other', async () => {
    const { result, model } = await run(['no', '{"n":"still"}', good]);
    expect(result).toMatchObject({ status: 'error', output: '{"n":"still"}', error: { code: 'OUTPUT_INVALID' } });
    expect(result.error?.message).toMatch(/n.*number/);
    expect(model.calls).toHaveLength(2);
  });

  test('may use tools in its turn of repair, which is not a second one', async () => {
    const script = [reply('no'), callTool('look', { n: 1 }), callTool('look', { n: 2 }), reply('no again')];
    const { result, model } = await run(script);
    expect(result).toMatchObject({ status: 'error', error: { code: 'OUTPUT_INVALID' }, iterations: 4 });
    expect(model.calls).toHaveLength(4);
  });

  test('gets none when no step is left for it', async () => {
    const { result, model } = await run(['no', good], { maxSteps: 1 });
    expect(result).toMatchObject({ status: 'error', error: { code: 'OUTPUT_INVALID' }, output: 'no' });
    expect(model.calls).toHaveLength(1);
  });

  test('is repaired after what was steered meanwhile, and both are read', async () => {
    const checking = gate();
    const slow = standard(() => checking.pass().then(() => ({ issues: [{ message: 'not yet' }] })));
    const host = hostOf({ agent: { output: slow }, script: [reply('{}'), reply('{}')] });
    const started = await host.start();
    await checking.reached;
    await started.steer('also X');
    checking.open();
    await started.result;
    const told = host.model.calls[1]?.messages.slice(2).map(({ content }) => JSON.stringify(content));
    expect(told).toEqual([expect.stringContaining('not yet'), expect.stringContaining('also X')]);
  });
});

describe('in a pipeline', () => {
  const pipeline = (last: Partial<Phase>) => ({ phases: [look, { ...tell, ...last }] });

  test('the last answer is checked and repaired, and those before it are not', async () => {
    const { result, model } = await run(['one', 'no', good], pipeline({}));
    expect(result).toMatchObject({ status: 'ok', output: good, data: { n: 1 }, iterations: 3 });
    expect(model.calls).toHaveLength(3);
  });

  test.for([
    ['is bare', { bare: true }],
    ['has one step', { maxSteps: 1 }],
  ] as const)('a last phase that %s has no step for a repair: OUTPUT_INVALID', async ([, cap]) => {
    const { result } = await run(['one', 'no', good], pipeline(cap));
    expect(result).toMatchObject({ status: 'error', error: { code: 'OUTPUT_INVALID' } });
    expect((await run(['one', good], pipeline(cap))).result).toMatchObject({ status: 'ok', data: { n: 1 } });
  });

  test('a last phase that runs out of steps hands its last text on, which has to fit as well (pipeline 5)', async () => {
    const { result } = await run(['one', callTool('look')], pipeline({ maxSteps: 1 }));
    expect(result).toMatchObject({ status: 'error', error: { code: 'OUTPUT_INVALID' } });
  });

  test('a last phase that is optional leaves its fallback, when its answer cannot be repaired (pipeline 4)', async () => {
    const { result } = await run(['one', 'no', 'no'], pipeline({ optional: true, fallback: 'nothing' }));
    expect(result).toMatchObject({ status: 'ok', output: 'nothing' });
    expect(result).not.toHaveProperty('data');
  });
});

describe('inside a host’s machine', () => {
  test('the data is in the run’s output', async () => {
    const { executor, agent } = hostOf({ agent: { output }, script: [reply(good)], store: memoryStore() });
    expect(await outputOf(startHost(hostMachine(executor, agent)))).toMatchObject({ status: 'ok', data: { n: 1 } });
  });

  test('a run that has not come to its answer has none', async () => {
    const { start, executor } = hostOf({ agent: { output }, script: [hang()] });
    const started = await start();
    await executor.shutdown();
    expect(await started.result).not.toHaveProperty('data');
  });
});
