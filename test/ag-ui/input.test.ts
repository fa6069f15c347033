import { describe, expect, test } from 'vitest';
import { inputOfAgUi, newMessage } from '../../src/ag-ui/input.ts';
import type { JsonObject } from '../../src/index.ts';

const post = (fields: JsonObject): JsonObject => ({
  threadId: 't',
  runId: 'r',
  messages: [],
  tools: [],
  context: [],
  ...fields,
});
const user = (id: string, content: JsonObject[string] = 'Hi.') => ({ id, role: 'user', content });

describe('a posted input', () => {
  test('counts only the messages of persons behind the last other one, and keeps the ids and roles of all (web 34)', () => {
    const messages = [
      user('1'),
      { id: '2', role: 'reasoning', content: 'Hm.' },
      { id: '3', role: 'tool', toolCallId: 'c', content: '' },
    ];
    const input = inputOfAgUi(post({ messages: [...messages, user('4'), user('5', [{ type: 'text', text: 'Yo.' }])] }));
    expect(newMessage(input.tail)).toEqual({
      id: '5',
      parts: [
        { type: 'text', text: 'Hi.' },
        { type: 'text', text: 'Yo.' },
      ],
    });
    expect(input.had.map(({ id, role }) => `${id} ${role}`)).toEqual([
      ...['1 user', '2 reasoning', '3 assistant', '4 user', '5 user'],
    ]);
  });

  test('ignores tools, state, context and forwarded properties of the page (web 34)', () => {
    const input = inputOfAgUi(
      post({ tools: [{ name: 'rm', description: '' }], state: { admin: true }, forwardedProps: { callerId: 'eve' } }),
    );
    expect(input).toEqual({ threadId: 't', runId: 'r', had: [], tail: [] });
  });

  const message = (content: JsonObject[string]) =>
    newMessage(inputOfAgUi(post({ messages: [user('1', content)] })).tail);

  test('takes files by their bytes; a URL of the page, which a provider would fetch, is refused (web 34)', () => {
    const image = (source: JsonObject) => message([{ type: 'image', source }]);
    expect(image({ type: 'data', value: 'AAAA', mimeType: 'image/png' })?.parts).toEqual([
      { type: 'file', mediaType: 'image/png', data: 'AAAA' },
    ]);
    expect(() => image({ type: 'url', value: 'http://169.254.169.254/', mimeType: 'image/png' })).toThrow('as data');
    expect(() => image({ type: 'file', value: 'file-1' })).toThrow('as data');
    for (const value of ['http://a.example/', '', 'AA A'])
      expect(() => image({ type: 'data', value, mimeType: 'image/png' })).toThrow('base64');
    for (const mimeType of [null, '', 'image', 'image/png\r\nx: y'])
      expect(() => image({ type: 'data', value: 'AAAA', mimeType })).toThrow('mimeType');
  });

  test.for([
    ['the content of a message', 7],
    ['the content of a message', Array(101).fill({ type: 'text', text: 'a' })],
    ['a part', [{ type: 'exec', source: {} }]],
    ['a part', [null]],
    ['a text', ''],
    ['a text', [{ type: 'text', text: '' }]],
  ] as [string, JsonObject[string]][])(
    'with a message that no model gets is refused: %s %j (web 34)',
    ([name, content]) => {
      expect(() => message(content)).toThrow(
        expect.objectContaining({ code: 'BAD_REQUEST', message: expect.stringContaining(name) }),
      );
    },
  );

  test.for([
    ['threadId', { threadId: '' }],
    ['threadId', { threadId: 7 }],
    ['threadId', { threadId: '\ud800' }],
    ['runId', { runId: 'x'.repeat(1_025) }],
    ['runId', { runId: null }],
    ['parentRunId', { parentRunId: {} }],
    ['messages', { messages: {} }],
    ['messages', { messages: Array(20_001).fill(user('1')) }],
    ['the id of a message', { messages: [{ role: 'user', content: 'Hi.' }] }],
    ['a role', { messages: [null] }],
    ['resume', { resume: 'all' }],
    ['resume', { resume: Array(1_001).fill({ interruptId: 'w', status: 'cancelled' }) }],
    ['resume', { resume: [7] }],
    ['the status', { resume: [{ interruptId: 'w', status: 'maybe' }] }],
    ['interruptId', { resume: [{ interruptId: ['w'], status: 'cancelled' }] }],
  ] as [string, JsonObject][])('is refused with the name of what is wrong: %s (web 34)', ([name, fields]) => {
    expect(() => inputOfAgUi(post(fields))).toThrow(
      expect.objectContaining({ code: 'BAD_REQUEST', message: expect.stringContaining(name) }),
    );
  });

  test('may hold hostile ids, which stay what they are (web 34)', () => {
    const ids = ['__proto__', 'constructor', '../../x', '<script>', '\u0000', 'r1:1.0'];
    expect(inputOfAgUi(post({ messages: ids.map((id) => user(id)) })).tail.map(({ id }) => id)).toEqual(ids);
  });
});
