import type { CommandToSend, StoredCommand } from './commands.ts';
import type { StoredPieces } from './encoding/blob-refs.ts';
import type { StoredBody } from './encoding/stored-body.ts';
import type { Lease } from './lease.ts';
import type { Claim, Cursor, InboxOf } from './port.ts';
import type { Decide } from './transitions.ts';

/**
 * What a store has to do by itself: read facts, make changes, and give stored texts back. `storeFrom` makes the store of it.
 *
 * Every method waits for the writes that were asked for before it. Texts are opaque: with a codec they are encrypted.
 */
export interface StoreDriver {
  /**
   * Makes one write. The driver reads the facts of the run, asks `decide` for the change, makes all of it or nothing, and
   * resolves to the answer once the change is durable. Between the facts and the change no other writer may change the run:
   * a lock, a transaction, or a comparison that fails and is tried again.
   *
   * Writes of one run take effect in the order of the calls. What `decide` throws rejects this write alone.
   * @param signal aborted before the decision = rejects with its reason, and changes nothing
   */
  write<T>(write: StoreWrite<T>, signal?: AbortSignal): Promise<T>;
  /**
   * Reads a record; null when there is none. The messages are given to `messages`, row by row, in order.
   * @throws {CheckpointCorruptError} when it is damaged
   */
  load(runId: string, messages: MessageReader, signal?: AbortSignal): Promise<StoredTexts | null>;
  /** The records that have one, by `updatedAt`, then by the UTF-8 bytes of the run id: those after `after`, up to `limit`. */
  list(page: ListPage): Promise<readonly ListedHead[]>;
  /** The text of a kept outcome; null when there is none, or its time is over. @throws {CheckpointCorruptError} */
  outcome(runId: string): Promise<string | null>;
  /** The commands that wait for a run, or for the runs that an owner has claimed: the oldest first. */
  inbox(of: InboxOf): Promise<readonly StoredCommand[]>;
  /** In the place of a `write` with the decision `sendCommand`. */
  send?(command: CommandToSend): Promise<void>;
  /** In the place of a `write` with the decision `acknowledge`. @throws {LeaseLostError} */
  acknowledge?(claim: Claim, ids: readonly string[]): Promise<void>;
  /** Removes outcomes whose time is over, or only counts them. `storeFrom` asks once a minute. @returns how many */
  forgetOutcomes?(options: { readonly dryRun: boolean }): Promise<number>;
  /** Waits for the writes that were asked for, and refuses every later call. */
  close?(): Promise<void>;
  /** Whether an owner is certainly dead. Default: a dead process of this machine, where the executor named the owner. */
  isDead?(owner: string): boolean;
  /** A list is read in pages of at most so many runs, with a turn of the event loop between. Default: in one page. */
  readonly runsPerPage?: number;
}

/** A write to one run. */
export interface StoreWrite<T = unknown> {
  readonly runId: string;
  /** Which of the nine. Drivers need not look at it: a claim that is refused may be refused without a lock, for example. */
  readonly kind: WriteKind;
  /** May be asked several times, and decides each time from the facts of that time alone. */
  readonly decide: Decide<T>;
  /** What a change of the record stores. */
  readonly body?: StoredBody;
  /** Characters of what is to be stored. */
  readonly size: number;
  /** The write names its claim: what the driver wrote for this run last is most likely still there. */
  readonly hasClaim: boolean;
}

export type WriteKind = 'save' | 'append' | 'delete' | 'keep' | 'claim' | 'renew' | 'release' | 'send' | 'acknowledge';

/** The texts of a stored record, as they were given in bodies. */
export interface StoredTexts {
  readonly meta: string;
  readonly head: string;
  readonly extras: string | null;
  /** The large parts that the head names. */
  readonly pieces?: StoredPieces | undefined;
  /** The texts of the open step that is stored beside the head. */
  readonly step?: readonly string[] | undefined;
  /** What the lease counts; absent without a lease. */
  readonly attempts?: number | undefined;
}

/** Takes the stored rows of a transcript. */
export interface MessageReader {
  /** How many messages it has. */
  readonly count: number;
  /**
   * Takes a row: the messages from `count` on.
   * @param pieces the large parts that the row names
   * @throws {CheckpointCorruptError} when it is not what was stored
   */
  add(text: string, pieces?: StoredPieces): void;
  /** Keeps the first `count` messages only; 0 = the record was replaced meanwhile, and is read again. */
  keep(count: number): void;
}

export interface ListPage {
  readonly after: Cursor | undefined;
  /** `Infinity`: all of them. */
  readonly limit: number;
  readonly signal: AbortSignal | undefined;
}

/** A record without its messages, for a list. */
export interface ListedHead extends Cursor {
  readonly meta: string;
  readonly head: string;
  readonly pieces?: StoredPieces | undefined;
  readonly lease?: Lease | undefined;
  /** The lease clock when the lease was read, ms. */
  readonly now: number;
  /** Why the record cannot be read: the run is listed as quarantined. */
  readonly error?: unknown;
}
