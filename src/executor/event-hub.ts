import type { Clock } from '../run/clock.ts';
import type { RunEvent, RunEventBody } from '../run/events.ts';
import { EventBuffer } from './event-buffer.ts';

/** Events that are kept for consumers that come later, and that a slow consumer may be behind. */
const BUFFER = 1_000;

/** The events of one run: numbered, kept for a while, and handed to whoever listens at the pace of each. */
export class EventHub {
  readonly #runId: string;
  readonly #clock: Clock;
  readonly #history = new EventBuffer(BUFFER);
  #consumers: Set<Consumer> | undefined;
  #seq = 0;
  #isOver = false;

  constructor(runId: string, clock: Clock) {
    this.#runId = runId;
    this.#clock = clock;
  }

  /** The number of the last event; part of the record. */
  get seq(): number {
    return this.#seq;
  }

  /** Goes on counting from a record. */
  continueFrom(seq: number): void {
    this.#seq = Math.max(this.#seq, seq);
  }

  publish(body: RunEventBody): void {
    if (this.#isOver) return;
    this.#seq += 1;
    const event: RunEvent = Object.freeze({ ...body, runId: this.#runId, seq: this.#seq, at: this.#clock.now() });
    this.#history.push(event);
    for (const consumer of this.#consumers ?? []) consumer.push(event);
  }

  /** After this nothing is published, and consumers end when they have read what there is. */
  close(): void {
    this.#isOver = true;
    for (const consumer of this.#consumers ?? []) consumer.close();
    this.#consumers = undefined;
  }

  /** @param after the `seq` of the last event that the consumer has; 0 = from the oldest that is kept */
  consume(after: number): AsyncIterableIterator<RunEvent> {
    const consumer = new Consumer(this.#history.after(after), () => this.#consumers?.delete(consumer));
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
    for (const event of backlog) this.#buffer.push(event);
    this.#leave = leave;
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

  /** Says once that something is missing, in the place where it is. */
  #lost(): RunEvent | undefined {
    const { dropped: count, droppedSeq: seq } = this.#buffer;
    const next = count > 0 ? this.#buffer.after(0)[0] : undefined;
    if (!next) return undefined;
    this.#buffer.dropped = 0;
    return { type: 'events.dropped', count, runId: next.runId, seq, at: next.at };
  }
}
