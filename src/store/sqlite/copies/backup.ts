import type { DatabaseSync } from 'node:sqlite';
import { StoreUnavailableError } from '../../../values/errors.ts';
import { checkKeys, type KnownKeys } from '../../../values/known-options.ts';
import { sqliteStore } from '../sqlite-store.ts';
import { markBackup } from './file-state.ts';
import { newFile } from './new-file.ts';

export interface BackupOptions {
  /** The file of the store; other processes may write to it meanwhile. */
  readonly path: string;
  /** The file to make. It must not exist. */
  readonly target: string;
  /** Called with the bytes copied so far, and those of the whole store. */
  readonly onProgress?: ((copied: number, total: number) => void) | undefined;
}

export interface BackupResult {
  /** The moment whose commits the backup has, wall clock ms. */
  readonly takenAt: number;
  readonly bytes: number;
}

const optionKeys: KnownKeys<BackupOptions> = { path: true, target: true, onProgress: true };

/** Pages of 1 KB that are copied in one step, between two turns of the event loop. */
const PAGES_AT_ONCE = 2_000;

/**
 * Copies a SQLite store into one new file, as of one moment, while processes write to the store. The copy is a backup: no process
 * opens it as a store before `restoreStore` has parked its runs. Encrypted texts stay encrypted.
 *
 * @throws {STORE_UNAVAILABLE} if there is no store, or the target exists @throws {CHECKPOINT_TOO_NEW}
 * @example await backupStore({ path: 'runs.db', target: 'runs-2026-11-28.backup' })
 */
export async function backupStore(options: BackupOptions): Promise<BackupResult> {
  checkKeys(options, optionKeys, { of: 'backupStore' });
  const { path, target, onProgress } = options;
  await checkStore(path);
  const { DatabaseSync: Opened, backup } = process.getBuiltinModule('node:sqlite');
  return newFile(target, async (file) => {
    // A connection that may write would put the -wal file into the main file when it closes.
    const source = new Opened(path, { readOnly: true });
    try {
      const pageBytes = pragma(source, 'page_size');
      // Within a transaction all steps read the commits of one moment: without it each commit would begin the copy again.
      source.exec('BEGIN');
      source.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get();
      const takenAt = Date.now();
      const pages = await backup(source, file, {
        rate: PAGES_AT_ONCE,
        progress: ({ totalPages, remainingPages }) =>
          onProgress?.((totalPages - remainingPages) * pageBytes, totalPages * pageBytes),
      });
      seal(new Opened(file), takenAt);
      return { takenAt, bytes: pages * pageBytes };
    } finally {
      source.close();
    }
  });
}

/** Checks that a file is a store that this version reads, with all of its commits. */
async function checkStore(path: string): Promise<void> {
  if (path === ':memory:') throw new StoreUnavailableError('a store in memory has no file; it cannot be backed up');
  await using store = sqliteStore({ path, readOnly: true });
  await store.listInterrupted({ limit: 1 });
}

/** Makes one file of it, without a -wal file. */
function seal(db: DatabaseSync, takenAt: number): void {
  try {
    db.exec('PRAGMA journal_mode = DELETE');
    markBackup(db, takenAt);
  } finally {
    db.close();
  }
}

function pragma(db: DatabaseSync, name: string): number {
  return Number(db.prepare(`PRAGMA ${name}`).get()?.[name]);
}
