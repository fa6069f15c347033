import { describe, expect, test, vi } from 'vitest';
import { callModel } from '../../src/model/call.ts';
import { withRetries } from '../../src/model/retry.ts';
import { enterMessage, type Message } from '../../src/values/message.ts';
import { requestOf, streamOf, watch } from './fake-model.ts';
import { modelFor } from './model-for.ts';
import { finishes } from './older-model.ts';

const secret = 'signature=s3cr3t';
const fileAt = (url: string, mediaType = 'image/png') => ({ type: 'file', mediaType, data: { type: 'url', url } });
const asked = (...content: object[]) => enterMessage({ role: 'user', content });
const answered = (...value: object[]) => {
  const output = { type: 'content', value };
  return enterMessage({ role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c', toolName: 't', output }] });
};
const png = fileAt(`https://files.example.com/a.PNG?${secret}`);

/** A model of this specification that says it supports these URLs. */
function supporting(supportedUrls: unknown, specificationVersion: 'v4' | 'v3' = 'v4') {
  const doStream = vi.fn(async (_options: object) => ({ stream: streamOf([finishes.v3 as never]) }));
  const given = { specificationVersion, provider: 'fake', modelId: 'fake', supportedUrls, doStream };
  return { model: modelFor({ fast: given as never }, 'fast'), doStream };
}

const sentOf = async (supportedUrls: unknown, messages: readonly Message[]) => {
  const { model, doStream } = supporting(supportedUrls);
  await callModel(model, requestOf({ messages }));
  return doStream.mock.calls[0]?.[0];
};

describe('a file by URL', () => {
  test.for([
    ['of a type that is in the list', { 'image/png': [/^https:/] }],
    ['of a kind that is in the list', { 'IMAGE/*': [/^https:/] }],
    ['where the list takes everything', { '*': [/./] }],
    ['where the list takes everything, in another word', { 'audio/*': [/./], '*/*': [/example\.com/] }],
    ['that is in the list in lower case', { 'image/*': [/a\.png/] }],
    ['where the model lists nothing', {}],
    ['where the model says nothing', undefined],
    ['where the list is not one', 'all'],
    ['where the list comes later', () => Promise.resolve({ 'image/*': [/./] })],
    ['where the list cannot be had', () => Promise.reject(new Error('no'))],
    [
      'where the list throws',
      {
        get 'image/*'() {
          throw new Error('no');
        },
      },
    ],
  ] as const)('%s is sent, as a URL', async ([, supportedUrls]) => {
    const sent = { prompt: [{ role: 'user', content: [{ data: { type: 'url', url: new URL(png.data.url) } }] }] };
    const list = typeof supportedUrls === 'function' ? supportedUrls() : supportedUrls;
    expect(await sentOf(list, [asked(png)])).toMatchObject(sent);
  });

  test.for([
    ['of another type', asked(png), { 'application/pdf': [/./], 'image/jpeg': [/./] }],
    ['at another place', asked(png), { 'image/*': [/^https:\/\/other\.com/] }],
    ['of a type the list has no pattern for', asked(png), { 'image/*': [] }],
    ['in what a tool answered', answered({ type: 'text', text: 'see' }, png), { 'audio/*': [/./] }],
    ['beside one that is supported', asked(fileAt('https://a.com/a'), png), { 'image/*': [/a\.com/] }],
    ['whose type is a kind only', asked(fileAt(png.data.url, 'image')), { 'image/png': [/./], 'audio/*': [/./] }],
  ] as const)(
    '%s is not sent to a model of spec v4 or v3 whose list has it not: a final error says what to do',
    async ([, message, list]) => {
      for (const version of ['v4', 'v3'] as const) {
        const { model, doStream } = supporting(list, version);
        const onRetry = vi.fn();
        const request = requestOf({ messages: [message] });
        const call = withRetries(() => callModel(model, request), { ...request, onRetry });
        const error = (await call.catch((thrown: Error) => thrown)) as Error;
        expect(error).toMatchObject({ code: 'MODEL' });
        expect(error.message).toMatch(
          /^the model takes no image(\/png)? file by a URL at files\.example\.com .*give the bytes/,
        );
        expect(error.message).not.toContain(secret);
        expect(doStream).not.toHaveBeenCalled();
        expect(onRetry).not.toHaveBeenCalled();
      }
    },
  );

  test('that the model gave itself, or that is no http URL, is left to the provider to judge', async () => {
    const own = enterMessage({ role: 'assistant', content: [png] });
    const bucket = asked(fileAt('gs://bucket/a.png'), fileAt('no url'));
    expect(await sentOf({ 'audio/*': [/./] }, [own, bucket])).toBeDefined();
  });

  test('is judged alike at each call, by patterns that remember where they left off too', async () => {
    const { model, doStream } = supporting({ 'image/*': [/https/g] });
    for (let call = 0; call < 3; call++) await callModel(model, requestOf({ messages: [asked(png)] }));
    expect(doStream).toHaveBeenCalledTimes(3);
  });

  test('is not looked for in a transcript that has none, and the model is not asked for its list', async () => {
    const supportedUrls = vi.fn();
    const { model, doStream } = supporting({});
    const asking = Object.defineProperty({ ...model }, 'supportedUrls', { get: supportedUrls });
    await callModel(asking, requestOf({ messages: [asked({ type: 'text', text: 'hi' })] }));
    await callModel(asking, requestOf({ messages: [asked(png)], hasUrls: false }));
    expect(doStream).toHaveBeenCalledTimes(2);
    expect(supportedUrls).not.toHaveBeenCalled();
  });

  test('of a model whose list never comes ends as a stall (executor 7)', async () => {
    const { model, doStream } = supporting(new Promise(() => {}));
    const request = requestOf({ messages: [asked(png)], firstChunkMs: 1_000 });
    const call = watch(callModel(model, request));
    await request.clock.advance(1_000);
    expect(call.error).toMatchObject({ code: 'MODEL_STALLED' });
    expect(doStream).not.toHaveBeenCalled();
  });
});
