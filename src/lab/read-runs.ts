import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { toErrorData } from '../values/error-data.ts';
import { LabFileError } from '../values/errors.ts';
import { isObject } from '../values/json.ts';
import { checkKeys } from '../values/known-options.ts';
import { FILE_VERSION, MAX_RUN_BYTES, MAX_RUN_STEPS } from './export-runs.ts';
import type { RecordedRun } from './recorded-run.ts';
import { type FiledRun, headOfRun, messagesIn, type RunParts, runOf, type StepPart, stepIn } from './run-form.ts';

/** Where exported runs are read from: a path, or lines as `exportRuns` gives them, with or without their line ends. */
export type RunLines = string | AsyncIterable<string> | Iterable<string>;

/** The options of `readRuns`. */
export interface ReadRunsOptions {
  /** Gets what is wrong with a part of the file (`LAB_FILE`, with `line`); then reading continues at the next run. Absent: it is thrown. */
  readonly onDamaged?: (error: LabFile) => void;
}

/** An error with the code LAB_FILE. */
export type LabFile = Error & { readonly code: 'LAB_FILE'; readonly line: number };

/**
 * Reads exported runs one by one, as `readRun` had them. Each is whole: its checksum fits, and its ids, messages and fields are checked
 * like those of a request. One run is in memory at a time.
 * @throws {LAB_FILE} with `line`, for what is damaged, cut, foreign, too new or too large: without `onDamaged` @throws {TypeError}
 * @example for await (const run of readRuns('runs.jsonl')) console.log(run.runId, (await replay(run, { agent })).same);
 */
export async function* readRuns(from: RunLines, options: ReadRunsOptions = {}): AsyncGenerator<RecordedRun, void> {
  checkKeys(options, { onDamaged: true }, { of: 'readRuns' });
  for await (const { run } of readFiled(from, options)) yield run;
}

/** Reads exported runs with what a file has of them besides. */
export async function* readFiled(from: RunLines, { onDamaged }: ReadRunsOptions): AsyncGenerator<FiledRun, void> {
  const reader = new RunReader();
  for await (const line of linesOf(from)) {
    for (const found of reader.take(line)) {
      if ('run' in found) yield found;
      else if (onDamaged) onDamaged(found as LabFile);
      else throw found;
    }
  }
  const cut = reader.end();
  if (!cut) return;
  if (!onDamaged) throw cut;
  onDamaged(cut as LabFile);
}

/** How each run begins: after damage, reading continues there. */
const HEAD = '{"pawl":"run",';

/** A run whose lines are being read. */
interface OpenRun {
  readonly head: ReturnType<typeof headOfRun>;
  readonly parts: { -readonly [Key in keyof RunParts]?: RunParts[Key] } & { readonly steps: StepPart[] };
  readonly line: number;
  readonly sum: Hash;
  lines: number;
  bytes: number;
}

/** Makes runs of lines. */
class RunReader {
  #line = 0;
  #run: OpenRun | undefined;
  /** The error of a damaged part is given: the next run is looked for. */
  #isLost = false;

  /** Takes a line without its end; null: it is longer than a run may be. @returns the runs and errors that it completes */
  take(line: string | null): (FiledRun | LabFileError)[] {
    this.#line += 1;
    if (line?.startsWith(HEAD)) {
      const cut = this.end();
      const begun = this.#tried(() => this.#begin(line));
      return [...(cut ? [cut] : []), ...(begun ? [begun] : [])];
    }
    if (this.#isLost || (!this.#run && line?.trim() === '')) return [];
    const found = this.#tried(() => this.#continue(line));
    return found ? [found] : [];
  }

  /** There are no more lines of this run. @returns what is wrong with one that has not ended */
  end(): LabFileError | undefined {
    const run = this.#run;
    this.#run = undefined;
    this.#isLost = false;
    return run && damageAt(run.line, `run ${shown(run)} is cut: its last line is missing`);
  }

  #tried(read: () => FiledRun | undefined): FiledRun | LabFileError | undefined {
    try {
      return read();
    } catch (error) {
      const of = this.#run ? `run ${shown(this.#run)}: ` : '';
      this.#run = undefined;
      this.#isLost = true;
      return damageAt(this.#line, `${of}${toErrorData(error).message}`, error);
    }
  }

  #begin(line: string): undefined {
    const head = parsed(line);
    const { version } = head;
    if (!Number.isSafeInteger(version) || (version as number) < 1) throw new TypeError('this run has no version');
    if ((version as number) > FILE_VERSION)
      throw new TypeError(
        `version ${String(version)} is newer than this Pawl, which reads up to ${FILE_VERSION}: update it`,
      );
    const sum = createHash('sha256');
    this.#run = { head: headOfRun(head), parts: { steps: [] }, line: this.#line, sum, lines: 0, bytes: 0 };
    this.#count(this.#run, line);
    return undefined;
  }

  #continue(line: string | null): FiledRun | undefined {
    const run = this.#run;
    if (!run) throw new TypeError('this is no line of an exported run: it begins with {"pawl":"run","version":1,…');
    if (line === null) throw new TypeError(`it has more than ${MAX_RUN_BYTES} bytes`);
    const part = parsed(line);
    if ('end' in part) return this.#close(run, part);
    this.#count(run, line);
    const { parts } = run;
    if ('opening' in part) {
      parts.earlier = messagesIn(part.earlier, 'earlier');
      parts.opening = messagesIn(part.opening, 'opening');
    } else if ('step' in part) {
      if (parts.steps.push(stepIn(part)) > MAX_RUN_STEPS)
        throw new TypeError(`it has more than ${MAX_RUN_STEPS} steps`);
    } else if ('rest' in part) parts.rest = messagesIn(part.rest, 'rest');
    else throw new TypeError('this is no part of a run');
    return undefined;
  }

  #count(run: OpenRun, line: string): void {
    run.sum.update(`${line}\n`);
    run.lines += 1;
    run.bytes += Buffer.byteLength(line);
    if (run.bytes > MAX_RUN_BYTES) throw new TypeError(`it has more than ${MAX_RUN_BYTES} bytes`);
  }

  #close(run: OpenRun, { end, lines, sha256 }: Record<string, unknown>): FiledRun {
    const { earlier, opening, steps, rest } = run.parts;
    if (end !== run.head.head.runId) throw new TypeError('its last line is that of another run');
    if (lines !== run.lines || !earlier || !opening || !rest) throw new TypeError('lines are missing');
    if (sha256 !== run.sum.digest('hex')) throw new TypeError('its checksum does not fit: it was changed');
    const filed = runOf(run.head, { earlier, opening, steps, rest });
    this.#run = undefined;
    return filed;
  }
}

function damageAt(line: number, message: string, cause?: unknown): LabFileError {
  return Object.assign(new LabFileError(`line ${line}: ${message}`, cause === undefined ? {} : { cause }), { line });
}

const shown = ({ head: { head } }: OpenRun): string => JSON.stringify(head.runId.slice(0, 100));

function parsed(line: string): Record<string, unknown> {
  const value: unknown = JSON.parse(line);
  if (!isObject(value)) throw new TypeError('this line is not a JSON object');
  return value;
}

async function* linesOf(from: RunLines): AsyncGenerator<string | null, void> {
  if (typeof from === 'string') return yield* fileLines(from);
  if (!isIterable(from)) throw new TypeError('readRuns needs a path, or lines: an iterable of texts');
  for await (const line of from) {
    if (typeof line !== 'string') throw new TypeError('readRuns: each line must be a text');
    yield line.endsWith('\n') ? line.slice(0, -1) : line;
  }
}

function isIterable(from: unknown): boolean {
  return typeof from === 'object' && from !== null && (Symbol.asyncIterator in from || Symbol.iterator in from);
}

const NEW_LINE = 0x0a;

/** The lines of a file. One that is longer than a run may be is null, and is not kept. */
async function* fileLines(path: string): AsyncGenerator<string | null, void> {
  let pending: Buffer[] = [];
  let bytes = 0;
  const line = (): string | null => {
    const whole = bytes > MAX_RUN_BYTES ? null : Buffer.concat(pending).toString('utf8');
    [pending, bytes] = [[], 0];
    return whole;
  };
  const keep = (piece: Buffer) => {
    bytes += piece.length;
    if (bytes <= MAX_RUN_BYTES) pending.push(piece);
    else pending = [];
  };
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let from = 0;
    for (let to = chunk.indexOf(NEW_LINE); to >= 0; to = chunk.indexOf(NEW_LINE, from)) {
      keep(chunk.subarray(from, to));
      yield line();
      from = to + 1;
    }
    keep(chunk.subarray(from));
  }
  if (bytes > 0) yield line();
}
