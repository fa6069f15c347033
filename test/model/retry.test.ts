import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { callModel } from '../../src/model/call.ts';
import { brokenOff, failureOf, refusedHere } from '../../src/model/failure.ts';
import { type Retry, type RetryOptions, withRetries } from '../../src/model/retry.ts';
import { testClock } from '../../src/testing/index.ts';
import { pause } from '../../src/values/backoff.ts';
import { ModelError, ModelStalledError, ReplyTooLargeError, ShutdownError } from '../../src/values/errors.ts';
import { finish, finishedBy, modelOf, requestOf, streamOf, text, watch } from './fake-model.ts';

const overloaded = new ModelError('overloaded', { cause: { statusCode: 529 } });
const refused = (headers: object) =>
  new ModelError('slow down', { cause: { statusCode: 429, responseHeaders: headers } });

/** A call that fails with these errors, one after the other, and then succeeds. */
function retried(errors: readonly unknown[], extra: Partial<RetryOptions> = {}) {
  const clock = testClock(Date.UTC(2026, 0, 1));
  const retries: Retry[] = [];
  const madeAt: number[] = [];
  const call = () => {
    const position = madeAt.push(clock.monotonic()) - 1;
    return position < errors.length ? Promise.reject(errors[position]) : Promise.resolve('reply');
  };
  const { signal } = new AbortController();
  const onRetry = (retry: Retry) => retries.push(retry);
  const outcome = watch(withRetries(call, { signal, clock, random: () => 0.5, onRetry, ...extra }));
  return { clock, retries, madeAt, outcome };
}

describe('a model call that fails in a way that may pass is made again (executor 8)', () => {
  test('after a backoff that doubles and is jittered in full', async () => {
    const { clock, madeAt, outcome, retries } = retried([overloaded, overloaded, overloaded], { attempts: 4 });
    await clock.advance(499);
    expect(madeAt).toEqual([0]);
    await clock.advance(3_001);
    expect(outcome.value).toBe('reply');
    expect(madeAt).toEqual([0, 500, 1_500, 3_500]);
    expect(retries.map(({ attempt, delayMs }) => [attempt, delayMs])).toEqual([
      [2, 500],
      [3, 1_000],
      [4, 2_000],
    ]);
    const still = retried([overloaded], { random: () => 0 });
    await still.clock.advance(0);
    expect(still.outcome.value).toBe('reply');
  });

  test('the backoff grows up to eight seconds (waiting 28)', async () => {
    const { clock, retries } = retried(
      Array.from({ length: 9 }, () => overloaded),
      {
        attempts: 8,
        random: () => 0.999_999,
      },
    );
    await clock.advance(60_000);
    expect(retries.map(({ delayMs }) => delayMs)).toEqual([1_000, 2_000, 4_000, 8_000, 8_000, 8_000, 8_000]);
  });

  test('each retry is reported before its wait, with the failure as plain data', async () => {
    const { clock, retries } = retried([overloaded]);
    await clock.advance(0);
    expect(retries).toEqual([
      {
        attempt: 2,
        delayMs: 500,
        error: { name: 'ModelError', code: 'MODEL', message: 'overloaded', cause: expect.anything() },
        status: 529,
      },
    ]);
  });

  test('five times at most; the last error says so and keeps its cause (waiting 28)', async () => {
    const last = new ModelError('still overloaded', { cause: new Error('529') });
    Object.assign(last, { isRetryable: true });
    const { clock, madeAt, outcome, retries } = retried([...Array(4).fill(overloaded), last, overloaded]);
    await clock.advance(60_000);
    expect(madeAt.length).toBe(5);
    expect(retries.length).toBe(4);
    expect(outcome.error).toBeInstanceOf(ModelError);
    expect(outcome.error).toMatchObject({ message: 'still overloaded (after 5 attempts)', cause: last.cause });
  });

  test('the last error says of another attempt what the original one says (waiting 28, 29)', async () => {
    const overloadedFor = (seconds: string) =>
      new ModelError('x', { cause: { statusCode: 529, responseHeaders: { 'retry-after': seconds } } });
    const broken = brokenOff('the stream broke off');
    for (const error of [overloadedFor('3'), overloadedFor('90'), broken, new ModelStalledError('x')]) {
      const { clock, outcome } = retried(Array(9).fill(error));
      await clock.advance(200_000);
      expect(outcome.error).not.toBe(error);
      expect(failureOf(outcome.error, clock)).toEqual(failureOf(error, clock));
      expect(failureOf(outcome.error, clock).kind).toBe('passing');
    }
  });

  test('no attempt begins later than modelRetryMs after the first failure (waiting 28)', async () => {
    const { clock, madeAt, outcome } = retried(Array(99).fill(overloaded), { attempts: 99, withinMs: 20_000 });
    await clock.advance(60_000);
    expect(madeAt).toEqual([0, 500, 1_500, 3_500, 7_500, 11_500, 15_500, 19_500, 20_000]);
    expect(outcome.error).toMatchObject({ message: 'overloaded (after 9 attempts; modelRetryMs is over)' });
  });

  test('an answer that breaks off after minutes is tried again: the time counts from the first failure (waiting 28)', async () => {
    const clock = testClock();
    const { signal } = new AbortController();
    let asked = 0;
    const call = async () => {
      asked += 1;
      await pause(300_000, clock, signal);
      throw overloaded;
    };
    const outcome = watch(withRetries(call, { signal, clock, random: () => 0 }));
    await clock.advance(1_200_000);
    expect(asked).toBe(2);
    expect(outcome.error).toMatchObject({ message: 'overloaded (after 2 attempts; modelRetryMs is over)' });
  });

  test('a model that stalls each time stays MODEL_STALLED', async () => {
    const { clock, outcome } = retried(Array(5).fill(new ModelStalledError('nothing for 5 ms')));
    await clock.advance(60_000);
    expect(outcome.error).toMatchObject({ code: 'MODEL_STALLED', message: 'nothing for 5 ms (after 5 attempts)' });
  });

  test.for([
    ['final', 400],
    ['blocked', 401],
  ] as const)('a %s failure ends the retries (waiting 28)', async ([kind, statusCode]) => {
    const wrong = new ModelError('no', { cause: { statusCode } });
    const { clock, madeAt, outcome } = retried([overloaded, wrong]);
    await clock.advance(60_000);
    expect(madeAt.length).toBe(2);
    expect(outcome.error).toMatchObject({ message: 'no (after 2 attempts)', cause: { statusCode } });
    expect(failureOf(outcome.error, clock)).toEqual({ kind });
  });

  test('a failure that is final at once stays the very error it is', async () => {
    for (const error of [refusedHere('no'), { statusCode: 400 }, new ReplyTooLargeError('no')]) {
      const { clock, madeAt, outcome } = retried([error]);
      await clock.advance(60_000);
      expect(madeAt).toEqual([0]);
      expect(Object.is(outcome.error, error)).toBe(true);
    }
  });
});

const stamp = Date.UTC(2026, 0, 1);

describe('the time that a provider asks for is waited, and the jitter on top (executor 8)', () => {
  test.for([
    ['seconds', { 'retry-after': '7' }, 7_000],
    ['parts of seconds', { 'retry-after': '1.5' }, 1_500],
    ['a date', { 'retry-after': new Date(stamp + 9_000).toUTCString() }, 9_000],
    ['a date that has passed', { 'retry-after': new Date(stamp - 9_000).toUTCString() }, 0],
    ['milliseconds, which are more exact', { 'retry-after-ms': '250', 'retry-after': '1' }, 250],
    ['nothing', {}, 0],
    ['nonsense', { 'retry-after': 'soon', 'retry-after-ms': '-4' }, 0],
    ['no strings', { 'retry-after': 9, 'retry-after-ms': null }, 0],
  ] as const)('%s', async ([, headers, asked]) => {
    const { clock, madeAt } = retried([refused(headers)]);
    await clock.advance(asked + 499);
    expect(madeAt).toEqual([0]);
    await clock.advance(1);
    expect(madeAt).toEqual([0, asked + 500]);
  });

  test('up to the end of modelRetryMs, and then without jitter (waiting 28)', async () => {
    const { clock, madeAt } = retried([refused({ 'retry-after': '60' })]);
    await clock.advance(60_000);
    expect(madeAt).toEqual([0, 60_000]);
  });

  test('a longer one than what is left of modelRetryMs ends the attempts at once (waiting 28)', async () => {
    const slow = refused({ 'retry-after': '35' });
    const { clock, madeAt, outcome } = retried([slow, slow]);
    await clock.advance(35_500);
    expect(madeAt).toEqual([0, 35_500]);
    expect(outcome.error).toMatchObject({
      message: 'slow down (after 2 attempts; the provider asks for a wait of 35000 ms, which is too long)',
    });
  });

  test('more than a minute is not waited: the error says why', async () => {
    const { clock, outcome, retries } = retried([refused({ 'retry-after': '61' })]);
    await clock.advance(0);
    expect(retries).toEqual([]);
    expect(outcome.error).toMatchObject({
      code: 'MODEL',
      message: 'slow down (after 1 attempt; the provider asks for a wait of 61000 ms, which is too long)',
    });
  });
});

describe('an abort (executor 5)', () => {
  const reason = new ShutdownError('deploy');

  test('during a wait ends it at once with its reason, and leaves no timer and no listener', async () => {
    const controller = new AbortController();
    const { clock, madeAt, outcome } = retried([overloaded], { signal: controller.signal });
    await clock.advance(100);
    expect(clock.pending).toBe(1);
    controller.abort(reason);
    await Promise.resolve();
    await Promise.resolve();
    expect(outcome.error).toBe(reason);
    expect(clock.pending).toBe(0);
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
    await clock.advance(60_000);
    expect(madeAt).toEqual([0]);
  });

  test('or during the call, for a reason that looks as if it might pass, is no failure to retry', async () => {
    const busy = Object.assign(new Error('busy'), { statusCode: 503 });
    const { clock, outcome, retries } = retried([busy], { signal: AbortSignal.abort(busy) });
    await clock.advance(60_000);
    expect(retries).toEqual([]);
    expect(outcome.error).toBe(busy);
  });

  test('by the observer of the retry counts too', async () => {
    const controller = new AbortController();
    const { clock, outcome } = retried([overloaded], {
      signal: controller.signal,
      onRetry: () => controller.abort(reason),
    });
    await clock.advance(0);
    expect(outcome.error).toBe(reason);
    expect(clock.pending).toBe(0);
  });

  test('a wait that ended leaves nothing either', async () => {
    const { signal } = new AbortController();
    const { clock, outcome } = retried([overloaded], { signal });
    await clock.advance(500);
    expect(outcome.value).toBe('reply');
    expect([clock.pending, getEventListeners(signal, 'abort').length]).toEqual([0, 0]);
  });
});

describe('how often a model is asked that answers with (executor 7, 8)', () => {
  const half = [
    { type: 'tool-input-start', id: 'c', toolName: 'pay' },
    { type: 'tool-input-delta', id: 'c', delta: '{"to":' },
  ];
  const replies: readonly (readonly [title: string, doStream: () => unknown, attempts: number])[] = [
    ['a stream that breaks off', () => ({ stream: streamOf(text('half')) }), 5],
    ['an interrupted reply', () => ({ stream: streamOf([...text('half'), finishedBy('interrupted')]) }), 5],
    ['arguments that break off', () => ({ stream: streamOf([...half, finish]) }), 5],
    ['arguments cut by the length limit', () => ({ stream: streamOf([...half, finishedBy('length')]) }), 2],
    ['a reply that ends in an error', () => ({ stream: streamOf([finishedBy('error')]) }), 5],
    [
      'an error part that may pass',
      () => ({ stream: streamOf([{ type: 'error', error: { message: 'busy', isRetryable: true } }]) }),
      5,
    ],
    ['an error part of unknown kind', () => ({ stream: streamOf([{ type: 'error', error: 'busy' }]) }), 5],
    ['silence', () => new Promise(() => {}), 5],
    ['a model that is none', () => null, 5],
  ];
  test.for(replies)('%s', async ([, doStream, attempts]) => {
    let asked = 0;
    const request = requestOf({ firstChunkMs: 1_000 });
    const model = modelOf(async () => {
      asked += 1;
      return doStream();
    });
    const { signal, clock } = request;
    const outcome = watch(withRetries(() => callModel(model, request), { signal, clock }));
    await request.clock.advance(60_000);
    expect([asked, outcome.isSettled]).toEqual([attempts, true]);
    expect(clock).toHaveProperty('pending', 0);
  });
});
