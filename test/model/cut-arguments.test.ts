import fc from 'fast-check';
import { defineTool, type Tool } from 'pawl';
import { describe, expect, test } from 'vitest';
import { callModel } from '../../src/model/call.ts';
import { failureOf } from '../../src/model/failure.ts';
import type { JsonValue } from '../../src/values/json.ts';
import { toolCallsOf } from '../../src/values/message.ts';
import { isToolError } from '../../src/values/tool-output.ts';
import { torture } from '../crash/random.ts';
import { runToEnd } from '../tool/environment.ts';
import { finish, finishedBy, requestOf, streaming } from './fake-model.ts';

const start = { type: 'tool-input-start', id: 'c', toolName: 'pay' };
const end = { type: 'tool-input-end', id: 'c' };
const callOf = (input: string) => ({ type: 'tool-call', toolCallId: 'c', toolName: 'pay', input });
const other = { type: 'tool-call', toolCallId: 'o', toolName: 'pay', input: '{"whole":true}' };

/** What may stand after arguments that were cut; the whole reply is thrown away. */
const lost: { readonly [how: string]: readonly unknown[] } = {
  'the stream closes': [],
  'the stream closes after the end of the arguments': [end],
  'the stream reports an error': [{ type: 'error', error: { message: 'gone', statusCode: 500 } }],
  'the reply is interrupted': [finishedBy('interrupted')],
  'the reply is finished all the same': [finishedBy('tool-calls')],
  'the reply ran into its length limit': [finishedBy('length')],
};
/** A provider package that makes a call of what it has got; the reply stands. */
const kept = {
  'the length limit': finishedBy('length'),
  'no reason': finish,
  'a wrong reason': finishedBy('tool-calls'),
};

/** The beginnings of a text, cut at every byte but the last, also within a character. */
function cutsOf(text: string): string[] {
  const bytes = Buffer.from(text);
  return Array.from({ length: bytes.length }, (_, length) => bytes.subarray(0, length).toString());
}

/** Deltas of up to `size` characters. */
function deltasOf(text: string, size: number): unknown[] {
  const parts = text.match(new RegExp(`.{1,${size}}`, 'gsu')) ?? [];
  return parts.map((delta) => ({ type: 'tool-input-delta', id: 'c', delta }));
}

const argumentObjects = fc.dictionary(fc.string({ maxLength: 6, unit: 'grapheme' }), fc.jsonValue({ maxDepth: 2 }), {
  maxKeys: 3,
});
const spaces = fc.constantFrom(undefined, 1);

/** A tool that takes anything: only what is no JSON at all keeps it from running. */
const ran: unknown[] = [];
const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  input: {},
  effect: 'once',
  execute: async (input) => void ran.push(input),
}) as unknown as Tool;

function execute(input: unknown) {
  const { signal, clock } = requestOf();
  const context = { runId: 'r', invocation: { prompt: '' }, runState: {} } as never;
  return runToEnd(
    pay,
    { callId: 'c', name: 'pay', input: input as JsonValue, attempt: 1 },
    { context, signal, clock, timeoutMs: 1_000 },
  );
}

describe('arguments that are cut at any byte never become a call (executor 7, faults 19)', () => {
  test.for(Object.entries(lost))('%s', async ([, rest]) => {
    await fc.assert(
      fc.asyncProperty(argumentObjects, spaces, fc.integer({ min: 1, max: 9 }), async (args, indent, size) => {
        for (const cut of cutsOf(JSON.stringify(args, null, indent))) {
          const model = streaming(other, start, ...deltasOf(cut, size), ...rest);
          const error = await callModel(model, requestOf()).catch((thrown: unknown) => thrown);
          expect(error).toMatchObject({ code: 'MODEL' });
          const isCut = rest[0] === lost['the reply ran into its length limit']?.[0];
          expect(failureOf(error, Date).kind).toBe(isCut ? 'final' : 'passing');
        }
      }),
      { numRuns: torture > 1 ? 150 : 6, seed: 7 },
    );
  });

  test.for(Object.entries(kept))('a call made of what came until then is not run: %s', async ([, finished]) => {
    await fc.assert(
      fc.asyncProperty(argumentObjects, spaces, async (args, indent) => {
        for (const cut of cutsOf(JSON.stringify(args, null, indent))) {
          // With no argument at all a call is whole, unless the reply says that it was cut.
          if (cut === '' && finished !== kept['the length limit']) continue;
          const model = streaming(other, start, ...deltasOf(cut, 4), end, callOf(cut), finished);
          const [whole, call] = toolCallsOf((await callModel(model, requestOf())).message);
          expect(whole?.input).toEqual({ whole: true });
          expect(call?.input).toBe(cut);
          const output = await execute(call?.input);
          expect(isToolError(output)).toBe(true);
        }
      }),
      { numRuns: torture > 1 ? 150 : 6, seed: 7 },
    );
    expect(ran).toEqual([]);
  });

  test('whole arguments do become one (the test itself is sound)', async () => {
    const args = '{"é": [1]}';
    const model = streaming(start, ...deltasOf(args, 2), end, callOf(args), finishedBy('tool-calls'));
    const [call] = toolCallsOf((await callModel(model, requestOf())).message);
    await execute(call?.input);
    expect(ran).toEqual([{ é: [1] }]);
  });
});
