import { copyFileSync, existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { Codec } from '../../../codec/port.ts';
import type { RunCheckpoint } from '../../../record/checkpoint.ts';
import { headOf } from '../../../record/delta.ts';
import type { InterruptedRun } from '../../../record/interrupted.ts';
import { isRewritten } from '../../../record/upcast.ts';
import { StoreUnavailableError } from '../../../values/errors.ts';
import { checkFlag, checkKeys, type KnownKeys } from '../../../values/known-options.ts';
import { newOwner } from '../../owner.ts';
import { type SqliteStore, sqliteStore } from '../sqlite-store.ts';
import { backupTime, clearState } from './file-state.ts';
import { newFile } from './new-file.ts';

export interface RestoreOptions {
  /** A file that `backupStore` made. */
  readonly backup: string;
  /** The file of the new store. It must not exist. */
  readonly path: string;
  /** The codec of the store, if its texts are encrypted. */
  readonly codec?: Codec | undefined;
  /**
   * Does not park a run whose recorded open step has calls of effect `read` only, or none, if the same holds for all runs of its
   * tree. What such a run did after the backup is not known all the same: it may do it again. Default `false`.
   */
  readonly resumeReads?: boolean | undefined;
}

export interface RestoreResult {
  /** The moment of the backup, wall clock ms. */
  readonly takenAt: number;
  /** The runs that this restore has parked, with code `RESTORED`. */
  readonly parked: readonly string[];
  /** The runs that continue; empty without `resumeReads`. */
  readonly resumed: readonly string[];
  /** The runs that were parked before. */
  readonly parkedBefore: readonly string[];
  /** The runs whose record cannot be read. They are as they were: no process continues them. */
  readonly unreadable: readonly string[];
}

const optionKeys: KnownKeys<RestoreOptions> = { backup: true, path: true, codec: true, resumeReads: true };

const CLAIM_MS = 60_000;

/**
 * Makes a store of a backup. Each run that had not ended is parked with code `RESTORED` until it is unparked: what it did
 * after the backup is not in the record, and it would do that again. The store appears when all runs are parked.
 *
 * @throws {STORE_UNAVAILABLE} if there is no backup, or the path exists @throws {CHECKPOINT_TOO_NEW}
 * @throws {KEY_MISMATCH} for an encrypted store without its codec
 * @example await restoreStore({ backup: 'runs.backup', path: 'restored.db' })
 */
export async function restoreStore(options: RestoreOptions): Promise<RestoreResult> {
  checkKeys(options, optionKeys, { of: 'restoreStore' });
  checkFlag('restoreStore: resumeReads', options.resumeReads);
  const { backup, path, codec, resumeReads = false } = options;
  if (!existsSync(backup)) throw new StoreUnavailableError(`there is no backup ${resolve(backup)}`);
  return newFile(path, async (file) => {
    copyFileSync(backup, file);
    const takenAt = becomeStore(file, resolve(backup));
    await using store = sqliteStore({ path: file, codec });
    return { takenAt, ...(await parkAll(store, { takenAt, resumeReads })) };
  });
}

/** Makes the copy of a backup a store again, whose runs no process has. @returns the time of the backup */
function becomeStore(file: string, backup: string): number {
  const { DatabaseSync: Opened } = process.getBuiltinModule('node:sqlite');
  const db = new Opened(file);
  try {
    const takenAt = timeOf(db);
    if (takenAt === undefined)
      throw new StoreUnavailableError(`${backup} is no backup; \`pawl backup <file>\` makes one of a store`);
    db.exec('BEGIN IMMEDIATE');
    clearState(db);
    // Owners of that time may live, and work on the store that was copied. Marks of damaged records stay.
    db.exec("UPDATE claims SET owner = NULL WHERE owner NOT LIKE '|quarantined|%'");
    db.exec('COMMIT');
    return takenAt;
  } finally {
    db.close();
  }
}

function timeOf(db: DatabaseSync): number | undefined {
  try {
    return backupTime(db);
  } catch {
    return undefined;
  }
}

interface Parking {
  readonly takenAt: number;
  readonly resumeReads: boolean;
}

async function parkAll(store: SqliteStore, { takenAt, resumeReads }: Parking): Promise<Omit<RestoreResult, 'takenAt'>> {
  const [parked, resumed, parkedBefore, unreadable]: string[][] = [[], [], [], []];
  const entries = [...(await store.listInterrupted()), ...(await store.listInterrupted({ status: 'waiting' }))];
  const bound = resumeReads ? await rootsWithEffects(store, entries) : undefined;
  for (const entry of entries) {
    const { runId } = entry;
    const record = await readable(store, entry);
    if (!record) unreadable?.push(runId);
    else if (record.parked) parkedBefore?.push(runId);
    else if (bound && !bound.has(rootOf(record))) resumed?.push(runId);
    else {
      await park(store, record, takenAt);
      parked?.push(runId);
    }
  }
  return {
    parked: parked ?? [],
    resumed: resumed ?? [],
    parkedBefore: parkedBefore ?? [],
    unreadable: unreadable ?? [],
  };
}

/** The record of a listed run; undefined if it is damaged. A missing key is no damage. */
async function readable(store: SqliteStore, { runId, status }: InterruptedRun): Promise<RunCheckpoint | undefined> {
  try {
    return (await store.load(runId)) ?? undefined;
  } catch (error) {
    if (status === 'quarantined' && (error as { code?: unknown }).code !== 'KEY_MISMATCH') return undefined;
    if ((error as { code?: unknown }).code === 'CHECKPOINT_CORRUPT') return undefined;
    throw error;
  }
}

const rootOf = ({ meta, parent }: RunCheckpoint) => parent?.rootRunId ?? meta.runId;

/** The roots of trees in which some run has an open call with effects, is parked or cannot be read. */
async function rootsWithEffects(store: SqliteStore, entries: readonly InterruptedRun[]): Promise<ReadonlySet<string>> {
  const roots = new Set<string>();
  for (const entry of entries) {
    const record = await readable(store, entry);
    const calls = record?.openStep?.calls ?? [];
    if (!record) roots.add('parent' in entry && entry.parent ? entry.parent.rootRunId : entry.runId);
    else if (record.parked || calls.some(({ effect }) => effect !== 'read')) roots.add(rootOf(record));
  }
  return roots;
}

async function park(store: SqliteStore, record: RunCheckpoint, takenAt: number): Promise<void> {
  const { runId } = record.meta;
  const claim = await store.claim(runId, newOwner(), CLAIM_MS);
  if (!claim) throw new StoreUnavailableError(`run ${runId} of the restored store has an owner`);
  const reason = `restored from a backup of ${new Date(takenAt).toISOString()}: what it did after that is not known`;
  // The claim counted a start that did not happen.
  const attempts = Math.max(0, claim.attempts - 1);
  const revision = (record.revision ?? 0) + 1;
  const parked: RunCheckpoint = { ...record, attempts, revision, parked: { code: 'RESTORED', reason } };
  const head = { ...headOf(parked), revision };
  const delta = { runId, revision, from: record.messages.length, messages: [], head };
  await (isRewritten(record) ? store.save(parked, { claim }) : store.append(delta, { claim }));
  await store.release(claim, { attempts });
}

/**
 * Makes a store whose -wal file is missing a store that opens. Call it only if nothing is missing: another program has put the
 * -wal file into the main file, or the lost steps do not matter.
 * @throws {STORE_UNAVAILABLE} if there is no such file, or its -wal file is there
 */
export function acceptWithoutWal(path: string): void {
  const file = resolve(path);
  if (!existsSync(file)) throw new StoreUnavailableError(`there is no store ${file}`);
  if (existsSync(`${file}-wal`)) throw new StoreUnavailableError(`${file}-wal is there: nothing is missing`);
  const { DatabaseSync: Opened } = process.getBuiltinModule('node:sqlite');
  const db = new Opened(file);
  try {
    if (db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'file_state'").get()) {
      db.exec("DELETE FROM file_state WHERE state = 'open'");
    }
  } finally {
    db.close();
  }
}
