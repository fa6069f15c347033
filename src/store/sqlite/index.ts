// The entry point `pawl/stores/sqlite`: the parts that store data in a SQLite file.
export { type SqliteBudget, type SqliteBudgetOptions, sqliteBudget } from '../../budget/sqlite.ts';
export { type BackupOptions, type BackupResult, backupStore } from './copies/backup.ts';
export { acceptWithoutWal, type RestoreOptions, type RestoreResult, restoreStore } from './copies/restore.ts';
export { type SqliteStore, type SqliteStoreOptions, sqliteStore } from './sqlite-store.ts';
