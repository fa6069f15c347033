import { type Agent, agentFrom } from '../../../agent/agent.ts';
import type { OpenWait } from '../../../record/interrupted.ts';
import { checkNewThreadId, checkThreadId, isNameable } from '../../../run/identity.ts';
import { type Labels, labelsOf } from '../../../run/request.ts';
import type {
  Admission,
  ListThreadsOptions,
  OnBusy,
  ReadThreadOptions,
  ThreadLine,
  ThreadMessage,
  ThreadStore,
  ThreadTurn,
} from '../../../store/thread-port.ts';
import { ThreadBusyError, UnsupportedError } from '../../../values/errors.ts';
import { checkKeys, checkWord, type KnownKeys, kindOf } from '../../../values/known-options.ts';
import { readable } from '../../host/guard.ts';
import type { ExecutorServices } from '../../run/active-run.ts';
import {
  cancelTurn,
  type MessagePart,
  onBusyWords,
  retryMessage,
  sendMessage,
  type ThreadSetting,
} from './send-message.ts';

export interface ThreadOptions<Data = unknown> {
  /**
   * The agent of the runs.
   * @example agent: support
   */
  readonly agent: Agent<Data>;
  /**
   * Who talks: a thread belongs to its caller, and another caller has another thread of the same id.
   * @default ''
   * @example callerId: user.id
   */
  readonly callerId?: string;
  /**
   * What a message does that finds a live run, one that waits included. `queue`: it waits for its turn. `steer`: the
   * live run gets it. `reject`: THREAD_BUSY. `interrupt`: the live run is cancelled, and this message is next.
   * @default 'queue'
   * @example onBusy: 'steer'
   */
  readonly onBusy?: OnBusy;
  /**
   * Most messages that may wait.
   * @default 100
   */
  readonly maxQueued?: number;
  /**
   * Labels of the runs, as for an invocation.
   * @default none
   * @example labels: { tenant: 'acme' }
   */
  readonly labels?: Labels;
}

/** What a message says. */
export type ThreadContent =
  | { readonly text: string; readonly parts?: undefined }
  | { readonly parts: readonly MessagePart[]; readonly text?: undefined };

/** A message to a thread. */
export type ThreadSend = ThreadContent & {
  /** The id of the message: sent again with the same content, it is the same message, also after its end. */
  readonly id: string;
  /** Default: the thread's. */
  readonly onBusy?: OnBusy;
};

/** What became of a message. */
export interface ThreadSent {
  /** The run of the message; of a steered one the live run. */
  readonly runId: string;
  /** `known`: the thread had the message already. */
  readonly state: Admission['state'];
  /** The open waits of the live run, for a message that waits behind it; absent = none. */
  readonly waits?: readonly OpenWait[];
}

/**
 * A conversation: a list of turns, each of them a durable run, with one history. It outlives its runs.
 * @example
 * const thread = executor.thread('t1', { agent, callerId: 'ada' });
 * const { runId } = await thread.send({ id: 'm1', text: 'What is new?' });
 * for (const { message } of await thread.messages()) show(message);
 */
export interface Thread {
  /** The id of the conversation. */
  readonly id: string;
  /**
   * Adds a message, durably: its run has its first record, or waits for its turn, when this resolves. A crash loses nothing.
   * @throws {THREAD_MESSAGE_CONFLICT} if the thread has other content under this id @throws {THREAD_BUSY}
   * @throws {THREAD_FULL} @throws {TypeError} @throws {INVALID_THREAD_ID} also for a first message of the thread `.` or `..`
   */
  send(message: ThreadSend): Promise<ThreadSent>;
  /**
   * The messages of the turns that have begun, in order, up to `limit` (default 100) after the index `after`. Compaction leaves
   * out none of them.
   */
  messages(options?: ReadThreadOptions): Promise<readonly ThreadMessage[]>;
  /** The turn of a message, or of a run; undefined if the thread has none. */
  turn(of: string | { readonly runId: string }): Promise<ThreadTurn | undefined>;
  /** The turns that have begun, the newest first, up to `limit` (default 100). */
  turns(options?: { readonly limit?: number }): Promise<readonly ThreadTurn[]>;
  /**
   * Begins another run of the last message, as `regenerate` of `useChat` does: one commit drops its turn, and stores the next one.
   * @param edited what the message says now; absent = as the thread has it
   * @throws {THREAD_BUSY} beside a live run @throws {THREAD_MISSING} also for a message that is not the last one
   */
  retry(messageId: string, edited?: ThreadContent): Promise<ThreadSent>;
  /** Cancels the live run: then the next message has its turn. @returns its id; undefined = no run was live */
  cancel(reason?: string): Promise<string | undefined>;
  /**
   * Drops the turns after a message; with `before` also the turn of the message. A message that was dropped may be sent again: it
   * begins another run.
   * @param messageId of a `send`, or of a message in `messages()`, or `<runId>:m`
   * @throws {THREAD_BUSY} beside a live run @throws {THREAD_MISSING}
   */
  rewind(messageId: string, options?: { readonly before?: boolean }): Promise<void>;
  /**
   * Makes another thread of the same caller, which shares the turns up to a message. Nothing is copied.
   * @throws {THREAD_EXISTS} @throws {THREAD_MISSING} @throws {THREAD_BUSY} if the turn of the message has not ended
   * @throws {INVALID_THREAD_ID} also for `.` and `..`
   */
  fork(messageId: string, newId: string, options?: { readonly before?: boolean }): Promise<void>;
  /** Cancels the live run and removes the thread, with all records that no fork uses. */
  delete(): Promise<void>;
}

const optionKeys: KnownKeys<ThreadOptions> = {
  agent: true,
  callerId: true,
  onBusy: true,
  maxQueued: true,
  labels: true,
};

/** How often a delete cancels the run that is live then: others may send messages meanwhile. */
const CANCELS_OF_DELETE = 100;

/**
 * Makes the handle of a thread. It reads and writes nothing before its first call.
 * @throws {TypeError} @throws {INVALID_THREAD_ID} @throws {UNSUPPORTED} if the store keeps no threads
 */
export function threadOf(services: ExecutorServices, id: string, given: ThreadOptions): Thread {
  checkKeys(given, optionKeys, { of: 'executor.thread' });
  const { callerId = '', onBusy = 'queue', maxQueued = 100, labels = {} } = given;
  const agent = readable('the agent of thread', () => agentFrom(given.agent, 'thread needs'));
  checkWord('executor.thread: onBusy', onBusy, onBusyWords);
  checkWhole('executor.thread: maxQueued', maxQueued);
  if (typeof callerId !== 'string') throw new TypeError(`callerId must be a string, not ${kindOf(callerId)}`);
  const key = {
    callerId: callerId === '' ? '' : checkThreadId(callerId, 'a caller'),
    id: checkThreadId(id, 'a thread'),
  };
  const store = threadStoreOf(services);
  const setting = { services, store, key, agent, onBusy, maxQueued, labels: labelsOf(labels) };
  services.see(agent);
  return {
    id,
    send: async (message) => {
      // A stored thread of such an id continues.
      if (!isNameable(id) && (await store.turns(key, { limit: 1 })).length === 0) checkNewThreadId(id);
      return sendMessage(setting, message);
    },
    messages: async (options = {}) => {
      checkKeys(options, { after: true, limit: true }, { of: 'thread.messages' });
      if (options.limit !== undefined) checkWhole('thread.messages: limit', options.limit);
      return store.read(key, options);
    },
    turn: async (of) => (await store.turnOf(key, typeof of === 'string' ? { messageId: of } : of)) ?? undefined,
    turns: async ({ limit = 100 } = {}) => {
      checkWhole('thread.turns: limit', limit);
      return store.turns(key, { limit });
    },
    retry: (messageId, edited) => retryMessage(setting, messageId, edited),
    cancel: (reason) => cancelLive(setting, reason),
    rewind: async (messageId, { before = false } = {}) => store.rewind(key, { messageId, isBefore: before }),
    fork: async (messageId, newId, { before = false } = {}) => {
      await store.fork(key, { messageId, isBefore: before, newId: checkNewThreadId(newId) });
    },
    delete: () => remove(setting),
  };
}

/** Lists threads: those of a caller, or all, the last changed first. */
export async function listThreads(
  services: ExecutorServices,
  options: ListThreadsOptions,
): Promise<readonly ThreadLine[]> {
  checkKeys(options, { callerId: true, after: true, limit: true }, { of: 'executor.threads' });
  if (options.limit !== undefined) checkWhole('executor.threads: limit', options.limit);
  return threadStoreOf(services).list(options);
}

function threadStoreOf({ config: { store } }: ExecutorServices): ThreadStore {
  if (store?.threads) return store.threads;
  throw new UnsupportedError('threads need a store that keeps them, for example sqliteStore({ path })');
}

/** Cancels the live run of a thread. @returns its id; undefined = none was live */
async function cancelLive({ services, store, key }: ThreadSetting, reason?: string): Promise<string | undefined> {
  const [newest] = await store.turns(key, { limit: 1 });
  if (newest?.state !== 'live') return undefined;
  await cancelTurn(services, newest.runId, reason);
  return newest.runId;
}

/** Other messages may come meanwhile, and a run that is live in another process ends at its next look. */
async function remove({ services, store, key }: ThreadSetting): Promise<void> {
  const { clock, defaults } = services.config;
  for (let tries = 0; tries < CANCELS_OF_DELETE; tries++) {
    const live = await store.delete(key);
    if (live === undefined) return;
    const cancelled = await cancelTurn(services, live, 'its thread is deleted');
    if (cancelled === 'sent') await new Promise<void>((resolve) => clock.setTimeout(resolve, defaults.controlMs));
  }
  throw new ThreadBusyError('the thread is not deleted: a run of it is still live; try again');
}

function checkWhole(name: string, value: unknown): void {
  if (Number.isInteger(value) && Number(value) > 0) return;
  throw new TypeError(
    `${name} must be a whole number above 0, not ${typeof value === 'number' ? value : kindOf(value)}`,
  );
}
