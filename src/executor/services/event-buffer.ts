import type { RunEvent } from '../../run/events/body.ts';
import { isActiveAs } from '../../run/events/table.ts';

/** A list that is read from the front, in a ring: a full one takes thousands of pieces of text without a copy. */
class Queue {
  #ring: (RunEvent | undefined)[] = [undefined, undefined, undefined, undefined];
  #start = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get first(): RunEvent | undefined {
    return this.#ring[this.#start];
  }

  push(event: RunEvent): void {
    if (this.#length === this.#ring.length) this.#grow();
    this.#ring[(this.#start + this.#length) & (this.#ring.length - 1)] = event;
    this.#length += 1;
  }

  shift(): RunEvent | undefined {
    if (this.#length === 0) return undefined;
    const event = this.#ring[this.#start];
    this.#ring[this.#start] = undefined;
    this.#start = (this.#start + 1) & (this.#ring.length - 1);
    this.#length -= 1;
    return event;
  }

  list(): RunEvent[] {
    const end = this.#start + this.#length;
    const list = [...this.#ring.slice(this.#start, end), ...this.#ring.slice(0, Math.max(0, end - this.#ring.length))];
    return list as RunEvent[];
  }

  /** Its length stays a power of two: a place in it is a mask away. */
  #grow(): void {
    const list: (RunEvent | undefined)[] = this.list();
    this.#ring = list.concat(new Array<undefined>(list.length).fill(undefined));
    this.#start = 0;
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
