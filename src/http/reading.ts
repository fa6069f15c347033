import type { Clock, Executor, FollowOptions, JournalEvent } from '../index.ts';
import { beforeRead, type ReadTurns } from '../run/journal/reader.ts';
import { Turns } from '../values/event-loop.ts';
import { charsIn } from '../values/json.ts';

/** The longest event that is not large, in characters of its texts. */
const LARGE_CHARS = 65_536;

/** Large events, or conversations, of one caller that are on their way to readers at a time. */
const LARGE_AT_ONCE = 2;

/** How a stream reads the events of a run. */
export interface ReadOptions extends FollowOptions {
  readonly callerId: string;
  readonly signal: AbortSignal;
}

/** How far a stream has read. */
interface Place {
  readonly callerId: string;
  after: string | undefined;
  /** Gives back the place for a large event. */
  leave?: (() => void) | undefined;
}

/**
 * Reads events for the streams of all callers. Reads of the journal come one after the other, by turns of the callers. Of large
 * events a caller has few in memory: a stream whose turn has not come holds only its cursor, and reads the event again.
 */
export class Reading {
  readonly #turns: Turns;
  readonly #events = new LargePlaces();
  readonly #snapshots = new LargePlaces();

  constructor(clock: Clock) {
    this.#turns = new Turns(clock);
  }

  /** Resolves in a turn of the event loop for work of a caller. */
  turn(callerId: string): Promise<void> {
    return this.#turns.own(callerId);
  }

  /**
   * Reads the events of a run. The reader asks for the next event when the one before is sent.
   * @throws {TypeError} at once, for a cursor that is none
   */
  events(executor: Executor, runId: string, options: ReadOptions): AsyncGenerator<JournalEvent, void, undefined> {
    const open = (after: string | undefined) => this.each(executor, runId, { ...options, after });
    return this.#byTurns(open(options.after), open, options);
  }

  /** Reads the events of a run, of any size. @throws {TypeError} at once, for a cursor that is none */
  each(
    executor: Executor,
    runId: string,
    { callerId, signal, after, newest }: ReadOptions,
  ): AsyncIterableIterator<JournalEvent> {
    const turned: FollowOptions & ReadTurns = { signal, after, newest, [beforeRead]: () => this.turn(callerId) };
    return executor.events(runId, turned);
  }

  async *#byTurns(
    first: AsyncIterable<JournalEvent>,
    open: (after: string | undefined) => AsyncIterable<JournalEvent>,
    { callerId, signal, after }: ReadOptions,
  ): AsyncGenerator<JournalEvent, void, undefined> {
    const at: Place = { callerId, after };
    try {
      for (let events = first; ; events = open(at.after)) {
        if (yield* this.#upToLarge(events, at)) return;
        at.leave = await this.#events.take(callerId, signal);
        if (!at.leave) return;
      }
    } finally {
      at.leave?.();
    }
  }

  /**
   * Yields the events up to a large one for which the caller has no place. A generator of its own: one that waits keeps the last
   * value of each of its variables in memory.
   * @returns whether the events are over
   */
  async *#upToLarge(events: AsyncIterable<JournalEvent>, at: Place): AsyncGenerator<JournalEvent, boolean, undefined> {
    for await (const event of events) {
      if (charsIn(event, LARGE_CHARS) > LARGE_CHARS) {
        at.leave ??= this.#events.takeNow(at.callerId);
        if (!at.leave) return false;
        await this.turn(at.callerId);
      }
      yield event;
      at.leave?.();
      at.leave = undefined;
      at.after = event.cursor;
    }
    return true;
  }

  /** Waits until a conversation of a caller may be read as a whole. @returns gives the place back; undefined if it was aborted */
  snapshot(callerId: string, signal: AbortSignal): Promise<(() => void) | undefined> {
    return this.#snapshots.take(callerId, signal);
  }
}

/** The places of each caller. Those who wait for one get it in their order. */
class LargePlaces {
  readonly #taken = new Map<string, number>();
  readonly #waiting = new Map<string, (() => void)[]>();

  /** Takes a place if there is one. @returns gives it back */
  takeNow(callerId: string): (() => void) | undefined {
    const taken = this.#taken.get(callerId) ?? 0;
    if (taken >= LARGE_AT_ONCE) return undefined;
    this.#taken.set(callerId, taken + 1);
    return this.#givingBack(callerId);
  }

  /** Takes a place once there is one. @returns gives it back; undefined if the signal was aborted before */
  take(callerId: string, signal: AbortSignal): Promise<(() => void) | undefined> {
    const now = signal.aborted ? undefined : this.takeNow(callerId);
    if (now || signal.aborted) return Promise.resolve(now);
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(callerId) ?? [];
      this.#waiting.set(callerId, waiting);
      const abort = () => {
        waiting.splice(waiting.indexOf(get), 1);
        resolve(undefined);
      };
      const get = () => {
        signal.removeEventListener('abort', abort);
        resolve(this.#givingBack(callerId));
      };
      waiting.push(get);
      signal.addEventListener('abort', abort, { once: true });
    });
  }

  #givingBack(callerId: string): () => void {
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      const next = this.#waiting.get(callerId)?.shift();
      if (next) return next();
      const left = (this.#taken.get(callerId) ?? 1) - 1;
      this.#waiting.delete(callerId);
      if (left === 0) this.#taken.delete(callerId);
      else this.#taken.set(callerId, left);
    };
  }
}
