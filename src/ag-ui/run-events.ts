import type { Clock, ErrorData, JournalEvent, RunStatus } from '../index.ts';
import { hasCode } from '../values/error-data.ts';
import { type AgUiWait, type AnsweredInterrupts, type OpenWaits, WaitWatch } from './open-waits.ts';

/** How a run ended for a stream: for good, until a person acts, or because its events are not kept any more. */
export type End =
  | {
      readonly kind: 'ended';
      readonly status: RunStatus;
      readonly output: string;
      readonly error?: ErrorData | undefined;
    }
  | { readonly kind: 'interrupt'; readonly waits: readonly AgUiWait[] }
  | { readonly kind: 'parked' }
  | { readonly kind: 'gone' };

/** What `RunEvents.next` returns. */
export type Next = { readonly kind: 'event'; readonly event: JournalEvent } | { readonly kind: 'pause' } | End;

/** Whether a run rests, is set aside, or is something else: in work, left by a dead process, ended. */
export type Standing = 'waiting' | 'parked' | 'other';

/** What is read of a run. */
export interface RunSource {
  readonly runId: string;
  readonly clock: Clock;
  /** The waits that the request behind the stream has answered. */
  readonly answered: AnsweredInterrupts;
  events(): AsyncIterable<JournalEvent>;
  waits(): Promise<OpenWaits>;
  /** Reads from the store what the run does. */
  standing(): Promise<Standing>;
}

/** How soon a run that is silent is looked at in the store, ms; doubled up to the longest while it stays silent. */
const FIRST_LOOK_MS = 1_000;
const LONGEST_LOOK_MS = 30_000;

/** Reads the events of a run up to its end, or until only a person can help. */
export class RunEvents {
  readonly #source: RunSource;
  readonly #pull: Pull<JournalEvent>;
  readonly #watch: WaitWatch;
  #lookMs = FIRST_LOOK_MS;

  constructor(source: RunSource) {
    this.#source = source;
    this.#pull = new Pull(source.events(), source.clock);
    this.#watch = new WaitWatch(source.answered);
  }

  /**
   * Returns the next event, or the end. @param ms longest wait; without it `pause` is never returned
   * @throws what the events throw: then the stream must break
   */
  async next(ms?: number): Promise<Next> {
    for (;;) {
      const resting = this.#watch.isResting ? await this.#source.waits() : undefined;
      if (resting && this.#watch.needsPerson(resting, this.#source.clock.now()))
        return { kind: 'interrupt', waits: this.#watch.shown(resting.persons) };
      const next = await this.#read(ms ?? this.#lookMs);
      if (next.kind !== 'pause' || ms !== undefined) return next;
      // The waits of runs below it are in no event. A process that died may have kept an event of its own to itself.
      const end = await this.#endInStore();
      if (end) return end;
      if (!resting?.hasChildren) this.#lookMs = Math.min(2 * this.#lookMs, LONGEST_LOOK_MS);
    }
  }

  /** The run as the store has it, for a run that is silent. */
  async #endInStore(): Promise<End | undefined> {
    const source = this.#source;
    const standing = await source.standing();
    if (standing === 'parked') return { kind: 'parked' };
    if (standing !== 'waiting') return undefined;
    const waits = await source.waits();
    if (waits.persons.length === 0 || this.#watch.isOnItsWay(waits, source.clock.now())) return undefined;
    return { kind: 'interrupt', waits: this.#watch.shown(waits.persons) };
  }

  close(): void {
    this.#pull.close();
  }

  async #read(ms: number | undefined): Promise<Next> {
    try {
      const pulled = await this.#pull.next(ms);
      if (pulled.kind === 'pause') return pulled;
      if (pulled.kind === 'end') throw new Error('the events of the run stopped before its end');
      return (await this.#endIn(pulled.event)) ?? pulled;
    } catch (error) {
      if (hasCode(error, 'JOURNAL_GONE')) return { kind: 'gone' };
      throw error;
    }
  }

  async #endIn(event: JournalEvent): Promise<End | undefined> {
    this.#watch.see(event);
    this.#lookMs = FIRST_LOOK_MS;
    if (event.type === 'run.ended') {
      const { status, output, error } = event;
      return { kind: 'ended', status, output, error };
    }
    // It may have been unparked since.
    return event.type === 'run.parked' && (await this.#source.standing()) === 'parked' ? { kind: 'parked' } : undefined;
  }
}

/** What `Pull.next` returns: an event, the end of the events, or no event within the time. */
type Pulled<T> = { readonly kind: 'event'; readonly event: T } | { readonly kind: 'end' } | { readonly kind: 'pause' };

/** Reads an iterator with a limit of time that loses no event: the next call waits for the same one. */
class Pull<T> {
  readonly #events: AsyncIterator<T>;
  readonly #clock: Clock;
  #pending: Promise<Pulled<T>> | undefined;

  constructor(events: AsyncIterable<T>, clock: Clock) {
    this.#events = events[Symbol.asyncIterator]();
    this.#clock = clock;
  }

  /** Returns the next event. @param ms longest wait; without it `pause` is never returned @throws what the iterator throws */
  async next(ms?: number): Promise<Pulled<T>> {
    this.#pending ??= this.#read();
    const pending = this.#pending;
    const pulled = ms === undefined ? await pending : await this.#within(pending, ms);
    if (pulled.kind !== 'pause') this.#pending = undefined;
    return pulled;
  }

  /** Ends the iterator. */
  close(): void {
    this.#pending?.catch(() => {});
    Promise.resolve(this.#events.return?.()).catch(() => {});
  }

  async #read(): Promise<Pulled<T>> {
    const { done, value } = await this.#events.next();
    return done ? { kind: 'end' } : { kind: 'event', event: value };
  }

  async #within(pending: Promise<Pulled<T>>, ms: number): Promise<Pulled<T>> {
    const pause = Promise.withResolvers<Pulled<T>>();
    const timer = this.#clock.setTimeout(() => pause.resolve({ kind: 'pause' }), ms);
    try {
      return await Promise.race([pending, pause.promise]);
    } finally {
      this.#clock.clearTimeout(timer);
    }
  }
}
