import { ReplyTooLargeError } from '../values/errors.ts';

/** Limits of one reply of a model. */
export interface ReplyLimits {
  /** Characters of the whole reply: text, reasoning, arguments, sources, files and metadata count. */
  readonly maxReplyChars: number;
  /** Bytes of the arguments of one call. */
  readonly maxCallInputBytes: number;
  readonly maxCallsPerMessage: number;
}

/** The default limits of a model's reply: characters, input of a call, calls in a message. */
export const replyLimits: ReplyLimits = Object.freeze({
  maxReplyChars: 4_000_000,
  maxCallInputBytes: 2 ** 20,
  maxCallsPerMessage: 10_000,
});

/** Parts of a reply besides its calls. Each takes memory, even an empty one. */
const MAX_PARTS = 100_000;

/** Longer ids count as characters of the reply. */
const ID_CHARS = 64;

/** Counts the size of a model's reply while it arrives. Every method throws a ReplyTooLargeError when a limit is passed. */
export class ReplySize {
  readonly #limits: ReplyLimits;
  #chars = 0;
  #calls = 0;
  #parts = 0;

  constructor(limits: ReplyLimits) {
    this.#limits = limits;
  }

  /** Counts characters of a model's reply. @param count characters that arrived; negative if they replace a longer text */
  chars(count: number): void {
    this.#chars += count;
    const { maxReplyChars } = this.#limits;
    if (this.#chars > maxReplyChars) throw tooLarge(`has more than ${maxReplyChars} characters`, 'maxReplyChars');
  }

  part(id: unknown): void {
    this.#parts += 1;
    if (this.#parts > MAX_PARTS) throw new ReplyTooLargeError(`the model's reply has more than ${MAX_PARTS} parts`);
    this.#id(id);
  }

  call(id: unknown, name: unknown): void {
    this.#calls += 1;
    const { maxCallsPerMessage } = this.#limits;
    if (this.#calls > maxCallsPerMessage) {
      throw tooLarge(`calls more than ${maxCallsPerMessage} tools`, 'maxCallsPerMessage');
    }
    this.#id(id);
    this.chars(this.sizeOf(name));
  }

  /**
   * Returns why a call with these arguments does not run, or `undefined`. `earlier`: bytes of them that arrived piece by
   * piece.
   */
  refusalOf(input: unknown, earlier: number): string | undefined {
    const { maxCallInputBytes } = this.#limits;
    const bytes = Math.max(earlier, bytesOf(input, maxCallInputBytes));
    if (bytes <= maxCallInputBytes) return undefined;
    return `the arguments have ${bytes} bytes; the limit is ${maxCallInputBytes} (maxCallInputBytes). The call was not run`;
  }

  /** Estimates the characters of a value as JSON, up to just above the limit. */
  sizeOf(value: unknown): number {
    return sizeOf(value, this.#limits.maxReplyChars);
  }

  #id(id: unknown): void {
    if (typeof id === 'string' && id.length > ID_CHARS) this.chars(id.length);
  }
}

function tooLarge(what: string, limit: keyof ReplyLimits): ReplyTooLargeError {
  return new ReplyTooLargeError(`the model's reply ${what} (${limit}); reading stopped there. Raise defaults.${limit}`);
}

/** Values that no provider sends are refused elsewhere, because they are not JSON. */
function bytesOf(input: unknown, limit: number): number {
  if (typeof input === 'string') return input.length * 3 <= limit ? 0 : Buffer.byteLength(input);
  if (typeof input !== 'object' || input === null) return 0;
  try {
    return Buffer.byteLength(JSON.stringify(input) ?? '');
  } catch {
    return 0;
  }
}

/** Stops at `most`, so it also ends for a value that refers to itself. */
function sizeOf(value: unknown, most: number): number {
  if (typeof value === 'string') return value.length;
  const open: unknown[] = [value];
  let size = 0;
  while (open.length > 0 && size <= most) {
    const each = open.pop();
    if (typeof each === 'string') size += each.length;
    else if (each instanceof Uint8Array) size += Math.ceil((each.byteLength * 4) / 3);
    else if (typeof each === 'object' && each !== null) {
      for (const key of Object.keys(each)) {
        size += key.length + 1;
        open.push((each as Record<string, unknown>)[key]);
      }
    } else if (each !== undefined) size += 4;
  }
  return size;
}
