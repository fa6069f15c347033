import { describe, expect, test } from 'vitest';
import { callModel } from '../../src/model/call.ts';
import { encodeMessage, enterMessage } from '../../src/values/message.ts';
import { enterAnswer } from '../../src/values/message-mark.ts';
import { finish, finishedBy, modelOf, replyOf, requestOf, streaming, text } from './fake-model.ts';

const call = (input: unknown, id = 'c1') => ({ type: 'tool-call', toolCallId: id, toolName: 'lookup', input });
const contentOf = async (...parts: unknown[]) => (await replyOf(...parts)).message.content;

describe('a reply', () => {
  test('joins the deltas of each block, and its parts are in the order in which they began (executor 17)', async () => {
    const parts = [
      { type: 'stream-start', warnings: [] },
      { type: 'reasoning-start', id: '0' },
      { type: 'text-start', id: '0' },
      { type: 'text-delta', id: '0', delta: 'Hel' },
      { type: 'reasoning-delta', id: '0', delta: 'thi' },
      { type: 'tool-input-start', id: 'c1', toolName: 'lookup' },
      { type: 'text-delta', id: '0', delta: 'lo' },
      { type: 'reasoning-delta', id: '0', delta: 'nk' },
      { type: 'text-end', id: '0' },
      ...text('after', '1'),
      { type: 'tool-input-delta', id: 'c1', delta: '{}' },
      { type: 'tool-input-end', id: 'c1' },
      call('{}'),
      finish,
    ];
    expect(await contentOf(...parts)).toEqual([
      { type: 'reasoning', text: 'think' },
      { type: 'text', text: 'Hello' },
      { type: 'tool-call', toolCallId: 'c1', toolName: 'lookup', input: {} },
      { type: 'text', text: 'after' },
    ]);
  });

  test('tells the finish reason and the usage', async () => {
    const { finishReason, usage } = await replyOf(...text('hi'), finish);
    expect(finishReason).toBe('stop');
    expect(usage).toEqual({
      inputTokens: 7,
      outputTokens: 3,
      reasoningTokens: 2,
      cacheReadTokens: 2,
      cacheWriteTokens: 1,
    });
  });

  test.for([
    undefined,
    null,
    {},
    {
      inputTokens: { total: undefined, cacheRead: Number.NaN, cacheWrite: -4 },
      outputTokens: { total: Infinity, reasoning: '9' },
    },
  ])('counts absent, negative and impossible usage as 0: %j', async (usage) => {
    const reply = await replyOf({ ...finish, usage });
    expect(Object.values(reply.usage)).toEqual([0, 0, 0, 0, 0]);
  });

  test('an unknown finish reason is "other"', async () => {
    expect((await replyOf({ ...finish, finishReason: undefined })).finishReason).toBe('other');
  });

  test('a block that reuses the id of one that ended is a new part', async () => {
    expect(await contentOf(...text('one'), ...text('two'), finish)).toEqual([
      { type: 'text', text: 'one' },
      { type: 'text', text: 'two' },
    ]);
  });

  test('a delta without a start begins its part', async () => {
    const delta = { type: 'text-delta', id: 'x', delta: 'hi' };
    expect(await contentOf(delta, delta, finish)).toEqual([{ type: 'text', text: 'hihi' }]);
  });

  test('empty text and empty reasoning are dropped, but not what carries metadata', async () => {
    const metadata = { anthropic: { redactedData: 'x' } };
    const redacted = [
      { type: 'reasoning-start', id: 'r', providerMetadata: metadata },
      { type: 'reasoning-end', id: 'r' },
    ];
    const empty = { type: 'reasoning-start', id: 'e' };
    expect(await contentOf(...text(''), empty, ...redacted, finish)).toEqual([
      { type: 'reasoning', text: '', providerOptions: metadata },
    ]);
  });

  test('is complete at the finish part, even when the stream never closes', async () => {
    const stream = new ReadableStream({
      start(controller) {
        for (const part of [...text('hi'), finish]) controller.enqueue(part);
      },
    });
    const model = { ...streaming(), doStream: async () => ({ stream }) };
    expect((await callModel(model as never, requestOf())).message.content).toEqual([{ type: 'text', text: 'hi' }]);
  });

  test('its stream is read to its end all the same, so that its source can finish', async () => {
    let isFinished = false;
    async function* source() {
      yield* [...text('hi'), finish];
      isFinished = true;
    }
    const request = requestOf();
    await callModel(
      modelOf(async () => ({ stream: ReadableStream.from(source()) })),
      request,
    );
    await request.clock.advance(0);
    expect(isFinished).toBe(true);
  });

  test('a stream that continues after its finish part is cancelled', async () => {
    let isCancelled = false;
    let isFirst = true;
    const stream = new ReadableStream({
      pull(controller) {
        controller.enqueue(isFirst ? finish : { type: 'ping' });
        isFirst = false;
      },
      cancel() {
        isCancelled = true;
      },
    });
    const request = requestOf();
    await callModel(
      modelOf(async () => ({ stream })),
      request,
    );
    await request.clock.advance(0);
    expect(isCancelled).toBe(true);
  });
});

describe('provider metadata', () => {
  test('comes back as provider options, byte for byte: the last of a block counts (executor 17)', async () => {
    const signature = {
      anthropic: { signature: 'EqQBCkYI\u0000…==\u2028', nested: { z: 1, a: [null, '\ud83d\ude00'] } },
    };
    const parts = [
      { type: 'reasoning-start', id: 'r', providerMetadata: { anthropic: { signature: 'early' } } },
      { type: 'reasoning-delta', id: 'r', delta: 'why' },
      { type: 'reasoning-delta', id: 'r', delta: '', providerMetadata: signature },
      { type: 'reasoning-end', id: 'r' },
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: 'hi' },
      { type: 'text-end', id: 't', providerMetadata: { openai: { itemId: 'msg_1' } } },
      { ...call('{"id":"1"}'), providerMetadata: { google: { thoughtSignature: 's' } } },
      finish,
    ];
    const content = await contentOf(...parts);
    expect(content).toEqual([
      { type: 'reasoning', text: 'why', providerOptions: signature },
      { type: 'text', text: 'hi', providerOptions: { openai: { itemId: 'msg_1' } } },
      {
        type: 'tool-call',
        toolCallId: 'c1',
        toolName: 'lookup',
        input: { id: '1' },
        providerOptions: { google: { thoughtSignature: 's' } },
      },
    ]);
    expect(JSON.stringify(content[0])).toContain(JSON.stringify(signature));
  });
});

describe('the input of a tool call', () => {
  test.for([
    ['{"id":"1","list":[1,null]}', { id: '1', list: [1, null] }],
    ['', {}],
    ['  \n', {}],
    ['"{\\"id\\":1}"', '{"id":1}'],
    ['{"id": tru', '{"id": tru'],
    ['not json', 'not json'],
  ] as const)('is parsed once; what is not JSON stays a string: %j', async ([input, parsed]) => {
    expect(await contentOf(call(input), finish)).toMatchObject([{ input: parsed }]);
  });

  test('that is missing where the reply was cut is not taken for "no input" (executor 7)', async () => {
    expect(await contentOf(call(''), finishedBy('length'))).toMatchObject([{ input: '' }]);
  });

  test('two calls of one id both stay', async () => {
    expect(await contentOf(call('{"n":1}'), call('{"n":2}'), finish)).toMatchObject([
      { input: { n: 1 } },
      { input: { n: 2 } },
    ]);
  });

  test('__proto__ in it is a key like any other', async () => {
    const [part] = await contentOf(call('{"__proto__":{"admin":true}}'), finish);
    const { input } = part as { input: Record<string, unknown> };
    expect(Object.keys(input)).toEqual(['__proto__']);
    expect(input.admin).toBeUndefined();
  });
});

describe('parts that the provider made', () => {
  test('files become JSON: bytes base64, URLs strings', async () => {
    const bytes = new Uint8Array([0, 1, 2, 255]).subarray(1);
    const parts = [
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: bytes } },
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AQI=' } },
      {
        type: 'reasoning-file',
        mediaType: 'image/png',
        data: { type: 'url', url: new URL('https://example.com/a b') },
      },
      { type: 'custom', kind: 'acme.block', providerMetadata: { acme: { n: 1 } } },
      { type: 'source', sourceType: 'url', id: 's', url: 'https://example.com' },
      finish,
    ];
    expect(await contentOf(...parts)).toEqual([
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AQL/' } },
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AQI=' } },
      { type: 'reasoning-file', mediaType: 'image/png', data: { type: 'url', url: 'https://example.com/a%20b' } },
      { type: 'custom', kind: 'acme.block', providerOptions: { acme: { n: 1 } } },
    ]);
  });

  test('calls that the provider ran keep their mark and their results; a preliminary result is replaced', async () => {
    const result = { type: 'tool-result', toolCallId: 's1', toolName: 'web_search' };
    const parts = [
      { ...call('{"q":"x"}', 's1'), toolName: 'web_search', providerExecuted: true },
      { ...result, result: { hits: 0 }, preliminary: true },
      ...text('found'),
      { ...result, result: { hits: 2 } },
      { ...result, toolCallId: 's2', result: 'plain' },
      { ...result, toolCallId: 's3', result: { code: 'busy' }, isError: true },
      finish,
    ];
    const part = { type: 'tool-result', toolName: 'web_search' };
    expect(await contentOf(...parts)).toEqual([
      { type: 'tool-call', toolCallId: 's1', toolName: 'web_search', input: { q: 'x' }, providerExecuted: true },
      { ...part, toolCallId: 's1', output: { type: 'json', value: { hits: 2 } } },
      { type: 'text', text: 'found' },
      { ...part, toolCallId: 's2', output: { type: 'text', value: 'plain' } },
      { ...part, toolCallId: 's3', output: { type: 'error-json', value: { code: 'busy' } } },
    ]);
  });
});

test('the message of a reply is frozen JSON: it enters with its mark, without another copy of its parts', async () => {
  const { message } = await replyOf(...text('hi'), finish);
  expect(Object.isFrozen(message.content[0])).toBe(true);
  const entered = enterAnswer(message, { model: 'acme/large' });
  expect(entered.content).toBe(message.content);
  expect(enterMessage(entered)).toBe(entered);
  expect(JSON.parse(encodeMessage(entered))).toEqual(entered);
});
