import { frameOf } from '../../http/sse.ts';
import { nextTurn } from '../../values/event-loop.ts';
import type { RunLine, WatchFrame } from '../wire.ts';

/** Events that wait for a slow reader; then no more are read. */
const WAITING_EVENTS = 200;
/** Their length together, in UTF-16 units: an event may have as many as 65,536. */
const WAITING_CHARS = 262_144;

/** What one tab has still to be sent. Lines of one run replace each other while they wait. */
export class Tab {
  readonly #lines = new Map<string, RunLine>();
  readonly #gone = new Set<string>();
  /** As texts: what is sent is counted. */
  #events: string[] = [];
  #chars = 0;
  #store: WatchFrame | undefined;
  #isFirst = true;
  #news = Promise.withResolvers<void>();
  #room = Promise.withResolvers<void>();
  #failure: { readonly error: unknown } | undefined;

  /** Adds lines. The first ones are sent even if there are none: the tab knows then that it is up to date. */
  lines(lines: readonly RunLine[], gone: readonly string[] = []): void {
    for (const runId of gone) {
      this.#lines.delete(runId);
      this.#gone.add(runId);
    }
    for (const line of lines) {
      this.#gone.delete(line.runId);
      this.#lines.set(line.runId, line);
    }
    if (lines.length > 0 || gone.length > 0 || this.#isFirst) this.#tell();
  }

  store(frame: Extract<WatchFrame, { type: 'store' }>): void {
    this.#store = frame;
    this.#tell();
  }

  /** Adds an event; resolves when there is room for another one. @param id where a reader continues after it */
  async event(id: string, frame: WatchFrame): Promise<void> {
    const text = frameOf({ id, data: JSON.stringify(frame) });
    this.#events.push(text);
    this.#chars += text.length;
    this.#tell();
    if (this.#events.length >= WAITING_EVENTS || this.#chars >= WAITING_CHARS) await this.#room.promise;
  }

  /** Ends the stream as a cut: the reader connects again. */
  fail(error: unknown): void {
    this.#failure = { error };
    this.#tell();
  }

  #tell(): void {
    this.#news.resolve();
  }

  /** The frames as texts, until the signal. */
  async *frames(signal: AbortSignal): AsyncGenerator<string, void, undefined> {
    const stop = () => {
      this.#tell();
      this.#room.resolve();
    };
    signal.addEventListener('abort', stop);
    try {
      while (!signal.aborted) {
        await this.#news.promise;
        // What comes in one turn of the event loop is sent together: an event alone costs more than its text.
        await nextTurn();
        this.#news = Promise.withResolvers();
        if (this.#failure) throw this.#failure.error;
        const text = this.#taken();
        if (text !== '') yield text;
      }
    } finally {
      signal.removeEventListener('abort', stop);
      stop();
    }
  }

  /** All that waits, as one text. */
  #taken(): string {
    const frames: WatchFrame[] = [];
    if (this.#store) frames.push(this.#store);
    this.#store = undefined;
    if (this.#lines.size > 0 || this.#isFirst) frames.push({ type: 'runs', lines: [...this.#lines.values()] });
    for (const runId of this.#gone) frames.push({ type: 'gone', runId });
    const texts = [...frames.map((frame) => frameOf({ data: JSON.stringify(frame) })), ...this.#events];
    this.#events = [];
    this.#chars = 0;
    this.#lines.clear();
    this.#gone.clear();
    this.#isFirst = false;
    this.#room.resolve();
    this.#room = Promise.withResolvers();
    return texts.join('');
  }
}
