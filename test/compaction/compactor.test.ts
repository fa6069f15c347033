import fc from 'fast-check';
import { type CompactionRequest, type CompactorOptions, createCompactor, type Message } from 'pawl';
import { arbitraries, fail, hang, reply, type ScriptedEntry, scriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { textOf } from '../../src/values/message.ts';
import { torture } from '../crash/random.ts';
import { answered, faultOf, history, said, step } from './histories.ts';

const { signal } = new AbortController();

async function compacted(
  messages: readonly Message[],
  options: CompactorOptions & { script?: readonly ScriptedEntry[]; request?: Partial<CompactionRequest> } = {},
) {
  const { script = [reply('They looked at pages.')], request, ...rest } = options;
  const model = scriptedModel(script);
  const compact = createCompactor({ clock: testClock(), ...rest });
  const about = { tier: 'fast', tokens: 90_000, limit: 100_000, model, signal, ...request };
  const result = await compact(messages, about);
  const asked = model.calls.map(({ messages }) => JSON.stringify(messages));
  return { result, model, asked: asked.join('\n'), asText: model.calls.map(textOfRequest).join('\n') };
}

const textOfRequest = ({ messages }: { messages: readonly Message[] }) => messages.map(textOf).join('\n');

describe('createCompactor', () => {
  test('puts one message, marked as a summary, in the place of the middle (executor 19)', async () => {
    const messages = history(10);
    const { result, model } = await compacted(messages, { keepLast: 4 });
    expect(result).toEqual([
      messages[0],
      said('[Summary of 16 earlier messages, which it replaces]\nThey looked at pages.'),
      ...messages.slice(-4),
    ]);
    expect(model.calls).toHaveLength(1);
  });

  test('asks the model again when its failure may pass, five times at most (waiting 28, 31)', async () => {
    const busy = fail(Object.assign(new Error('busy'), { statusCode: 503 }));
    for (const [script, outcome] of [
      [[busy, busy, busy, busy, reply('Pages.')], 'Pages.'],
      [Array(9).fill(busy), 'busy (after 5 attempts)'],
    ] as const) {
      const clock = testClock();
      const asked = compacted(history(10), { clock, random: () => 0.5, script });
      const told = asked.then(({ result }) => JSON.stringify(result), String);
      await clock.advance(7_500);
      expect(await told).toContain(outcome);
      expect(clock.pending).toBe(0);
    }
  });

  test('asks the model once when a person must look at it, and stops with its run (waiting 28, 31)', async () => {
    const refused = scriptedModel([fail(Object.assign(new Error('bad key'), { statusCode: 401 }))]);
    await expect(compacted(history(10), { model: refused })).rejects.toThrow(/bad key$/);
    const stop = new AbortController();
    const busy = scriptedModel(Array(9).fill(fail(Object.assign(new Error('busy'), { statusCode: 503 }))));
    const asked = compacted(history(10), { model: busy, request: { signal: stop.signal } });
    await new Promise(setImmediate);
    stop.abort(new Error('the run is over'));
    await expect(asked).rejects.toThrow('the run is over');
    expect([refused.calls.length, busy.calls.length]).toEqual([1, 1]);
  });

  test('messages that are kept are the very same, thoughts and signatures included (executor 17)', async () => {
    const messages = history(10);
    const { result } = await compacted(messages);
    for (const [i, message] of result.slice(2).entries()) expect(message).toBe(messages[messages.length - 8 + i]);
    expect(result[0]).toBe(messages[0]);
  });

  test('shows the model the middle as a text, and none of the thoughts in it (executor 19)', async () => {
    const { asText } = await compacted(
      [
        said('Go.'),
        ...step('look', { q: 'cats' }, 'Three cats.', 'I look for cats.'),
        answered('Found.'),
        said('And dogs?'),
      ],
      { keepLast: 1 },
    );
    expect(asText).toBe(
      [
        'assistant: I look for cats.',
        'assistant calls look: {"q":"cats"}',
        'look answers: Three cats.',
        'assistant: Found.',
      ].join('\n\n'),
    );
  });

  test('names images and files of the middle, and sends none of their bytes (executor 19)', async () => {
    const bytes = 'QUJD'.repeat(1_000);
    const file = { type: 'file', mediaType: 'image/png', data: { type: 'data', data: bytes } } as const;
    const call = { toolCallId: 'f', toolName: 'shoot' };
    const { asText } = await compacted(
      [
        said('Go.'),
        { role: 'user', content: [{ ...file, filename: 'cat.png' }] },
        { role: 'assistant', content: [{ type: 'tool-call', ...call, input: {} }] },
        {
          role: 'tool',
          content: [
            {
              type: 'tool-result',
              ...call,
              output: { type: 'content', value: [{ type: 'text', text: 'Look:' }, file] },
            },
          ],
        },
        answered('Seen.'),
        said('Go on.'),
      ],
      { keepLast: 1 },
    );
    expect(asText).toContain('user: [file cat.png, image/png]');
    expect(asText).toContain('shoot answers: Look:\n[file, image/png]');
    expect(asText).not.toContain('QUJD');
  });

  test('clips long results, and bounds the whole request by the window (executor 19)', async () => {
    const long = `begin ${'x'.repeat(50_000)} end`;
    const messages = [
      said('Go.'),
      ...Array.from({ length: 20 }, (_, i) => step('read', { i }, long)).flat(),
      said('?'),
    ];
    const wide = await compacted(messages, { keepLast: 1 });
    expect(wide.asText).toContain('begin xxx');
    expect(wide.asText).toContain('xxx end');
    expect(wide.asText).toMatch(/\[… 4\d{4} characters left out …\]/);
    expect(wide.asText.length).toBeLessThan(200_000);
    const narrow = await compacted(messages, { keepLast: 1, request: { limit: 4_000 } });
    expect(narrow.asText.length).toBeLessThanOrEqual(8_000);
    const own = await compacted(messages, { keepLast: 1, maxRequestTokens: 500 });
    expect(own.asText.length).toBeLessThanOrEqual(2_000);
  });

  test('keeps less of the end where that alone would fill half of the window (executor 19)', async () => {
    const messages = history(10, 4_000);
    const { result } = await compacted(messages, { request: { limit: 6_000 } });
    expect(result).toHaveLength(1 + 1 + 4);
    expect(faultOf(result)).toBeUndefined();
    const { result: least } = await compacted(messages, { request: { limit: 100 } });
    expect(least.slice(2)).toEqual(messages.slice(-2));
  });

  test('asks a model of its own, where it has one, and the model of the run otherwise (executor 19)', async () => {
    const own = scriptedModel([reply('Mine.')]);
    const { result, model } = await compacted(history(10), { model: own });
    expect(JSON.stringify(result)).toContain('Mine.');
    expect([own.calls.length, model.calls.length]).toEqual([1, 0]);
  });

  test('says what the host wants kept', async () => {
    const { model } = await compacted(history(10), { instructions: 'Keep every page number.' });
    expect(model.calls[0]?.system).toContain('Keep every page number.');
  });

  test('bounds the summary by its tokens', async () => {
    const model = scriptedModel([reply('Short.')]);
    const asked: unknown[] = [];
    const { doStream } = model;
    model.doStream = (options) => {
      asked.push(options.maxOutputTokens);
      return doStream(options);
    };
    await compacted(history(10), { model });
    await compacted(history(10), { model: { ...model, doStream: model.doStream }, maxSummaryTokens: 77 }).catch(
      () => {},
    );
    expect(asked).toEqual([1_000, 77]);
  });

  test('leaves a history alone that has nothing to sum up, or only its last summary (executor 19)', async () => {
    const short = history(4);
    expect((await compacted(short, { script: [] })).result).toBe(short);
    const { result: once } = await compacted(history(10));
    expect((await compacted(once, { script: [] })).result).toBe(once);
  });

  test('sums an earlier summary up again, together with what came since (executor 19)', async () => {
    const { result: once } = await compacted(history(10));
    const { result, asText } = await compacted([...once, ...history(6).slice(1)], { script: [reply('All of it.')] });
    expect(asText).toContain('They looked at pages.');
    expect(JSON.stringify(result)).not.toContain('They looked at pages.');
    expect(result[1]).toEqual(said('[Summary of 13 earlier messages, which it replaces]\nAll of it.'));
  });

  test.for<[string, ScriptedEntry, RegExp]>([
    ['that is down', fail(Object.assign(new Error('gone'), { statusCode: 400 })), /gone/],
    ['that writes nothing', reply('  \n '), /wrote nothing/],
  ])('a model %s is an error, not a summary (executor 19)', async ([, entry, message]) => {
    await expect(compacted(history(10), { script: [entry] })).rejects.toThrow(message);
  });

  test('stops with its signal (executor 19)', async () => {
    const over = new AbortController();
    const waiting = compacted(history(10), { script: [hang()], request: { signal: over.signal } });
    over.abort(new Error('the run is over'));
    await expect(waiting).rejects.toThrow('the run is over');
  });

  test.for<[string, object]>([
    ['nothing kept at the beginning', { keepFirst: 0 }],
    ['a negative end', { keepLast: -1 }],
    ['half a message', { keepLast: 1.5 }],
    ['a summary without tokens', { maxSummaryTokens: 0 }],
    ['a request without tokens', { maxRequestTokens: 0 }],
    ['secrets that are no list', { secrets: { pay: 'card' } }],
    ['a secret without a name', { secrets: { pay: [''] } }],
    ['a model that is none', { model: 'claude' }],
  ])('refuses %s', ([, options]) => {
    expect(() => createCompactor(options as CompactorOptions)).toThrow();
  });

  test('no random history comes out with a call and its results parted (executor 17)', async () => {
    let summaries = 0;
    const sizes = { keepFirst: fc.integer({ min: 1, max: 4 }), keepLast: fc.nat(6) };
    const property = fc.asyncProperty(arbitraries(fc).transcript, fc.record(sizes), async (messages, keep) => {
      const { result } = await compacted(messages, keep);
      expect(faultOf(result)).toBeUndefined();
      expect(result[0]).toBe(messages[0]);
      if (result !== messages) summaries += 1;
    });
    await fc.assert(property, { numRuns: torture > 1 ? 600 : 25 });
    expect(summaries).toBeGreaterThan(5);
  });
});
