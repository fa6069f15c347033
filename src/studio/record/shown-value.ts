import type { JsonValue, LongPart, ShownText, ShownValue } from '../wire.ts';

/** The longest JSON that is sent with its view, in UTF-8 bytes. */
const MAX_BYTES = 65_536;
/** The deepest. A page that draws a deeper value needs a call for each level. */
const MAX_DEPTH = 64;
/** The beginning of a long text that is sent with its view, in UTF-16 units. */
const BEGINNING = 16_384;

/** Sends values until so many bytes are sent: a message may have thousands. */
export class Shown {
  #left: number;

  constructor(bytes = 4 * MAX_BYTES) {
    this.#left = bytes;
  }

  /** Returns a value, or how to load it. @param at the query that loads it */
  value(value: JsonValue | undefined, at: string): ShownValue {
    const json = jsonOf(value);
    if (json === undefined) return { bytes: 0, at };
    const bytes = Buffer.byteLength(json);
    return this.#takes(json, bytes) ? { value: value as JsonValue, bytes } : { bytes, at };
  }

  /** Returns the beginning of a value, and how to load it; undefined for one that is short enough. */
  part(value: JsonValue, at: string): LongPart | undefined {
    const json = jsonOf(value) ?? '';
    const bytes = Buffer.byteLength(json);
    return json !== '' && this.#takes(json, bytes) ? undefined : { text: this.#beginning(json), bytes, at };
  }

  /** Returns a text, or its beginning and how to load it. @param at the query that loads it */
  text(text: string, at: string): ShownText {
    const bytes = Buffer.byteLength(text);
    const most = Math.min(MAX_BYTES, this.#left);
    if (bytes <= most) {
      this.#left -= bytes;
      return { text, bytes };
    }
    return { text: this.#beginning(text), bytes, at };
  }

  #takes(json: string, bytes: number): boolean {
    if (bytes > MAX_BYTES || bytes > this.#left || depthOf(json) > MAX_DEPTH) return false;
    this.#left -= bytes;
    return true;
  }

  #beginning(text: string): string {
    const beginning = text.slice(0, Math.min(BEGINNING, this.#left)).toWellFormed();
    this.#left = Math.max(0, this.#left - Buffer.byteLength(beginning));
    return beginning;
  }
}

/** Undefined for a value that JSON cannot hold: a record of a host's own store may have one, or be too deep. */
export function jsonOf(value: unknown, indent?: number): string | undefined {
  try {
    return JSON.stringify(value, undefined, indent);
  } catch {
    return undefined;
  }
}

/** How deep a JSON text is, without reading it as a value. */
function depthOf(json: string): number {
  let [depth, deepest] = [0, 0];
  for (let at = 0; at < json.length; at++) {
    const char = json[at];
    if (char === '"') at = endOfString(json, at);
    else if (char === '{' || char === '[') deepest = Math.max(deepest, ++depth);
    else if (char === '}' || char === ']') depth -= 1;
  }
  return deepest;
}

function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (at < json.length && json[at] !== '"') at += json[at] === '\\' ? 2 : 1;
  return at;
}
