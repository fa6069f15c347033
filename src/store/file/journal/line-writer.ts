import type { OpenFile } from '../../../files/file-system.ts';
import { putChecksum } from '../../../files/lines.ts';

/** Lines are collected up to about this many bytes before they are written. */
const FULL = 2 ** 20;

/** Enough for most commits, with some reserve. Larger buffers are not kept. */
const SPARE = 2 ** 15;

/** UTF-8 takes at most this many bytes for a UTF-16 unit. */
const MAX_BYTES = 3;

/** The buffer of the previous writer, which has finished: a new one for each commit would load the garbage collector. */
let spare: Buffer | undefined;

/** Collects lines of a journal into few large writes. */
export class LineWriter {
  readonly #file: OpenFile;
  #bytes = spare ?? Buffer.allocUnsafeSlow(SPARE);
  #size = 0;
  #written: number;

  /** @param at the place of the first line in the file */
  constructor(file: OpenFile, at: number) {
    spare = undefined;
    this.#file = file;
    this.#written = at;
  }

  /** The place of the next line. */
  get position(): number {
    return this.#written + this.#size;
  }

  /** Whether it is time for a write. */
  get isFull(): boolean {
    return this.#size >= FULL;
  }

  /** Adds a line to what is written next. @param line without its checksum @returns its bytes */
  add(line: string): number {
    this.#makeRoom(line.length > SPARE ? Buffer.byteLength(line) : MAX_BYTES * line.length);
    const length = this.#bytes.write(line, this.#size);
    putChecksum(this.#bytes.subarray(this.#size, this.#size + length));
    this.#size += length;
    return length;
  }

  /** Adds a line of another file unchanged. */
  copy(line: Buffer): void {
    this.#makeRoom(line.length);
    this.#size += line.copy(this.#bytes, this.#size);
  }

  async flush(): Promise<void> {
    const bytes = this.#bytes.subarray(0, this.#size);
    await this.#file.write(bytes, this.#written);
    this.#written += bytes.length;
    this.#size = 0;
  }

  /** Writes the rest. The writer must not be used afterwards. */
  async end(): Promise<void> {
    await this.#file.write(this.#bytes.subarray(0, this.#size), this.#written);
    // Not after a failure: a system thread may still be reading it.
    if (this.#bytes.length === SPARE) spare = this.#bytes;
  }

  #makeRoom(length: number): void {
    const needed = this.#size + length;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length));
    this.#bytes.copy(larger, 0, 0, this.#size);
    this.#bytes = larger;
  }
}
