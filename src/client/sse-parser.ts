/** One event of an event stream. */
export interface SseEvent {
  /** The lines of its data, joined. */
  readonly data: string;
  /** The event's own id; absent if it has none. */
  readonly id?: string;
}

/** What a piece of an event stream holds. */
interface SsePiece {
  readonly events: readonly SseEvent[];
  /** The reconnection time that the server asks for, ms. */
  readonly retryMs?: number;
}

/** Why a stream is no event stream that this parser reads. */
export class SseSyntaxError extends Error {
  readonly isTooLarge: boolean;

  constructor(message: string, isTooLarge = false) {
    super(message);
    this.isTooLarge = isTooLarge;
  }
}

/** An id is sent back in a header, so it has to fit into one. */
const ID_CHARS = 4_096;

/**
 * Parses an event stream, in pieces cut anywhere, in time linear in its length. It holds at most one event: a longer one throws.
 * An event at the end without its empty line is dropped, as the standard says: it was cut.
 */
export class SseParser {
  readonly #maxChars: number;
  /** Pieces of the line that has no end yet. */
  #line: string[] = [];
  #data: string[] = [];
  #id: string | undefined;
  /** Characters in `#line` and `#data`. */
  #size = 0;
  #isFirst = true;
  #endsWithCr = false;

  /** @param maxChars most UTF-16 units of one event */
  constructor(maxChars: number) {
    this.#maxChars = maxChars;
  }

  /**
   * Takes the next piece of the decoded text.
   * @throws {SseSyntaxError} if an event is too long, or an id cannot be sent back
   */
  push(text: string): SsePiece {
    const events: SseEvent[] = [];
    let retryMs: number | undefined;
    for (const line of this.#linesOf(text)) {
      if (line === '') {
        const event = this.#event();
        if (event) events.push(event);
      } else retryMs = this.#field(line) ?? retryMs;
    }
    return retryMs === undefined ? { events } : { events, retryMs };
  }

  /** The lines that end in a piece. */
  *#linesOf(text: string): Generator<string> {
    let from = this.#start(text);
    const ends = /\r\n?|\n/g;
    ends.lastIndex = from;
    for (let end = ends.exec(text); end !== null; end = ends.exec(text)) {
      const line = this.#line.length > 0 ? this.#take(text.slice(from, end.index)) : text.slice(from, end.index);
      from = ends.lastIndex;
      this.#endsWithCr = from === text.length && text.endsWith('\r');
      yield line;
    }
    if (from < text.length) this.#hold(text.slice(from));
  }

  /** Where the first line of a piece begins: behind the mark at the very beginning, and behind the second half of a cut CRLF. */
  #start(text: string): number {
    if (text === '') return 0;
    const isSkipped = (this.#isFirst && text.startsWith('\uFEFF')) || (this.#endsWithCr && text.startsWith('\n'));
    this.#isFirst = false;
    this.#endsWithCr = false;
    return isSkipped ? 1 : 0;
  }

  #hold(piece: string): void {
    this.#grow(piece.length);
    this.#line.push(piece);
  }

  #take(rest: string): string {
    const line = this.#line.join('') + rest;
    this.#size -= line.length - rest.length;
    this.#line = [];
    return line;
  }

  #field(line: string): number | undefined {
    const colon = line.indexOf(':');
    // A comment: a sign of life.
    if (colon === 0) return undefined;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (name === 'data') {
      this.#grow(value.length + 1);
      this.#data.push(value);
    } else if (name === 'id') this.#id = checkedId(value);
    return name === 'retry' && /^\d{1,9}$/.test(value) ? Number(value) : undefined;
  }

  #event(): SseEvent | undefined {
    const id = this.#id;
    const data = this.#data;
    this.#id = undefined;
    this.#data = [];
    this.#size = 0;
    if (data.length === 0) return undefined;
    return id === undefined ? { data: data.join('\n') } : { data: data.join('\n'), id };
  }

  #grow(chars: number): void {
    this.#size += chars;
    if (this.#size > this.#maxChars)
      throw new SseSyntaxError(`An event of the stream is longer than ${this.#maxChars} characters`, true);
  }
}

/** Only visible ASCII: what a header can hold on every host. */
function checkedId(value: string): string {
  if (value.length <= ID_CHARS && /^[\x21-\x7e]+$/.test(value)) return value;
  throw new SseSyntaxError(
    `The stream has the event id ${JSON.stringify(value.slice(0, 60))}, which no header can hold`,
  );
}
