import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai';
import { memoryStore } from 'pawl';
import { toNodeListener } from 'pawl/http';
import { callTool, reply } from 'pawl/testing';
import { afterEach, describe, expect, test } from 'vitest';
import { randomFrom, seed, torture } from '../../crash/random.ts';
import { toolOf } from '../../fixtures/host.ts';
import { type ChatHost, type ChatHostOptions, chatHost, mailTool } from './chat-host.ts';
import { openCard, textOf, told } from './told-messages.ts';
import { type ChatOfPage, cuttingFetch, openPage, type PageOptions, pawlTransport } from './use-chat.ts';

const CUTS = torture === 1 ? 30 : 1_000;

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

/** A host behind a real server, and its address. */
async function served(options: ChatHostOptions): Promise<ChatHost & { readonly url: string }> {
  const host = chatHost({
    ...options,
    http: { authorize: () => ({ callerId: 'ada', by: { id: 'ada' } }), ...options.http },
  });
  const server = createServer(toNodeListener(host.handler));
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { ...host, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const isReady = ({ status }: ChatOfPage) => status === 'ready';
function page(url: string, more: Partial<PageOptions> = {}) {
  let ids = 0;
  return openPage({
    ...{ url, id: 'chat', generateId: () => `id-${++ids}` },
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    ...more,
  });
}

const story = () => ({
  script: [
    callTool('look', { at: 'the address' }),
    callTool('mail', { to: 'bo' }),
    reply('The mail is out: one, two, three.'),
  ],
  tools: [toolOf('look'), mailTool()],
});

/** What a conversation was in the end: the messages of the page, how often the model was asked, how many connections broke. */
interface Told {
  readonly messages: unknown;
  readonly calls: number;
  readonly cuts: number;
  /** How often the page showed an error. */
  readonly errors: number;
}

/** One conversation with an approval, on connections that break after so many bytes. */
async function conversation(cuts: readonly number[], { isPawls = false } = {}): Promise<Told> {
  let cut = 0;
  const onCut = () => {
    cut += 1;
  };
  const host = await served(story());
  const fetch = cuttingFetch(cuts, onCut);
  await using open = await page(host.url, isPawls ? { transport: pawlTransport(host.url, fetch) } : { fetch });
  let seen: Error | undefined;
  let errors = 0;
  const settled = async (isThere: (chat: ChatOfPage) => boolean) => {
    for (;;) {
      const isNews = (chat: ChatOfPage) => chat.status === 'error' && chat.error !== seen;
      await open.until((chat) => isNews(chat) || (isReady(chat) && isThere(chat)));
      if (isReady(open.chat)) return;
      seen = open.chat.error;
      errors += 1;
      // Stock pages resume when they are looked at again: here, at once.
      await open.chat.resumeStream();
    }
  };
  void open.chat.sendMessage({ text: 'Mail Bo.' });
  await settled((chat) => openCard(chat) !== undefined);
  void open.chat.addToolApprovalResponse({ id: openCard(open.chat)?.approval.id ?? '', approved: true });
  await settled((chat) => textOf(chat.messages.at(-1)).endsWith('three.'));
  return { messages: told(open.chat.messages), calls: host.model.calls.length, cuts: cut, errors };
}

describe('useChat with its stock transport', () => {
  test('shows an approval card; after the approval the text continues in the same message (web 29, 30, 37)', async () => {
    const host = await served(story());
    await using open = await page(host.url);
    void open.chat.sendMessage({ text: 'Mail Bo.' });
    await open.until((chat) => isReady(chat) && openCard(chat) !== undefined);
    void open.chat.addToolApprovalResponse({ id: openCard(open.chat)?.approval.id ?? '', approved: true });
    await open.until((chat) => isReady(chat) && textOf(chat.messages[1]) !== '');
    expect(open.chat.messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
    expect(textOf(open.chat.messages[1])).toBe('The mail is out: one, two, three.');
  });

  test(`has the messages of an uncut page after ${CUTS} cuts, and the model is asked no more often (seed ${seed}) (web 35, 37)`, async () => {
    const uncut = await conversation([]);
    const random = randomFrom(seed);
    for (let done = 0; done < CUTS; ) {
      const cuts = Array.from({ length: 1 + Math.floor(random() * 5) }, () => 1 + Math.floor(random() * 3_000));
      const { cuts: made, ...told } = await conversation(cuts);
      expect({ ...told, cuts: 0, errors: 0 }, `cuts after ${cuts} bytes`).toEqual(uncut);
      done += made;
    }
  });

  test(`with chatTransport() has the same after ${CUTS} cuts, and never shows an error (seed ${seed}) (web 33, 35, 37)`, async () => {
    const uncut = await conversation([]);
    const random = randomFrom(seed);
    for (let done = 0; done < CUTS; ) {
      const cuts = Array.from({ length: 1 + Math.floor(random() * 5) }, () => 1 + Math.floor(random() * 3_000));
      const { cuts: made, ...told } = await conversation(cuts, { isPawls: true });
      expect({ ...told, cuts: 0 }, `cuts after ${cuts} bytes`).toEqual(uncut);
      done += made;
    }
  });

  test('stops a run that another host works on, within a second (web 31, 37)', async () => {
    const store = memoryStore();
    const hosts = { store, defaults: { controlMs: 500, dueMs: 1_000 } };
    const working = await served({ ...hosts, script: [{ type: 'hang' }] });
    const other = await served({ ...hosts, script: [] });
    await using open = await page(working.url);
    void open.chat.sendMessage({ text: 'Think hard.' });
    await expect.poll(() => working.model.calls.length).toBe(1);
    const headers = { 'content-type': 'application/json' };
    const stopped = await fetch(`${other.url}/chat/chat/stop`, { method: 'POST', headers, body: '{}' });
    expect(stopped.status).toBe(202);
    await open.until((chat) => isReady(chat) && chat.messages.length === 2);
    expect(open.chat.messages[1]?.parts[0]).toMatchObject({ type: 'data-pawl-run', data: { status: 'cancelled' } });
  });

  test('gets the newest message again when a page opens with `resume` (web 31)', async () => {
    const host = await served({ script: [reply('Hello, Ada.')] });
    await using first = await page(host.url);
    void first.chat.sendMessage({ text: 'Hi' });
    await first.until((chat) => isReady(chat) && textOf(chat.messages[1]) !== '');
    await using second = await page(host.url, {
      resume: true,
      messages: structuredClone(first.chat.messages.slice(0, 1)),
    });
    await second.until((chat) => isReady(chat) && textOf(chat.messages[1]) !== '');
    expect(second.chat.messages).toEqual(first.chat.messages);
  });

  test('shows the public text of a failed run (web 28)', async () => {
    const error = Object.assign(new Error('the key sk-1 is wrong'), { isRetryable: false });
    const host = await served({ script: [{ type: 'fail', error }] });
    await using open = await page(host.url);
    void open.chat.sendMessage({ text: 'Hi' });
    await open.until(({ status }) => status === 'error');
    expect(open.chat.error?.message).toBe('The model failed');
  });
});
