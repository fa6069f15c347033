import { createExecutor, defineAgent, defineTool, type Message, memoryStore } from 'pawl';
import { callTool, callTools, fail, reply, type ScriptedEntry, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { gate, hostOf, settle, toolOf } from '../fixtures/host.ts';

const calls = (...names: string[]) => callTools(names.map((name, i) => ({ name, input: { i }, callId: `c${i}` })));
const outputs = (message: Message | undefined) =>
  ((message?.content ?? []) as unknown as { toolCallId: string; output: { type: string; value: unknown } }[]).map(
    ({ output }) => output,
  );

describe('the calls of one message', () => {
  test('run together, and their results are in call order (executor 14)', async () => {
    const gates = [gate(), gate(), gate()];
    const started: unknown[] = [];
    const work = toolOf('work', 'read', async ({ i }) => {
      started.push(i);
      await gates[i as number]?.pass();
      return `result ${i}`;
    });
    const run = hostOf({
      script: [calls('work', 'work', 'work'), reply('end')],
      tools: [work],
      store: memoryStore(),
    }).run();
    await Promise.all(gates.map(({ reached }) => reached));
    expect(started).toEqual([0, 1, 2]);
    for (const i of [2, 0, 1]) {
      gates[i]?.open();
      await settle();
    }
    expect(outputs((await run).messages[2]).map(({ value }) => value)).toEqual(['result 0', 'result 1', 'result 2']);
  });

  const most = async (options: { agent?: object; defaults?: object; concurrency?: number }) => {
    let inside = 0;
    let peak = 0;
    const work = toolOf(
      'work',
      'read',
      async () => {
        peak = Math.max(peak, ++inside);
        await settle(3);
        inside -= 1;
      },
      options.concurrency === undefined ? {} : { concurrency: options.concurrency },
    );
    const { agent = {}, defaults = {} } = options;
    const names = Array.from({ length: 12 }, () => 'work');
    const result = await hostOf({ script: [calls(...names), reply('end')], tools: [work], agent, defaults }).run();
    expect(outputs(result.messages[2])).toHaveLength(12);
    return peak;
  };

  test('never run more at once than the agent allows; the others follow (executor 14)', async () => {
    expect(await most({})).toBe(8);
    expect(await most({ agent: { toolConcurrency: 3 } })).toBe(3);
    expect(await most({ defaults: { toolConcurrency: 5 } })).toBe(5);
  });

  test('of one tool never run more at once than the tool allows (executor 14)', async () => {
    expect(await most({ concurrency: 2 })).toBe(2);
    expect(await most({ concurrency: 1 })).toBe(1);
  });

  test.for([
    [
      'twice in one message',
      [
        callTools([
          { name: 'work', input: { n: 1 }, callId: 'x' },
          { name: 'work', input: { n: 2 }, callId: 'x' },
        ]),
        reply('end'),
      ],
    ],
    ['again in a later step', [callTool('work', { n: 1 }, 'x'), callTool('work', { n: 2 }, 'x'), reply('end')]],
    [
      'never given',
      [
        callTools([
          { name: 'work', input: { n: 1 }, callId: '' },
          { name: 'work', input: { n: 2 }, callId: '' },
        ]),
        reply('end'),
      ],
    ],
    [
      'equal to what stands in for a repeated one',
      [callTools(['x-1-2', 'x', 'x'].map((callId, n) => ({ name: 'work', input: { n }, callId }))), reply('end')],
    ],
  ] satisfies [string, ScriptedEntry[]][])(
    'keep apart when their id is %s: each runs once, each result answers its own call (executor 11)',
    async ([, script]) => {
      const seen: string[] = [];
      const work = toolOf('work', 'once', ({ n }, { idempotencyKey }) => {
        seen.push(idempotencyKey);
        return `n = ${n}`;
      });
      const result = await hostOf({ script, tools: [work], store: memoryStore() }).run({ runId: 'r' });
      const parts = result.messages.flatMap(({ role, content }) =>
        role === 'user'
          ? []
          : (content as unknown as {
              type: string;
              toolCallId: string;
              input: { n: number };
              output: { value: string };
            }[]),
      );
      const asked = parts.filter(({ type }) => type === 'tool-call');
      const answered = new Map(
        parts.filter(({ type }) => type === 'tool-result').map((part) => [part.toolCallId, part.output.value]),
      );
      expect(new Set(asked.map(({ toolCallId }) => toolCallId)).size).toBe(asked.length);
      expect(new Set(seen).size).toBe(asked.length);
      for (const { toolCallId, input } of asked) expect(answered.get(toolCallId)).toBe(`n = ${input.n}`);
    },
  );
});

describe('a call that goes wrong becomes an error result for the model, and the run continues (executor 15)', () => {
  const strict = defineTool({
    name: 'strict',
    description: 'Takes an id.',
    input: z.object({ id: z.string() }),
    effect: 'read',
    execute: async ({ id }) => id,
  });
  const thrower = (thrown: unknown) =>
    toolOf('thrower', 'read', () => {
      throw thrown;
    });
  test.for([
    ['invalid input', [strict], callTool('strict', { id: 7 }), /invalid input/i],
    ['an unknown tool', [strict], callTool('nobody', {}), /nobody/],
    ['a name from the prototype', [strict], callTool('constructor', {}), /constructor/],
    ['a throw', [thrower(new Error('broken pipe'))], callTool('thrower', {}), /broken pipe/],
    ['a thrown null', [thrower(null)], callTool('thrower', {}), /./],
    ['a rejection', [toolOf('no', 'read', () => Promise.reject(new Error('refused')))], callTool('no', {}), /refused/],
    ['a result that is no JSON', [toolOf('odd', 'read', () => ({ when: new Date() }))], callTool('odd', {}), /when/],
  ] as const)('%s', async ([, tools, call, text]) => {
    for (const store of [memoryStore(), undefined]) {
      const model = scriptedModel([call, reply('end')]);
      const executor = createExecutor({ models: { fast: model }, ...(store ? { store } : {}) });
      const agent = defineAgent({ id: 'a', instructions: 'x', tools: tools as never });
      const result = await executor.run(agent, { prompt: 'Go.' });
      expect(result).toMatchObject({ status: 'ok', output: 'end' });
      expect(outputs(result.messages[2])).toMatchObject([{ type: 'error-text', value: expect.stringMatching(text) }]);
    }
  });
});

test('a result in the transcript is a deep-frozen copy, equal to that of the record; the object of the tool stays free (executor 18)', async () => {
  const given = { deep: { n: 1 }, gone: undefined, minus: -0 };
  const store = memoryStore();
  const host = hostOf({
    script: [callTool('look', {}), reply('done')],
    tools: [toolOf('look', 'read', () => given)],
    store,
    retention: { records: 60_000 },
  });
  const { messages } = await host.run({ runId: 'r' });
  expect(Object.isFrozen(given) || Object.isFrozen(given.deep)).toBe(false);
  expect((await store.load('r', { ended: true }))?.messages).toStrictEqual(messages);
  const [part] = messages.flatMap(({ role, content }) => (role === 'tool' ? content : []));
  if (part?.type !== 'tool-result' || part.output.type !== 'json') throw new Error('the step has one result');
  const { deep } = part.output.value as { readonly deep: object };
  for (const value of [part, part.output, part.output.value, deep]) expect(Object.isFrozen(value)).toBe(true);
});

test('a tool knows for whom it works and how far the run is (executor 18)', async () => {
  const seen: unknown[] = [];
  const work = toolOf(
    'work',
    'read',
    (_, { invocation, runState, runId }) => void seen.push({ ...runState, invocation, runId }),
  );
  await hostOf({ script: [callTool('work', { n: 1 }), callTool('work', { n: 2 }), reply('end')], tools: [work] }).run({
    runId: 'r',
    callerId: 'c',
    inputs: { k: [1] },
  });
  const invocation = { callerId: 'c', channelId: '', guildId: '', parentRunId: '', prompt: 'Go.', inputs: { k: [1] } };
  const usage = (turns: number) => expect.objectContaining({ inputTokens: 10 * turns, outputTokens: 5 * turns });
  expect(seen).toEqual([
    { runId: 'r', invocation, iteration: 0, messages: 1, usage: usage(1) },
    { runId: 'r', invocation, iteration: 1, messages: 3, usage: usage(2) },
  ]);
});

test('a model error ends the run with what it had: status error, code MODEL, the steps so far (executor 7)', async () => {
  const result = await hostOf({
    script: [callTool('work'), fail(Object.assign(new Error('overloaded'), { statusCode: 400 }))],
    tools: [toolOf('work')],
  }).run();
  expect(result).toMatchObject({ status: 'error', error: { code: 'MODEL' }, iterations: 1 });
  expect(result.error?.message).toContain('overloaded');
  expect(result.messages).toHaveLength(3);
});
