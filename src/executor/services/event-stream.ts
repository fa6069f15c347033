import type { RunEvent, RunEventBody } from '../../run/events/body.ts';
import type { Clock } from '../../values/clock.ts';
import { EventBuffer } from './event-buffer.ts';

/** How many events are kept for later consumers, and how far a slow consumer may be behind. */
const BUFFER = 1_000;

/**
 * A record reserves this many numbers after the last event. Events that follow a save and are lost in a crash then share no
 * number with events of the next process. No process publishes that many events between two saves, even with a long answer or
 * a store that does not answer. Two million processes may continue a run before its numbers are too large to be exact.
 */
const RESERVED = 2 ** 32;

/** The process that publishes an event. */
export interface EventOrigin {
  readonly owner: string;
  readonly revision?: number;
}

/** The events of one run: numbered, frozen, buffered, and delivered to each consumer at its own pace. */
export class EventStream {
  readonly #runId: string;
  readonly #clock: Clock;
  readonly #history = new EventBuffer(BUFFER);
  /** Undefined = none. Not a set: an answer has thousands of pieces, and each is given to all of them. */
  #consumers: readonly Consumer[] | undefined;
  #seq = 0;
  /** The number before the first event of this process. */
  #begin = 0;
  #isOver = false;

  constructor(runId: string, clock: Clock) {
    this.#runId = runId;
    this.#clock = clock;
  }

  /** Events of this process have numbers up to this one; part of the record. */
  get reserved(): number {
    return this.#seq + RESERVED;
  }

  /** The number of the last event. */
  get last(): number {
    return this.#seq;
  }

  /** Continues the numbers of a record. */
  continueFrom(seq: number): void {
    this.#seq = Math.max(this.#seq, seq);
    this.#begin = this.#seq;
  }

  /**
   * Numbers an event and gives it to all consumers.
   * @param body becomes the event: a copy would cost each step more than everything else that is done with it
   * @returns the numbered event; undefined after `close`
   */
  publish(body: RunEventBody, origin?: EventOrigin): RunEvent | undefined {
    if (this.#isOver) return undefined;
    this.#seq += 1;
    const event = this.#place(Object.assign(body, origin));
    this.#history.push(event);
    // Most events have no consumer; an event with one is frozen first.
    if (this.#consumers) {
      const frozen = frozenEvent(event);
      for (const consumer of this.#consumers) consumer.push(frozen);
    }
    return event;
  }

  /** Ends publishing: consumers end when they have read the remaining events. */
  close(): void {
    this.#isOver = true;
    for (const consumer of this.#consumers ?? []) consumer.close();
    this.#consumers = undefined;
  }

  /**
   * Iterates over the events of the run, those that are kept first.
   * @param after the `seq` of the consumer's last event; 0 = from the oldest that is kept
   */
  consume(after: number): AsyncIterableIterator<RunEvent> {
    const backlog = this.#history.after(after);
    const missed = this.#seq - Math.max(after, this.#begin) - backlog.length;
    const consumer = new Consumer(backlog, () => this.#drop(consumer));
    if (missed > 0) consumer.noteMissed(missed, this.#history.droppedSeq);
    if (this.#isOver) consumer.close();
    else this.#consumers = [...(this.#consumers ?? []), consumer];
    return consumer;
  }

  #place(body: RunEventBody & { runId?: string; seq?: number; at?: number }): RunEvent {
    body.runId = this.#runId;
    body.seq = this.#seq;
    body.at = this.#clock.now();
    return body as RunEvent;
  }

  #drop(consumer: Consumer): void {
    const others = this.#consumers?.filter((each) => each !== consumer);
    this.#consumers = others?.length ? others : undefined;
  }
}

type Waiting = (result: IteratorResult<RunEvent>) => void;

class Consumer implements AsyncIterableIterator<RunEvent> {
  readonly #buffer = new EventBuffer(BUFFER);
  readonly #leave: () => void;
  /** The reader that waits for the next event, and calls of `next` after it. */
  #waiting: Waiting | undefined;
  #waitingToo: Waiting[] | undefined;
  #isClosed = false;

  constructor(backlog: readonly RunEvent[], leave: () => void) {
    for (const event of backlog) this.#buffer.push(frozenEvent(event));
    this.#leave = leave;
  }

  noteMissed(count: number, lastSeq: number): void {
    this.#buffer.dropped = count;
    this.#buffer.droppedSeq = lastSeq;
  }

  push(event: RunEvent): void {
    const waiting = this.#waiting;
    if (!waiting) {
      this.#buffer.push(event);
      return;
    }
    this.#waiting = this.#waitingToo?.shift();
    waiting({ done: false, value: event });
  }

  close(): void {
    this.#isClosed = true;
    const all = [this.#waiting, ...(this.#waitingToo ?? [])];
    this.#waiting = undefined;
    this.#waitingToo = undefined;
    for (const waiting of all) waiting?.({ done: true, value: undefined });
  }

  next(): Promise<IteratorResult<RunEvent>> {
    const event = this.#lost() ?? this.#buffer.take();
    if (event) return Promise.resolve({ done: false, value: event });
    if (this.#isClosed) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => this.#wait(resolve));
  }

  #wait(resolve: Waiting): void {
    if (!this.#waiting) {
      this.#waiting = resolve;
      return;
    }
    this.#waitingToo ??= [];
    this.#waitingToo.push(resolve);
  }

  return(): Promise<IteratorResult<RunEvent>> {
    this.#leave();
    this.close();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Reports missing events once, before the first event that is newer than all of them. */
  #lost(): RunEvent | undefined {
    const { dropped: count, droppedSeq: seq } = this.#buffer;
    const next = count > 0 ? this.#buffer.first : undefined;
    if (!next || next.seq < seq) return undefined;
    this.#buffer.dropped = 0;
    return { type: 'events.dropped', count, runId: next.runId, seq, at: next.at };
  }
}

/** Freezes an event of a run and its contents. */
export function frozenEvent(event: RunEvent): RunEvent {
  // A piece of text has only texts and numbers.
  if (event.type === 'model.delta') return Object.freeze(event);
  if (Object.isFrozen(event)) return event;
  for (const value of Object.values(event)) freeze(value);
  return Object.freeze(event);
}

/** A frozen value is deeply frozen: inputs and outputs of tools are JSON that was frozen at entry. */
function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const part of Object.values(value)) freeze(part);
}
