import { describe, expect, test } from 'vitest';
import { callModel } from '../../src/model/call.ts';
import { ModelStalledError } from '../../src/values/errors.ts';
import { drivenModel, finish, modelOf, type Part, requestOf, streaming, text, watch } from './fake-model.ts';

const delta = (value: string): Part => ({ type: 'text-delta', id: 't', delta: value });
const never = new Promise<never>(() => {});

describe('a model that falls silent ends as MODEL_STALLED on time (executor 7, faults 18)', () => {
  test('when doStream never answers', async () => {
    const request = requestOf({ firstChunkMs: 5_000, chunkGapMs: 1_000 });
    const call = watch(
      callModel(
        modelOf(() => never),
        request,
      ),
    );
    await request.clock.advance(4_999);
    expect(call.isSettled).toBe(false);
    await request.clock.advance(1);
    expect(call.error).toBeInstanceOf(ModelStalledError);
    expect(String(call.error)).toMatch(/nothing for 5000 ms \(firstChunkMs\)/);
  });

  test('before the first content, after any other parts', async () => {
    const { model, send } = drivenModel();
    const request = requestOf({ firstChunkMs: 5_000, chunkGapMs: 2_000 });
    const call = watch(callModel(model, request));
    for (let second = 0; second < 5; second++) {
      expect(call.isSettled).toBe(false);
      send({ type: 'stream-start', warnings: [] }, { type: 'ping' }, { type: 'raw', rawValue: 1 }, delta(''));
      send({ type: 'response-metadata', id: 'r' }, { type: 'custom', kind: 'acme.message-start' });
      await request.clock.advance(1_000);
    }
    expect(call.error).toBeInstanceOf(ModelStalledError);
  });

  test.for([
    ['', 1_000],
    [' that begins after longer than a gap', 4_000],
  ] as const)(
    'in the middle of a text%s: the gap counts from the last content, not from the last keep-alive',
    async ([, beginsMs]) => {
      const { model, send, seen } = drivenModel();
      const request = requestOf({ firstChunkMs: 10_000, chunkGapMs: 3_000 });
      const call = watch(callModel(model, request));
      await request.clock.advance(beginsMs);
      send({ type: 'text-start', id: 't' }, delta('half'));
      await request.clock.advance(2_000);
      send({ type: 'ping' });
      await request.clock.advance(999);
      expect(call.isSettled).toBe(false);
      await request.clock.advance(1);
      expect(String(call.error)).toMatch(/nothing for 3000 ms \(chunkGapMs\)/);
      expect(seen.options?.abortSignal?.reason).toBe(call.error);
      expect(seen.cancelled).toBe(call.error);
    },
  );

  test('in the middle of tool arguments', async () => {
    const { model, send } = drivenModel();
    const request = requestOf();
    const call = watch(callModel(model, request));
    send(
      { type: 'tool-input-start', id: 'c', toolName: 'pay' },
      { type: 'tool-input-delta', id: 'c', delta: '{"to":' },
    );
    await request.clock.advance(60_000);
    expect(call.error).toBeInstanceOf(ModelStalledError);
  });

  test('when it sends one byte a minute', async () => {
    const { model, send } = drivenModel();
    const request = requestOf();
    const call = watch(callModel(model, request));
    const drip = () => {
      if (!call.isSettled) send(delta('x'));
      request.clock.setTimeout(drip, 60_000);
    };
    request.clock.setTimeout(drip, 60_000);
    await request.clock.advance(180_000);
    expect(call.error).toBeInstanceOf(ModelStalledError);
  });

  test('content that comes after its deadline is late, even where no timer has come to fire', async () => {
    const { model, send } = drivenModel();
    const request = requestOf();
    let blockedMs = 0;
    const clock = { ...request.clock, monotonic: () => request.clock.monotonic() + blockedMs };
    const call = watch(callModel(model, { ...request, clock }));
    send(delta('x'));
    await request.clock.advance(0);
    blockedMs = 60_000;
    send(delta('x'), finish);
    await request.clock.advance(0);
    expect(call.error).toBeInstanceOf(ModelStalledError);
  });

  test('but not while content keeps coming within the gap, however long it takes', async () => {
    const { model, send } = drivenModel();
    const request = requestOf();
    const call = watch(callModel(model, request));
    for (let i = 0; i < 10; i++) {
      await request.clock.advance(59_000);
      send(delta('x'));
    }
    send(finish);
    await request.clock.advance(0);
    expect(call.value?.message.content).toEqual([{ type: 'text', text: 'xxxxxxxxxx' }]);
  });

  test('a wall clock that jumps changes nothing', async () => {
    const request = requestOf();
    const call = watch(
      callModel(
        modelOf(() => never),
        request,
      ),
    );
    request.clock.wallJump(1e9);
    await request.clock.advance(119_999);
    expect(call.isSettled).toBe(false);
    await request.clock.advance(1);
    expect(call.isSettled).toBe(true);
  });
});

test('a call sets one timer, not one a chunk', async () => {
  const request = requestOf();
  let timers = 0;
  const clock = {
    ...request.clock,
    setTimeout: (callback: () => void, ms: number) => {
      timers++;
      return request.clock.setTimeout(callback, ms);
    },
  };
  await callModel(streaming(...Array.from({ length: 100 }, () => text('x')).flat(), finish), { ...request, clock });
  expect(timers).toBe(1);
});

test('a stream that has everything ready lets timers and others run in between', async () => {
  let isPulled = true;
  const stream = new ReadableStream({ pull: (controller) => void (isPulled && controller.enqueue(delta('x'))) });
  const controller = new AbortController();
  const call = callModel(
    modelOf(() => ({ stream })),
    requestOf({ signal: controller.signal }),
  );
  setImmediate(() => controller.abort(new Error('enough')));
  await expect(call).rejects.toThrow('enough');
  isPulled = false;
});
