import type { LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { callModel, type ModelRequest } from '../../src/model/call.ts';
import type { Model } from '../../src/model/port.ts';
import type { ModelReply } from '../../src/run/reply.ts';
import { type TestClock, testClock } from '../../src/testing/index.ts';

export type Part = LanguageModelV4StreamPart;

export const finish: Part = {
  type: 'finish',
  finishReason: { unified: 'stop', raw: 'end_turn' },
  usage: {
    inputTokens: { total: 7, noCache: 4, cacheRead: 2, cacheWrite: 1 },
    outputTokens: { total: 3, text: 1, reasoning: 2 },
  },
};

export const finishedBy = (unified: 'length' | 'error' | 'interrupted' | 'tool-calls'): Part =>
  ({ ...finish, finishReason: { unified, raw: 'why' } }) as Part;

export const text = (delta: string, id = 't'): Part[] => [
  { type: 'text-start', id },
  { type: 'text-delta', id, delta },
  { type: 'text-end', id },
];

/** A model whose doStream is this function; what it returns may be anything. */
export function modelOf(doStream: (options: LanguageModelV4CallOptions) => unknown): Model {
  return { specificationVersion: 'v4', provider: 'fake', modelId: 'fake', supportedUrls: {}, doStream } as never;
}

export function streamOf(parts: readonly unknown[]): ReadableStream<Part> {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part as Part);
      controller.close();
    },
  });
}

/** A model that streams these parts, then closes. */
export const streaming = (...parts: unknown[]): Model => modelOf(async () => ({ stream: streamOf(parts) }));

/** A model that streams nothing by itself: the test does. */
export function drivenModel() {
  let controller: ReadableStreamDefaultController<Part> | undefined;
  const seen: { options?: LanguageModelV4CallOptions; cancelled?: unknown } = {};
  const stream = new ReadableStream<Part>({
    start: (given) => {
      controller = given;
    },
    cancel: (reason) => {
      seen.cancelled = reason;
    },
  });
  const model = modelOf(async (options) => {
    seen.options = options;
    return { stream };
  });
  const send = (...parts: Part[]) => parts.forEach((part) => void controller?.enqueue(part));
  return { model, seen, send, close: () => controller?.close() };
}

export function requestOf(extra: Partial<ModelRequest> = {}): ModelRequest & { clock: TestClock } {
  const clock = testClock();
  const signal = new AbortController().signal;
  return {
    system: '',
    messages: [],
    tools: [],
    signal,
    clock,
    firstChunkMs: 120_000,
    chunkGapMs: 60_000,
    ...extra,
  } as never;
}

export const replyOf = (...parts: unknown[]): Promise<ModelReply> => callModel(streaming(...parts), requestOf());

/** What became of a promise by now; it does not wait. */
export function watch<T>(promise: Promise<T>) {
  const state: { value?: T; error?: unknown; isSettled: boolean } = { isSettled: false };
  promise.then(
    (value) => Object.assign(state, { value, isSettled: true }),
    (error) => Object.assign(state, { error, isSettled: true }),
  );
  return state;
}
