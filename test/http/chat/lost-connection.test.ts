import { lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai';
import { callTool, reply } from 'pawl/testing';
import { expect, test } from 'vitest';
import { createClient } from '../../../src/client/index.ts';
import { quickClock } from '../../client/wire.ts';
import { chatHost, mailTool } from './chat-host.ts';
import { openCard, textOf } from './told-messages.ts';
import { type ChatOfPage, openPage } from './use-chat.ts';

/** A network that breaks right behind the first frame with some words, and is away until it is told otherwise. */
function breakingAfter(words: string, handler: (request: Request) => Promise<Response>) {
  const broken = Promise.withResolvers<void>();
  let isAway = false;
  const cutting = (source: ReadableStream<Uint8Array>) => {
    const reader = source.getReader();
    let isCut = false;
    return new ReadableStream<Uint8Array>({
      async pull(controller) {
        if (isCut) {
          broken.resolve();
          return controller.error(new TypeError('network error'));
        }
        const { done, value } = await reader.read();
        if (done) return controller.close();
        isCut = new TextDecoder().decode(value).includes(words);
        isAway ||= isCut;
        controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    });
  };
  let cuts = 1;
  const fetch = async (input: unknown, init?: RequestInit) => {
    if (isAway) throw new TypeError('fetch failed');
    const response = await handler(new Request(String(input), init));
    return response.body && cuts-- > 0 ? new Response(cutting(response.body), response) : response;
  };
  const back = () => {
    isAway = false;
  };
  return { fetch: fetch as typeof globalThis.fetch, broken: broken.promise, back };
}

test('sends an approval that was given while the connection was lost, before the page knew that it is idle (web 31, 33, 35)', async () => {
  let mails = 0;
  const host = chatHost({
    script: [callTool('mail', { to: 'bo' }), reply('The mail is out.')],
    tools: [mailTool(() => `mail ${++mails}`)],
    http: { authorize: () => ({ callerId: 'ada', by: { id: 'ada' } }) },
  });
  const network = breakingAfter('tool-approval-request', host.handler);
  const client = createClient({ url: 'http://pawl.test', fetch: network.fetch, clock: quickClock() });
  await using page = await openPage({
    ...{ url: '', id: 'chat', transport: client.chatTransport() },
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  void page.chat.sendMessage({ text: 'Mail Bo.' });
  await network.broken;
  await page.until((chat) => openCard(chat) !== undefined);
  expect(page.chat.status).toBe('streaming');
  await page.chat.addToolApprovalResponse({ id: openCard(page.chat)?.approval.id ?? '', approved: true });
  network.back();
  const isOver = (chat: ChatOfPage) => textOf(chat.messages.at(-1)) !== '' || openCard(chat) !== undefined;
  await page.until((chat) => chat.status === 'ready' && isOver(chat));
  expect(textOf(page.chat.messages.at(-1))).toBe('The mail is out.');
  expect([page.chat.messages.length, mails]).toEqual([2, 1]);
});
