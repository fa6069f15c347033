import type { LanguageModelV4CallOptions } from '@ai-sdk/provider';
import { describe, expect, test } from 'vitest';
import type { Message } from '../../src/values/message.ts';
import { sentTo } from './older-model.ts';

const resultOf = (output: unknown): Message =>
  ({ role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c', toolName: 'look', output }] }) as never;
const outputIn = ({ prompt }: LanguageModelV4CallOptions) => prompt[0]?.content[0] as { output: { value: unknown } };
const png = { type: 'file', mediaType: 'image/png' };
const pdf = { type: 'file', mediaType: 'application/pdf', filename: 'a.pdf' };
const bytes = { type: 'data', data: new Uint8Array([1, 2]) };
const url = { type: 'url', url: 'https://example.com/a' };
const reference = { type: 'reference', reference: { openai: 'f1' } };
const providerOptions = { acme: { n: 1 } };

describe('what tools answered (api, messages)', () => {
  test.for([
    { type: 'text', value: 'x', providerOptions },
    { type: 'json', value: { a: null } },
    { type: 'error-text', value: 'x' },
    { type: 'error-json', value: [1] },
  ])('a model of spec v3 or v2 is sent as it is: %j', async (output) => {
    expect(outputIn(await sentTo('v3', [resultOf(output)])).output).toEqual(output);
    expect(outputIn(await sentTo('v2', [resultOf(output)])).output).toEqual(output);
  });

  test.for([
    [
      { type: 'text', text: 'x', providerOptions },
      { type: 'text', text: 'x', providerOptions },
    ],
    [
      { ...png, data: bytes, filename: 'a.png' },
      { type: 'image-data', data: 'AQI=', mediaType: 'image/png' },
    ],
    [
      { ...pdf, data: bytes, providerOptions },
      { type: 'file-data', data: 'AQI=', mediaType: 'application/pdf', filename: 'a.pdf', providerOptions },
    ],
    [
      { ...png, data: url },
      { type: 'image-url', url: 'https://example.com/a' },
    ],
    [
      { ...pdf, data: url },
      { type: 'file-url', url: 'https://example.com/a' },
    ],
    [
      { ...png, data: reference },
      { type: 'image-file-id', fileId: { openai: 'f1' } },
    ],
    [
      { ...pdf, data: reference },
      { type: 'file-id', fileId: { openai: 'f1' } },
    ],
    [
      { ...pdf, data: { type: 'text', text: 'x' } },
      { type: 'text', text: 'x' },
    ],
    [
      { type: 'custom', providerOptions },
      { type: 'custom', providerOptions },
    ],
  ])('a model of spec v3 is sent %j as %j', async ([item, expected]) => {
    const options = await sentTo('v3', [resultOf({ type: 'content', value: [item] })]);
    expect(outputIn(options).output).toEqual({ type: 'content', value: [expected] });
  });

  test.for([
    [
      { type: 'text', text: 'x' },
      { type: 'text', text: 'x' },
    ],
    [
      { ...png, data: bytes },
      { type: 'media', data: 'AQI=', mediaType: 'image/png' },
    ],
    [
      { ...png, mediaType: 'image', data: bytes },
      { type: 'media', data: 'AQI=', mediaType: 'image/*' },
    ],
    [
      { ...pdf, data: { type: 'text', text: 'x' } },
      { type: 'text', text: 'x' },
    ],
  ])('a model of spec v2 is sent %j as %j', async ([item, expected]) => {
    const options = await sentTo('v2', [resultOf({ type: 'content', value: [item] })]);
    expect(outputIn(options).output).toEqual({ type: 'content', value: [expected] });
  });

  test.for([
    [{ ...png, data: url }, /a file by url in a tool's result/],
    [{ ...png, data: reference }, /a file by reference in a tool's result/],
    [{ type: 'custom' }, /a custom part of a tool's result/],
  ] as const)('a model of spec v2 cannot be sent %j', async ([item, message]) => {
    await expect(sentTo('v2', [resultOf({ type: 'content', value: [item] })])).rejects.toThrow(message);
  });

  test('a denied call is an error text where there is no other word for it', async () => {
    const denied = { type: 'execution-denied', reason: 'not today' };
    expect(outputIn(await sentTo('v3', [resultOf(denied)])).output).toEqual(denied);
    expect(outputIn(await sentTo('v2', [resultOf(denied)])).output).toEqual({ type: 'error-text', value: 'not today' });
  });
});
