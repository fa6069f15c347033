import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { InterruptedRun, RunCheckpoint } from '../index.ts';
import { type SqliteStore, sqliteStore } from '../store/sqlite.ts';
import { Failure, lineOf, oneLine } from './failure.ts';
import { shortened } from './figures.ts';

/** A store, with the path under which the user knows it. */
export interface RunStore extends SqliteStore {
  readonly path: string;
  /** What to add to a command so that it uses this store too; '' when it would anyway, whatever the environment. */
  readonly option: string;
}

const DEFAULT_PATH = '.pawl/runs.db';

/** Where the store of a command lies, whether there is one or not. */
export function runStorePath(option: string | undefined): string {
  return resolve(option ?? (process.env.PAWL_STORE || DEFAULT_PATH));
}

/** Whether there is a store. @throws {Failure} when nobody can tell */
export function isStoreThere(option: string | undefined): boolean {
  return exists(runStorePath(option));
}

/** Opens the store of a command; made at its first write when there is none. @throws {Failure} when it cannot be used */
export async function openStore(option: string | undefined): Promise<RunStore> {
  const given = option ?? (process.env.PAWL_STORE || DEFAULT_PATH);
  if (given === '' || given === ':memory:') {
    throw new Failure(`${JSON.stringify(given)} is no store that outlives this process; name a file with --store`);
  }
  const path = resolve(given);
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) {
    throw new Failure(`the store ${path} is a folder; name a file in it, for example ${resolve(path, 'runs.db')}`);
  }
  const store = sqliteStore({ path });
  await store.listInterrupted({ limit: 1 });
  return { ...store, path, option: path === resolve(DEFAULT_PATH) ? '' : ` --store ${quoted(given)}` };
}

/** Opens a store that is there already. Looking for runs must not make one. */
export async function openExistingStore(option: string | undefined): Promise<RunStore> {
  const path = runStorePath(option);
  if (exists(path)) return openStore(option);
  throw new Failure(
    `there is no store ${path}; \`pawl run <agent module>\` makes one, and --store or PAWL_STORE names another`,
  );
}

function exists(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOTDIR') return false;
    throw new Failure(`the store ${path} cannot be looked at (${code}); check the permissions of its folder`);
  }
}

/** The line of one run in the list of those that have not ended. */
export async function findWaiting(store: RunStore, runId: string): Promise<InterruptedRun | undefined> {
  return (await store.listInterrupted()).find((entry) => entry.runId === runId);
}

/** The record of a run; null when there is none. @throws {Failure} when it cannot be read */
export async function loadRecord(store: RunStore, runId: string): Promise<RunCheckpoint | null> {
  try {
    return await store.load(runId);
  } catch (error) {
    throw new Failure(`run ${shortened(oneLine(runId), 80)} cannot be read: ${lineOf(error)}`, { cause: error });
  }
}

/** The process that works on a run; undefined when nobody does, or it is on another machine. */
export function pidOf(entry: InterruptedRun | undefined): number | undefined {
  if (entry === undefined || entry.status === 'quarantined' || entry.owner === undefined) return undefined;
  return Number(entry.owner.split('|')[3]) || undefined;
}

export type WaitingStatus = 'live' | 'interrupted' | 'parked' | 'quarantined';

export function statusOf(entry: InterruptedRun): WaitingStatus {
  if (entry.status !== 'quarantined' && entry.owner !== undefined) return 'live';
  return entry.status ?? 'interrupted';
}

/** A word of a command line as a shell wants it. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
