import { realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { Failure } from '../ui/failure.ts';
import { PAWL, quoted } from '../ui/shell-words.ts';

/** Where a store is: a SQLite file, or a PostgreSQL database. */
export interface StorePlace {
  readonly kind: 'sqlite' | 'postgres';
  /** What the user sees: an absolute path, or a URL without its password. */
  readonly path: string;
  /** For a postgres store: the whole URL. */
  readonly url?: URL;
  /** The option with which another command uses this store; '' if it is the default, also with other environment variables. */
  readonly option: string;
}

const DEFAULT_PATH = '.pawl/runs.db';

/**
 * Parses the option `--store` (or PAWL_STORE): where the store is, and whether it is SQLite or PostgreSQL.
 * @throws {Failure} if this cannot be a store
 */
export function placeOf(option: string | undefined): StorePlace {
  const given = givenStore(option);
  if (/^postgres(ql)?:/i.test(given)) return postgresPlace(given);
  if (given === '' || given === ':memory:') {
    throw new Failure(
      `${JSON.stringify(given)} is not a file, so the store would end with this process; name a file with --store`,
    );
  }
  const path = resolve(given);
  if (/[/\\]$/.test(given) || lookAt(path)?.isDirectory()) {
    const example = join(path, 'runs.db');
    throw new Failure(`the store ${path} is a folder; name a SQLite file, for example ${example}`);
  }
  return { kind: 'sqlite', path, option: path === resolve(DEFAULT_PATH) ? '' : ` --store ${quoted(given)}` };
}

/**
 * Returns a text that identifies a store on this machine, however the user named it: never shown, and without a password.
 */
export function identityOfStore({ kind, path, url }: StorePlace): string {
  if (kind !== 'postgres') return `${kind}:${realPath(path)}`;
  const { hostname, port, pathname, searchParams } = url ?? new URL(path);
  return `postgres:${hostname}:${port || 5432}${pathname}?${searchParams.get('schema') ?? 'pawl'}`;
}

/** Resolves links, as far as the path exists: a store is made at its first write. */
function realPath(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    const above = dirname(path);
    return above === path ? path : join(realPath(above), basename(path));
  }
}

function givenStore(option: string | undefined): string {
  return option ?? (process.env.PAWL_STORE || DEFAULT_PATH);
}

/**
 * Reads the file status of a store's path; undefined when there is no file.
 * @throws {Failure} if it is not possible to check whether it exists
 */
export function lookAt(path: string): ReturnType<typeof statSync> {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOTDIR') return undefined;
    throw new Failure(`the store ${path} cannot be checked (${code}); check the permissions of its folder`);
  }
}

/** The shown URL has no password, neither in the usual place nor among the parameters. */
function postgresPlace(given: string): StorePlace {
  if (!URL.canParse(given)) {
    throw new Failure('the URL of the store cannot be read; write postgres://user:password@host:port/database');
  }
  const url = new URL(given);
  const shown = new URL(given);
  shown.password = '';
  for (const name of [...shown.searchParams.keys()])
    if (/pass|key|secret|token/i.test(name)) shown.searchParams.delete(name);
  return { kind: 'postgres', path: shown.href, url, option: ` --store ${quoted(shown.href)}` };
}

/** Returns the error of a command whose store does not exist. */
export function noStore(path: string): Failure {
  return new Failure(
    `there is no store ${path}; \`${PAWL} run <agent module>\` makes one, and --store or PAWL_STORE names another`,
  );
}
