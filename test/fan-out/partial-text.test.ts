import type { Model } from 'pawl';
import { scriptedModel, stallAfter } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { toolOf } from '../fixtures/host.ts';
import { speakingModel } from '../fixtures/speaking-model.ts';
import { asked } from './asking.ts';

/** Its first turn is given by the test, in its second it falls silent in the middle of a word. */
function silentAfter(first: Model['doStream']) {
  const then = scriptedModel([stallAfter('Se')]);
  let turns = 0;
  const doStream: Model['doStream'] = (options) => (turns++ === 0 ? first(options) : then.doStream(options));
  return { ...then, doStream };
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

  test('fan-out 6: it is that of the turn in progress, without what was said beside earlier calls', async () => {
    const first = speakingModel(() => ({ text: 'Looking.', calls: [{ name: 'look' }] }));
    expect(await textOf(silentAfter((options) => first.doStream(options)))).toBe('Se');
  });

  test('fan-out 6: of a turn that broke off and is tried again it is the text of the new try', async () => {
    const broken = async () => {
      const { stream } = await scriptedModel([stallAfter('Wrong')]).doStream({ prompt: [] });
      const failure = Object.assign(new Error('the connection was reset'), { isRetryable: true });
      const parts = async function* () {
        let left = 3;
        for await (const part of stream) {
          yield part;
          left -= 1;
          if (left === 0) throw failure;
        }
      };
      return { stream: ReadableStream.from(parts()) as typeof stream };
    };
    expect(await textOf(silentAfter(broken))).toBe('Se');
  });
});
