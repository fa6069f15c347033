import type { MessagePart, OnBusy, ThreadMessage, ThreadSent, ThreadTurn } from '../index.ts';
import { type Connection, type Page, pathOf } from './connection.ts';

/** A message for a thread: a text, or parts with files. */
export type ThreadMessageToSend = ThreadMessageFacts &
  (
    | { readonly text: string; readonly parts?: undefined }
    | { readonly parts: readonly MessagePart[]; readonly text?: undefined }
  );

/** What a message to a thread has besides its content. */
export interface ThreadMessageFacts {
  /** Names the message: sent twice with one id, it counts once, also over reloads of the page. Default: a random one. */
  readonly id?: string;
  /** The agent that answers; needed if the server offers more than one. */
  readonly agent?: string;
  /** What a message does that comes while a run is live; default `queue`. */
  readonly onBusy?: OnBusy;
}

/** A thread in one look. */
export interface ThreadView {
  readonly id: string;
  /** The run that is live, also one that waits. */
  readonly live?: string;
  /** Of that run, if it waits or is parked. A parked one ends with the next message. */
  readonly status?: 'waiting' | 'parked';
  /** The turns that have begun, the newest first, as far as the server shows them. */
  readonly turns: readonly ThreadTurn[];
}

/** Which page of messages is read. */
export interface MessagesPage {
  /** The `index` of the last message of the page before. */
  readonly after?: number | string;
  readonly limit?: number;
}

/** A conversation on the server. */
export interface ClientThread {
  readonly id: string;
  /**
   * Sends a message. It is sent again under its id until the server has answered, at most 4 times.
   * @throws {ClientError} THREAD_BUSY, THREAD_FULL, or THREAD_MESSAGE_CONFLICT if the id is that of another message
   */
  send(message: ThreadMessageToSend): Promise<ThreadSent>;
  /** Returns a page of the messages, oldest first. */
  messages(page?: MessagesPage): Promise<Page<ThreadMessage>>;
  /**
   * Returns the live run and the newest turns.
   * @throws {ClientError} NOT_FOUND if no message was sent to the thread
   */
  get(): Promise<ThreadView>;
  /** Cancels the live run; then the next message has its turn. */
  cancel(reason?: string): Promise<void>;
  /** Drops the turns after a message; with `before`, also the turn of the message. */
  rewind(messageId: string, options?: { readonly before?: boolean }): Promise<void>;
  /** Makes another thread that shares the turns up to a message; with `before`, without the turn of the message. */
  fork(messageId: string, newId: string, options?: { readonly before?: boolean }): Promise<void>;
  /** Cancels the live run and deletes the thread. */
  delete(): Promise<void>;
}

/** Makes the handle of a thread. Nothing is sent before a method is called. */
export function threadOn(connection: Connection, id: string): ClientThread {
  const path = pathOf('threads', id);
  const post = (action: string, body: unknown): Promise<unknown> =>
    connection.call({ method: 'POST', path: path + action, body, isRepeatable: true });
  return {
    id,
    send: async ({ id: messageId = connection.newId(), ...rest }) =>
      (await post('/messages', { ...rest, id: messageId })) as ThreadSent,
    get: async () => (await connection.call({ path, isRepeatable: true })) as ThreadView,
    messages: (page = {}) => connection.page<ThreadMessage>(`${path}/messages`, { ...page }),
    cancel: async (reason) => void (await post('/cancel', { reason })),
    rewind: async (messageId, { before } = {}) => void (await post('/rewind', { messageId, before })),
    fork: async (messageId, newId, { before } = {}) => void (await post('/fork', { messageId, newId, before })),
    delete: async () => void (await connection.call({ method: 'DELETE', path, isRepeatable: true })),
  };
}
