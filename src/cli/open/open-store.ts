import { resolve } from 'node:path';
import type { Codec, WorkOptions } from '../../index.ts';
import type { AppendingStore, CommandStore, OutcomeStore, OwningStore } from '../../kit.ts';
import { type SqliteStore, sqliteStore } from '../../store/sqlite/index.ts';
import { Failure } from '../ui/failure.ts';
import { loadModule } from './agent-module.ts';
import { codecOf } from './codec-export.ts';
import { openPostgres, postgresListener } from './open-postgres.ts';
import { identityOfStore, lookAt, noStore, placeOf, type StorePlace } from './store-place.ts';

/** A store, with what the user needs to know of it. */
export interface RunStore extends AppendingStore, OwningStore, Pick<SqliteStore, 'storedRows'> {
  readonly commands: CommandStore;
  readonly outcomes: OutcomeStore;
  /** An absolute path, or a URL without its password. */
  readonly path: string;
  /** The option with which another command uses this store; '' if it is the default, also with other environment variables. */
  readonly option: string;
  /** Identifies it among all stores on this machine. */
  readonly identity: string;
  close(): Promise<void>;
}

/**
 * Returns whether the store of a command exists. For a database, only the database knows.
 * @throws {Failure} if it cannot be checked
 */
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

/** Opens the store of a command that must exist already. Looking for runs must not make one. @throws {Failure} */
export async function openExistingStore(option: string | undefined, codec?: Codec): Promise<RunStore> {
  const place = placeOf(option);
  if (!isThere(place)) throw noStore(place.path);
  return open(place, { codec, mustExist: true });
}

/** Opens the store of a command that changes nothing, not even an older layout. It must exist already. @throws {Failure} */
export async function openExistingReader(option: string | undefined, codec?: Codec): Promise<RunStore> {
  const place = placeOf(option);
  if (!isThere(place)) throw noStore(place.path);
  return open(place, { codec, mustExist: true, readOnly: true });
}

/** The store of a worker. */
export interface WorkStore extends RunStore {
  /** Makes a connection on which the store says that a run is due; only if it was asked for. */
  readonly listen?: WorkOptions['listen'];
}

/**
 * Opens the store of a worker; its first write makes it if there is none.
 * @throws {Failure} if it cannot be used, or cannot be listened to
 */
export async function openWorkStore(
  option: string | undefined,
  { codec, listens }: { readonly codec: Codec | undefined; readonly listens: boolean },
): Promise<WorkStore> {
  const place = placeOf(option);
  if (listens && place.kind !== 'postgres')
    throw new Failure(
      `--listen needs a store in PostgreSQL, not ${place.path}; leave it out: the store is asked once a second`,
    );
  const store = await open(place, { codec, mustExist: false, notify: listens });
  return listens ? { ...store, listen: await postgresListener(place) } : store;
}

interface Opening {
  readonly codec: Codec | undefined;
  readonly mustExist: boolean;
  /** Whether a database says which runs become due. */
  readonly notify?: boolean;
  readonly readOnly?: boolean;
}

async function open(
  place: StorePlace,
  { codec: given, mustExist, notify = false, readOnly = false }: Opening,
): Promise<RunStore> {
  const { kind, path, option } = place;
  const codec = given ?? (await codecFromEnvironment());
  const store =
    kind === 'postgres'
      ? await openPostgres(place, { codec, mustExist, notify, ...(readOnly ? { readMs: READING_MS } : {}) })
      : sqliteStore({ path, codec, readOnly });
  // A store reports its errors at the first use: here they cannot be confused with others.
  try {
    await store.listInterrupted({ limit: 1 });
  } catch (error) {
    // A worker tries again, and must not keep the connections of each try.
    await store.close().catch(() => {});
    throw error;
  }
  return { ...store, path, option, identity: identityOfStore(place) };
}

/** A reader waits this long for a lock or a server, ms: a person looks at a page meanwhile. */
const READING_MS = 3_000;

/**
 * Opens the store of a command for reading only. It need not be there, and need not answer yet: each read says what is wrong.
 * @throws {Failure} if the driver of its database is not installed
 */
export async function openReader(option: string | undefined, codec: Codec | undefined): Promise<RunStore> {
  const place = placeOf(option);
  const { kind, path } = place;
  const reading = { codec, readOnly: true, busyTimeoutMs: READING_MS };
  const store =
    kind === 'postgres'
      ? await openPostgres(place, { codec, mustExist: false, readMs: READING_MS })
      : sqliteStore({ path, ...reading });
  return { ...store, path, option: place.option, identity: identityOfStore(place) };
}

function isThere({ kind, path }: StorePlace): boolean {
  return kind === 'postgres' || lookAt(path) !== undefined;
}

/**
 * The codec of the module that PAWL_CODEC names, its export `codec` or its default one: for commands without an agent module.
 * @throws {Failure} that says what is wrong with it
 */
export async function codecFromEnvironment(): Promise<Codec | undefined> {
  const file = process.env.PAWL_CODEC;
  return file ? codecIn(file, 'PAWL_CODEC') : undefined;
}

/** The codec of a module. @param of what names the module, for errors @throws {Failure} that says what is wrong with it */
export async function codecIn(file: string, of: string): Promise<Codec> {
  const path = resolve(file);
  const exported = await loadModule(path, 'codec module');
  const codec = codecOf(exported.codec ?? exported.default, path);
  if (codec) return codec;
  throw new Failure(
    `${of} names ${path}, which exports no codec; write \`export const codec = encrypt({ keys, current })\` in it`,
  );
}
