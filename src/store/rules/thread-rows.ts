/** A thread as a driver stores it. Texts are opaque: with a codec they are encrypted. */
export interface ThreadRow {
  /** What the thread is found by: a hash of caller and id. */
  readonly thread: string;
  /** What the threads of its caller are found by. */
  readonly caller: string;
  /** Wall clock, ms. */
  readonly updatedAt: number;
  /** How many turns have begun. */
  readonly turns: number;
  /** How many messages the ended ones have. */
  readonly length: number;
  /** How many times it was rewound. */
  readonly rewinds: number;
  readonly text: string;
}

/**
 * Where a turn is. `queued`: it waits for its turn; its text has the first record of its run. `steered`: it is in the inbox of the
 * live run, and waits until that has ended. `live`: its run is live. `taken`: the run of another turn has delivered it.
 */
export type TurnState = 'queued' | 'steered' | 'live' | 'taken' | 'ended';

/** A turn as a driver stores it, under its thread and `message`. */
export interface TurnRow {
  /** What its message is found by: a hash of the message's id. */
  readonly message: string;
  readonly runId: string;
  readonly state: TurnState;
  /** `live`, `ended`: its place among the begun turns; `taken`: that of its run. `queued`, `steered`: its place in the queue. */
  readonly order: number;
  /** Of a begun turn: how many messages the thread has before it. */
  readonly first: number;
  /** Of an ended turn: how many messages it has. */
  readonly count: number;
  readonly text: string;
  /** A shorter history that its run made. */
  readonly compaction: string | null;
}

/** What a decision about a thread knows. Drivers may read each fact when it is first used. */
export interface ThreadFacts {
  readonly thread: ThreadRow | null;
  /** The turn of the message that the write names. */
  readonly turn: TurnRow | null;
  readonly live: TurnRow | null;
  /** The first queued turn. */
  readonly next: TurnRow | null;
  readonly steered: readonly TurnRow[];
  /** The queued and steered turns: how many, and their lowest and highest order; 0 without any. */
  readonly queue: { readonly count: number; readonly lowest: number; readonly highest: number };
  /** Whether a run has a record that has not ended. */
  hasRecord(runId: string): boolean;
  /** Whether there is any trace of a run: a record, an outcome, or a turn. */
  isKnown(runId: string): boolean;
}

/** The change of a thread, in one commit with writes to runs. */
export interface ThreadChange<Write = unknown> {
  /** Stores the row of the thread; `remove`: removes it. */
  readonly thread?: ThreadRow | 'remove' | undefined;
  /** Stores turns, each in place of the one with its `message`. */
  readonly turns?: readonly TurnRow[] | undefined;
  /** Removes turns, by `message`. */
  readonly remove?: readonly string[] | undefined;
  /** Writes to runs, each to another one. */
  readonly writes?: readonly Write[] | undefined;
  /** Writes that erase runs: made for each that is a turn of no other thread. */
  readonly erase?: readonly Write[] | undefined;
}

/** An answer, with the change of a thread that must be made first. */
export interface ThreadDecision<T, Write = unknown> {
  readonly value: T;
  readonly change?: ThreadChange<Write> | undefined;
}

/** Which turns of a thread to read. */
export type TurnQuery =
  /** Begun ones (`live`, `ended`) from a place on, in their order. */
  | { readonly kind: 'begun'; readonly from: number; readonly limit: number }
  /** Begun ones, the newest first. */
  | { readonly kind: 'newest'; readonly limit: number }
  /** Those from a place on that are not in the queue, the newest first; of one run the `taken` ones first. */
  | { readonly kind: 'last'; readonly from: number; readonly limit: number }
  /** `queued` and `steered` ones, in any order. */
  | { readonly kind: 'waiting'; readonly limit: number }
  | { readonly kind: 'message'; readonly messages: readonly string[] }
  /** The turn of a run, begun or not. */
  | { readonly kind: 'run'; readonly runId: string }
  /** The begun turn that has this message of the thread, or would have it next. */
  | { readonly kind: 'at'; readonly index: number }
  /** The newest ended turn with a compaction, of those that end at this message or before. */
  | { readonly kind: 'compacted'; readonly upTo: number };
