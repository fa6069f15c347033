import { journalOfState, type RunCheckpointState, showMessages } from '../record/state.ts';
import type { RunCheckpointMeta } from '../run/request.ts';
import { type Clock, systemClock } from '../values/clock.ts';
import { withDeadline } from '../values/deadline.ts';
import { hasTrait } from '../values/error-data.ts';
import { checkKeys, type KnownKeys } from '../values/known-options.ts';
import { checkStore, isAppending } from './capabilities.ts';
import { checkedStore, storeFailure } from './checked-store.ts';
import type { Ended, EndOptions } from './history-port.ts';
import type { AppendingStore, CheckpointStore, Claim } from './port.ts';
import { type LandedState, type RecordWrite, RecordWrites } from './record-writes.ts';

/** Records one run. A host's own needs only `save`, `complete` and `fail`. */
export interface Checkpointer {
  /** Whether its saves are durable; absent = true. A lazy checkpointer returns false from a getter until its first write. */
  readonly durable?: boolean;
  /** Resolves when the state is durable; at once if the throttle delays it. Rejects with the store's error. */
  save(state: RunCheckpointState, options?: { readonly force?: boolean }): Promise<void>;
  /** The run succeeded: deletes its record, and no later save can restore it. */
  complete(): Promise<void>;
  /** The run failed for good: deletes its record. */
  fail(error: unknown): Promise<void>;
}

export interface CheckpointerOptions {
  /** Shortest time between two unforced writes, ms. 0 = write each. */
  readonly throttleMs?: number;
  readonly clock?: Clock;
  readonly claim?: Claim | undefined;
  readonly maxRecordBytes?: number;
  /** Deadline of one store call, ms. */
  readonly timeoutMs?: number;
  /** What the store already holds of this run. */
  readonly landed?: LandedState | undefined;
  /** Stored with the first record: see `WriteOptions.fairKey`. */
  readonly fairKey?: string | undefined;
  /**
   * Called when the late write of a throttled state failed. The write is repeated at the end of the next window, unless
   * another owner has the run.
   */
  readonly onFlushError?: ((error: unknown) => void) | undefined;
}

const optionKeys: KnownKeys<CheckpointerOptions> = {
  throttleMs: true,
  clock: true,
  claim: true,
  maxRecordBytes: true,
  timeoutMs: true,
  landed: true,
  onFlushError: true,
  fairKey: true,
};

const DEFAULT_MAX_RECORD_BYTES = 64 * 2 ** 20;

/**
 * Makes the checkpointer of one run on a store, which saves its states. Writes are serialised and the newest state wins.
 * Unforced saves within `throttleMs` of the last successful write are delayed to the end of that window, never dropped.
 * After a failed forced write no save is delayed until a write has succeeded.
 *
 * @param store undefined or null = nothing is recorded and every method succeeds
 * @throws {TypeError} for any other value that is not a store, for an unknown option, and for a number that is none
 * @example const checkpointer = createCheckpointer(store, meta, { throttleMs: 1_000 })
 */
export function createCheckpointer(
  store: CheckpointStore | undefined,
  meta: RunCheckpointMeta,
  options: CheckpointerOptions = {},
): Checkpointer {
  checkKeys(options, optionKeys, { of: 'createCheckpointer' });
  checkNumbers('createCheckpointer', options);
  if (store === undefined || store === null) return noCheckpointer;
  checkStore('createCheckpointer: the store', store);
  return new StoreCheckpointer(store, meta, options);
}

/** Checks the numbers of a checkpointer, or of a factory of them. @throws {TypeError} NaN would disable a limit in silence */
export function checkNumbers(
  of: string,
  {
    throttleMs = 0,
    timeoutMs = 1,
    maxRecordBytes = 1,
  }: Pick<CheckpointerOptions, 'throttleMs' | 'timeoutMs' | 'maxRecordBytes'>,
): void {
  if (typeof throttleMs !== 'number' || Number.isNaN(throttleMs))
    throw new TypeError(`${of}: throttleMs must be a number, not ${String(throttleMs)}`);
  for (const [name, value] of Object.entries({ timeoutMs, maxRecordBytes }))
    if (!(typeof value === 'number' && value > 0))
      throw new TypeError(`${of}: ${name} must be a number above 0, not ${String(value)}`);
}

const succeed = async (): Promise<void> => {};

/** A checkpointer that records nothing: each method succeeds and does nothing. */
export const noCheckpointer: Checkpointer = Object.freeze({
  durable: false,
  save: succeed,
  complete: succeed,
  fail: succeed,
});

/**
 * Wraps a host's checkpointer so that its errors have a code: see `storeFailure`. Errors of Pawl's own checkpointer already
 * have one.
 */
export function checkedCheckpointer(host: Checkpointer): Checkpointer {
  if (host instanceof StoreCheckpointer || host === noCheckpointer) return host;
  const check = async (what: string, answer: () => Promise<void>): Promise<void> => {
    try {
      await answer();
    } catch (error) {
      throw storeFailure(`checkpointer.${what}`, error);
    }
  };
  return {
    get durable() {
      return host.durable ?? true;
    },
    save: (state, options) => check('save', () => host.save(showMessages(state), options)),
    complete: () => check('complete', () => host.complete()),
    fail: (error) => check('fail', () => host.fail(error)),
  };
}

/** Returns whether each wait of a checkpointer ends by itself, because it bounds its store's calls. */
export function isBounded(checkpointer: Checkpointer): boolean {
  return checkpointer instanceof StoreCheckpointer && checkpointer.isBounded;
}

/** Returns the size limit of a run's record, as its checkpointer gives it. */
export function maxRecordBytesOf(checkpointer: Checkpointer | null): number {
  if (checkpointer === null || checkpointer.durable === false) return Number.POSITIVE_INFINITY;
  return checkpointer instanceof StoreCheckpointer ? checkpointer.maxRecordBytes : DEFAULT_MAX_RECORD_BYTES;
}

/** Returns the newest revision of a run's record that is known to be stored; undefined for a host's own checkpointer. */
export function revisionOf(checkpointer: Checkpointer | null): number | undefined {
  return checkpointer instanceof StoreCheckpointer ? checkpointer.revision : undefined;
}

/**
 * Abandons the checkpointer of a run that is over in this process: delayed saves are dropped, and no further save is
 * delayed.
 */
export function abandon(checkpointer: Checkpointer | null): void {
  if (checkpointer instanceof StoreCheckpointer) checkpointer.abandon();
}

/**
 * Returns how a checkpointer ends its run so that the record is kept: once, after its last save. Undefined if its store keeps no
 * records of ended runs, or it is a host's.
 */
export function keeperOf(checkpointer: Checkpointer): ((end: EndOptions) => Promise<Ended>) | undefined {
  return checkpointer instanceof StoreCheckpointer ? checkpointer.keeper : undefined;
}

/** Returns whether a write's error means that another owner has the run. */
export function isTakenOver(error: unknown): boolean {
  return hasTrait(error, 'ownership');
}

interface Waiting {
  state: RunCheckpointState;
  isForced: boolean;
  readonly landed: PromiseWithResolvers<void>;
}

/**
 * Records one run in a store: the one stage on the way of a save that waits for the store. One write is under way, one state waits
 * behind it, and one may be delayed by the throttle.
 */
class StoreCheckpointer implements Checkpointer {
  readonly durable = true;
  readonly isBounded: boolean;
  readonly maxRecordBytes: number;
  readonly #store: CheckpointStore;
  readonly #runId: string;
  readonly #options: CheckpointerOptions & { readonly clock: Clock; readonly timeoutMs: number };
  readonly #writes: RecordWrites;
  #lastSuccess: number | undefined;
  #inFlight: Promise<void> | undefined;
  #waiting: Waiting | undefined;
  #deferred: RunCheckpointState | undefined;
  #timer: unknown;
  #sealed: Promise<void> | undefined;
  /** A forced write failed: its caller must not get a success for a newer state that is not stored. */
  #isOwed = false;
  #isAbandoned = false;

  constructor(store: CheckpointStore, meta: RunCheckpointMeta, options: CheckpointerOptions) {
    const { clock = systemClock, claim, landed, timeoutMs = 30_000 } = options;
    const { maxRecordBytes = DEFAULT_MAX_RECORD_BYTES } = options;
    this.isBounded = Number.isFinite(timeoutMs);
    this.maxRecordBytes = maxRecordBytes;
    this.#store = checkedStore(store);
    this.#runId = meta.runId;
    this.#options = { ...options, clock, timeoutMs };
    const attempts = claim?.attempts ?? 0;
    this.#writes = new RecordWrites(meta, { clock, attempts, maxRecordBytes, isAppending: isAppending(store), landed });
  }

  save(state: RunCheckpointState, { force = false }: { readonly force?: boolean } = {}): Promise<void> {
    if (this.#sealed) return Promise.resolve();
    if (this.#inFlight) return this.#wait(state, force);
    if (!force && this.#windowLeft() > 0) return this.#defer(state);
    return this.#write(state, force);
  }

  get revision(): number | undefined {
    return this.#writes.revision;
  }

  abandon(): void {
    this.#isAbandoned = true;
    this.#dropDeferred();
  }

  complete(): Promise<void> {
    const { claim } = this.#options;
    this.#sealed ??= this.#seal(() =>
      this.#bound('store.delete', this.#store.delete(this.#runId, claim ? { claim } : {})),
    );
    return this.#sealed;
  }

  get keeper(): ((end: EndOptions) => Promise<Ended>) | undefined {
    const { history } = this.#store;
    const { claim } = this.#options;
    if (!claim || !history) return undefined;
    return async (options) => {
      let ended: Ended = {};
      this.#sealed ??= this.#seal(async () => {
        ended = await this.#bound('store.history.end', history.end(claim, options));
      });
      await this.#sealed;
      return ended;
    };
  }

  fail(_error: unknown): Promise<void> {
    return this.complete();
  }

  /**
   * One state waits while another is being written. A newer state replaces it, and both callers get the result of the newer
   * one.
   */
  #wait(state: RunCheckpointState, isForced: boolean): Promise<void> {
    if (this.#waiting) {
      this.#waiting.state = state;
      this.#waiting.isForced ||= isForced;
    } else {
      this.#waiting = { state, isForced, landed: Promise.withResolvers() };
    }
    return this.#waiting.landed.promise;
  }

  #defer(state: RunCheckpointState): Promise<void> {
    this.#deferred = state;
    this.#timer ??= this.#options.clock.setTimeout(() => this.#flush(), this.#windowLeft());
    return Promise.resolve();
  }

  #flush(): void {
    this.#timer = undefined;
    const state = this.#deferred;
    if (!state || this.#sealed) return;
    this.save(state, { force: true }).catch((error: unknown) => {
      this.#tell(error);
      if (this.#isAbandoned || isTakenOver(error)) return;
      if (!this.#sealed && !this.#waiting && !this.#inFlight) {
        this.#deferred = state;
        this.#timer ??= this.#options.clock.setTimeout(() => this.#flush(), this.#options.throttleMs ?? 0);
      }
    });
  }

  #tell(error: unknown): void {
    try {
      this.#options.onFlushError?.(error);
    } catch {
      // The callback cannot get a second error; the delayed state must be stored all the same.
    }
  }

  #dropDeferred(): void {
    this.#deferred = undefined;
    if (this.#timer !== undefined) this.#options.clock.clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #write(state: RunCheckpointState, isForced: boolean): Promise<void> {
    this.#dropDeferred();
    const startedAt = this.#options.clock.monotonic();
    const write = this.#bring(state).then(
      () => {
        this.#lastSuccess = startedAt;
        this.#isOwed = false;
        this.#next();
      },
      (error: unknown) => {
        this.#isOwed ||= isForced;
        this.#next();
        throw error;
      },
    );
    this.#inFlight = write;
    return write;
  }

  /** Brings the record to a state: by one write, or by two after an answer that is not known. */
  async #bring(state: RunCheckpointState): Promise<void> {
    for (let isLast = false; !isLast; ) {
      isLast = !this.#writes.isUnclear;
      const write = this.#writes.next(state);
      try {
        await this.#send(write);
        this.#writes.onLanded(write);
      } catch (error) {
        if (!this.#writes.failed(write, error)) throw error;
        isLast = false;
      }
    }
    journalOfState(state)?.landed();
  }

  #send({ delta, record, events }: RecordWrite): Promise<void> {
    const { claim, fairKey } = this.#options;
    const options = { ...(claim ? { claim } : {}), ...(events ? { events } : {}) };
    if (delta) return this.#bound('store.append', (this.#store as AppendingStore).append(delta, options));
    const fair = fairKey === undefined ? {} : { fairKey };
    return this.#bound('store.save', this.#store.save(record, { ...options, ...fair }));
  }

  #bound<T>(what: string, answer: Promise<T>): Promise<T> {
    const { clock, timeoutMs: ms } = this.#options;
    return withDeadline(answer, { ms, clock, what });
  }

  #next(): void {
    this.#inFlight = undefined;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (!waiting) return;
    const { state, isForced, landed } = waiting;
    const isPutOff = !isForced && this.#windowLeft() > 0;
    if (this.#sealed) landed.resolve();
    else landed.resolve(isPutOff ? this.#defer(state) : this.#write(state, isForced));
  }

  /** The rest of the throttle's window, ms. The window begins with the last successful write. */
  #windowLeft(): number {
    const { throttleMs = 0, clock } = this.#options;
    if (this.#isOwed || this.#isAbandoned) return 0;
    if (throttleMs <= 0 || this.#lastSuccess === undefined) return 0;
    return this.#lastSuccess + throttleMs - clock.monotonic();
  }

  async #seal(last: () => Promise<void>): Promise<void> {
    this.#dropDeferred();
    await this.#inFlight?.catch(() => {});
    await last();
  }
}
