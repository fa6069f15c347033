import { resolve } from 'node:path';
import type { AppendingStore, Codec, ControlStore, InterruptedRun, OutcomeStore, RunCheckpoint } from '../../index.ts';
import { RunTree } from '../../record/run-tree.ts';
import { fileStore } from '../../store/file/index.ts';
import { sqliteStore } from '../../store/sqlite/index.ts';
import { Failure, lineOf, oneLine } from '../ui/failure.ts';
import { shortened } from '../ui/format.ts';
import { loadModule } from './agent-module.ts';
import { codecOf } from './codec-export.ts';
import { noStore, openPostgres } from './open-postgres.ts';
import { identityOf, lookAt, placeOf, type StorePlace } from './store-place.ts';

export { listedStatus as statusOf } from '../../run/result.ts';
export { quoted } from './store-place.ts';

/** A store, with what the user needs to know of it. */
export interface RunStore extends AppendingStore, ControlStore, OutcomeStore {
  /** An absolute path, or a URL without its password. */
  readonly path: string;
  /** The option with which another command uses this store; '' if it is the default, also with other environment variables. */
  readonly option: string;
  /** Identifies it among all stores on this machine. */
  readonly identity: string;
  /** Deletes expired outcomes; returns how many there were. */
  forgetOutcomes?(options?: { readonly dryRun?: boolean }): Promise<number>;
  close(): Promise<void>;
}

/** Whether there is a store. For a database, only the database knows. @throws {Failure} if it cannot be checked */
export function isStoreThere(option: string | undefined): boolean {
  return isThere(placeOf(option));
}

/**
 * Opens the store of a command; its first write makes it if there is none.
 * @param codec of the command's agent module; default: that of PAWL_CODEC
 * @throws {Failure} if it cannot be used
 */
export async function openStore(option: string | undefined, codec?: Codec): Promise<RunStore> {
  return open(placeOf(option), { codec, mustExist: false });
}

/** Opens an existing store. Looking for runs must not make one. @throws {Failure} */
export async function openExistingStore(option: string | undefined, codec?: Codec): Promise<RunStore> {
  const place = placeOf(option);
  if (!isThere(place)) throw noStore(place.path);
  return open(place, { codec, mustExist: true });
}

interface Opening {
  readonly codec: Codec | undefined;
  readonly mustExist: boolean;
}

async function open(place: StorePlace, { codec: given, mustExist }: Opening): Promise<RunStore> {
  const { kind, path, option } = place;
  const codec = given ?? (await codecFromEnvironment());
  const store =
    kind === 'postgres'
      ? await openPostgres(place, { codec, mustExist })
      : kind === 'files'
        ? fileStore({ dir: path, codec })
        : sqliteStore({ path, codec });
  // A store reports its errors at the first use: here they cannot be confused with others.
  await store.listInterrupted({ limit: 1 });
  return { ...store, path, option, identity: identityOf(place) };
}

function isThere({ kind, path }: StorePlace): boolean {
  return kind === 'postgres' || lookAt(path) !== undefined;
}

/** The entry of one run in the list of those that have not ended. */
export async function findWaiting(store: RunStore, runId: string): Promise<InterruptedRun | undefined> {
  return (await store.listInterrupted()).find((entry) => entry.runId === runId);
}

/** The trees of runs in an opened store, for the runs of a list. */
export function treeIn(store: Pick<RunStore, 'load'>, entries: readonly InterruptedRun[]): RunTree {
  const tree = new RunTree({ load: (runId) => store.load(runId) });
  for (const entry of entries) tree.add(entry);
  return tree;
}

/** The record of a run; null if there is none. @throws {Failure} if it cannot be read */
export async function loadRecord(store: RunStore, runId: string): Promise<RunCheckpoint | null> {
  try {
    return await store.load(runId);
  } catch (error) {
    throw new Failure(`run ${shortened(oneLine(runId), 80)} cannot be read: ${lineOf(error)}`, { cause: error });
  }
}

/** The process that works on a run; undefined if there is none, or it is on another machine. */
export function pidOf(entry: InterruptedRun | undefined): number | undefined {
  if (entry === undefined || entry.status === 'quarantined' || entry.owner === undefined) return undefined;
  return pidOfOwner(entry.owner);
}

export function pidOfOwner(owner: string): number | undefined {
  return Number(owner.split('|')[3]) || undefined;
}

/**
 * The codec of the module that PAWL_CODEC names, its export `codec` or its default one: for commands without an agent module.
 * @throws {Failure} that says what is wrong with it
 */
async function codecFromEnvironment(): Promise<Codec | undefined> {
  const file = process.env.PAWL_CODEC;
  if (!file) return undefined;
  const path = resolve(file);
  const exported = await loadModule(path, 'codec module');
  const codec = codecOf(exported.codec ?? exported.default, path);
  if (codec) return codec;
  throw new Failure(
    `PAWL_CODEC names ${path}, which exports no codec; write \`export const codec = encrypt({ keys, current })\` in it`,
  );
}
