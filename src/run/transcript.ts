import { hasFileUrl, type Message, sizeOfMessage, toolCallsOf } from '../values/message.ts';

interface Buffer {
  readonly messages: Message[];
  /** sizes[i] = bytes of the JSON of messages 0..i. */
  readonly sizes: number[];
  /** For each tool call the index of its message: a view knows only the calls before its end. Absent = no calls. */
  callIds?: Map<string, number>;
  /** Index of the first message with a file by URL: only from there on a prompt needs more than the list of messages. */
  firstUrl: number;
}

/**
 * The append-only list of a run's messages, as an immutable value: `append` returns a new view in O(1), older views do not
 * change. Views share one buffer in a private field. Code that walks or prints a context (XState, an inspector, a log) sees a
 * two-field summary instead of the conversation.
 */
export class Transcript {
  readonly #buffer: Buffer;
  readonly length: number;

  private constructor(buffer: Buffer, length: number) {
    this.#buffer = buffer;
    this.length = length;
  }

  /** Makes a transcript of messages. @param messages messages that have been entered (see `enterMessage`) */
  static of(messages: readonly Message[]): Transcript {
    return new Transcript(bufferOf(messages), messages.length);
  }

  /** Whether this is an earlier view with messages added, or that view itself. */
  continues(earlier: Transcript): boolean {
    return this.#buffer === earlier.#buffer && this.length >= earlier.length;
  }

  append(...messages: readonly Message[]): Transcript {
    return this.#extend(messages);
  }

  #extend(messages: readonly Message[]): Transcript {
    const isNewest = this.#buffer.messages.length === this.length && this.length > 0;
    const buffer = isNewest ? this.#buffer : this.#copy();
    for (const message of messages) {
      const index = buffer.messages.push(message) - 1;
      buffer.sizes.push((buffer.sizes.at(-1) ?? 0) + sizeOfMessage(message));
      enter(buffer, message, index);
    }
    return new Transcript(buffer, buffer.messages.length);
  }

  #copy(): Buffer {
    return bufferOf(this.slice(), this.#buffer.sizes.slice(0, this.length));
  }

  at(index: number): Message | undefined {
    const position = index < 0 ? this.length + index : index;
    return position < this.length ? this.#buffer.messages[position] : undefined;
  }

  /** A new plain array of the messages from `start` on, up to `end`. */
  slice(start = 0, end = this.length): Message[] {
    return this.#buffer.messages.slice(start, Math.min(end, this.length));
  }

  /** Bytes of the messages' JSON, in O(1). */
  get size(): number {
    return this.length === 0 ? 0 : (this.#buffer.sizes[this.length - 1] ?? 0);
  }

  /** Bytes of the JSON of the messages from `start` on, in O(1). */
  sizeFrom(start: number): number {
    const before = Math.min(start, this.length);
    return this.size - (before > 0 ? (this.#buffer.sizes[before - 1] ?? 0) : 0);
  }

  /** Whether a message may have a file by URL. */
  get hasUrls(): boolean {
    return this.#buffer.firstUrl < this.length;
  }

  /** Whether any message has a tool call of this id. */
  hasCallId(id: string): boolean {
    return (this.#buffer.callIds?.get(id) ?? this.length) < this.length;
  }

  toJSON(): { messages: number; size: number } {
    return { messages: this.length, size: this.size };
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return `Transcript(${this.length} messages, ${this.size} bytes)`;
  }
}

/** Copies messages into a buffer without room for more: most transcripts of waiting runs are short and do not grow. */
function bufferOf(messages: readonly Message[], sizes: number[] = sizesOf(messages)): Buffer {
  const buffer: Buffer = { messages: messages.slice(), sizes, firstUrl: Number.POSITIVE_INFINITY };
  for (const [index, message] of messages.entries()) enter(buffer, message, index);
  return buffer;
}

function sizesOf(messages: readonly Message[]): number[] {
  let size = 0;
  return messages.map((message) => {
    size += sizeOfMessage(message);
    return size;
  });
}

function enter(buffer: Buffer, message: Message, index: number): void {
  if (hasFileUrl(message)) buffer.firstUrl = Math.min(buffer.firstUrl, index);
  for (const { toolCallId } of toolCallsOf(message)) {
    buffer.callIds ??= new Map();
    if (!buffer.callIds.has(toolCallId)) buffer.callIds.set(toolCallId, index);
  }
}
