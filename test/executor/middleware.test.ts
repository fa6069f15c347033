import {
  defineTool,
  type Middleware,
  type ModelCallInfo,
  type ModelReply,
  memoryStore,
  type ToolCallInfo,
  type ToolOutput,
} from 'pawl';
import { callTool, callTools, fail, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { notingBudget } from '../fixtures/noting-ports.ts';

const answer: ModelReply = {
  message: { role: 'assistant', content: [{ type: 'text', text: 'from the cache' }] },
  finishReason: 'stop',
  usage: { inputTokens: 3, outputTokens: 2, reasoningTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 },
};

/** A function that keeps what it is told of each call. */
const noting =
  <Info>(calls: Info[]) =>
  <T>(call: Info, next: () => T): T => {
    calls.push(call);
    return next();
  };

const resultsSeen = (messages: readonly { role: string; content: unknown }[]) =>
  messages.filter(({ role }) => role === 'tool').flatMap(({ content }) => content as { output: ToolOutput }[]);

describe('middleware of an executor', () => {
  test('stands around each call: the first is the outermost', async () => {
    const order: string[] = [];
    const layer = (name: string): Middleware => ({
      async model(_, next) {
        order.push(`${name} model in`);
        const given = await next();
        order.push(`${name} model out`);
        return given;
      },
      async tool(call, next) {
        order.push(`${name} ${call.name} in`);
        const given = await next();
        order.push(`${name} ${call.name} out`);
        return given;
      },
    });
    const tools = [toolOf('look', 'read', async () => void order.push('look'))];
    const { run } = hostOf({
      script: [callTool('look'), reply('done')],
      tools,
      middleware: [layer('a'), layer('b')],
    });
    expect(await run()).toMatchObject({ status: 'ok', output: 'done' });
    const model = ['a model in', 'b model in', 'b model out', 'a model out'];
    expect(order).toEqual([...model, 'a look in', 'b look in', 'look', 'b look out', 'a look out', ...model]);
  });

  test('keeps its object as `this`', async () => {
    class Counter implements Middleware {
      count = 0;
      model(_: ModelCallInfo, next: () => Promise<ModelReply>) {
        this.count += 1;
        return next();
      }
    }
    const counter = new Counter();
    await hostOf({ middleware: [counter] }).run();
    expect(counter.count).toBe(1);
  });

  test('knows of a model call what it is for, frozen, under a key that a process which repeats it finds again', async () => {
    const seen: ModelCallInfo[] = [];
    const middleware: Middleware[] = [{ model: noting(seen) }];
    const host = hostOf({ script: [callTool('look'), reply('done')], tools: [toolOf('look')], middleware });
    await host.run({ runId: 'r', prompt: 'Go.' });
    expect(seen).toMatchObject([
      {
        runId: 'r',
        step: 1,
        agentId: 'worker',
        tier: 'fast',
        labels: {},
        messages: [{ role: 'user' }],
        tools: [{ name: 'look' }],
      },
      { runId: 'r', step: 2, messages: [{ role: 'user' }, { role: 'assistant' }, { role: 'tool' }] },
    ]);
    expect(seen.every((call) => Object.isFrozen(call) && Object.isFrozen(call.messages))).toBe(true);
    const again: ModelCallInfo[] = [];
    await hostOf({ middleware: [{ model: noting(again) }] }).run({ runId: 'r' });
    expect(again[0]?.key).toBe(seen[0]?.key);
    expect(seen[0]?.key).toMatch(/^[0-9a-f]{64}$/);
    expect(seen[1]?.key).not.toBe(seen[0]?.key);
  });

  test('knows of a tool call the key that the tool gets, after its intent was recorded', async () => {
    const store = memoryStore();
    const seen: ToolCallInfo[] = [];
    const recorded: unknown[] = [];
    const keys: string[] = [];
    const pay = toolOf('pay', 'once', async (_, { idempotencyKey }) => void keys.push(idempotencyKey));
    const middleware: Middleware[] = [
      {
        async tool(call, next) {
          seen.push(call);
          recorded.push((await store.load(call.runId))?.openStep?.calls[0]?.state);
          return next();
        },
      },
    ];
    await hostOf({
      script: [callTool('pay', { sum: 5 }), reply('done')],
      tools: [pay],
      store,
      middleware,
    }).run();
    expect(recorded).toEqual(['started']);
    expect(seen).toMatchObject([
      { step: 1, agentId: 'worker', tier: 'fast', name: 'pay', input: { sum: 5 }, effect: 'once', attempt: 1 },
    ]);
    expect(keys).toEqual([seen[0]?.key]);
    expect(Object.isFrozen(seen[0])).toBe(true);
  });

  test.for([
    ['no list', {}, 'createExecutor: middleware must be a list, not an object'],
    ['a function', [() => {}], 'createExecutor: middleware[0] must be an object, not a function'],
    [
      'an unknown kind',
      [{ models: () => {} }],
      'createExecutor: unknown option middleware[0].models; did you mean middleware[0].model?',
    ],
    [
      'a kind that is no function',
      [{ tool: 5 }],
      'createExecutor: middleware[0].tool must be a function, not the number 5',
    ],
  ] as const)('is refused when it is %s', ([, middleware, message]) => {
    expect(() => hostOf({ middleware: middleware as never })).toThrow(new TypeError(message));
  });
});

describe('a middleware around the model', () => {
  test('stands outside the retries: one next() makes all attempts', async () => {
    const clock = testClock();
    let entered = 0;
    const counting = <T>(next: () => T) => {
      entered += 1;
      return next();
    };
    const broken = Object.assign(new Error('reset'), { code: 'ECONNRESET' });
    const { run, model } = hostOf({
      script: [fail(broken), reply('done')],
      clock,
      random: () => 0,
      middleware: [{ model: (_, next) => counting(next) }],
    });
    const result = run();
    await until(() => model.calls.length === 1);
    await clock.advance(60_000);
    expect(await result).toMatchObject({ status: 'ok' });
    expect([entered, model.calls.length]).toEqual([1, 2]);
  });

  test('may answer without the model, and is charged to the budget as it says', async () => {
    const budget = notingBudget();
    const free = { ...answer, usage: undefined } as unknown as ModelReply;
    const { run, model } = hostOf({ script: [], ports: { budget }, middleware: [{ model: () => free }] });
    expect(await run()).toMatchObject({ status: 'ok', output: 'from the cache', usage: { inputTokens: 0 } });
    expect(model.calls).toEqual([]);
    expect([...budget.counted.values()]).toMatchObject([{ tokens: 0 }]);
  });

  test('that fails after the model has answered leaves the answer paid for', async () => {
    const budget = notingBudget();
    const middleware: Middleware[] = [
      {
        async model(_, next) {
          await next();
          throw new Error('the cache is full');
        },
      },
    ];
    const result = await hostOf({ ports: { budget }, middleware }).run();
    expect(result).toMatchObject({ status: 'error', error: { code: 'MODEL', message: 'the cache is full' } });
    expect(result.usage).toMatchObject({ inputTokens: 10, outputTokens: 5 });
    expect(budget.log.filter((line) => /refund/.test(line))).toEqual([]);
    expect(budget.log.filter((line) => /commit/.test(line))).toHaveLength(1);
  });

  test('that calls next() twice is a model error, and the model is asked once', async () => {
    const middleware: Middleware[] = [{ model: async (_, next) => [await next(), await next()][1] as never }];
    const { run, model } = hostOf({ script: [reply('a'), reply('b')], middleware });
    const message = 'a middleware called next() twice; a call is made at most once';
    expect(await run()).toMatchObject({ status: 'error', error: { code: 'MODEL', message } });
    expect(model.calls).toHaveLength(1);
  });

  test('that waits without end ends when the run is cancelled', async () => {
    const { start } = hostOf({ middleware: [{ model: () => new Promise<never>(() => {}) }] });
    const run = await start();
    expect(await run.cancel('enough')).toMatchObject({ status: 'cancelled' });
  });

  test('does not hide what a call has cost that is cut off by a cancel', async () => {
    const { start, model } = hostOf({ script: [hang()], middleware: [{ model: (_, next) => next() }] });
    const run = await start();
    await until(() => model.calls.length === 1);
    expect(await run.cancel('enough')).toMatchObject({ status: 'cancelled' });
    expect(model.calls[0]?.signal?.aborted).toBe(true);
  });

  test('may ignore the call that it made: a failure of it does not reach the process', async () => {
    const middleware: Middleware[] = [{ model: async (_, next) => [answer, next()][0] as ModelReply }];
    const { run } = hostOf({ script: [fail(Object.assign(new Error('down'), { statusCode: 400 }))], middleware });
    expect(await run()).toMatchObject({ status: 'ok', output: 'from the cache' });
    await new Promise((resolve) => setImmediate(resolve));
  });

  test('may change the text of a reply; calls that were refused stay refused', async () => {
    const middleware: Middleware[] = [
      {
        async model(_, next) {
          const given = await next();
          const content = given.message.content.map((part) =>
            part.type === 'text' ? { ...part, text: 'hidden' } : part,
          );
          return { ...given, message: { ...given.message, content } };
        },
      },
    ];
    const { run, model } = hostOf({ script: [callTool('no name!'), reply('secret')], middleware });
    expect(await run()).toMatchObject({ status: 'ok', output: 'hidden' });
    const [refused] = resultsSeen(model.calls[1]?.messages ?? []);
    expect(refused?.output).toMatchObject({ type: 'error-text', value: expect.stringContaining('is not a tool name') });
  });

  test('cannot change the reply in place', async () => {
    const middleware: Middleware[] = [
      {
        async model(_, next) {
          const given = await next();
          (given.message.content as unknown[]).push({ type: 'text', text: 'more' });
          return given;
        },
      },
    ];
    expect(await hostOf({ middleware }).run()).toMatchObject({ status: 'error', error: { code: 'MODEL' } });
  });

  test('cannot change what a reply has cost', async () => {
    const middleware: Middleware[] = [
      {
        async model(_, next) {
          const given = await next();
          expect(() => Object.assign(given.usage, { inputTokens: 0 })).toThrow(TypeError);
          return given;
        },
      },
    ];
    const { status, usage } = await hostOf({ middleware }).run();
    expect([status, usage.inputTokens > 0]).toEqual(['ok', true]);
  });

  test('is checked by the copy that is recorded, not by what a getter gives at its first reading', async () => {
    let readings = 0;
    const part = {
      type: 'tool-call',
      toolCallId: 'a',
      input: {},
      get toolName() {
        readings += 1;
        return 'look';
      },
    };
    const returned = { message: { role: 'assistant', content: [part] } } as unknown as ModelReply;
    let turn = 0;
    const model = () => (turn++ === 0 ? returned : answer);
    expect(await hostOf({ tools: [toolOf('look')], middleware: [{ model }] }).run()).toMatchObject({ status: 'ok' });
    expect(readings).toBe(1);
  });

  test('may give two calls one id, as a model may', async () => {
    const look = { type: 'tool-call', toolCallId: 'a', toolName: 'look', input: {} };
    const returned = { message: { role: 'assistant', content: [look, look] } } as unknown as ModelReply;
    let [turn, calls] = [0, 0];
    const model = () => (turn++ === 0 ? returned : answer);
    const tools = [toolOf('look', 'read', async () => void calls++)];
    expect(await hostOf({ tools, middleware: [{ model }] }).run()).toMatchObject({ status: 'ok' });
    expect(calls).toBe(2);
  });

  const text = (value: unknown) => ({ role: 'assistant', content: [{ type: 'text', text: value }] });
  const call = (rest: object) => ({
    role: 'assistant',
    content: [{ type: 'tool-call', toolCallId: 'a', toolName: 'look', input: {}, ...rest }],
  });
  test.for<readonly [string, unknown, string]>([
    ['nothing', undefined, 'is not an object with a message'],
    ['a text', 'done', 'is not an object with a message'],
    ['a message of a user', { message: { role: 'user', content: [] } }, 'whose role is not assistant'],
    [
      'a content that is a string',
      { message: { role: 'assistant', content: 'x' } },
      'whose content is not a list of parts',
    ],
    ['a part without a type', { message: { role: 'assistant', content: [5] } }, 'a part without a type'],
    ['a text that is a number', { message: text(5) }, 'a text part whose text is not a string'],
    [
      'a part that no message has',
      { message: { role: 'assistant', content: [{ type: 'banana' }] } },
      'no part of type',
    ],
    ['a file without data', { message: { role: 'assistant', content: [{ type: 'file' }] } }, 'content[0]: a file part'],
    ['a call without an id', { message: call({ toolCallId: 7 }) }, 'whose toolCallId is not a string'],
    [
      'a call of a hostile name',
      { message: call({ toolName: 'a\u001b]52;' }) },
      'calls "a\\u001b]52;", which is not a tool name',
    ],
    [
      'usage that is no number',
      { message: text('x'), usage: { inputTokens: Number.NaN } },
      'a usage whose inputTokens is not',
    ],
    ['usage below zero', { message: text('x'), usage: { outputTokens: -1 } }, 'a usage whose outputTokens is not'],
    [
      'a finishReason that is an object',
      { message: text('x'), finishReason: {} },
      'a finishReason that is not a string',
    ],
    ['what is no JSON', { message: { ...text('x'), extra: () => {} } }, 'reply.message.extra'],
  ])('that returns %s is an error of the model', async ([, returned, message]) => {
    const { run } = hostOf({ middleware: [{ model: () => returned as ModelReply }] });
    const result = await run();
    expect(result.status).toBe('error');
    expect(result.error?.message).toContain(message);
  });

  test.for([
    ['nothing', undefined],
    ['a text', 'done'],
  ])(
    'that returns %s after a recorded turn ends the run at once: no model is paid again (edges 5)',
    async ([, returned]) => {
      let turn = 0;
      const forgets: Middleware['model'] = async (_, next) => {
        const given = await next();
        return turn++ === 0 ? given : (returned as never);
      };
      const script = [callTool('look'), reply('done'), reply('again')];
      const { run, model } = hostOf({
        script,
        tools: [toolOf('look')],
        store: memoryStore(),
        middleware: [{ model: forgets }],
      });
      const message = 'the reply that a middleware returned is not an object with a message';
      expect(await run()).toMatchObject({ status: 'error', error: { code: 'MODEL', message } });
      expect(model.calls).toHaveLength(2);
    },
  );

  test('is held to the limits of a reply', async () => {
    const long = { ...answer, message: text('x'.repeat(101)) } as ModelReply;
    const { run } = hostOf({ defaults: { maxReplyChars: 100 }, middleware: [{ model: () => long }] });
    expect(await run()).toMatchObject({ status: 'error', error: { code: 'REPLY_TOO_LARGE' } });
    const big = { message: call({ input: { text: 'x'.repeat(50) } }) } as unknown as ModelReply;
    let turn = 0;
    const inputs = hostOf({
      tools: [toolOf('look')],
      defaults: { maxCallInputBytes: 20 },
      middleware: [{ model: () => (turn++ === 0 ? big : answer) }],
    });
    const { messages } = await inputs.run();
    expect(resultsSeen(messages)[0]?.output).toMatchObject({ value: expect.stringContaining('maxCallInputBytes') });
  });
});

describe('a middleware around a tool', () => {
  const script = [callTool('look', { n: 1 }), reply('done')];
  const lookOf = (middleware: Middleware, execute = async (): Promise<unknown> => 'seen') => {
    const counted = { calls: 0 };
    const look = toolOf('look', 'once', async () => {
      counted.calls += 1;
      return execute();
    });
    return { counted, host: hostOf({ script, tools: [look], middleware: [middleware] }) };
  };
  const outputOf = async (middleware: Middleware, execute?: () => Promise<unknown>) => {
    const { counted, host } = lookOf(middleware, execute);
    await host.run();
    return { calls: counted.calls, output: resultsSeen(host.model.calls[1]?.messages ?? [])[0]?.output };
  };

  test('may answer without the tool', async () => {
    const output = { type: 'json', value: { cached: true } } as const;
    expect(await outputOf({ tool: () => output })).toEqual({ calls: 0, output });
  });

  test('gets the error that the tool threw; what it throws itself is the result', async () => {
    let seen: unknown;
    const failed = async () => {
      throw new RangeError('out of paper');
    };
    const tool: Middleware['tool'] = async (_, next) => {
      seen = await next().catch((error: unknown) => error);
      throw new Error('not today');
    };
    expect(await outputOf({ tool }, failed)).toEqual({ calls: 1, output: { type: 'error-text', value: 'not today' } });
    expect(seen).toBeInstanceOf(RangeError);
  });

  test('that throws after the tool has run is an error that says so: the model must not take the effect for undone', async () => {
    const tool: Middleware['tool'] = async (_, next) => {
      await next();
      throw new Error('the cache is full');
    };
    const value = 'the cache is full (the tool had run; a middleware failed after it)';
    expect(await outputOf({ tool })).toEqual({ calls: 1, output: { type: 'error-text', value } });
  });

  test('that calls next() twice is an error result, and the tool ran once', async () => {
    const { calls, output } = await outputOf({ tool: async (_, next) => [await next(), await next()][1] as never });
    expect(calls).toBe(1);
    expect(output).toMatchObject({ type: 'error-text', value: expect.stringContaining('next() twice') });
  });

  test('that calls next() after it has returned starts nothing', async () => {
    let late: Promise<unknown> | undefined;
    const tool: Middleware['tool'] = async (_, next) => {
      setImmediate(() => {
        late = next().catch((error: unknown) => error);
      });
      return { type: 'text', value: 'soon' };
    };
    const { calls } = await outputOf({ tool });
    await until(() => late !== undefined);
    expect(await late).toEqual(new TypeError('a middleware called next() after it had returned'));
    expect(calls).toBe(0);
  });

  const sends = [callTool('send'), reply('done')];

  test('that outlasts the lease starts no call with an effect once another process has the run (recovery 3)', async () => {
    let ms = 0;
    const clock = { now: () => ms, monotonic: () => ms, setTimeout: () => 1, clearTimeout: () => {} };
    const store = memoryStore({ clock });
    let effects = 0;
    const tool: Middleware['tool'] = async (_, next) => {
      ms += 45_000;
      expect(await store.claim?.('r', 'another', 30_000)).not.toBeNull();
      return next();
    };
    const send = toolOf('send', 'once', () => `sent ${++effects}`);
    const host = hostOf({ script: sends, clock, store, tools: [send], middleware: [{ tool }] });
    expect(await host.run({ runId: 'r' })).toMatchObject({ status: 'interrupted', error: { code: 'LEASE_LOST' } });
    expect(effects).toBe(0);
  });

  test('that outlasts the lease makes its call when the store confirms the lease (recovery 3)', async () => {
    let ms = 0;
    const clock = { now: () => ms, monotonic: () => ms, setTimeout: () => 1, clearTimeout: () => {} };
    let effects = 0;
    const tool: Middleware['tool'] = (_, next) => {
      ms += 45_000;
      return next();
    };
    const send = toolOf('send', 'once', () => `sent ${++effects}`);
    const store = memoryStore({ clock });
    const host = hostOf({ script: sends, clock, store, tools: [send], middleware: [{ tool }] });
    expect(await host.run({ runId: 'r' })).toMatchObject({ status: 'ok' });
    expect(effects).toBe(1);
  });

  test('that wakes up after the time limit of the tool starts nothing', async () => {
    const clock = testClock();
    let wake = () => {};
    let refused: unknown;
    const tool: Middleware['tool'] = async ({ signal }, next) => {
      await new Promise<void>((resolve) => {
        wake = resolve;
        signal.addEventListener('abort', () => {});
      });
      return next().catch((error: unknown) => {
        refused = error;
        throw error;
      });
    };
    let calls = 0;
    const look = toolOf('look', 'once', async () => void calls++, { timeoutMs: 1_000 });
    const host = hostOf({ script, tools: [look], clock, middleware: [{ tool }] });
    const result = host.run();
    await until(() => host.model.calls.length === 1);
    await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(1_000);
    await result;
    wake();
    await until(() => refused !== undefined);
    expect(refused).toEqual(new TypeError('the call of tool "look" is over; it cannot be made any more'));
    expect(calls).toBe(0);
  });

  test('does not see a call that is refused before it: an unknown tool, invalid input', async () => {
    const calls: ToolCallInfo[] = [];
    const strict = defineTool({
      name: 'strict',
      description: 'Takes a number.',
      effect: 'read',
      input: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
      execute: async () => 'ok',
    });
    const { run } = hostOf({
      script: [
        callTools([
          { name: 'strict', input: { n: 'x' } },
          { name: 'missing', input: {} },
          { name: 'strict', input: { n: 1 } },
        ]),
        reply('done'),
      ],
      tools: [strict as never],
      middleware: [{ tool: noting(calls) }],
    });
    await run();
    expect(calls).toMatchObject([{ name: 'strict', input: { n: 1 } }]);
  });

  test('gets the images that the tool attached, once, and what it changes is what the model reads', async () => {
    const outputs: ToolOutput[] = [];
    const camera = defineTool({
      name: 'look',
      description: 'Looks.',
      effect: 'read',
      input: { type: 'object' },
      execute: async (_, { attachImages }) => {
        attachImages([{ mediaType: 'image/png', data: new Uint8Array([1, 2, 3]) }]);
        return 'seen';
      },
    });
    const host = hostOf({
      script,
      tools: [camera as never],
      middleware: [
        {
          async tool(_, next) {
            const output = await next();
            outputs.push(output);
            return output;
          },
        },
      ],
    });
    await host.run();
    const [result] = resultsSeen(host.model.calls[1]?.messages ?? []);
    expect(outputs).toMatchObject([{ type: 'content', value: [{ type: 'text', text: 'seen' }, { type: 'file' }] }]);
    expect(result?.output).toEqual(outputs[0]);
  });

  test('cannot hand the model a URL that the tool may not give', async () => {
    const url = 'https://example.com/secret.png';
    const value = [{ type: 'file', mediaType: 'image/png', data: { type: 'url', url } }];
    const { output } = await outputOf({ tool: () => ({ type: 'content', value }) as ToolOutput });
    expect(output).toMatchObject({ type: 'error-text', value: expect.stringContaining('allowUrls') });
    expect(JSON.stringify(output)).not.toContain(url);
  });

  test.for([undefined, 'text', { value: 1 }, { type: 'text', value: 5 }, { type: 'other' }])(
    'that returns %j, which is no output, is an error result',
    async (returned) => {
      const { output } = await outputOf({ tool: () => returned as never });
      expect(output).toEqual({
        type: 'error-text',
        value: 'a middleware of tool "look" must return the value of next(): { type, value }',
      });
    },
  );
});
