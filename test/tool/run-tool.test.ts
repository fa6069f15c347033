import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { toolContent } from '../../src/tool/content.ts';
import type { ToolContext } from '../../src/tool/define-tool.ts';
import type { ToolOutput } from '../../src/values/message.ts';
import { callOf, environmentOf, outputOf, probe, runToEnd, withInput } from './environment.ts';

const throws = (thrown: unknown) => () => {
  throw thrown;
};
const rejects = (thrown: unknown) => () => Promise.reject(thrown);

describe('what a tool returns', () => {
  test.for([
    ['a string is text', 'hello', { type: 'text', value: 'hello' }],
    ['an empty string is text', '', { type: 'text', value: '' }],
    ['nothing is null', undefined, { type: 'json', value: null }],
    ['null is null', null, { type: 'json', value: null }],
    ['an object is JSON', { a: [1, { b: true }] }, { type: 'json', value: { a: [1, { b: true }] } }],
    ['an array is JSON', [1, 'x'], { type: 'json', value: [1, 'x'] }],
    ['a number is JSON', 0, { type: 'json', value: 0 }],
    ['false is JSON', false, { type: 'json', value: false }],
    ['an absent property is absent', { a: undefined }, { type: 'json', value: {} }],
    [
      'content among other keys is JSON',
      { content: [{ type: 'text', text: 'x' }], ok: true },
      { type: 'json', value: { content: [{ type: 'text', text: 'x' }], ok: true } },
    ],
    ['content that is empty is JSON', { content: [] }, { type: 'json', value: { content: [] } }],
    ['content that holds no parts is JSON', { content: ['x'] }, { type: 'json', value: { content: ['x'] } }],
  ] as const)('%s, now and as a promise', async ([, result, output]) => {
    expect(await outputOf(probe(() => result))).toEqual(output);
    expect(await outputOf(probe(async () => result))).toEqual(output);
  });

  test.for([
    ['a Date', { when: { at: new Date() } }, /result\.when\.at is a Date/],
    ['bytes outside of content', { list: [new Uint8Array(1)] }, /result\.list\[0\] is a Uint8Array/],
    ['NaN', Number.NaN, /result is NaN/],
    ['a function', () => 1, /result is function/],
    ['a bigint', 1n, /result is bigint/],
    [
      'a getter that throws',
      {
        get a() {
          throw new Error('getter');
        },
      },
      /getter/,
    ],
    [
      'a then that throws',
      Object.defineProperty({ a: 1 }, 'then', { get: throws(new Error('no then')), enumerable: true }),
      /no then/,
    ],
    [
      'a Map in a content part',
      toolContent([{ type: 'custom', x: new Map() } as never]),
      /result\.content\[0\]\.x is a Map/,
    ],
  ] as const)('%s is no JSON: an error result with the path (executor 15)', async ([, result, message]) => {
    const output = await outputOf(probe(() => result));
    expect(output.type).toBe('error-text');
    expect((output as { value: string }).value).toMatch(message);
  });

  test('that contains itself is an error result', async () => {
    const loop: Record<string, unknown> = {};
    loop.self = loop;
    expect(await outputOf(probe(() => loop))).toMatchObject({
      type: 'error-text',
      value: expect.stringMatching(/refers to itself/),
    });
  });
});

describe('an error result for the model, never a rejection (executor 15, faults 17)', () => {
  const hostile = new Proxy({}, { get: throws(new Error('get')), getPrototypeOf: throws(new Error('proto')) });
  test.for([
    ['an error', new Error('no such customer'), 'no such customer'],
    ['an error without a message', new Error(''), 'an error without a message was thrown'],
    ['null', null, 'thrown: null'],
    ['undefined', undefined, 'thrown: undefined'],
    ['a string', 'nope', 'thrown: nope'],
    ['a plain object with a message', { message: 'plain' }, 'plain'],
    [
      'an object whose message getter throws',
      {
        get message() {
          throw new Error('x');
        },
      },
      'a value that is not an Error was thrown',
    ],
    ['a proxy that refuses everything', hostile, 'a value that is not an Error was thrown'],
  ] as const)('for a tool that throws %s, at once or later', async ([, thrown, value]) => {
    expect(await outputOf(probe(throws(thrown)))).toEqual({ type: 'error-text', value });
    expect(await outputOf(probe(rejects(thrown)))).toEqual({ type: 'error-text', value });
  });

  test('without a stack', async () => {
    const { value } = (await outputOf(probe(throws(new Error('x'))))) as { value: string };
    expect(value).not.toMatch(/\n|at /);
  });

  test('for a tool that does not exist', async () => {
    expect(await outputOf(undefined)).toEqual({ type: 'error-text', value: 'there is no tool named "probe"' });
  });

  test('for an input that does not fit: the tool is not run', async () => {
    let runs = 0;
    const tool = withInput(z.object({ id: z.string(), list: z.array(z.object({ n: z.number() })) }), () => runs++);
    const { value } = (await outputOf(tool, { id: 1, list: [{ n: 1 }, { n: 'x' }] })) as { value: string };
    expect(value).toMatch(/^invalid input for tool "probe": id: .*; list\[1\]\.n: /);
    expect(runs).toBe(0);
  });

  test.for([{}, { type: 'object' }, z.any()])(
    'for arguments that were no JSON, also where the schema takes anything (executor 7)',
    async (schema) => {
      let runs = 0;
      const output = await outputOf(
        withInput(schema, () => runs++),
        '{"id": "cut o',
      );
      expect(output).toEqual({
        type: 'error-text',
        value: 'invalid input for tool "probe": the arguments are not valid JSON',
      });
      expect(runs).toBe(0);
    },
  );

  test('for a schema that throws or rejects', async () => {
    const schema = (validate: () => never) =>
      ({
        '~standard': { version: 1, vendor: 'x', validate, jsonSchema: { input: () => ({ type: 'object' }) } },
      }) as object;
    for (const validate of [throws(new Error('bad schema')), rejects(new Error('bad schema'))]) {
      expect(await outputOf(withInput(schema(validate as never)))).toEqual({ type: 'error-text', value: 'bad schema' });
    }
  });
});

describe('what a tool knows', () => {
  test('is the run, the call, the attempt, and a key that is the same at each attempt', async () => {
    let seen: ToolContext | undefined;
    const environment = environmentOf();
    await runToEnd(
      probe((_, context) => {
        seen = { ...context };
      }),
      callOf({}, { attempt: 2 }),
      environment,
    );
    const {
      signal: _,
      attachImages: __,
      progress: ___,
      ask,
      waitFor,
      sleep,
      sleepUntil,
      ...rest
    } = seen as ToolContext;
    const { runId, invocation, idempotencyKey, runState } = environment.context;
    expect(rest).toEqual({
      ...{ runId, invocation, idempotencyKey: idempotencyKey(), runState: runState() },
      callId: 'c1',
      attempt: 2,
    });
  });

  test('the tallies are those of the moment in which they are read (executor 18)', async () => {
    let iteration = 1;
    const { context, ...rest } = environmentOf();
    const live = { ...context, runState: () => ({ ...context.runState(), iteration }) };
    const seen: number[] = [];
    const tool = probe(async (_, told) => {
      seen.push(told.runState.iteration);
      await null;
      seen.push(told.runState.iteration);
    });
    const call = runToEnd(tool, callOf(), { ...rest, context: live });
    iteration = 2;
    await call;
    expect(seen).toEqual([1, 2]);
  });

  test('the input is its own: changing it does not touch the transcript', async () => {
    const input = Object.freeze({ list: Object.freeze([1]) });
    const tool = withInput({ type: 'object' }, (value) => (value as { list: number[] }).list.push(2));
    expect(await outputOf(tool, input)).toEqual({ type: 'json', value: 2 });
    expect(input).toEqual({ list: [1] });
  });

  test('the input is what the schema made of it', async () => {
    const tool = withInput(z.object({ n: z.coerce.number().default(5) }));
    expect(await outputOf(tool, {})).toEqual({ type: 'json', value: { n: 5 } });
    expect(await outputOf(tool, { n: '7' })).toEqual({ type: 'json', value: { n: 7 } });
  });
});

describe('a synchronous tool is cheap', () => {
  test('no timer is set, and no listener for an abort', async () => {
    const { clock, signal, ...rest } = environmentOf();
    let touched = 0;
    const counting = { ...clock, setTimeout: () => touched++ };
    const listened = Object.assign(signal, { addEventListener: () => touched++ });
    const output: ToolOutput = await runToEnd(
      probe(() => 'x'),
      callOf(),
      { ...rest, clock: counting, signal: listened } as never,
    );
    expect(output).toEqual({ type: 'text', value: 'x' });
    expect(touched).toBe(0);
  });
});
