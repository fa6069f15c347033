import type { Model } from 'pawl';
import { loadCheckpoint } from 'pawl/fan-out';
import { scriptedModel, stallAfter } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { toolOf } from '../fixtures/host.ts';
import { speakingModel } from '../fixtures/speaking-model.ts';
import { asked, freshPath, inItsTime } from './asking.ts';

/** Its first turn is given by the test, in its second it falls silent in the middle of a word. */
function silentAfter(first: Model['doStream']) {
  const then = scriptedModel([stallAfter('Se')]);
  let turns = 0;
  const doStream: Model['doStream'] = (options) => (turns++ === 0 ? first(options) : then.doStream(options));
  return { ...then, doStream };
}

/** A stream that says a text, and then breaks off. */
async function breakingAfter(text: string, failure: { readonly isRetryable: boolean }) {
  const { stream } = await scriptedModel([stallAfter(text)]).doStream({ prompt: [] });
  const parts = async function* () {
    let left = 3;
    for await (const part of stream) {
      yield part;
      left -= 1;
      if (left === 0) throw Object.assign(new Error('the connection was reset'), failure);
    }
  };
  return { stream: ReadableStream.from(parts()) as typeof stream };
}

describe('partial text', () => {
  const textOf = async (model: ReturnType<typeof silentAfter>) => {
    const call = asked({ models: { a: model }, tools: [toolOf('look')] });
    const texts: string[] = [];
    const running = call.start({
      onEvent: (_, event) => void (event.type === 'model.delta' && texts.push(event.text)),
    });
    for (let waited = 0; !texts.includes('Se') && waited < 200; waited++) await call.clock.advance(100);
    call.caller.abort();
    return (await running).responses[0]?.text;
  };

  test('it is that of the turn in progress, without what was said beside earlier calls (fan-out 6)', async () => {
    const first = speakingModel(() => ({ text: 'Looking.', calls: [{ name: 'look' }] }));
    expect(await textOf(silentAfter((options) => first.doStream(options)))).toBe('Se');
  });

  test('of a turn that broke off and is tried again it is the text of the new try (fan-out 6)', async () => {
    expect(await textOf(silentAfter(() => breakingAfter('Wrong', { isRetryable: true })))).toBe('Se');
  });

  test('a model that fails in the middle of a word keeps the text it had, in the result and in the file of answers (fan-out 6)', async () => {
    const model = { ...scriptedModel([]), doStream: () => breakingAfter('So far', { isRetryable: false }) };
    const { responses, path } = await asked({ models: { a: model }, path: freshPath() }).start();
    expect(responses).toMatchObject([{ text: 'So far', error: expect.any(String), interrupted: false }]);
    expect((await loadCheckpoint(String(path)))?.responses).toMatchObject([{ text: 'So far', completed: false }]);
  });

  test('a turn whose later tries say nothing keeps the text of the one that broke off (fan-out 6)', async () => {
    let tries = 0;
    const doStream: Model['doStream'] = async () => {
      tries += 1;
      if (tries === 1) return breakingAfter('So far', { isRetryable: true });
      throw Object.assign(new Error('the provider is down'), { isRetryable: true });
    };
    const call = asked({ models: { a: { ...scriptedModel([]), doStream } } });
    const result = await inItsTime(call, call.start());
    expect([result.responses[0]?.text, tries > 1]).toEqual(['So far', true]);
  });
});
