import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { LLMock } from '@copilotkit/aimock';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { callModel, type ModelRequest } from '../../src/model/call.ts';
import type { Model } from '../../src/model/port.ts';
import type { ReplyPiece } from '../../src/model/reply-pieces.ts';
import { systemClock } from '../../src/values/clock.ts';
import { enterMessage, type Message, textOf, toolCallsOf } from '../../src/values/message.ts';
import { shownBy } from './shown-pieces.ts';

const server = new LLMock({ port: 0 });
/** The bodies of the requests, as the provider packages wrote them. */
const sent: string[] = [];
const recordingFetch: typeof fetch = (input, init) => {
  sent.push(String(init?.body));
  return fetch(input, init);
};
let models: { [provider: string]: Model } = {};

beforeAll(async () => {
  await server.start();
  const baseURL = `${server.url}/v1`;
  models = {
    anthropic: createAnthropic({ baseURL, apiKey: 'test', fetch: recordingFetch })('claude-sonnet-4-5'),
    'openai-compatible': createOpenAICompatible({ name: 'local', baseURL, apiKey: 'test', includeUsage: true })(
      'some-model',
    ),
  };
});
beforeEach(() => server.reset());
afterAll(() => server.stop());

const user = enterMessage({ role: 'user', content: [{ type: 'text', text: 'look up 7' }] });
const tool = {
  type: 'function' as const,
  name: 'lookup',
  inputSchema: { type: 'object' as const, properties: { id: { type: 'string' as const } } },
};
const ask = (provider: string, messages: readonly Message[], extra: Partial<ModelRequest> = {}) =>
  callModel(models[provider] as Model, {
    system: 'Be brief.',
    messages,
    tools: [tool],
    signal: new AbortController().signal,
    clock: systemClock,
    firstChunkMs: 10_000,
    chunkGapMs: 10_000,
    ...extra,
  });
const result = (toolCallId: string) =>
  enterMessage({
    role: 'tool',
    content: [
      { type: 'tool-result', toolCallId, toolName: 'lookup', output: { type: 'json', value: { name: 'Ann' } } },
    ],
  });
const lookUp = {
  toolCalls: [{ name: 'lookup', arguments: '{"id":"7"}' }],
  reasoning: 'I must look.',
  reasoningSignature: 'c2lnbmF0dXJl==',
  usage: { prompt_tokens: 11, completion_tokens: 4, input_tokens: 11, output_tokens: 4 },
};

describe.each(['anthropic', 'openai-compatible'])('over HTTP, with the provider package for %s', (provider) => {
  test('a tool call and its result go there and back', async () => {
    server.on({ hasToolResult: false }, lookUp).on({ hasToolResult: true }, { content: 'It is Ann.' });
    const first = await ask(provider, [user]);
    const [call] = toolCallsOf(first.message);
    expect(call).toMatchObject({ toolName: 'lookup', input: { id: '7' } });
    expect(first.finishReason).toBe('tool-calls');
    expect(first.usage).toMatchObject({ inputTokens: 11, outputTokens: 4 });
    const pieces: ReplyPiece[] = [];
    const onPiece = (piece: ReplyPiece) => void pieces.push(piece);
    const second = await ask(provider, [user, first.message, result(call?.toolCallId ?? '')], { onPiece });
    expect(textOf(second.message)).toBe('It is Ann.');
    expect(shownBy(pieces).at(-1)).toBe('It is Ann.');
    expect(shownBy(pieces)).toHaveLength(second.message.content.length);
  });

  test('pieces show the arguments of a call at its place in the message', async () => {
    server.on({}, lookUp);
    const pieces: ReplyPiece[] = [];
    const { message } = await ask(provider, [user], { onPiece: (piece) => void pieces.push(piece) });
    const shown = shownBy(pieces);
    const at = message.content.findIndex(({ type }) => type === 'tool-call');
    expect(JSON.parse(shown[at] ?? '')).toEqual({ id: '7' });
    for (const [block, part] of message.content.slice(0, at).entries()) {
      expect(shown[block] ?? '').toBe('text' in part ? part.text : '');
    }
  });

  test('a stream that breaks off is a ModelError: cut arguments never become a call (executor 7)', async () => {
    const args = JSON.stringify({ id: 'x'.repeat(200) });
    server.on({}, { toolCalls: [{ name: 'lookup', arguments: args }] }, { chunkSize: 10, truncateAfterChunks: 6 });
    await expect(ask(provider, [user])).rejects.toMatchObject({ code: 'MODEL' });
  });

  test('a refusal of the server keeps its status and headers in the cause', async () => {
    server.nextRequestError(529, { message: 'Overloaded', type: 'overloaded_error' });
    await expect(ask(provider, [user])).rejects.toMatchObject({
      code: 'MODEL',
      message: expect.stringMatching(/Overloaded/),
      cause: { statusCode: 529, isRetryable: true, responseHeaders: expect.anything() },
    });
  });

  test('a silent server is a stall (executor 7)', async () => {
    server.on({}, { content: 'too late' }, { latency: 60_000 });
    await expect(ask(provider, [user], { firstChunkMs: 50 })).rejects.toMatchObject({ code: 'MODEL_STALLED' });
  });
});

test('the signature of a thinking block goes back to the provider byte for byte (executor 17)', async () => {
  server.on({ hasToolResult: false }, lookUp).on({ hasToolResult: true }, { content: 'ok' });
  const first = await ask('anthropic', [user]);
  const [call] = toolCallsOf(first.message);
  await ask('anthropic', [user, first.message, result(call?.toolCallId ?? '')]);
  const block = { type: 'thinking', thinking: 'I must look.', signature: 'c2lnbmF0dXJl==' };
  expect(sent.at(-1)).toContain(JSON.stringify(block));
});
