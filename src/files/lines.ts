import { crc32 } from 'node:zlib';

/*
 * A file of checked lines: `<checksum>\t<kind>\t<field>\t…\n`. A field is a number or JSON text, which holds neither a raw
 * tab nor a raw line end. So the line end is the mark of a line that was written whole: what follows the last one is a torn
 * line, and a whole line with a wrong checksum is damage. A tear is never taken for damage, nor the other way round.
 */

/** What a line says, its checksum being right. */
export interface Line {
  readonly kind: string;
  readonly fields: readonly string[];
}

/** A line as it stands in the file, its end included; not looked into yet. */
export interface RawLine {
  readonly at: number;
  readonly bytes: Buffer;
}

const LINE_END = 0x0a;
const CHECKSUM_LENGTH = 8;
const DIGITS = '0123456789abcdef';
/** About this many bytes are looked at in one turn of the event loop. */
const CHUNK = 2 ** 18;

export function encodeLine(kind: string, fields: readonly (string | number)[]): Buffer {
  const bytes = Buffer.from(unchecked(kind, fields));
  putChecksum(bytes);
  return bytes;
}

/** A line whose checksum is still to be put in its place. */
export function unchecked(kind: string, fields: readonly (string | number)[]): string {
  return `--------\t${kind}\t${fields.join('\t')}\n`;
}

/** Puts the checksum of a line in its place. */
export function putChecksum(line: Buffer): void {
  const checksum = crc32(line.subarray(CHECKSUM_LENGTH, -1));
  for (let i = 0; i < CHECKSUM_LENGTH; i++) line[i] = DIGITS.charCodeAt((checksum >>> (28 - 4 * i)) & 15);
}

/** What a line says; undefined when its checksum is wrong. */
export function decodeLine(bytes: Buffer): Line | undefined {
  if (bytes.at(-1) !== LINE_END || !isIntact(bytes)) return undefined;
  const [, kind = '', ...fields] = bytes.toString('utf8', 0, bytes.length - 1).split('\t');
  return { kind, fields };
}

/** Whether the checksum of a line is right, whatever its last byte is. */
export function isIntact(bytes: Buffer): boolean {
  return bytes.length > CHECKSUM_LENGTH + 1 && bytes.toString('latin1', 0, CHECKSUM_LENGTH) === checksumOf(bytes);
}

/** Of all between the checksum and the line end. */
function checksumOf(bytes: Buffer): string {
  return crc32(bytes.subarray(CHECKSUM_LENGTH, -1)).toString(16).padStart(CHECKSUM_LENGTH, '0');
}

interface Readable {
  read(length: number, position: number): Promise<Buffer>;
}

/** What one turn has read: whole lines, and behind the last of the file what was torn off. */
export interface LineBatch {
  readonly lines: readonly RawLine[];
  readonly torn?: RawLine;
}

/** Reads a file of lines from its beginning, in as many turns of the event loop as it takes. */
export async function* readLines(file: Readable): AsyncGenerator<LineBatch> {
  let parts: Buffer[] = [];
  let at = 0;
  for (let position = 0; ; ) {
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

/** @param at where the first byte stands in the file */
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

/** Reads one whole line that begins at `at`; undefined when it has no end. @param guess how long it probably is */
export async function readLineAt(file: Readable, at: number, guess = 512): Promise<Buffer | undefined> {
  for (let length = guess; ; length *= 4) {
    const bytes = await file.read(length, at);
    const end = bytes.indexOf(LINE_END);
    if (end !== -1) return bytes.subarray(0, end + 1);
    if (bytes.length < length) return undefined;
  }
}

/** Reads the last line of a file of this size; undefined when the file does not end with a line end. */
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
