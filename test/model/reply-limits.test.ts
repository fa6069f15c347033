import { describe, expect, test } from 'vitest';
import { callModel } from '../../src/model/call.ts';
import type { ReplyLimits } from '../../src/model/reply-limits.ts';
import { hostOf, toolOf } from '../fixtures/host.ts';
import { finish, modelOf, type Part, requestOf, streaming, text } from './fake-model.ts';
import { modelFor } from './model-for.ts';

const limits: ReplyLimits = { maxReplyChars: 10_000, maxCallInputBytes: 1_000, maxCallsPerMessage: 20 };
const call = (toolCallId: string, input: unknown = '{}') => ({
  type: 'tool-call' as const,
  toolCallId,
  toolName: 'work',
  input,
});
const x = (count: number) => 'x'.repeat(count);

/** A stream that never ends by itself: the parts of each round come when they are read. */
function endless(round: (i: number) => readonly unknown[]) {
  const seen = { rounds: 0, isCancelled: false };
  const stream = new ReadableStream(
    {
      pull(controller) {
        for (const part of round(seen.rounds)) controller.enqueue(part);
        seen.rounds += 1;
      },
      cancel: () => {
        seen.isCancelled = true;
      },
    },
    { highWaterMark: 0 },
  );
  return { seen, stream };
}

const metadata = { provider: { signature: x(1_000) } };
const floods: Readonly<Record<string, (i: number) => readonly unknown[]>> = {
  text: () => text(x(1_000)),
  reasoning: () => [{ type: 'reasoning-delta', id: 'r', delta: x(1_000) }],
  'arguments of a call': () => [{ type: 'tool-input-delta', id: 'c', delta: x(1_000) }],
  'calls with arguments': (i) => [call(`c${i}`, JSON.stringify({ a: x(900) }))],
  sources: (i) => [{ type: 'source', sourceType: 'url', id: `s${i}`, url: `https://a.example/${x(1_000)}` }],
  files: () => [{ type: 'file', mediaType: 'image/png', data: { type: 'data', data: new Uint8Array(1_000) } }],
  'parts of the provider': () => [{ type: 'custom', kind: 'a.b', providerMetadata: metadata }],
  'metadata of blocks': (i) => [{ type: 'text-start', id: `t${i}`, providerMetadata: metadata }],
  'results of the provider': (i) => [
    { type: 'tool-result', toolCallId: `p${i}`, toolName: 'search', result: { text: x(1_000) } },
  ],
  'ids of blocks': (i) => [{ type: 'text-start', id: `${i}${x(1_000)}` }],
};

describe('a reply that passes a limit is not read any further', () => {
  test.for(Object.entries(floods))('an endless stream of %s ends the call with REPLY_TOO_LARGE', async ([, round]) => {
    const { stream, seen } = endless(round);
    const error = await callModel(
      modelOf(async () => ({ stream })),
      requestOf({ limits }),
    ).catch((thrown) => thrown);
    expect(error).toMatchObject({ code: 'REPLY_TOO_LARGE', message: expect.stringContaining('10000 characters') });
    expect(seen.isCancelled).toBe(true);
    expect(seen.rounds).toBeLessThan(15);
  });

  test('a model of an older specification is cut off as well, and asked to stop', async () => {
    for (const specificationVersion of ['v2', 'v3'] as const) {
      const { stream, seen } = endless((i) => [{ type: 'text-delta', id: `${i}`, delta: x(1_000) }]);
      const older = { ...modelOf(async () => ({ stream })), specificationVersion };
      const calling = callModel(modelFor({ fast: older } as never, 'fast'), requestOf({ limits }));
      await expect(calling).rejects.toMatchObject({ code: 'REPLY_TOO_LARGE' });
      expect(seen).toMatchObject({ isCancelled: true });
    }
  });

  test('so is a reply with too many calls, and one with endless empty parts', async () => {
    const many = Array.from({ length: 21 }, (_, i) => call(`c${i}`));
    await expect(callModel(streaming(...many, finish), requestOf({ limits }))).rejects.toMatchObject({
      code: 'REPLY_TOO_LARGE',
      message: expect.stringContaining('maxCallsPerMessage'),
    });
    const { stream } = endless((i) =>
      Array.from({ length: 1_000 }, (_, j) => ({ type: 'text-start', id: `${i}.${j}` })),
    );
    await expect(
      callModel(
        modelOf(async () => ({ stream })),
        requestOf({ limits }),
      ),
    ).rejects.toMatchObject({ code: 'REPLY_TOO_LARGE', message: expect.stringContaining('parts') });
  });

  test('a reply that just fits is read whole; metadata and preliminary results that are replaced count once', async () => {
    const deltas = Array.from({ length: 100 }, (_, i) => ({
      type: 'text-delta',
      id: 't',
      delta: x(80),
      providerMetadata: { a: { signature: `${i}`.padStart(1_000) } },
    }));
    const results = Array.from({ length: 100 }, (_, i) => ({
      type: 'tool-result',
      toolCallId: 'p',
      toolName: 'search',
      result: `${i}`.padStart(500),
      preliminary: i < 99,
    }));
    const { message } = await callModel(streaming(...deltas, ...results, finish), requestOf({ limits }));
    expect(message.content).toMatchObject([{ text: x(8_000) }, { type: 'tool-result' }]);
    const most = await callModel(streaming(...text(x(10_000)), finish), requestOf({ limits }));
    expect(most.message.content).toEqual([{ type: 'text', text: x(10_000) }]);
  });
});

describe('a run', () => {
  const hostile = (...parts: unknown[]) => {
    const seen = { calls: 0 };
    const model = modelOf(async () => {
      seen.calls += 1;
      return { stream: streamParts(seen.calls === 1 ? [...parts, finish] : [...text('done'), finish]) };
    });
    return { model, seen };
  };
  const streamParts = (parts: readonly unknown[]) =>
    new ReadableStream<Part>({
      start(controller) {
        for (const part of parts) controller.enqueue(part as Part);
        controller.close();
      },
    });

  test('ends with REPLY_TOO_LARGE in its result, and the model is not asked again', async () => {
    const { model, seen } = hostile(...text(x(4_000_001)));
    const result = await hostOf({ models: { fast: model } as never }).run();
    expect(result).toMatchObject({ status: 'error', error: { code: 'REPLY_TOO_LARGE', name: 'ReplyTooLargeError' } });
    expect(seen.calls).toBe(1);
  });

  test('has limits that a host may set in defaults', async () => {
    const { model } = hostile(call('a'), call('b'), call('c'));
    const result = await hostOf({ models: { fast: model } as never, defaults: { maxCallsPerMessage: 2 } }).run();
    expect(result.error?.code).toBe('REPLY_TOO_LARGE');
  });

  test('answers a call whose arguments are too large with an error that the model reads; the other calls run', async () => {
    const ran: unknown[] = [];
    const work = toolOf('work', 'once', async (input) => {
      ran.push(input);
      return 'ok';
    });
    const large = JSON.stringify({ a: x(2 ** 20) });
    const { model, seen } = hostile(
      { type: 'tool-input-start', id: 'large', toolName: 'work' },
      { type: 'tool-input-delta', id: 'large', delta: large },
      call('large', large),
      call('small', '{"a":1}'),
    );
    const host = hostOf({ models: { fast: model } as never, tools: [work] });
    const run = await host.start();
    const told: string[] = [];
    const listening = (async () => {
      for await (const event of run.events()) if (event.type === 'tool.done') told.push(event.callId);
    })();
    const { status, messages } = await run.result;
    await listening;
    expect(status).toBe('ok');
    expect(ran).toEqual([{ a: 1 }]);
    expect(seen.calls).toBe(2);
    expect(told.sort()).toEqual(['large', 'small']);
    expect(messages[1]?.content).toMatchObject([{ toolCallId: 'large', input: { omitted: expect.any(String) } }, {}]);
    expect(messages[2]?.content).toMatchObject([
      {
        toolCallId: 'large',
        output: { type: 'error-text', value: expect.stringMatching(/1048584 bytes.*maxCallInputBytes.*not run/) },
      },
      { toolCallId: 'small', output: { type: 'text', value: 'ok' } },
    ]);
    expect(JSON.stringify(messages).length).toBeLessThan(2_000);
  });

  test('continues after a message whose calls are all refused, and ends with TOOL_LOOP when the model sends nothing else', async () => {
    const large = JSON.stringify({ a: x(2_000) });
    const model = modelOf(async () => ({ stream: streamParts([call('c', large), finish]) }));
    const host = hostOf({
      models: { fast: model } as never,
      tools: [toolOf('work')],
      defaults: { maxCallInputBytes: 1_000 },
    });
    expect(await host.run()).toMatchObject({ status: 'error', iterations: 3, error: { code: 'TOOL_LOOP' } });
  });
});
