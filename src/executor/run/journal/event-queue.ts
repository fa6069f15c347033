import type { RunEvent } from '../../../run/events/body.ts';
import type { WaitingEvent } from './journal-events.ts';

/** Events on their way to a journal, in their order. Pieces of one text that are next to each other are one event. */
export class EventQueue {
  #events: WaitingEvent[] = [];
  /** About how many bytes they take in a journal. Those that could not be published do not count: their next try has a time. */
  bytes = 0;
  #tried: ReadonlySet<WaitingEvent> | undefined;

  get size(): number {
    return this.#events.length;
  }

  push(waiting: WaitingEvent): void {
    const last = this.#events.at(-1);
    const joined = last && last.place === undefined ? joinedPieces(last, waiting) : undefined;
    if (last && joined) {
      this.#events[this.#events.length - 1] = joined;
      this.bytes -= sizeOf(last.event);
    } else this.#events.push(waiting);
    this.bytes += sizeOf((joined ?? waiting).event);
  }

  /** Takes events back that could not be published: they come first. */
  putBack(events: readonly WaitingEvent[]): void {
    this.#events = [...events, ...this.#events];
    this.#tried = new Set(events);
  }

  /** Takes all of them out. */
  take(): WaitingEvent[] {
    const events = this.#events;
    this.#events = [];
    this.bytes = 0;
    this.#tried = undefined;
    return events;
  }

  those(isOne: (waiting: WaitingEvent) => boolean): WaitingEvent[] {
    return this.#events.filter(isOne);
  }

  has(isOne: (waiting: WaitingEvent) => boolean): boolean {
    return this.#events.some(isOne);
  }

  drop(isOne: (waiting: WaitingEvent) => boolean): void {
    if (!this.has(isOne)) return;
    this.#events = this.#events.filter((each) => {
      const isDropped = isOne(each);
      if (isDropped && !this.#tried?.has(each)) this.bytes -= sizeOf(each.event);
      return !isDropped;
    });
  }
}

/** Two pieces of one text, or of the arguments of one call, as one event; undefined if they are not next to each other. */
function joinedPieces(last: WaitingEvent, next: WaitingEvent): WaitingEvent | undefined {
  const [a, b] = [last.event, next.event];
  const isPiece = a.type === 'model.delta' || (a.type === 'tool.input' && b.type === a.type && b.callId === a.callId);
  if (!isPiece || (b.type !== 'model.delta' && b.type !== 'tool.input') || a.type !== b.type) return undefined;
  const isNext = a.block === b.block && a.offset + a.text.length === b.offset && last.attempt === next.attempt;
  return isNext ? { ...last, event: { ...b, offset: a.offset, text: a.text + b.text } } : undefined;
}

/** About how many bytes an event takes in a journal. */
function sizeOf(event: RunEvent): number {
  if (event.type === 'model.delta' || event.type === 'tool.input') return event.text.length + 100;
  return 200;
}
