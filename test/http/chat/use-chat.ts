import { useChat } from '@ai-sdk/react';
import {
  type ChatInit,
  type ChatTransport,
  DefaultChatTransport,
  type HttpChatTransportInitOptions,
  type UIMessage,
} from 'ai';
// @ts-expect-error The package has no types.
import { JSDOM } from 'jsdom';
import { createElement } from 'react';
import { createRoot } from 'react-dom/client';
import { createClient } from '../../../src/client/index.ts';
import { type Clock, systemClock } from '../../../src/values/clock.ts';

export type ChatOfPage = ReturnType<typeof useChat<UIMessage>>;

/** A page with `useChat` and its stock transport. */
export interface OpenPage extends AsyncDisposable {
  readonly chat: ChatOfPage;
  /** Resolves when the page, after its next render, is as asked. */
  until(isThere: (chat: ChatOfPage) => boolean): Promise<void>;
}

export interface PageOptions extends Omit<ChatInit<UIMessage>, 'transport'> {
  readonly url: string;
  readonly resume?: boolean;
  readonly fetch?: HttpChatTransportInitOptions<UIMessage>['fetch'];
  /** Default: the transport of the AI SDK. */
  readonly transport?: ChatTransport<UIMessage>;
}

/** What a page needs of a document. */
interface PageDocument {
  createElement(name: string): never;
}

let document: PageDocument | undefined;

/** React needs a document before it renders for the first time. */
function documentOf(): PageDocument {
  if (document) return document;
  const { window } = new JSDOM('<!doctype html><html><body></body></html>', { url: 'http://localhost/' });
  const made = window.document as PageDocument;
  document = made;
  Object.assign(globalThis, { window, document, IS_REACT_ACT_ENVIRONMENT: false });
  return made;
}

/** Opens a page with a chat. Resolves after its first render. */
export async function openPage({
  url,
  resume = false,
  fetch,
  transport: given,
  ...init
}: PageOptions): Promise<OpenPage> {
  const container = documentOf().createElement('div');
  const root = createRoot(container);
  const stock = () => new DefaultChatTransport<UIMessage>({ api: `${url}/chat`, ...(fetch ? { fetch } : {}) });
  const transport = given ?? stock();
  let chat: ChatOfPage | undefined;
  const watchers = new Set<() => void>();
  const Page = () => {
    chat = useChat({ ...init, transport, resume });
    queueMicrotask(() => {
      for (const look of watchers) look();
    });
    return null;
  };
  root.render(createElement(Page));
  const until: OpenPage['until'] = (isThere) =>
    new Promise((resolve) => {
      const look = () => {
        if (!chat || !isThere(chat)) return;
        watchers.delete(look);
        resolve();
      };
      watchers.add(look);
      look();
    });
  await until(() => true);
  return {
    get chat() {
      return chat as ChatOfPage;
    },
    until,
    [Symbol.asyncDispose]: async () => {
      await chat?.stop();
      root.unmount();
    },
  };
}

const SILENCE_MS = 60_000;
/** A clock on which the pauses between two connections are short. */
const hastyClock: Clock = {
  ...systemClock,
  setTimeout: (callback, ms) => systemClock.setTimeout(callback, ms < SILENCE_MS ? ms / 50 : ms),
};

/** The transport of `pawl/client`, which connects again by itself. Its pauses are short. */
export function pawlTransport(url: string, fetch: typeof globalThis.fetch): ChatTransport<UIMessage> {
  return createClient({ url, fetch, clock: hastyClock, silenceMs: SILENCE_MS }).chatTransport();
}

/** A fetch whose first answers are cut after so many bytes each, as a network cuts them. `onCut`: an answer was long enough. */
export function cuttingFetch(cuts: readonly number[], onCut: () => void): typeof fetch {
  const left = [...cuts];
  return async (input, init) => {
    const response = await fetch(input, init);
    const bytes = left.shift();
    if (bytes === undefined || !response.body) return response;
    const reader = response.body.getReader();
    let seen = 0;
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        const room = bytes - seen;
        seen += value.length;
        if (room > 0) controller.enqueue(value.subarray(0, room));
        if (seen < bytes) return;
        onCut();
        await reader.cancel();
        controller.error(new TypeError('network error'));
      },
      cancel: (reason) => reader.cancel(reason),
    });
    return new Response(body, response);
  };
}
