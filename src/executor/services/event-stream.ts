import type { RunEvent, RunEventBody } from '../../run/events.ts';
import type { Clock } from '../../values/clock.ts';
import { EventBuffer } from './event-buffer.ts';

/** Events that are kept for consumers that come later, and that a slow consumer may be behind. */
const BUFFER = 1_000;

/**
 * A record reserves this many numbers beyond the last event: what is announced after the save that wrote it, and lost by
 * a crash, shares no number with what the next process announces. No process says so much between two saves, however long an
 * answer is or a store away; and a run may go on in two million processes before its numbers are too large to be exact.
 */
const RESERVED = 2 ** 32;

/** The events of one run: numbered, kept for a while, and handed to whoever listens at the pace of each. */
export class EventStream {
  readonly #runId: string;
  readonly #clock: Clock;
  readonly #history = new EventBuffer(BUFFER);
  #consumers: Set<Consumer> | undefined;
  #seq = 0;
  /** The number before the first event of this process. */
  #begin = 0;
  #isOver = false;

  constructor(runId: string, clock: Clock) {
    this.#runId = runId;
    this.#clock = clock;
  }

  /** Up to which number events are this process's; part of the record. */
  get reserved(): number {
    return this.#seq + RESERVED;
  }

  /** Goes on counting from a record. */
  continueFrom(seq: number): void {
    this.#seq = Math.max(this.#seq, seq);
    this.#begin = this.#seq;
  }

  /** @returns the event as it was numbered; undefined when nothing is published any more */
  publish(body: RunEventBody): RunEvent | undefined {
    if (this.#isOver) return undefined;
    this.#seq += 1;
    const event: RunEvent = { ...body, runId: this.#runId, seq: this.#seq, at: this.#clock.now() };
    this.#history.push(event);
    // Most are read by nobody: those that are, cannot be changed.
    if (this.#consumers) for (const consumer of this.#consumers) consumer.push(frozenEvent(event));
    return event;
  }

  /** After this nothing is published, and consumers end when they have read what there is. */
  close(): void {
    this.#isOver = true;
    for (const consumer of this.#consumers ?? []) consumer.close();
    this.#consumers = undefined;
  }

  /** @param after the `seq` of the last event that the consumer has; 0 = from the oldest that is kept */
  consume(after: number): AsyncIterableIterator<RunEvent> {
    const backlog = this.#history.after(after);
    const missed = this.#seq - Math.max(after, this.#begin) - backlog.length;
    const consumer = new Consumer(backlog, () => this.#consumers?.delete(consumer));
    if (missed > 0) consumer.missed(missed, this.#history.droppedSeq);
    if (this.#isOver) consumer.close();
    else {
      this.#consumers ??= new Set();
      this.#consumers.add(consumer);
    }
    return consumer;
  }
}

class Consumer implements AsyncIterableIterator<RunEvent> {
  readonly #buffer = new EventBuffer(BUFFER);
  readonly #leave: () => void;
  #waiting: ((result: IteratorResult<RunEvent>) => void)[] = [];
  #isClosed = false;

  constructor(backlog: readonly RunEvent[], leave: () => void) {
    for (const event of backlog) this.#buffer.push(frozenEvent(event));
    this.#leave = leave;
  }

  missed(count: number, lastSeq: number): void {
    this.#buffer.dropped = count;
    this.#buffer.droppedSeq = lastSeq;
  }

  push(event: RunEvent): void {
    const waiting = this.#waiting.shift();
    if (waiting) waiting({ done: false, value: event });
    else this.#buffer.push(event);
  }

  close(): void {
    this.#isClosed = true;
    for (const waiting of this.#waiting.splice(0)) waiting({ done: true, value: undefined });
  }

  next(): Promise<IteratorResult<RunEvent>> {
    const event = this.#lost() ?? this.#buffer.take();
    if (event) return Promise.resolve({ done: false, value: event });
    if (this.#isClosed) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  return(): Promise<IteratorResult<RunEvent>> {
    this.#leave();
    this.close();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Says that something is missing, once, before the first event that is younger than all that is missing. */
  #lost(): RunEvent | undefined {
    const { dropped: count, droppedSeq: seq } = this.#buffer;
    const next = count > 0 ? this.#buffer.first : undefined;
    if (!next || next.seq < seq) return undefined;
    this.#buffer.dropped = 0;
    return { type: 'events.dropped', count, runId: next.runId, seq, at: next.at };
  }
}

/** The event, frozen with all that it holds: its `usage`, for example, is the run's own. */
export function frozenEvent(event: RunEvent): RunEvent {
  if (Object.isFrozen(event)) return event;
  for (const value of Object.values(event)) freeze(value);
  return Object.freeze(event);
}

/** What is frozen already is so throughout: inputs and outputs of tools are JSON that was frozen when it came in. */
function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const part of Object.values(value)) freeze(part);
}
