import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { callModel } from '../../src/model/call.ts';
import { ModelError, ShutdownError } from '../../src/values/errors.ts';
import { drivenModel, finish, modelOf, requestOf, streaming, text, watch } from './fake-model.ts';

const never = new Promise<never>(() => {});

describe('an abort ends the call at once with its reason (executor 5)', () => {
  const reason = new ShutdownError('deploy');

  test('before the call: the model is not even asked', async () => {
    let asked = 0;
    const model = modelOf(() => asked++);
    await expect(callModel(model, requestOf({ signal: AbortSignal.abort(reason) }))).rejects.toBe(reason);
    expect(asked).toBe(0);
  });

  test('also when the model ignores its signal, and at any point of the call', async () => {
    const silent = drivenModel();
    for (const model of [modelOf(() => never), silent.model]) {
      const controller = new AbortController();
      const request = requestOf({ signal: controller.signal });
      const call = watch(callModel(model, request));
      await request.clock.advance(0);
      controller.abort(reason);
      await Promise.resolve();
      expect(call.error).toBe(reason);
    }
    expect(silent.seen.cancelled).toBe(reason);
    expect(silent.seen.options?.abortSignal?.reason).toBe(reason);
  });

  test.for([
    ['null', null],
    ['undefined becomes an AbortError', undefined],
    ['a string', 'stop'],
  ] as const)('with any reason: %s', async ([, given]) => {
    const controller = new AbortController();
    const call = watch(
      callModel(
        modelOf(() => never),
        requestOf({ signal: controller.signal }),
      ),
    );
    controller.abort(given);
    await Promise.resolve();
    expect(call.isSettled).toBe(true);
    expect(call.error).toBe(controller.signal.reason);
  });

  test('from within the observer of pieces', async () => {
    const controller = new AbortController();
    const request = requestOf({ signal: controller.signal, onPiece: () => controller.abort(reason) });
    await expect(callModel(streaming(...text('hi'), finish), request)).rejects.toBe(reason);
  });

  test('what comes after it is dropped: a late rejection, a late stream, a cancel that fails', async () => {
    const late = Promise.withResolvers<unknown>();
    let cancelled: unknown;
    const cancel = (why: unknown) => {
      cancelled = why;
      throw new Error('cannot cancel');
    };
    const settlers = [
      () => late.promise,
      () => Promise.resolve({ stream: new ReadableStream({ cancel }) }),
      () => new Promise((_, reject) => setImmediate(() => reject(new Error('late')))),
    ];
    for (const settler of settlers) {
      const controller = new AbortController();
      const request = requestOf({ signal: controller.signal });
      const call = watch(callModel(modelOf(settler), request));
      if (settler === settlers[1]) await request.clock.advance(0);
      controller.abort(reason);
      if (settler === settlers[0]) late.resolve({ stream: new ReadableStream({ cancel }) });
      await request.clock.advance(0);
      expect(call.error).toBe(reason);
      if (settler === settlers[0]) expect(cancelled).toBe(reason);
      cancelled = undefined;
    }
  });
});

describe('after a call nothing is left behind (executor 5)', () => {
  test.for([
    ['a reply', streaming(...text('hi'), finish)],
    ['a failure', modelOf(() => Promise.reject(new ModelError('down')))],
    ['a broken stream', streaming(...text('hi'))],
  ] as const)('%s: no listener on the signal, no timer', async ([, model]) => {
    const controller = new AbortController();
    const request = requestOf({ signal: controller.signal });
    await callModel(model, request).catch(() => {});
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
    expect(request.clock.pending).toBe(0);
  });

  test('a stall, an abort: no listener on the signal, no timer', async () => {
    const controller = new AbortController();
    const request = requestOf({ signal: controller.signal });
    const stalled = watch(
      callModel(
        modelOf(() => never),
        request,
      ),
    );
    await request.clock.advance(120_000);
    const aborted = watch(
      callModel(
        modelOf(() => never),
        request,
      ),
    );
    controller.abort();
    await request.clock.advance(0);
    expect([stalled.isSettled, aborted.isSettled]).toEqual([true, true]);
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
    expect(request.clock.pending).toBe(0);
  });
});
