import { expect, test } from 'vitest';
import { callModel } from '../../src/model/call.ts';
import { reply, scriptedModel } from '../../src/testing/index.ts';
import { enterMessage } from '../../src/values/message.ts';
import { drivenModel, finish, requestOf } from './fake-model.ts';

const user = enterMessage({ role: 'user', content: [{ type: 'text', text: 'hi' }] });
const tool = { type: 'function' as const, name: 'lookup', inputSchema: { type: 'object' as const } };

test('a request is the system prompt, then the transcript as it is', async () => {
  const { model, seen, send } = drivenModel();
  send(finish);
  await callModel(
    model,
    requestOf({ system: 'Be kind.', messages: [user], tools: [tool], settings: { maxOutputTokens: 99 } }),
  );
  expect(seen.options?.prompt).toEqual([{ role: 'system', content: 'Be kind.' }, user]);
  expect(seen.options?.prompt[1]).toBe(user);
  expect(seen.options).toMatchObject({ tools: [tool], maxOutputTokens: 99 });
});

test('an empty system prompt, no tools and no limit are left out', async () => {
  const { model, seen, send } = drivenModel();
  send(finish);
  await callModel(model, requestOf({ messages: [user] }));
  expect(seen.options?.prompt).toEqual([user]);
  expect(Object.keys(seen.options ?? {}).sort()).toEqual(['abortSignal', 'prompt']);
});

test('URLs, strings in the transcript, are URL objects for the provider; files in tool results too', async () => {
  const url = { type: 'url', url: 'https://example.com/a.png' };
  const file = { type: 'file', mediaType: 'image/png', data: url };
  const output = { type: 'content', value: [{ type: 'text', text: 'see' }, file] };
  const messages = [
    enterMessage({
      role: 'user',
      content: [{ type: 'text', text: 'look' }, file, { ...file, data: { type: 'url', url: 'no url' } }],
    }),
    enterMessage({ role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c', toolName: 't', output }] }),
  ];
  const before = JSON.stringify(messages);
  const model = scriptedModel([reply('ok')]);
  await callModel(model, requestOf({ messages }));
  const sent = { ...file, data: { type: 'url', url: new URL(url.url) } };
  expect(model.calls[0]?.messages).toEqual([
    {
      role: 'user',
      content: [{ type: 'text', text: 'look' }, sent, { ...file, data: { type: 'url', url: 'no url' } }],
    },
    {
      role: 'tool',
      content: [
        {
          type: 'tool-result',
          toolCallId: 'c',
          toolName: 't',
          output: { type: 'content', value: [output.value[0], sent] },
        },
      ],
    },
  ]);
  expect(JSON.stringify(messages)).toBe(before);
});
