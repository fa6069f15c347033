import { pathToFileURL } from 'node:url';
import type { Codec, ListenClient } from '../../index.ts';
import { type PostgresPool, type PostgresStore, postgresStore } from '../../store/postgres/index.ts';
import { toErrorData } from '../../values/error-data.ts';
import { Failure } from '../ui/failure.ts';
import { importFrom } from './module-resolution.ts';
import { noStore, type StorePlace } from './store-place.ts';

/** The part of a `pg` pool that commands use. */
interface Pool extends PostgresPool {
  query(text: string, values: readonly unknown[]): Promise<{ readonly rows: readonly { readonly found: unknown }[] }>;
  end(): Promise<void>;
}

/** What commands use of the package `pg`. */
interface Driver {
  readonly Pool: new (options: object) => Pool;
  readonly Client: new (options: object) => ListenClient & { connect(): Promise<void> };
}

/** A command waits this long for a connection, ms. */
const CONNECT_MS = 10_000;

interface PostgresOpening {
  readonly codec: Codec | undefined;
  readonly mustExist: boolean;
  /** Opens it for reading only: the server refuses each write of its sessions, and a call is retried for so long, ms. */
  readonly readMs?: number;
  /** Whether its writes say which runs become due. */
  readonly notify?: boolean;
}

/** Returns the address without the name of the schema, and that. */
function schemaIn({ path, url }: StorePlace): { readonly address: URL; readonly schema: string } {
  const address = new URL(url ?? path);
  const schema = address.searchParams.get('schema') ?? 'pawl';
  address.searchParams.delete('schema');
  return { address, schema };
}

/** Returns what makes a connection for the notifications of a database. @throws {Failure} if `pg` is not installed */
export async function postgresListener(place: StorePlace): Promise<() => Promise<ListenClient>> {
  const { Client } = await driver();
  const { href } = schemaIn(place).address;
  return async () => {
    const client = new Client({ connectionString: href, connectionTimeoutMillis: CONNECT_MS });
    await client.connect();
    return client;
  };
}

/**
 * Opens a store in a PostgreSQL database; `?schema=…` in its URL names the schema (default `pawl`).
 * @param mustExist throws if there is no store yet
 * @throws {Failure} if `pg` is not installed, or there is no store
 */
export async function openPostgres(
  place: StorePlace,
  { codec, mustExist, readMs, notify = false }: PostgresOpening,
): Promise<PostgresStore> {
  const readOnly = readMs !== undefined;
  const { path } = place;
  const { address, schema } = schemaIn(place);
  if (readOnly) addOption(address, '-c default_transaction_read_only=on');
  const { Pool } = await driver();
  const pool = new Pool({ connectionString: address.href, connectionTimeoutMillis: CONNECT_MS, max: 6 });
  pool.on('error', () => {
    // An idle connection broke; the next query reports it.
  });
  try {
    if (mustExist && !(await hasStore(pool, schema))) throw noStore(path);
    const store = postgresStore({ pool, schema, codec, readOnly, timeoutMs: readMs, notify });
    const close = async () => {
      await store.close();
      await pool.end();
    };
    return { ...store, close, [Symbol.asyncDispose]: close };
  } catch (error) {
    await pool.end().catch(() => {});
    if (error instanceof Failure || error instanceof TypeError) throw error;
    throw new Failure(`the store ${path} cannot be reached: ${reasonOf(error)}`, { cause: error });
  }
}

/** Options of the server for each session, besides those that the URL has. */
function addOption({ searchParams }: URL, option: string): void {
  const given = searchParams.get('options');
  searchParams.set('options', given === null ? option : `${given} ${option}`);
}

async function hasStore(pool: Pool, schema: string): Promise<boolean> {
  const text = "SELECT 1 AS found FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = 'layouts'";
  const { rows } = await pool.query(text, [schema]);
  return rows.length > 0;
}

/** A host name with several addresses fails with one error for each, and without a message of its own. */
function reasonOf(error: unknown): string {
  const { message, code } = toErrorData(error);
  const first = error instanceof AggregateError ? toErrorData(error.errors[0]).message : '';
  return message || first || code;
}

/** `pg` is resolved from the working folder, and from this package. */
async function driver(): Promise<Driver> {
  const parents = [pathToFileURL(`${process.cwd()}/package.json`).href, import.meta.url];
  try {
    const { default: pg, ...named } = await importFrom({ specifier: 'pg', parents });
    return { ...(pg as Driver), ...named };
  } catch (error) {
    const { code, message } = toErrorData(error);
    const isMissing = code === 'ERR_MODULE_NOT_FOUND' && message.includes("'pg'");
    const problem = isMissing
      ? 'a store in PostgreSQL needs the package pg, which is not installed; run `npm install pg`'
      : `the package pg could not be loaded: ${message}`;
    throw new Failure(problem, { cause: error });
  }
}
