import type { OpenFile } from '../../../files/file-system.ts';
import { putChecksum } from '../../../files/lines.ts';

/** Lines are collected up to about this many bytes before they are written. */
const FULL = 2 ** 20;

/** What most commits need, and some more. Larger buffers are not kept. */
const SPARE = 2 ** 15;

/** UTF-8 takes no more bytes than this for a UTF-16 unit. */
const MAX_BYTES = 3;

/** The buffer of the writer before, which is done with it: a new one for each commit would keep the collector busy. */
let spare: Buffer | undefined;

/** Collects lines into few large writes. */
export class LineWriter {
  readonly #file: OpenFile;
  #bytes = spare ?? Buffer.allocUnsafeSlow(SPARE);
  #size = 0;
  #written: number;

  /** @param at where the first line is to stand in the file */
  constructor(file: OpenFile, at: number) {
    spare = undefined;
    this.#file = file;
    this.#written = at;
  }

  /** Where the next line will stand. */
  get position(): number {
    return this.#written + this.#size;
  }

  /** Whether it is time for a write. */
  get isFull(): boolean {
    return this.#size >= FULL;
  }

  /** @param line without its checksum @returns its bytes */
  add(line: string): number {
    this.#makeRoom(line.length > SPARE ? Buffer.byteLength(line) : MAX_BYTES * line.length);
    const length = this.#bytes.write(line, this.#size);
    putChecksum(this.#bytes.subarray(this.#size, this.#size + length));
    this.#size += length;
    return length;
  }

  /** Adds a line of another file as it is. */
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

  /** Writes what is left. The writer is of no use any more. */
  async end(): Promise<void> {
    await this.#file.write(this.#bytes.subarray(0, this.#size), this.#written);
    // Not where it failed: a thread of the system may be reading it still.
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
