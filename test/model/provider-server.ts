import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { callModel, type ModelRequest } from '../../src/model/call.ts';
import { failureOf } from '../../src/model/failure.ts';
import type { Model } from '../../src/model/port.ts';
import { type Retry, withRetries } from '../../src/model/retry.ts';
import { type Clock, systemClock } from '../../src/values/clock.ts';
import { enterMessage } from '../../src/values/message.ts';

export const providers = ['anthropic', 'openai-compatible'] as const;
export type Provider = (typeof providers)[number];

/** A model of the real provider package, at a server on loopback. */
export function modelAt(provider: Provider, url: string, fetch: typeof globalThis.fetch = globalThis.fetch): Model {
  const options = { baseURL: `${url}/v1`, apiKey: 'test', fetch };
  if (provider === 'anthropic') return createAnthropic(options)('claude-sonnet-4-5');
  return createOpenAICompatible({ ...options, name: 'local', includeUsage: true })('some-model');
}

/** The real time, 1,000 times as fast: a minute's silence on a real socket takes 60 ms. */
export const hastyClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now() * 1_000,
  setTimeout: (callback, ms) => setTimeout(callback, ms / 1_000),
  clearTimeout: (timer) => systemClock.clearTimeout(timer),
};
/** So long is a minute of the hasty clock. */
export const MINUTE = 60;
/** The real time that a busy machine may need to answer, as the hasty clock sees it. */
export const LAVISH = 50_000_000;

/** Asks as a run does, with retries; the time for them is lavish, so that a busy machine makes all of them. */
export async function ask(
  model: Model,
  { withinMs = LAVISH, ...extra }: Partial<ModelRequest> & { readonly withinMs?: number } = {},
) {
  const retries: Retry[] = [];
  const request: ModelRequest = {
    system: 'Be brief.',
    messages: [enterMessage({ role: 'user', content: [{ type: 'text', text: 'look up 7' }] })],
    tools: [
      { type: 'function', name: 'lookup', inputSchema: { type: 'object', properties: { id: { type: 'string' } } } },
    ],
    signal: new AbortController().signal,
    clock: hastyClock,
    firstChunkMs: LAVISH,
    chunkGapMs: LAVISH,
    ...extra,
  };
  const { signal, clock } = request;
  const onRetry = (retry: Retry) => retries.push(retry);
  const options = { signal, clock, random: () => 0, onRetry, withinMs };
  const outcome = await withRetries(() => callModel(model, request), options).then(
    (reply) => ({ reply }),
    (error: unknown) => ({ error, failure: failureOf(error, clock) }),
  );
  return { reply: undefined, error: undefined, failure: undefined, ...outcome, retries };
}

/** Whole SSE events of a reply, as each provider writes them. */
export interface Wire {
  readonly begin: readonly string[];
  text(delta: string): readonly string[];
  /** The beginning of a call of `lookup`, with this much of its arguments. */
  args(delta: string): readonly string[];
  readonly end: readonly string[];
}

const named = (event: { type: string }) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
const choice = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'r', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
const block = (content_block: object, delta: object) => [
  named({ type: 'content_block_start', index: 0, content_block } as never),
  named({ type: 'content_block_delta', index: 0, delta } as never),
];

export const wires: { readonly [provider in Provider]: Wire } = {
  anthropic: {
    begin: [
      named({
        type: 'message_start',
        message: {
          id: 'r',
          type: 'message',
          role: 'assistant',
          model: 'm',
          content: [],
          usage: { input_tokens: 1, output_tokens: 1 },
        },
      } as never),
    ],
    text: (text) => block({ type: 'text', text: '' }, { type: 'text_delta', text }),
    args: (partial_json) =>
      block({ type: 'tool_use', id: 'c', name: 'lookup', input: {} }, { type: 'input_json_delta', partial_json }),
    end: [
      named({ type: 'content_block_stop', index: 0 } as never),
      named({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } } as never),
      named({ type: 'message_stop' }),
    ],
  },
  'openai-compatible': {
    begin: [choice({ role: 'assistant', content: '' })],
    text: (content) => [choice({ content })],
    args: (args) => [
      choice({ tool_calls: [{ index: 0, id: 'c', type: 'function', function: { name: 'lookup', arguments: args } }] }),
    ],
    end: [choice({}, 'stop'), 'data: [DONE]\n\n'],
  },
};

export type Answer = (response: ServerResponse) => unknown;

/** Answers each request with the next of these; the last one serves all that follow. */
export async function serverOf(...answers: readonly Answer[]) {
  const open = new Set<ServerResponse>();
  let requests = 0;
  const server = createServer((request: IncomingMessage, response) => {
    const answer = answers[Math.min(requests++, answers.length - 1)] as Answer;
    open.add(response);
    response.on('close', () => open.delete(response));
    request.resume().on('end', () => answer(response));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    get requests() {
      return requests;
    },
    /** Resolves when no client is connected to an answer any more. */
    async isLeft() {
      while (open.size > 0) await sleep(1);
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await once(server.close(), 'close');
    },
  };
}

/** Writes the head of a stream and these events, then leaves it open. */
export function write(response: ServerResponse, ...events: readonly string[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write(events.join(''));
}
