import { readUIMessageStream, type UIMessage, validateUIMessages } from 'ai';
import type { ThreadMessage } from 'pawl';
import { callTool, callTools, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { uiMessagesOf } from '../../../src/http/chat/ui-messages.ts';
import { toolOf } from '../../fixtures/host.ts';
import { webHost } from '../web-host.ts';

const user = (id: string, text: string) => ({ id, role: 'user', parts: [{ type: 'text', text }] });

/** The message that a page has at the end of a stream, without the parts that only a stream has. */
async function pageMessage(stream: string): Promise<UIMessage> {
  const chunks = stream.split('\n').flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []));
  const parts = new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  let last: UIMessage | undefined;
  for await (const message of readUIMessageStream({ stream: parts as never })) last = message;
  const { id, role, parts: all = [] } = JSON.parse(JSON.stringify(last)) as UIMessage;
  return { id, role, parts: all.filter(({ type }) => !type.startsWith('data-')) };
}

describe('GET /threads/:threadId/messages?format=ui', () => {
  test('gives each message as a page of useChat has it at the end of its stream (web 17, 26)', async () => {
    const look = toolOf('look', 'read', async () => ({ x: 1 }));
    const bad = toolOf('bad', 'read', () => Promise.reject(new Error('nope')));
    const host = webHost({
      tools: [look, bad],
      script: [
        callTools([
          { name: 'look', input: { a: 1 } },
          { name: 'bad', input: {} },
        ]),
        callTool('none', { b: 2 }),
        reply('One.'),
        reply('Two.'),
      ],
    });
    const told: unknown[] = [];
    for (const [id, text] of [
      ['m1', 'Hi.'],
      ['m2', 'And?'],
    ] as const) {
      const { body } = await host.ask('/chat', { body: { id: 't', messages: [user(id, text)] } });
      told.push(user(id, text), await pageMessage(body));
    }
    const { items, next } = (await host.ask('/threads/t/messages?format=ui')).body;
    expect(items).toEqual(told);
    expect(next).toBeUndefined();
    await validateUIMessages({ messages: items });
  });

  test('ends a page behind a whole answer, with any limit (web 17)', async () => {
    const host = webHost({
      tools: [toolOf('look')],
      script: [callTool('look', {}), callTool('look', { n: 2 }), reply('One.'), reply('Two.'), reply('Three.')],
    });
    for (const id of ['m1', 'm2', 'm3'])
      await host.ask('/chat', { body: { id: 't', messages: [user(id, `Say ${id}.`)] } });
    const whole = (await host.ask('/threads/t/messages?format=ui')).body.items;
    expect(whole).toHaveLength(6);
    for (const limit of [1, 2, 3, 5, 8]) {
      const found: unknown[] = [];
      for (let after = ''; ; ) {
        const { body } = await host.ask(`/threads/t/messages?format=ui&limit=${limit}${after && `&after=${after}`}`);
        found.push(...body.items);
        if (!body.next) break;
        after = body.next;
      }
      expect(found).toEqual(whole);
    }
    expect((await host.ask('/threads/t/messages?format=other')).status).toBe(400);
  });
});

describe('the messages of a page', () => {
  const at = (message: ThreadMessage['message'], i: number): ThreadMessage => ({
    id: `r:${i}`,
    runId: 'r',
    index: i,
    message,
  });

  test('show files, reasoning, denied calls, calls of the provider and messages that came between (web 17, 26)', async () => {
    const messages = [
      at(
        {
          role: 'user',
          content: [
            { type: 'text', text: 'See' },
            { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'aGk=' } },
          ],
        },
        0,
      ),
      at(
        {
          role: 'assistant',
          content: [
            { type: 'reasoning', text: 'Hm.' },
            { type: 'text', text: '' },
            { type: 'tool-call', toolCallId: 'a', toolName: 'mail', input: { to: 'x' } },
            { type: 'tool-call', toolCallId: 'b', toolName: 'web', input: {}, providerExecuted: true },
            { type: 'tool-result', toolCallId: 'b', toolName: 'web', output: { type: 'json', value: [1] } },
          ],
        },
        1,
      ),
      at(
        {
          role: 'tool',
          content: [
            {
              type: 'tool-result',
              toolCallId: 'a',
              toolName: 'mail',
              output: { type: 'execution-denied', reason: 'no' },
            },
          ],
        },
        2,
      ),
      at({ role: 'user', content: [{ type: 'text', text: 'Also Y.' }] }, 3),
      at({ role: 'assistant', content: [{ type: 'text', text: 'Done.' }] }, 4),
    ];
    const [first, second, ...more] = uiMessagesOf(messages);
    expect(more).toEqual([]);
    expect(first).toEqual({
      id: 'r:0',
      role: 'user',
      parts: [
        { type: 'text', text: 'See' },
        { type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,aGk=' },
      ],
    });
    expect(second).toEqual({
      id: 'r:m',
      role: 'assistant',
      parts: [
        { type: 'step-start' },
        { type: 'reasoning', text: 'Hm.', state: 'done' },
        {
          type: 'tool-mail',
          toolCallId: 'a',
          state: 'output-denied',
          input: { to: 'x' },
          approval: { id: 'a:rule', approved: false, reason: 'no' },
        },
        {
          type: 'tool-web',
          toolCallId: 'b',
          state: 'output-available',
          input: {},
          output: [1],
          providerExecuted: true,
        },
        { type: 'steering-message', id: 'r:s1', parts: [{ type: 'text', text: 'Also Y.' }] },
        { type: 'step-start' },
        { type: 'text', text: 'Done.', state: 'done' },
      ],
    });
    await validateUIMessages({ messages: [first, second] });
  });
});
