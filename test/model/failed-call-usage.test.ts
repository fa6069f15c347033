import { describe, expect, test } from 'vitest';
import { callModel } from '../../src/model/call.ts';
import { spentBy } from '../../src/model/failed-call-usage.ts';
import { withRetries } from '../../src/model/retry.ts';
import { ModelError } from '../../src/values/errors.ts';
import { addUsage, noUsage, type Usage } from '../../src/values/usage.ts';
import { finish, finishedBy, modelOf, type Part, requestOf, streaming, streamOf, text } from './fake-model.ts';

const cost: Usage = { inputTokens: 7, outputTokens: 3, reasoningTokens: 2, cacheReadTokens: 2, cacheWriteTokens: 1 };
const times = (count: number) => Array(count).fill(cost).reduce(addUsage, noUsage);
const failureOf = (...parts: unknown[]) => callModel(streaming(...parts), requestOf()).catch((error: unknown) => error);

describe('what a failed model call cost', () => {
  test.for([
    ['one that was interrupted', [...text('half'), finishedBy('interrupted')]],
    ['one that ended in an error', [finishedBy('error')]],
    ['one that ended within the arguments of a call', [{ type: 'tool-input-start', id: 'a', toolName: 't' }, finish]],
    [
      'one that was cut by its length within them',
      [{ type: 'tool-input-start', id: 'a', toolName: 't' }, finishedBy('length')],
    ],
    ['one that holds what JSON cannot', [{ ...text('x')[0], providerMetadata: { a: { when: new Date() } } }, finish]],
  ] as const)('is known of %s, since it reported it', async ([, parts]) => {
    const error = await failureOf(...parts);
    expect(error).toBeInstanceOf(ModelError);
    expect(spentBy(error)).toEqual(cost);
  });

  test.for([
    ['a stream that broke off', text('half')],
    ['a stream that reported an error', [{ type: 'error', error: new Error('down') }]],
    ['one that reported nothing', [{ ...finishedBy('error'), usage: undefined }]],
  ] as const)('is not known of %s', async ([, parts]) => {
    expect(spentBy(await failureOf(...parts))).toBeUndefined();
  });

  test('is not known where the report cannot be read: the call is still a failed call and nothing more', async () => {
    const usage = { get: () => JSON.parse('not JSON') };
    const error = await failureOf(Object.defineProperty({ ...finish }, 'usage', usage));
    expect(error).toBeInstanceOf(ModelError);
    expect(spentBy(error)).toBeUndefined();
  });

  test('is asked of anything without harm', () => {
    for (const value of [undefined, null, 'x', 7, Object.freeze(new Error('x'))])
      expect(spentBy(value)).toBeUndefined();
  });
});

/** A model that gives these answers one after the other, and what was spent on those that failed. */
async function spentWith(answers: readonly (readonly Part[])[], options: { attempts?: number } = {}) {
  let spent = noUsage;
  const left = [...answers];
  const model = modelOf(async () => ({ stream: streamOf(left.shift() ?? [finish]) }));
  const request = requestOf();
  const call = withRetries(() => callModel(model, request), {
    ...request,
    ...options,
    random: () => 0,
    onSpent: (usage) => {
      spent = addUsage(spent, usage);
    },
  });
  const outcome = call.then(
    ({ usage }) => ({ usage }),
    (error: unknown) => ({ error }),
  );
  await request.clock.advance(120_000);
  return { ...(await outcome), spent };
}

describe('retries tell what the attempts before the answer cost', () => {
  const half = [finishedBy('interrupted')];

  test('each failed attempt that reported it, and not the answer itself', async () => {
    expect(await spentWith([half, half, [finish]])).toEqual({ usage: cost, spent: times(2) });
    expect(await spentWith([text('broken off'), half, [finish]])).toEqual({ usage: cost, spent: times(1) });
    expect(await spentWith([[finish]])).toEqual({ usage: cost, spent: noUsage });
  });

  test('the last attempt too, when it was the last', async () => {
    expect(await spentWith(Array(5).fill(half))).toMatchObject({ error: { code: 'MODEL' }, spent: times(5) });
    expect(await spentWith([half, half], { attempts: 1 })).toMatchObject({ error: { code: 'MODEL' }, spent: times(1) });
    const failed = [finishedBy('error')];
    expect(await spentWith(Array(5).fill(failed))).toMatchObject({ error: { code: 'MODEL' }, spent: times(5) });
  });

  test('also when the run is stopped while the next attempt is waited for', async () => {
    const controller = new AbortController();
    const request = requestOf({ signal: controller.signal });
    const seen: Usage[] = [];
    const call = withRetries(() => callModel(streaming(...half), request), {
      ...request,
      random: () => 1,
      onSpent: (usage) => seen.push(usage),
    });
    await request.clock.advance(0);
    controller.abort(new Error('deploy'));
    await expect(call).rejects.toThrow('deploy');
    expect(seen).toEqual([cost]);
  });
});
