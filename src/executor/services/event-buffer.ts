import { isActiveAs, type RunEvent } from '../../run/events.ts';

/** A list that is read from the front. */
class Queue {
  #items: RunEvent[] = [];
  #start = 0;

  get length(): number {
    return this.#items.length - this.#start;
  }

  get first(): RunEvent | undefined {
    return this.#items[this.#start];
  }

  push(event: RunEvent): void {
    this.#items.push(event);
  }

  shift(): RunEvent | undefined {
    if (this.length === 0) return undefined;
    const event = this.#items[this.#start];
    this.#start += 1;
    if (this.#start > 64 && this.#start * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#start);
      this.#start = 0;
    }
    return event;
  }

  list(): RunEvent[] {
    return this.#items.slice(this.#start);
  }
}

/**
 * Buffers events of a run in order, at most `limit`: the history of the stream, and what a slow consumer has not read. A
 * full buffer drops its oldest piece of text, and only without one its oldest event.
 */
export class EventBuffer {
  readonly #limit: number;
  #deltas: Queue | undefined;
  readonly #others = new Queue();
  /** The number of events dropped since the last question, and the place of the last one. */
  dropped = 0;
  droppedSeq = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  push(event: RunEvent): void {
    if (isActiveAs(event, 'delta')) {
      this.#deltas ??= new Queue();
      this.#deltas.push(event);
    } else {
      this.#others.push(event);
    }
    if ((this.#deltas?.length ?? 0) + this.#others.length <= this.#limit) return;
    const lost = this.#deltas?.shift() ?? this.#others.shift();
    this.dropped += 1;
    this.droppedSeq = Math.max(this.droppedSeq, lost?.seq ?? 0);
  }

  /** The oldest event; it stays. */
  get first(): RunEvent | undefined {
    return (this.#isDeltaFirst ? this.#deltas : this.#others)?.first;
  }

  /** Removes and returns the oldest event. */
  take(): RunEvent | undefined {
    return (this.#isDeltaFirst ? this.#deltas : this.#others)?.shift();
  }

  get #isDeltaFirst(): boolean {
    const delta = this.#deltas?.first;
    const other = this.#others.first;
    return delta !== undefined && (!other || delta.seq < other.seq);
  }

  /** All events after `seq`, in order; they stay. */
  after(seq: number): RunEvent[] {
    const all = [...(this.#deltas?.list() ?? []), ...this.#others.list()].filter((event) => event.seq > seq);
    return all.sort((a, b) => a.seq - b.seq);
  }
}
