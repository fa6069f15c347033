import { createHash } from 'node:crypto';
import { readdirSync, rmSync, statSync, utimesSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { isObject } from '../../values/json.ts';
import { Failure, oneLine } from '../ui/failure.ts';
import { makePrivateFolder, readPrivate, stateFolder, writePrivate } from './private-files.ts';

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

const MOST_FILES = 4_096;
const MOST_DAYS = 180;
const DAY_MS = 86_400_000;

/**
 * Remembers with which agent module this user started each run whose record is kept: one small file for each, outside of its store. A
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
