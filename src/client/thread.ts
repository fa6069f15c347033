import type { Message } from '../values/message.ts';
import { type Connection, type Page, pathOf } from './connection.ts';

/** A message of a conversation. */
export interface ClientThreadMessage {
  readonly id: string;
  /** The run that recorded it. */
  readonly runId: string;
  /** Its place in the thread, from 0: `messages({ after: index })` continues behind it. */
  readonly index: number;
  readonly message: Message;
}

/** What a person says. */
export type ThreadMessageToSend = ThreadMessageFacts &
  ({ readonly text: string; readonly parts?: never } | { readonly parts: readonly unknown[]; readonly text?: never });

/** What a message to a thread has besides its content. */
export interface ThreadMessageFacts {
  /** Names the message: sent twice with one id, it counts once, also over reloads of the page. Default: a random one. */
  readonly id?: string;
  /** The agent that answers; needed if the server offers more than one. */
  readonly agent?: string;
  /** What a message does that comes while a run is live; default that of the server, `queue`. */
  readonly onBusy?: 'queue' | 'steer' | 'reject' | 'interrupt';
}

/** What became of a message. */
export interface SentMessage {
  /** The run that answers it: `client.run(runId).events()` follows the answer. */
  readonly runId: string;
  /** `known`: the thread had this message already. */
  readonly state: 'started' | 'queued' | 'steered' | 'known';
  /** The waits of the live run, if the message is queued behind a run that waits. */
  readonly waits?: readonly unknown[];
}

/** A conversation on the server. */
export interface ClientThread {
  readonly id: string;
  /**
   * Sends a message. It is sent again under its id until the server has answered, at most 4 times.
   * @throws {ClientError} THREAD_BUSY, THREAD_FULL, or THREAD_MESSAGE_CONFLICT if the id is that of another message
   */
  send(message: ThreadMessageToSend): Promise<SentMessage>;
  /** Returns a page of the messages, oldest first. */
  messages(page?: { readonly after?: string | number; readonly limit?: number }): Promise<Page<ClientThreadMessage>>;
  /** Cancels the live run. */
  cancel(reason?: string): Promise<void>;
  /** Drops what comes after a message. */
  rewind(messageId: string): Promise<void>;
  /** Makes another thread of the messages up to one of them. */
  fork(messageId: string, newId: string): Promise<void>;
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
      (await post('/messages', { ...rest, id: messageId })) as SentMessage,
    messages: (page = {}) => connection.page<ClientThreadMessage>(`${path}/messages`, { ...page }),
    cancel: async (reason) => void (await post('/cancel', { reason })),
    rewind: async (messageId) => void (await post('/rewind', { messageId })),
    fork: async (messageId, newId) => void (await post('/fork', { messageId, newId })),
    delete: async () => void (await connection.call({ method: 'DELETE', path, isRepeatable: true })),
  };
}
