import type { RunCheckpoint } from '../record/checkpoint.ts';
import type { Message } from '../values/message.ts';

/** Names a thread: an id is one of its caller, and no other caller finds it. */
export interface ThreadKey {
  readonly callerId: string;
  readonly id: string;
}

/** What a message does that finds a live run. */
export type OnBusy = 'queue' | 'steer' | 'reject' | 'interrupt';

/** A message of a user: the turn that it begins. */
export interface TurnToAdmit extends ThreadKey {
  readonly messageId: string;
  /** A hash of its content. The same id with another one is refused. */
  readonly digest: string;
  /** The first record of its run. The store sets the run id, and `thread`. */
  readonly record: RunCheckpoint;
  /** Of its first record: see `WriteOptions.fairKey`. */
  readonly fairKey?: string | undefined;
  /** The text that a live run can take; absent: the message has files, and begins a turn. */
  readonly text?: string | undefined;
  readonly onBusy: OnBusy;
  /** Most messages that may wait. */
  readonly maxQueued: number;
  /** The message is that of the last turn, and has ended: another run takes the place of that turn, whose record is erased. */
  readonly again?: boolean | undefined;
}

/** What became of a message. */
export interface Admission {
  /** Its run; for one that was steered, the live run. */
  readonly runId: string;
  readonly state: 'started' | 'queued' | 'steered' | 'known';
  /** The live run of the thread. */
  readonly live?: string;
}

/** The end of a run that is a turn of a thread. */
export interface TurnEnd extends ThreadKey {
  /** The ids of the steered messages in the run's own messages. */
  readonly delivered: readonly string[];
  /** A shorter history that replaces the first `upTo` messages of the thread for a model. */
  readonly compaction?: Compaction | undefined;
  /** Wall clock, ms. */
  readonly now: number;
}

/** A shorter history for a model. */
export interface Compaction {
  /** How many messages of the thread it replaces. */
  readonly upTo: number;
  readonly messages: readonly Message[];
}

/** The turn that began because the one before it ended. */
export interface BegunTurn {
  readonly runId: string;
  readonly agentId: string;
}

/** A turn of a thread: one message of a user, and its run. `steered`: the message is for a run that was live. */
export interface ThreadTurn {
  readonly messageId: string;
  readonly runId: string;
  readonly state: 'queued' | 'live' | 'steered' | 'ended';
}

/** A message of a thread. */
export interface ThreadMessage {
  /** A user's message: the id of its `send`. Any other: `<runId>:<place in its run>`. */
  readonly id: string;
  readonly runId: string;
  /** Its place in the thread, from 0. */
  readonly index: number;
  readonly message: Message;
}

/** A thread in a list. */
export interface ThreadLine extends ThreadKey {
  /** Wall clock of its last change, ms. */
  readonly updatedAt: number;
  /** How many turns have begun. */
  readonly turns: number;
  /** How many messages the ended ones have. */
  readonly messages: number;
  /** The live run. */
  readonly live?: string;
  /** How many messages wait. */
  readonly queued: number;
  /** Where the next page begins. */
  readonly cursor: string;
}

export interface ListThreadsOptions {
  readonly callerId?: string | undefined;
  /** The `cursor` of the last thread of the page before. */
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
}

export interface ReadThreadOptions {
  /** The `index` of the last message of the page before. */
  readonly after?: number | undefined;
  readonly limit?: number | undefined;
}

/** A place in a thread: the turn of a message. */
export interface ThreadPlaceOf {
  /** The id of a message of the thread, of a user or of a run; `<runId>:m` is the answer of a run as a whole. */
  readonly messageId: string;
  /** The turn of the message is not part of it. */
  readonly isBefore?: boolean | undefined;
}

/**
 * The conversations of a store. A thread is a list of turns, each of them a run; their messages stay in the records of the
 * runs, which are kept as long as the thread.
 */
export interface ThreadStore {
  /**
   * Adds a message to its thread, in one commit: its run begins (`started`; its first record is due at once), or waits for its
   * turn (`queued`), or the live run gets it (`steered`). One that the thread has already changes nothing (`known`).
   * @throws {THREAD_MESSAGE_CONFLICT} @throws {THREAD_BUSY} @throws {THREAD_FULL} @throws {THREAD_MISSING} with `again`
   */
  admit(turn: TurnToAdmit): Promise<Admission>;
  /** The messages of the begun turns, in order; an unknown thread has none. */
  read(key: ThreadKey, options?: ReadThreadOptions): Promise<readonly ThreadMessage[]>;
  /** The messages of a thread before `upTo` as a model gets them: the newest compaction, and the messages after it. */
  history(key: ThreadKey, upTo: number): Promise<readonly Message[]>;
  /** The turn of a message or of a run. */
  turnOf(key: ThreadKey, of: { readonly messageId: string } | { readonly runId: string }): Promise<ThreadTurn | null>;
  /** The first record of the run of a message that waits for its turn; null: no such message waits. */
  queuedRun(runId: string): Promise<RunCheckpoint | null>;
  /** The begun turns, the newest first; `waiting`: those of messages that wait instead, in any order. */
  turns(
    key: ThreadKey,
    options: { readonly limit: number; readonly waiting?: boolean },
  ): Promise<readonly ThreadTurn[]>;
  /**
   * One page of threads, the last changed first.
   * @param options.heldUp only those in which messages wait; a store may leave out those whose live run is due at some time
   */
  list(options?: ListThreadsOptions & { readonly heldUp?: boolean }): Promise<readonly ThreadLine[]>;
  /**
   * Drops the turns after a message, with the records of their runs.
   * @throws {THREAD_BUSY} beside a live run @throws {THREAD_MISSING}
   */
  rewind(key: ThreadKey, to: ThreadPlaceOf): Promise<void>;
  /**
   * Makes a thread that shares the turns up to a message. Its runs are kept as long as one of the threads.
   * @throws {THREAD_EXISTS} @throws {THREAD_MISSING}
   */
  fork(key: ThreadKey, to: ThreadPlaceOf & { readonly newId: string }): Promise<void>;
  /**
   * Removes the messages that wait, then the turns with the records of their runs, except those that a fork uses.
   * @returns the live run, which must end first; undefined = the thread is removed
   */
  delete(key: ThreadKey): Promise<string | undefined>;
}
