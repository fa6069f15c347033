import { createHash } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { isInUse } from '../../fan-out/file-claim.ts';
import { loadCheckpoint } from '../../fan-out/index.ts';
import { RequestError } from '../../http/problem.ts';
import { toErrorData } from '../../values/error-data.ts';
import type { FanOutLine, FanOutList } from '../fan-out-wire.ts';

/** A fan-out's checkpoint. */
export type FanOut = NonNullable<Awaited<ReturnType<typeof loadCheckpoint>>>;

/** A file that may be a fan-out. */
interface Found {
  readonly id: string;
  readonly path: string;
  readonly name: string;
  readonly updatedAt: number;
  readonly size: number;
}

const MAX_FILES = 200;
const MAX_DEPTH = 3;
const MAX_BYTES = 64 * 1_048_576;
const PROMPT_CHARS = 200;

/** Finds the fan-outs below one folder. What was read once is read again only if it has changed. */
export class FanOutFiles {
  readonly folder: string;
  readonly #lines = new Map<string, { readonly key: string; readonly line: FanOutLine | undefined }>();

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Returns the fan-outs, the newest first. */
  async list(): Promise<FanOutList> {
    const { files, isPartial } = await this.#files();
    const lines: FanOutLine[] = [];
    for (const file of files) {
      const line = await this.#line(file);
      if (line) lines.push(line);
    }
    for (const id of this.#lines.keys()) if (!files.some((file) => file.id === id)) this.#lines.delete(id);
    return { items: lines, folder: this.folder, isPartial };
  }

  /** Reads one fan-out. @throws {RequestError} NOT_FOUND @throws {CHECKPOINT_CORRUPT} … */
  async read(id: string): Promise<{ readonly line: FanOutLine; readonly fanOut: FanOut; readonly path: string }> {
    const { files } = await this.#files();
    const file = files.find((each) => each.id === id);
    const fanOut = file && (await loadCheckpoint(file.path));
    if (!file || !fanOut) throw new RequestError('NOT_FOUND');
    return { line: await lineOf(file, fanOut), fanOut, path: file.path };
  }

  async #line(file: Found): Promise<FanOutLine | undefined> {
    const key = `${file.updatedAt} ${file.size} ${await isInUse(file.path)}`;
    const known = this.#lines.get(file.id);
    if (known?.key === key) return known.line;
    const line = await readLine(file);
    this.#lines.set(file.id, { key, line });
    return line;
  }

  async #files(): Promise<{ readonly files: readonly Found[]; readonly isPartial: boolean }> {
    const paths = await jsonBelow(this.folder, MAX_DEPTH);
    const found = await Promise.all(paths.slice(0, 10 * MAX_FILES).map((path) => findAt(this.folder, path)));
    const files = found.filter((file) => file !== undefined).toSorted((a, b) => b.updatedAt - a.updatedAt);
    return { files: files.slice(0, MAX_FILES), isPartial: files.length > MAX_FILES || paths.length > found.length };
  }
}

async function jsonBelow(folder: string, depth: number): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const paths = entries.filter((entry) => entry.isFile() && entry.name.endsWith('.json'));
  // The records of runs that are not done, and what undoes changes, are no fan-outs.
  const folders = entries.filter(
    (entry) => entry.isDirectory() && !entry.name.endsWith('.runs') && entry.name !== 'undo',
  );
  const below = depth > 0 ? await Promise.all(folders.map(({ name }) => jsonBelow(join(folder, name), depth - 1))) : [];
  return [...paths.map(({ name }) => join(folder, name)), ...below.flat()];
}

async function findAt(folder: string, path: string): Promise<Found | undefined> {
  const facts = await stat(path).catch(() => undefined);
  if (!facts || facts.size > MAX_BYTES) return undefined;
  const name = relative(folder, path).split(sep).join('/');
  const id = createHash('sha256').update(name).digest('base64url').slice(0, 16);
  return { id, path, name, updatedAt: Math.round(facts.mtimeMs), size: facts.size };
}

/** Undefined for another JSON file. */
async function readLine(file: Found): Promise<FanOutLine | undefined> {
  try {
    const fanOut = await loadCheckpoint(file.path);
    return fanOut ? await lineOf(file, fanOut) : undefined;
  } catch (error) {
    const { code = '' } = toErrorData(error, 'INTERNAL');
    if (code === 'CHECKPOINT_CORRUPT' && !fileNames.test(file.name)) return undefined;
    const { id, name, updatedAt } = file;
    return { id, name, updatedAt, prompt: '', state: 'bad', models: 0, answered: 0, ...(code ? { code } : {}) };
  }
}

/** The names that Pawl gives to fan-outs: one that is damaged is shown. */
const fileNames = /(^|\/)(ask|answers)\.json$/;

async function lineOf({ id, name, path, updatedAt }: Found, fanOut: FanOut): Promise<FanOutLine> {
  const { prompt, adapterIds, responses } = fanOut;
  const models = new Set([...adapterIds, ...responses.map(({ modelId }) => modelId)]).size;
  const isOver = responses.filter((each) => each.completed || each.error !== undefined).length >= models;
  const open = (await isInUse(path)) ? 'run' : 'idle';
  return {
    id,
    name,
    prompt: prompt.length <= PROMPT_CHARS ? prompt : `${prompt.slice(0, PROMPT_CHARS - 1).toWellFormed()}…`,
    state: isOver ? 'ok' : open,
    models,
    answered: responses.filter(({ completed }) => completed).length,
    updatedAt,
  };
}
