import { describe, expect, test } from 'vitest';
import { callModel } from '../../src/model/call.ts';
import type { Models } from '../../src/model/port.ts';
import { type Message, textOf } from '../../src/values/message.ts';
import { requestOf, text, watch } from './fake-model.ts';
import { modelFor } from './model-for.ts';
import { finishes, older, sentTo } from './older-model.ts';

describe.each(['v3', 'v2'] as const)('a model of spec %s', (version) => {
  test('serves a tier, adapted once (api, models)', () => {
    const { model, adapter } = older(version);
    const models = { fast: model } as unknown as Models;
    expect(modelFor(models, 'fast')).toBe(adapter);
    expect(modelFor(() => model as never, 'deep')).toBe(adapter);
    expect(adapter).toMatchObject({ specificationVersion: 'v4', provider: 'older', modelId: 'older-1' });
    expect(adapter.supportedUrls).toBe(model.supportedUrls);
  });

  test('answers with text, reasoning, calls and usage (api, models)', async () => {
    const parts = [
      { type: 'stream-start', warnings: [] },
      { type: 'reasoning-start', id: 'r' },
      { type: 'reasoning-delta', id: 'r', delta: 'why' },
      { type: 'reasoning-end', id: 'r', providerMetadata: { anthropic: { signature: 'Eq\u2028==' } } },
      ...text('hi'),
      { type: 'tool-input-start', id: 'c', toolName: 'look' },
      { type: 'tool-input-delta', id: 'c', delta: '{"id":1}' },
      { type: 'tool-input-end', id: 'c' },
      { type: 'tool-call', toolCallId: 'c', toolName: 'look', input: '{"id":1}' },
      { type: 'file', mediaType: 'image/png', data: new Uint8Array([1, 2, 255]) },
      { type: 'file', mediaType: 'image/png', data: 'AQI=' },
      finishes[version],
    ];
    const reply = await callModel(older(version, parts).adapter, requestOf());
    expect(reply.message.content).toEqual([
      { type: 'reasoning', text: 'why', providerOptions: { anthropic: { signature: 'Eq\u2028==' } } },
      { type: 'text', text: 'hi' },
      { type: 'tool-call', toolCallId: 'c', toolName: 'look', input: { id: 1 } },
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AQL/' } },
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AQI=' } },
    ]);
    expect(reply.finishReason).toBe('tool-calls');
    const cacheWriteTokens = version === 'v3' ? 1 : 0;
    expect(reply.usage).toEqual({
      inputTokens: 7,
      outputTokens: 3,
      reasoningTokens: 2,
      cacheReadTokens: 2,
      cacheWriteTokens,
    });
  });

  test('is sent its own metadata byte for byte, with reasoning and calls as they are (executor 17)', async () => {
    const providerOptions = { anthropic: { signature: 'Eq\u0000…==\u2028', nested: { z: 1, a: [null, '😀'] } } };
    const message: Message = {
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'why', providerOptions },
        { type: 'text', text: 'hi', providerOptions },
        { type: 'tool-call', toolCallId: 'c', toolName: 'look', input: { id: 1 }, providerOptions },
      ],
    };
    const { prompt } = await sentTo(version, [message], { system: 'Be brief.' });
    expect(prompt[0]).toEqual({ role: 'system', content: 'Be brief.' });
    expect(JSON.stringify(prompt[1])).toBe(JSON.stringify(message));
  });

  test('is sent files as bytes, base64 or URL (api, messages)', async () => {
    const part = (data: unknown, mediaType = 'image/png') => ({ type: 'file', filename: 'a', mediaType, data });
    const content = [
      part({ type: 'data', data: 'AQI=' }),
      part({ type: 'url', url: 'https://example.com/a.png' }, 'image'),
      part({ type: 'text', text: 'é' }, 'text/plain'),
    ];
    const { prompt } = await sentTo(version, [{ role: 'user', content } as never]);
    expect(prompt[0]?.content).toEqual([
      part('AQI='),
      part(new URL('https://example.com/a.png'), 'image/*'),
      part('w6k=', 'text/plain'),
    ]);
  });

  test.for([
    [
      'a file by reference',
      { type: 'file', mediaType: 'image/png', data: { type: 'reference', reference: { a: '1' } } },
    ],
    ['a file by the invalid URL "no"', { type: 'file', mediaType: 'image/png', data: { type: 'url', url: 'no' } }],
    ['a reasoning-file part', { type: 'reasoning-file', mediaType: 'image/png', data: { type: 'data', data: '' } }],
  ] as const)('cannot be sent %s: a ModelError says so', async ([what, part]) => {
    const message = { role: 'assistant', content: [part] } as never;
    await expect(sentTo(version, [message])).rejects.toMatchObject({
      code: 'MODEL',
      message: `a model of spec ${version} cannot be sent ${what}; use a model of spec v4`,
    });
  });

  test("is not sent other providers' own parts, as no model of spec v4 is that does not know them (api, messages)", async () => {
    const content = [
      { type: 'custom', kind: 'anthropic.message_start' },
      { type: 'text', text: 'hi' },
    ];
    const { prompt } = await sentTo(version, [{ role: 'assistant', content } as never]);
    expect(prompt).toEqual([{ role: 'assistant', content: [content[1]] }]);
  });

  test('is sent tools, signal and limits (api, models)', async () => {
    const tool = {
      type: 'function' as const,
      name: 'look',
      description: 'Looks.',
      inputSchema: { type: 'object' as const },
    };
    const full = { ...tool, strict: true, inputExamples: [{ input: { id: 1 } }] };
    const options = await sentTo(version, [], { tools: [full], settings: { maxOutputTokens: 9 } });
    expect(options).toMatchObject({ tools: [version === 'v3' ? full : tool], maxOutputTokens: 9 });
    if (version === 'v2') expect(options.tools?.[0]).not.toHaveProperty('strict');
    expect(options.abortSignal).toBeInstanceOf(AbortSignal);
    expect(await sentTo(version, [])).not.toHaveProperty('tools');
  });

  test("is sent providers' tools in its own words, and no options that it does not have (api, models)", async () => {
    const { adapter, sent } = older(version);
    const tool = { type: 'provider' as const, id: 'acme.search' as const, name: 'search', args: {} };
    await adapter.doStream({ prompt: [], tools: [tool], reasoning: 'high', temperature: 0 });
    const type = version === 'v3' ? 'provider' : 'provider-defined';
    expect(sent).toEqual([{ prompt: [], tools: [{ ...tool, type }], temperature: 0 }]);
  });

  test('that stalls, breaks off, or gives no stream fails as any other does (executor 7)', async () => {
    await expect(callModel(older(version, text('half')).adapter, requestOf())).rejects.toThrow(/without a finish part/);
    const { model, adapter } = older(version);
    let cancelled: unknown;
    const cancel = (reason: unknown) => {
      cancelled = reason;
    };
    const stream = new ReadableStream({ cancel });
    Object.assign(model, { doStream: async () => ({ stream }) });
    const request = requestOf();
    const call = watch(callModel(adapter, request));
    await request.clock.advance(120_000);
    expect(call.error).toMatchObject({ code: 'MODEL_STALLED' });
    expect(cancelled).toBe(call.error);
    const broken = new Error('gone');
    Object.assign(model, {
      doStream: async () => ({ stream: new ReadableStream({ pull: () => Promise.reject(broken) }) }),
    });
    await expect(callModel(adapter, requestOf())).rejects.toMatchObject({ cause: broken });
    Object.assign(model, { doStream: async () => null });
    await expect(callModel(adapter, requestOf())).rejects.toThrow(/gave no stream/);
  });

  test('generates too, for those who do not stream (api, models)', async () => {
    const { model, adapter } = older(version);
    const { finishReason, usage } = finishes[version];
    const content = [
      { type: 'text', text: 'hi' },
      { type: 'file', mediaType: 'image/png', data: 'AQI=' },
    ];
    Object.assign(model, { doGenerate: async () => ({ content, finishReason, usage, warnings: [] }) });
    expect(await adapter.doGenerate({ prompt: [] })).toMatchObject({
      content: [content[0], { ...content[1], data: { type: 'data', data: 'AQI=' } }],
      finishReason: { unified: 'tool-calls' },
      usage: { inputTokens: { total: 7, cacheRead: 2 }, outputTokens: { total: 3, reasoning: 2 } },
    });
  });
});

test.for(['stop', 'length', 'content-filter', 'other', 'unknown'])(
  'the v2 finish reason "%s" is read (api, models)',
  async (finishReason) => {
    const { adapter } = older('v2', [...text('hi'), { type: 'finish', finishReason, usage: undefined }]);
    const reply = await callModel(adapter, requestOf());
    expect(reply.finishReason).toBe(finishReason === 'unknown' ? 'other' : finishReason);
    expect(reply.usage.inputTokens).toBe(0);
    expect(textOf(reply.message)).toBe('hi');
  },
);
