import { crc32 } from 'node:zlib';

/*
 * A file of checked lines: `<checksum>\t<kind>\t<field>\t…\n`. A field is a number or JSON text, which holds neither a raw
 * tab nor a raw line end. A line end therefore shows that the line was written whole. The bytes after the last line end are
 * a torn line, and a whole line with a wrong checksum is damage. The two are never confused.
 */

/** The content of a line with a correct checksum. */
export interface Line {
  readonly kind: string;
  readonly fields: readonly string[];
}

/** The bytes of a line in the file, its end included; not decoded yet. */
export interface RawLine {
  readonly at: number;
  readonly bytes: Buffer;
}

const LINE_END = 0x0a;
const CHECKSUM_LENGTH = 8;
const DIGITS = '0123456789abcdef';
/** About this many bytes are read in one turn of the event loop. */
const CHUNK = 2 ** 18;

/** Encodes a line of a file, with its checksum. */
export function encodeLine(kind: string, fields: readonly (string | number)[]): Buffer {
  const bytes = Buffer.from(unchecked(kind, fields));
  putChecksum(bytes);
  return bytes;
}

/** Encodes a line of a file without its checksum. */
export function unchecked(kind: string, fields: readonly (string | number)[]): string {
  return `--------\t${kind}\t${fields.join('\t')}\n`;
}

/** Writes the checksum of a line into its place. */
export function putChecksum(line: Buffer): void {
  const checksum = crc32(line.subarray(CHECKSUM_LENGTH, -1));
  for (let i = 0; i < CHECKSUM_LENGTH; i++) line[i] = DIGITS.charCodeAt((checksum >>> (28 - 4 * i)) & 15);
}

/** Decodes a line of a file; undefined if its checksum is wrong. */
export function decodeLine(bytes: Buffer): Line | undefined {
  if (bytes.at(-1) !== LINE_END || !isIntact(bytes)) return undefined;
  const [, kind = '', ...fields] = bytes.toString('utf8', 0, bytes.length - 1).split('\t');
  return { kind, fields };
}

/** Returns whether the checksum of a line is correct. The last byte does not count. */
export function isIntact(bytes: Buffer): boolean {
  return bytes.length > CHECKSUM_LENGTH + 1 && bytes.toString('latin1', 0, CHECKSUM_LENGTH) === checksumOf(bytes);
}

/** The checksum of all bytes between the checksum and the line end. */
function checksumOf(bytes: Buffer): string {
  return crc32(bytes.subarray(CHECKSUM_LENGTH, -1)).toString(16).padStart(CHECKSUM_LENGTH, '0');
}

interface Readable {
  read(length: number, position: number): Promise<Buffer>;
}

/** What one turn has read: whole lines, and after the last line of the file the torn bytes. */
export interface LineBatch {
  readonly lines: readonly RawLine[];
  readonly torn?: RawLine;
}

/** Reads a file of lines, in bounded turns of the event loop. @param from the beginning of a line */
export async function* readLines(file: Readable, from = 0): AsyncGenerator<LineBatch> {
  let parts: Buffer[] = [];
  let at = from;
  for (let position = from; ; ) {
    const chunk = await file.read(CHUNK, position);
    position += chunk.length;
    const end = chunk.lastIndexOf(LINE_END) + 1;
    parts.push(end > 0 ? chunk.subarray(0, end) : chunk);
    if (end > 0) {
      const whole = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
      yield { lines: splitLines(whole, at) };
      at += whole.length;
      parts = end < chunk.length ? [chunk.subarray(end)] : [];
    }
    if (chunk.length < CHUNK) break;
  }
  const torn = Buffer.concat(parts);
  if (torn.length > 0) yield { lines: [], torn: { at, bytes: torn } };
}

/** Splits the bytes of a file into its lines. @param at the position of the first byte in the file */
export function splitLines(bytes: Buffer, at = 0): RawLine[] {
  const lines: RawLine[] = [];
  for (let start = 0; start < bytes.length; ) {
    const found = bytes.indexOf(LINE_END, start);
    const end = found === -1 ? bytes.length : found + 1;
    lines.push({ at: at + start, bytes: bytes.subarray(start, end) });
    start = end;
  }
  return lines;
}

/** Reads one whole line that begins at `at`, or returns undefined if it has no end. @param guess its probable length */
export async function readLineAt(file: Readable, at: number, guess = 512): Promise<Buffer | undefined> {
  for (let length = guess; ; length *= 4) {
    const bytes = await file.read(length, at);
    const end = bytes.indexOf(LINE_END);
    if (end !== -1) return bytes.subarray(0, end + 1);
    if (bytes.length < length) return undefined;
  }
}

/** Reads the last line of a file of this size, or returns undefined if the file does not end with a line end. */
export async function readLastLine(file: Readable, size: number): Promise<RawLine | undefined> {
  for (let length = Math.min(size, 4_096); ; length = Math.min(size, length * 8)) {
    const bytes = await file.read(length, size - length);
    if (bytes.at(-1) !== LINE_END) return undefined;
    const start = bytes.length < 2 ? -1 : bytes.lastIndexOf(LINE_END, bytes.length - 2);
    if (start !== -1 || length === size) {
      return { at: size - bytes.length + start + 1, bytes: bytes.subarray(start + 1) };
    }
  }
}
