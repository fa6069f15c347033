import { describe, expect, test } from 'vitest';
import { inputOf } from '../../src/ag-ui/input.ts';
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
    const input = inputOf(post({ messages: [...messages, user('4'), user('5', [{ type: 'text', text: 'Yo.' }])] }));
    expect(input.tail).toEqual([
      { id: '4', parts: [{ type: 'text', text: 'Hi.' }] },
      { id: '5', parts: [{ type: 'text', text: 'Yo.' }] },
    ]);
    expect(input.had.map(({ id, role }) => `${id} ${role}`)).toEqual([
      ...['1 user', '2 reasoning', '3 assistant', '4 user', '5 user'],
    ]);
  });

  test('ignores tools, state, context and forwarded properties of the page (web 34)', () => {
    const input = inputOf(
      post({ tools: [{ name: 'rm', description: '' }], state: { admin: true }, forwardedProps: { callerId: 'eve' } }),
    );
    expect(input).toEqual({ threadId: 't', runId: 'r', had: [], tail: [] });
  });

  test('takes files by their bytes or their URL, and no handle of a provider (web 34)', () => {
    const image = (source: JsonObject) => post({ messages: [user('1', [{ type: 'image', source }])] });
    expect(inputOf(image({ type: 'data', value: 'AAAA', mimeType: 'image/png' })).tail[0]?.parts).toEqual([
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AAAA' } },
    ]);
    expect(inputOf(image({ type: 'url', value: 'https://a.example/b.png' })).tail[0]?.parts).toEqual([
      { type: 'file', mediaType: 'image/*', data: { type: 'url', url: 'https://a.example/b.png' } },
    ]);
    expect(() => inputOf(image({ type: 'file', value: 'file-1' }))).toThrow('by its URL');
    expect(() => inputOf(image({ type: 'url', value: 'file:///etc/passwd' }))).toThrow('http');
    expect(() => inputOf(image({ type: 'url', value: 'not a URL' }))).toThrow('http');
    expect(() => inputOf(image({ type: 'data', value: 'http://a.example/', mimeType: 'image/png' }))).toThrow('base64');
  });

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
    ['the content of a message', { messages: [user('1', 7)] }],
    ['the content of a message', { messages: [user('1', Array(101).fill({ type: 'text', text: '' }))] }],
    ['a part', { messages: [user('1', [{ type: 'exec', source: {} }])] }],
    ['a mimeType', { messages: [user('1', [{ type: 'document', source: { type: 'data', value: 'AAAA' } }])] }],
    ['resume', { resume: 'all' }],
    ['resume', { resume: Array(1_001).fill({ interruptId: 'w', status: 'cancelled' }) }],
    ['resume', { resume: [7] }],
    ['the status', { resume: [{ interruptId: 'w', status: 'maybe' }] }],
    ['interruptId', { resume: [{ interruptId: ['w'], status: 'cancelled' }] }],
  ] as [string, JsonObject][])('is refused with the name of what is wrong: %s (web 34)', ([name, fields]) => {
    expect(() => inputOf(post(fields))).toThrow(
      expect.objectContaining({ code: 'BAD_REQUEST', message: expect.stringContaining(name) }),
    );
  });

  test('may hold hostile ids, which stay what they are (web 34)', () => {
    const ids = ['__proto__', 'constructor', '../../x', '<script>', '\u0000', 'r1:1.0'];
    expect(inputOf(post({ messages: ids.map((id) => user(id)) })).tail.map(({ id }) => id)).toEqual(ids);
  });
});
