import { jsonSchema, tool } from '@ai-sdk/provider-utils';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { AiSdkTool } from '../../src/tool/ai-sdk.ts';
import { runTool } from '../../src/tool/run-tool.ts';
import { toolboxOf } from '../../src/tool/toolbox.ts';
import { UnsupportedError } from '../../src/values/errors.ts';
import { enterMessage } from '../../src/values/message.ts';
import { callOf, environmentOf, outputOf, runToEnd } from './environment.ts';

const inputSchema = z.object({ city: z.string() });
const adapt = (given: object) => {
  const found = toolboxOf({ weather: given as AiSdkTool }, []).tools.get('weather');
  return found ?? expect.unreachable();
};
const input = { city: 'Ulm' };

describe('a tool of the AI SDK', () => {
  test('takes the name of its key, is once-only, and shows its schema', () => {
    const weather = tool({ description: 'The weather.', inputSchema, execute: async ({ city }) => `${city}: sun` });
    const { definitions, facts } = toolboxOf({ weather }, []);
    expect(definitions).toMatchObject([
      { name: 'weather', description: 'The weather.', inputSchema: { required: ['city'] } },
    ]);
    expect(facts).toEqual({ weather: { effect: 'once' } });
  });

  test('is adapted once for each name', () => {
    const weather = tool({ description: '', inputSchema, execute: async () => 'x' });
    const [a, b] = [toolboxOf({ weather, other: weather }, []), toolboxOf({ weather }, [])];
    expect(a.tools.get('weather')).toBe(b.tools.get('weather'));
    expect(a.tools.get('other')?.name).toBe('other');
  });

  test('runs, with its input checked', async () => {
    const weather = adapt(tool({ inputSchema, execute: async ({ city }) => ({ city, sky: 'blue' }) }));
    expect(await outputOf(weather, input)).toEqual({ type: 'json', value: { city: 'Ulm', sky: 'blue' } });
    expect((await outputOf(weather, {})).type).toBe('error-text');
  });

  test.for([
    ['parameters, the older name', { parameters: inputSchema }],
    ['a schema of the AI SDK', { inputSchema: jsonSchema({ type: 'object', required: ['city'] }) }],
    ['no schema', {}],
  ] as const)('may have %s', async ([, schema]) => {
    const weather = adapt({ ...schema, execute: () => 'sun' });
    const fitting = Object.keys(schema).length > 0 ? input : {};
    expect(await outputOf(weather, fitting)).toEqual({ type: 'text', value: 'sun' });
    expect((await outputOf(weather, { wrong: 1 })).type).toBe('error-text');
  });

  test('is handed the call id, the messages and the abort signal', async () => {
    let seen: { toolCallId: string; messages: unknown; abortSignal: AbortSignal } | undefined;
    const weather = adapt({
      inputSchema,
      execute: (_: unknown, options: object) => {
        seen = { ...options } as never;
      },
    });
    const message = enterMessage({ role: 'user', content: [] });
    await runToEnd(weather, callOf(input), environmentOf({ transcript: () => [message] }));
    expect(seen).toMatchObject({ toolCallId: 'c1', messages: [message] });
    expect(seen?.abortSignal).toBeInstanceOf(AbortSignal);
    await runToEnd(weather, callOf(input), environmentOf());
    expect(seen?.messages).toEqual([]);
  });

  test('keeps its `this`', async () => {
    class Weather {
      inputSchema = inputSchema;
      sky = 'grey';
      execute() {
        return this.sky;
      }
    }
    expect(await outputOf(adapt(new Weather()), input)).toEqual({ type: 'text', value: 'grey' });
  });

  test('that yields values answers with the last', async () => {
    const weather = adapt({
      inputSchema,
      async *execute() {
        yield 'loading';
        yield { done: true };
      },
    });
    expect(await outputOf(weather, input)).toEqual({ type: 'json', value: { done: true } });
  });

  test('that yields values is not drawn from any more once its time is up', async () => {
    let drawn = 0;
    const environment = environmentOf({ timeoutMs: 1_000 });
    const weather = adapt({
      inputSchema,
      async *execute() {
        for (;;) {
          yield drawn++;
          await new Promise<void>((resolve) => environment.clock.setTimeout(resolve, 400));
        }
      },
    });
    const call = runTool(weather, callOf(input), environment);
    await environment.clock.advance(10_000);
    expect(await call).toMatchObject({ request: { kind: 'unknown-outcome' } });
    expect(drawn).toBeLessThanOrEqual(4);
  });

  test('shapes its output with toModelOutput, files included', async () => {
    const toModelOutput = ({
      toolCallId,
      input,
      output,
    }: {
      toolCallId: string;
      input: { city: string };
      output: string;
    }) => ({
      type: 'content',
      value: [
        { type: 'text', text: `${toolCallId} ${input.city} ${output}` },
        { type: 'file', mediaType: 'image/png', data: { type: 'data', data: new Uint8Array([1]) } },
      ],
    });
    expect(await outputOf(adapt({ inputSchema, execute: async () => 'sun', toModelOutput }), input)).toEqual({
      type: 'content',
      value: [
        { type: 'text', text: 'c1 Ulm sun' },
        { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AQ==' } },
      ],
    });
    const denied = { inputSchema, execute: () => 1, toModelOutput: async () => ({ type: 'error-text', value: 'no' }) };
    expect(await outputOf(adapt(denied), input)).toEqual({ type: 'error-text', value: 'no' });
  });

  test('whose toModelOutput fails or gives nothing is an error result', async () => {
    const failing = { inputSchema, execute: () => 1, toModelOutput: () => Promise.reject(new Error('shape')) };
    expect(await outputOf(adapt(failing), input)).toEqual({ type: 'error-text', value: 'shape' });
    expect((await outputOf(adapt({ ...failing, toModelOutput: () => 'x' }), input)).type).toBe('error-text');
  });

  test.for([['has no execute', {}, /has no execute/]] as const)('that %s is refused', ([, extra, message]) => {
    expect(() => adapt({ inputSchema, ...extra })).toThrow(UnsupportedError);
    expect(() => adapt({ inputSchema, ...extra })).toThrow(message);
  });
});
