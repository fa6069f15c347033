import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { ToolContext } from '../../src/tool/define-tool.ts';
import { runTool, type ToolCall, type ToolEnvironment } from '../../src/tool/run-tool.ts';
import { callOf, environmentOf, probe } from './environment.ts';

type Execute = (input: never, context: ToolContext) => unknown;
type Answers = readonly unknown[];

/** Runs a call with these recorded answers, to its end or its wait. */
function execute(tool: Execute, answers: Answers = [], extra: object = { effect: 'idempotent' }) {
  const call = callOf({}, { answers } as Partial<ToolCall>);
  return runTool(probe(tool, extra), call, environmentOf());
}

const answered = (value: unknown) => ({ kind: 'question', how: 'answer', value });
const timer = { kind: 'timer', how: 'expire' };
const event = (name: string, value: unknown) => ({ kind: 'event', name, how: 'signal', value });

/** The code of the error that a tool gets from a wait. */
const codeOf = (wait: Promise<unknown>) =>
  wait.catch((error: { code?: string; name: string }) => error.code ?? error.name);

describe('a call that needs something from outside ends its execution there', () => {
  test.for([
    ['ask', (c: ToolContext) => c.ask({ question: 'Why?' }), { kind: 'question', question: 'Why?' }],
    [
      'ask with options and a time',
      (c: ToolContext) => c.ask({ question: 'Which?', options: ['a', 'b'], expiresInMs: 5_000 }),
      { kind: 'question', question: 'Which?', options: ['a', 'b'], waitMs: 5_000 },
    ],
    [
      'ask with a schema, as JSON Schema',
      (c: ToolContext) => c.ask({ question: 'How many?', schema: { type: 'integer' } }),
      { kind: 'question', question: 'How many?', schema: { type: 'integer' } },
    ],
    ['waitFor', (c: ToolContext) => c.waitFor('paid'), { kind: 'event', name: 'paid', key: '' }],
    [
      'waitFor with a key and a time',
      (c: ToolContext) => c.waitFor('paid', { key: '7', timeoutMs: 9 }),
      { kind: 'event', name: 'paid', key: '7', waitMs: 9 },
    ],
    ['sleep with a text', (c: ToolContext) => c.sleep('3d'), { kind: 'timer', waitMs: 259_200_000 }],
    ['sleep with ms', (c: ToolContext) => c.sleep(1_500), { kind: 'timer', waitMs: 1_500 }],
    ['sleepUntil a date', (c: ToolContext) => c.sleepUntil(new Date(86_400_000)), { kind: 'timer', dueAt: 86_400_000 }],
    ['sleepUntil ms', (c: ToolContext) => c.sleepUntil(77), { kind: 'timer', dueAt: 77 }],
  ] as const)('%s (waiting 8)', async ([, wait, request]) => {
    const after: unknown[] = [];
    const end = await execute(async (_, context) => {
      await wait(context);
      after.push('came here');
    });
    expect(end).toEqual({ type: 'wait', request });
    expect(after).toEqual([]);
  });

  test('its signal aborts, its promise never settles, and `finally` does not run', async () => {
    const seen: unknown[] = [];
    const environment = environmentOf({ onLate: (output) => seen.push(['late', output]) });
    let signal: AbortSignal | undefined;
    const tool = probe(async (_, context) => {
      signal = context.signal;
      try {
        await context.ask({ question: 'Why?' });
      } catch {
        seen.push('catch');
      } finally {
        seen.push('finally');
      }
    });
    await runTool(tool, callOf(), environment);
    await environment.clock.advance(1_000_000);
    expect(signal?.reason).toMatchObject({ name: 'AbortError' });
    expect(seen).toEqual([]);
    expect(environment.clock.pending).toBe(0);
  });

  test('what it still returns, throws or reports is dropped, and is no late result', async () => {
    const seen: unknown[] = [];
    const environment = environmentOf({ onLate: (late) => seen.push(late), onProgress: (value) => seen.push(value) });
    for (const end of [() => 'late', () => Promise.reject(new Error('late'))]) {
      const gate = Promise.withResolvers<void>();
      const tool = probe(async (_, context) => {
        void context.sleep('1h');
        await gate.promise;
        context.progress('late');
        return end();
      });
      expect(await runTool(tool, callOf(), environment)).toMatchObject({ type: 'wait' });
      gate.resolve();
      await environment.clock.advance(0);
    }
    expect(seen).toEqual([]);
  });

  test('a request after the call has ended never settles, and opens no wait', async () => {
    let context: ToolContext | undefined;
    const settled: unknown[] = [];
    const remember: Execute = (_, given) => {
      context = given;
      return 'done';
    };
    for (const tool of [remember, async (...given: Parameters<Execute>) => remember(...given)]) {
      expect(await execute(tool)).toEqual({ type: 'text', value: 'done' });
      void context?.ask({ question: 'Still there?' }).finally(() => settled.push('settled'));
      await new Promise((resolve) => setImmediate(resolve));
      expect(settled).toEqual([]);
    }
  });

  test('a call that returns, or throws, at once does not wait for what it asked for', async () => {
    let signal: AbortSignal | undefined;
    const returns = await execute((_, context) => {
      signal = context.signal;
      void context.ask({ question: 'Why?' });
      return 'done';
    });
    expect(returns).toEqual({ type: 'text', value: 'done' });
    await new Promise((resolve) => setImmediate(resolve));
    expect(signal?.aborted).toBe(false);
    const throws = await execute((_, context) => {
      void context.ask({ question: 'Why?' });
      throw new Error('broken');
    });
    expect(throws).toEqual({ type: 'error-text', value: 'broken' });
  });

  test('an abort of the run ends a call that is about to wait, as aborted', async () => {
    const controller = new AbortController();
    const tool = probe(async (_, context) => {
      const asked = context.ask({ question: 'Why?' });
      controller.abort(new Error('deploy'));
      return asked;
    });
    const end = await runTool(tool, callOf(), environmentOf({ signal: controller.signal }));
    expect(end).toEqual({ type: 'error-text', value: 'aborted' });
  });

  test('each execution has its own time limit', async () => {
    const slow: Execute = async (_, context) => {
      await context.sleep('1h');
      await new Promise(() => {});
    };
    const environment = environmentOf({ timeoutMs: 1_000 });
    const tool = probe(slow, { effect: 'idempotent' });
    expect(await runTool(tool, callOf(), environment)).toMatchObject({ type: 'wait' });
    await environment.clock.advance(3_600_000);
    const second = runTool(tool, callOf({}, { answers: [timer] } as Partial<ToolCall>), environment);
    await environment.clock.advance(999);
    const first = Promise.race([second, Promise.resolve('still running')]);
    expect(await first).toBe('still running');
    await environment.clock.advance(1);
    expect(await second).toMatchObject({ type: 'error-text', value: expect.stringContaining('within 1000 ms') });
  });

  test('a middleware around it gets no answer from next(): the execution ends', async () => {
    const seen: string[] = [];
    const around: ToolEnvironment['around'] = async (_, next) => {
      seen.push('before');
      try {
        return await next();
      } finally {
        seen.push('after');
      }
    };
    const tool = probe(async (_, context) => `said ${await context.ask({ question: 'Why?' })}`);
    expect(await runTool(tool, callOf(), environmentOf({ around }))).toMatchObject({ type: 'wait' });
    expect(seen).toEqual(['before']);
    const call = callOf({}, { answers: [answered('so')] } as Partial<ToolCall>);
    expect(await runTool(tool, call, environmentOf({ around }))).toEqual({ type: 'text', value: 'said so' });
    expect(seen).toEqual(['before', 'before', 'after']);
  });
});

describe('a repeated execution', () => {
  test('gets the recorded answers in order, and waits for the first that is not recorded (waiting 8)', async () => {
    const tool: Execute = async (_, context) => {
      const name = await context.ask({ question: 'Name?' });
      await context.sleep('1d');
      const paid = await context.waitFor('paid', { key: String(name) });
      return { name, paid };
    };
    const answers = [answered('Ann'), timer, event('paid', 12)];
    const ends = [];
    for (let n = 0; n <= answers.length; n++) ends.push(await execute(tool, answers.slice(0, n)));
    expect(ends).toEqual([
      { type: 'wait', request: { kind: 'question', question: 'Name?' } },
      { type: 'wait', request: { kind: 'timer', waitMs: 86_400_000 } },
      { type: 'wait', request: { kind: 'event', name: 'paid', key: 'Ann' } },
      { type: 'json', value: { name: 'Ann', paid: 12 } },
    ]);
  });

  test("an answer goes through the tool's own schema", async () => {
    const schema = z.object({ cents: z.number(), currency: z.string().default('EUR') });
    const tool: Execute = (_, context) => context.waitFor('paid', { schema });
    expect(await execute(tool, [event('paid', { cents: 5 })])).toEqual({
      type: 'json',
      value: { cents: 5, currency: 'EUR' },
    });
  });

  test('the tool may change an answer: the record keeps its own', async () => {
    const recorded = Object.freeze({ list: Object.freeze([1]) });
    const tool: Execute = async (_, context) => {
      const answer = (await context.ask({ question: 'Which?' })) as { list: number[] };
      answer.list.push(2);
      return answer;
    };
    expect(await execute(tool, [answered(recorded)])).toEqual({ type: 'json', value: { list: [1, 2] } });
    expect(recorded).toEqual({ list: [1] });
  });

  test.for([
    ['ask', (c: ToolContext) => c.ask({ question: 'Why?' }), { kind: 'question', how: 'expire' }],
    ['waitFor', (c: ToolContext) => c.waitFor('paid'), { kind: 'event', name: 'paid', how: 'expire' }],
  ] as const)('%s throws WAIT_EXPIRED if its time was over', async ([, wait, end]) => {
    expect(await execute((_, context) => codeOf(wait(context)), [end])).toEqual({
      type: 'text',
      value: 'WAIT_EXPIRED',
    });
  });

  test.for([['expire'], ['wake']] as const)('the end of a time is normal: %s', async ([how]) => {
    const tool: Execute = async (_, context) => `got ${await context.sleep('1h')}`;
    expect(await execute(tool, [{ kind: 'timer', how }])).toEqual({ type: 'text', value: 'got undefined' });
  });

  test.for([
    ['another kind', (c: ToolContext) => c.ask({ question: 'Why?' }), timer],
    ['another event', (c: ToolContext) => c.waitFor('paid'), event('shipped', 1)],
    ['an event for a question', (c: ToolContext) => c.ask({ question: 'Why?' }), event('paid', 1)],
    [
      'an answer that does not fit its schema now',
      (c: ToolContext) => c.ask({ question: 'n?', schema: z.number() }),
      answered('x'),
    ],
    ['no object', (c: ToolContext) => c.ask({ question: 'Why?' }), null],
    ['a text', (c: ToolContext) => c.ask({ question: 'Why?' }), 'question'],
    ['an unknown kind', (c: ToolContext) => c.ask({ question: 'Why?' }), { kind: '__proto__', how: 'answer' }],
    ['an end of another kind', (c: ToolContext) => c.sleep(1), { kind: 'timer', how: 'answer', value: 1 }],
    ['no value', (c: ToolContext) => c.ask({ question: 'Why?' }), { kind: 'question', how: 'answer' }],
    [
      'a value with a key that reaches a prototype',
      (c: ToolContext) => c.ask({ question: 'Why?' }),
      answered(JSON.parse('{"__proto__":{"isAdmin":true}}')),
    ],
  ] as const)('a recorded answer that is %s throws WAIT_CHANGED (waiting 8)', async ([, wait, end]) => {
    expect(await execute((_, context) => codeOf(wait(context)), [end])).toEqual({
      type: 'text',
      value: 'WAIT_CHANGED',
    });
  });
});

describe("a tool with effect 'once'", () => {
  const once = { effect: 'once' };

  test('waits once, before its first await, and then has its effect (waiting 9)', async () => {
    const effects: string[] = [];
    const tool: Execute = async (_, context) => {
      const to = await context.ask({ question: 'To whom?' });
      effects.push(`paid ${to}`);
      return 'paid';
    };
    expect(await execute(tool, [], once)).toMatchObject({ type: 'wait' });
    expect(effects).toEqual([]);
    expect(await execute(tool, [answered('Ann')], once)).toEqual({ type: 'text', value: 'paid' });
    expect(effects).toEqual(['paid Ann']);
  });

  test.for([
    [
      'after an await',
      [],
      async (_: never, context: ToolContext) => {
        await Promise.resolve();
        return codeOf(context.ask({ question: 'Why?' }));
      },
    ],
    [
      'for a second time',
      [answered('a')],
      async (_: never, context: ToolContext) => {
        await context.ask({ question: 'Why?' });
        return codeOf(context.sleep(1));
      },
    ],
  ] as const)('that waits %s gets WAIT_AFTER_EFFECT (waiting 9)', async ([, answers, tool]) => {
    expect(await execute(tool, answers, once)).toEqual({ type: 'text', value: 'WAIT_AFTER_EFFECT' });
  });

  test('also behind a middleware, and after a schema that is checked later', async () => {
    const tool = probe((_, context) => context.ask({ question: 'Why?' }), {
      ...once,
      input: z.object({}).refine(async () => true),
    });
    const around: ToolEnvironment['around'] = async (_, next) => {
      await Promise.resolve();
      return next();
    };
    expect(await runTool(tool, callOf(), environmentOf({ around }))).toMatchObject({ type: 'wait' });
  });

  test('a call that was made as `once` stays one, although its tool has another effect now', async () => {
    const late: Execute = async (_, context) => {
      await Promise.resolve();
      return codeOf(context.sleep(1));
    };
    const call = callOf({}, { effect: 'once' });
    const end = await runTool(probe(late, { effect: 'idempotent' }), call, environmentOf());
    expect(end).toEqual({ type: 'text', value: 'WAIT_AFTER_EFFECT' });
  });
});

describe('a call has one open wait (waiting 9)', () => {
  test('two requests at the same time end the call, with an error that says so', async () => {
    const both: Execute = (_, context) => Promise.all([context.ask({ question: 'a' }), context.sleep(1)]);
    expect(await execute(both)).toMatchObject({
      type: 'error-text',
      value: expect.stringContaining('a call has one open wait'),
    });
  });

  test('both are refused with UNSUPPORTED; a tool that catches that can ask for nothing more', async () => {
    const codes: unknown[] = [];
    const end = await execute(async (_, context) => {
      codes.push(...(await Promise.all([codeOf(context.ask({ question: 'a' })), codeOf(context.sleep(1))])));
      return context.ask({ question: 'c' });
    });
    expect(end).toMatchObject({ type: 'error-text' });
    await new Promise((resolve) => setImmediate(resolve));
    expect(codes).toEqual(['UNSUPPORTED', 'UNSUPPORTED']);
  });
});

describe('requests that cannot be recorded are refused', () => {
  const hostile = new Proxy(
    {},
    {
      get() {
        throw new Error('hostile');
      },
      ownKeys() {
        throw new Error('hostile');
      },
    },
  );
  test.for([
    ['a question that is no text', (c: ToolContext) => c.ask({ question: 7 as never }), /must be a text/],
    ['an empty question', (c: ToolContext) => c.ask({ question: ' ' }), /must be a text/],
    ['no question', (c: ToolContext) => c.ask(undefined as never), /must be an object/],
    ['a question of 10 MB', (c: ToolContext) => c.ask({ question: 'x'.repeat(10_000_000) }), /up to 65536 characters/],
    ['an unknown option', (c: ToolContext) => c.ask({ question: 'a', expireInMs: 1 } as never), /expiresInMs\?/],
    [
      'options that are no list',
      (c: ToolContext) => c.ask({ question: 'a', options: 'b' as never }),
      /list of JSON values/,
    ],
    ['options that JSON cannot hold', (c: ToolContext) => c.ask({ question: 'a', options: [1n as never] }), /options/],
    [
      'options of 10 MB',
      (c: ToolContext) => c.ask({ question: 'a', options: ['x'.repeat(10_000_000)] }),
      /up to 65536/,
    ],
    ['a schema that is none', (c: ToolContext) => c.ask({ question: 'a', schema: 7 }), /schema of an answer/],
    ['a schema without a JSON Schema', (c: ToolContext) => c.ask({ question: 'a', schema: z.date() }), /JSON Schema/],
    ['a schema that throws', (c: ToolContext) => c.ask({ question: 'a', schema: hostile }), /./],
    [
      'a schema of 10 MB',
      (c: ToolContext) => c.ask({ question: 'a', schema: { const: 'x'.repeat(10_000_000) } }),
      /up to 65536/,
    ],
    ['a time that is none', (c: ToolContext) => c.ask({ question: 'a', expiresInMs: -1 }), /above 0/],
    ['no name of an event', (c: ToolContext) => c.waitFor(''), /1 to 1024 characters/],
    ['a long name', (c: ToolContext) => c.waitFor('x'.repeat(1_025)), /1 to 1024 characters/],
    ['a name that is not Unicode', (c: ToolContext) => c.waitFor('\ud800'), /1 to 1024 characters/],
    ['a key that is no text', (c: ToolContext) => c.waitFor('a', { key: 7 as never }), /key of an event/],
    ['a text that is no duration', (c: ToolContext) => c.sleep('soon'), /"soon" is not a duration/],
    ['a time below 0', (c: ToolContext) => c.sleep(-1), /not a duration/],
    ['an endless time', (c: ToolContext) => c.sleep(Number.POSITIVE_INFINITY), /not a duration/],
    ['a date that is none', (c: ToolContext) => c.sleepUntil(new Date(Number.NaN)), /not a time/],
  ] as const)('%s', async ([, wait, message]) => {
    const end = await execute((_, context) => wait(context));
    expect(end).toEqual({ type: 'error-text', value: expect.stringMatching(message) });
  });

  test('a refused request that the tool drops does not reach the process', async () => {
    const end = await execute((_, context) => {
      void context.ask({ question: '' });
      return 'done';
    });
    expect(end).toEqual({ type: 'text', value: 'done' });
    await new Promise((resolve) => setImmediate(resolve));
  });

  test('a tool that catches everything and asks in a loop ends after 1,000 requests', async () => {
    let asked = 0;
    const end = await execute(async (_, context) => {
      for (;;) {
        asked += 1;
        await context.ask({ question: '' }).catch(() => {});
      }
    });
    expect(end).toEqual({ type: 'error-text', value: expect.stringContaining('more than 1000 waits') });
    expect(asked).toBe(1_001);
  });

  test('a schema that throws when the answer comes is an error of the call', async () => {
    const schema = {
      '~standard': {
        version: 1,
        vendor: 'test',
        jsonSchema: { input: () => ({ type: 'string' }) },
        validate() {
          throw new Error('broken schema');
        },
      },
    };
    const end = await execute((_, context) => context.ask({ question: 'a', schema }), [answered('b')]);
    expect(end).toEqual({ type: 'error-text', value: 'broken schema' });
  });
});
