import { defineTool, type JsonValue, type ToolContext } from 'pawl';
import { expectTypeOf, test } from 'vitest';
import { z } from 'zod';

/** A context for types alone: nothing of it runs. */
declare const context: ToolContext;

test('the type of an answer follows the schema, else the options, else it is any JSON', () => {
  const ask = () => ({
    plain: context.ask({ question: 'Well?' }),
    options: context.ask({ question: 'Which?', options: ['red', 'blue'] }),
    numbers: context.ask({ question: 'Which?', options: [1, 2] }),
    schema: context.ask({ question: 'How many?', schema: z.object({ n: z.string().transform(Number) }) }),
    both: context.ask({ question: 'How many?', options: [1, 2], schema: z.number() }),
    json: context.ask({ question: 'How many?', schema: { type: 'number' } }),
  });
  type Answers = ReturnType<typeof ask>;
  expectTypeOf<Awaited<Answers['plain']>>().toEqualTypeOf<JsonValue>();
  expectTypeOf<Awaited<Answers['options']>>().toEqualTypeOf<'red' | 'blue'>();
  expectTypeOf<Awaited<Answers['numbers']>>().toEqualTypeOf<1 | 2>();
  expectTypeOf<Awaited<Answers['schema']>>().toEqualTypeOf<{ n: number }>();
  expectTypeOf<Awaited<Answers['both']>>().toEqualTypeOf<number>();
  expectTypeOf<Awaited<Answers['json']>>().toEqualTypeOf<JsonValue>();
});

test('the type of an event follows its schema', () => {
  const wait = () => ({
    plain: context.waitFor('paid'),
    keyed: context.waitFor('paid', { key: '7', timeoutMs: 1_000 }),
    schema: context.waitFor('paid', { schema: z.object({ cents: z.number() }) }),
  });
  type Values = ReturnType<typeof wait>;
  expectTypeOf<Awaited<Values['plain']>>().toEqualTypeOf<JsonValue>();
  expectTypeOf<Awaited<Values['keyed']>>().toEqualTypeOf<JsonValue>();
  expectTypeOf<Awaited<Values['schema']>>().toEqualTypeOf<{ cents: number }>();
});

test('what no wait takes does not compile', () => {
  defineTool({
    name: 'wrong',
    description: '',
    input: { type: 'object' },
    execute: async (_, { ask, waitFor, sleep, sleepUntil }) => {
      // @ts-expect-error a question is needed
      await ask({ options: ['a'] });
      // @ts-expect-error a typing error in an option
      await ask({ question: 'a', expireInMs: 1 });
      // @ts-expect-error options are JSON
      await ask({ question: 'a', options: [1n] });
      // @ts-expect-error a name is needed
      await waitFor();
      // @ts-expect-error a date is no duration
      await sleep(new Date());
      // @ts-expect-error a text is no time
      await sleepUntil('3d');
    },
  });
});
