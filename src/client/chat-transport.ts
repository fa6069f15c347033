import { badResponse, type ClientHeaders, type ClientRequest, type Connection, pathOf } from './connection.ts';
import { ClientError } from './error.ts';
import { followFeed } from './follow.ts';
import { streamHeaders } from './run.ts';
import type { SseEvent } from './sse-parser.ts';

/** Options of `chatTransport()`. */
export interface ChatTransportOptions {
  /** Where the chat is, below the client's `url`; default `/chat`. */
  readonly path?: string;
  /** Further fields of each posted body, for example the agent. */
  readonly body?: object | (() => object);
  /** How long the first answer to a message may be away before `useChat` shows an error, ms; default 60,000. */
  readonly firstAnswerMs?: number;
}

/** What `useChat` gives with each request. */
export interface ChatRequest {
  readonly chatId: string;
  readonly headers?: ClientHeaders;
  readonly body?: object;
  readonly metadata?: unknown;
}

/** What `useChat` gives to send messages. */
export interface ChatSendRequest extends ChatRequest {
  readonly trigger: 'submit-message' | 'regenerate-message';
  readonly messageId: string | undefined;
  readonly messages: readonly { readonly id: string; readonly role: string }[];
  readonly abortSignal: AbortSignal | undefined;
}

/** A `ChatTransport` of the AI SDK whose streams last until the answer ends, over lost connections and other servers. */
export interface PawlChatTransport {
  /** What `resumeStream()` gets begins at the beginning of the answer. */
  readonly resumeStreamIsReplay: true;
  sendMessages<Chunk>(request: ChatSendRequest): Promise<ReadableStream<Chunk>>;
  reconnectToStream<Chunk>(
    request: ChatRequest & { readonly abortSignal?: AbortSignal },
  ): Promise<ReadableStream<Chunk> | null>;
  /** Cancels the run that answers. `stop()` of `useChat` only ends the reading. */
  stop(chatId: string, messageId?: string): Promise<void>;
}

/** What the end of an answer looks like. */
const ends: ReadonlySet<string> = new Set(['finish', 'abort', 'error']);
const DONE = '[DONE]';
const FIRST_ANSWER_MS = 60_000;

interface Chunk {
  readonly type: string;
}

/** Makes the transport for `useChat`. */
export function chatTransportOn(connection: Connection, options: ChatTransportOptions = {}): PawlChatTransport {
  const chat = new Chat(connection, options);
  return {
    resumeStreamIsReplay: true,
    async sendMessages<C>(request: ChatSendRequest) {
      const stream = await chat.read(chat.postOf(request), request);
      if (!stream) throw badResponse('The chat has no answer to the message', { status: 204 });
      return stream as ReadableStream<unknown> as ReadableStream<C>;
    },
    async reconnectToStream<C>(request: ChatRequest & { readonly abortSignal?: AbortSignal }) {
      return (await chat.read(
        chat.resumeOf(request),
        request,
      )) as ReadableStream<unknown> | null as ReadableStream<C> | null;
    },
    stop: (chatId, messageId) => chat.stop(chatId, messageId),
  };
}

class Chat {
  readonly #connection: Connection;
  readonly #options: ChatTransportOptions;
  readonly #path: string;

  constructor(connection: Connection, options: ChatTransportOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#path = options.path ?? '/chat';
  }

  async stop(chatId: string, messageId: string | undefined): Promise<void> {
    const path = `${this.#path}${pathOf(chatId, 'stop')}`;
    await this.#connection.call({ method: 'POST', path, body: { messageId }, isRepeatable: true });
  }

  /** Sent again under its key, the message counts once. */
  postOf({ chatId, trigger, messageId, messages, headers, body }: ChatSendRequest): ClientRequest {
    const { body: extra } = this.#options;
    const fields = { ...(typeof extra === 'function' ? extra() : extra), ...body };
    return {
      method: 'POST',
      path: this.#path,
      headers: { ...entriesOf(headers), ...streamHeaders(undefined), 'idempotency-key': this.#connection.newId() },
      body: { ...fields, id: chatId, messages: newsIn(messages, messageId), trigger, messageId },
    };
  }

  resumeOf({ chatId, headers }: ChatRequest, lastId?: string): ClientRequest {
    const path = `${this.#path}${pathOf(chatId, 'stream')}`;
    return { path, headers: { ...entriesOf(headers), ...streamHeaders(lastId) } };
  }

  /** Opens the stream of an answer; null if there is none. Resolves when the first chunk is there. */
  async read(
    first: ClientRequest,
    request: ChatRequest & { readonly abortSignal?: AbortSignal | undefined },
  ): Promise<ReadableStream<Chunk> | null> {
    const closed = new AbortController();
    const { abortSignal } = request;
    const abort = (): void => closed.abort(abortSignal?.reason);
    abortSignal?.addEventListener('abort', abort);
    if (abortSignal?.aborted) abort();
    const chunks = this.#chunks(first, request, closed.signal);
    const settle = (): void => abortSignal?.removeEventListener('abort', abort);
    const next = async (): Promise<IteratorResult<Chunk, void>> => {
      const result = await chunks.next();
      if (result.done) settle();
      return result;
    };
    let ready: Promise<IteratorResult<Chunk, void>> | undefined = next();
    if ((await ready).done) return null;
    return new ReadableStream<Chunk>({
      async pull(controller) {
        const result = await (ready ?? next());
        ready = undefined;
        if (result.done) controller.close();
        else controller.enqueue(result.value);
      },
      async cancel() {
        closed.abort();
        settle();
        await chunks.return().catch(() => undefined);
      },
    });
  }

  async *#chunks(
    first: ClientRequest,
    request: ChatRequest,
    signal: AbortSignal,
  ): AsyncGenerator<Chunk, void, undefined> {
    let last: string | undefined;
    const stream = followFeed(this.#connection, {
      request: (lastId) => (lastId === undefined ? first : this.resumeOf(request, lastId)),
      parse: chunkIn,
      standsAlone: (chunk) => chunk === DONE || chunk.type === 'start',
      signal,
      firstAnswerMs: this.#options.firstAnswerMs ?? FIRST_ANSWER_MS,
    });
    for await (const chunk of stream) {
      if (chunk === DONE) return;
      if (chunk.type === 'start' && last !== undefined && last !== 'start')
        throw badResponse('The server began an answer again that it should have continued', { status: 200 });
      last = chunk.type;
      yield chunk;
    }
    if (last !== undefined && !ends.has(last)) throw rest();
  }
}

/** 204 before the end: the page has to load the messages of the thread. */
function rest(): ClientError {
  return new ClientError('The rest of the answer is not kept any more', { code: 'JOURNAL_GONE', status: 204 });
}

/**
 * The messages that the server may not know: those behind the last answer, and this one itself, which may hold the answers of
 * tools and persons. The thread has the others, and a long conversation would not fit into a body.
 */
function newsIn(messages: ChatSendRequest['messages'], messageId: string | undefined): ChatSendRequest['messages'] {
  const lastAnswer = messages.findLastIndex(({ role }) => role === 'assistant');
  const named = messages.findIndex(({ id }) => id === messageId);
  return messages.slice(Math.max(named < 0 ? lastAnswer : Math.min(named, lastAnswer), 0));
}

function entriesOf(headers: ClientHeaders | undefined): Record<string, string> {
  return Object.fromEntries(new Headers(headers));
}

function chunkIn({ data }: SseEvent): Chunk | typeof DONE {
  if (data === DONE) return DONE;
  const chunk = JSON.parse(data);
  if (typeof chunk?.type !== 'string') throw new TypeError('The data is no chunk of an answer');
  return chunk;
}
