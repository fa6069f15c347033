import { createHash, randomUUID } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { isObject } from '../../values/json.ts';
import { Failure, oneLine } from '../ui/failure.ts';

/** Identifies a run of one store on this machine. */
export interface RunPlace {
  /** `RunStore.identity`. */
  readonly store: string;
  readonly runId: string;
}

/** The content of a file. It includes the place: a renamed file matches no run. */
interface Entry extends RunPlace {
  readonly v: 1;
  /** Absolute. */
  readonly module: string;
}

const MOST_BYTES = 65_536;
const MOST_FILES = 4_096;
const MOST_DAYS = 180;
const DAY_MS = 86_400_000;

/**
 * Remembers with which agent module this user started each unfinished run: one small file for each, outside of its store. A
 * store may come from elsewhere, so nothing in it names code to run. Only this user can write these files; one that others
 * can write is refused.
 */
export class KnownModules {
  readonly #folder: string;
  #isSwept = false;

  /** @param home default: the state folder of this user */
  constructor(home: string = stateFolder()) {
    this.#folder = join(home, 'agent-modules');
  }

  /** The module of a run; undefined if it is not known on this machine. @throws {Failure} if others can write the file */
  find(place: RunPlace): string | undefined {
    const path = this.#pathOf(place);
    const text = readPrivate(this.#folder, path);
    const entry = text === undefined ? undefined : parsed(text);
    return entry?.store === place.store && entry.runId === place.runId ? entry.module : undefined;
  }

  /** Stores the module of a run atomically. @throws {Failure} that says why it cannot be stored */
  remember({ store, runId }: RunPlace, module: string): void {
    const path = this.#pathOf({ store, runId });
    const entry: Entry = { v: 1, store, runId, module };
    try {
      makePrivateFolder(this.#folder);
      if (this.#isKnown(entry)) {
        const now = new Date();
        utimesSync(path, now, now);
      } else {
        writePrivate(path, `${JSON.stringify(entry)}\n`);
      }
      this.#sweep();
    } catch (error) {
      throw error instanceof Failure ? error : new Failure(oneLine((error as Error).message), { cause: error });
    }
  }

  /** Called for runs that have ended. */
  forget(place: RunPlace): void {
    try {
      rmSync(this.#pathOf(place), { force: true });
    } catch {
      // The sweep deletes it by its age.
    }
  }

  #isKnown(entry: Entry): boolean {
    try {
      return this.find(entry) === entry.module;
    } catch {
      return false;
    }
  }

  #pathOf({ store, runId }: RunPlace): string {
    const name = createHash('sha256')
      .update(JSON.stringify([store, runId]))
      .digest('hex');
    return join(this.#folder, `${name}.json`);
  }

  /** Once for each command: deletes old files, and files beyond the limit. Other processes may do the same meanwhile. */
  #sweep(): void {
    if (this.#isSwept) return;
    this.#isSwept = true;
    const files = readdirSync(this.#folder).map((name) => join(this.#folder, name));
    const aged = files.map((path) => ({ path, at: statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0 }));
    const oldest = Date.now() - MOST_DAYS * DAY_MS;
    const newestFirst = aged.toSorted((a, b) => b.at - a.at);
    for (const [i, { path, at }] of newestFirst.entries()) {
      if (i >= MOST_FILES || at < oldest) rmSync(path, { force: true });
    }
  }
}

/** Undefined if there is no such file, or if it is too large. @throws {Failure} if it is not private */
function readPrivate(folder: string, path: string): string | undefined {
  let descriptor: number;
  try {
    checkPrivate(folder, statSync(folder));
    // A link could point to a file of another user.
    descriptor = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw error instanceof Failure ? error : new Failure(`${path} cannot be read (${code})`, { cause: error });
  }
  try {
    return checkPrivateFile(path, descriptor) > MOST_BYTES ? undefined : readFileSync(descriptor, 'utf8');
  } finally {
    closeSync(descriptor);
  }
}

function writePrivate(path: string, text: string): void {
  const unfinished = `${path}.${randomUUID()}`;
  try {
    const descriptor = openSync(unfinished, 'wx', 0o600);
    try {
      writeFileSync(descriptor, text);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(unfinished, path);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
}

/** Undefined for a damaged file, and for one of a later version. */
function parsed(text: string): Entry | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(value) || value.v !== 1) return undefined;
  const { module } = value;
  return typeof module === 'string' && isAbsolute(module) ? (value as unknown as Entry) : undefined;
}

/**
 * Returns the folder for state of the command line on this machine: $PAWL_STATE_HOME, else `pawl` in the platform's folder
 * for state.
 */
export function stateFolder(
  env: NodeJS.ProcessEnv = process.env,
  platform: NodeJS.Platform = process.platform,
): string {
  if (env.PAWL_STATE_HOME) return resolve(env.PAWL_STATE_HOME);
  return join(platformFolder(env, platform), 'pawl');
}

function platformFolder(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): string {
  if (platform === 'darwin') return join(homedir(), 'Library', 'Application Support');
  if (platform === 'win32') return env.LOCALAPPDATA || join(homedir(), 'AppData', 'Local');
  // A relative path in XDG_STATE_HOME is invalid, and its specification says to ignore it.
  const { XDG_STATE_HOME: given = '' } = env;
  return isAbsolute(given) ? given : join(homedir(), '.local', 'state');
}

/** Makes a folder that only this user can read or write. @throws {Failure} if it exists and others can write to it */
function makePrivateFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  checkPrivate(path, statSync(path));
}

/**
 * Checks that only this user can change the file that lists the agent modules, or its folder.
 * @throws {Failure} if another user owns a file or folder, or can write to it
 */
function checkPrivate(path: string, { uid, mode }: Pick<Stats, 'uid' | 'mode'>): void {
  // Windows has neither: there, access lists protect a user's folders.
  const self = process.geteuid?.();
  if (self === undefined) return;
  if (uid !== self) throw new Failure(`${path} belongs to user ${uid}, and this is user ${self}; remove it`);
  if ((mode & 0o022) !== 0) {
    const permissions = (mode & 0o777).toString(8).padStart(4, '0');
    throw new Failure(`other users can write to ${path} (mode ${permissions}); run chmod go-w on it, or remove it`);
  }
}

/** The same for an open file. @returns its size in bytes */
function checkPrivateFile(path: string, descriptor: number): number {
  const stats = fstatSync(descriptor);
  if (!stats.isFile()) throw new Failure(`${path} is not a file; remove it`);
  checkPrivate(path, stats);
  return stats.size;
}
