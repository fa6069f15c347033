import type { DatabaseSync } from 'node:sqlite';
import { CheckpointTooNewError, StoreUnavailableError } from '../../values/errors.ts';
import { DAMAGE_ADVICE } from './errors.ts';

/** The layout that this code reads and writes; kept in the file as `user_version`. */
const SCHEMA_VERSION = 1;

/** "Pawl" in ASCII, kept in the file as `application_id`: identifies Pawl's database. */
const APPLICATION_ID = 0x5061776c;

/**
 * One save = one row of `messages` (a log, its key is `no * 2^24 + index of its first message`, without a second index) and
 * one small row of `heads`. Constant data (`runs`) is a row of its own, because SQLite writes whole rows. No column that
 * changes with each save has an index: a list sorts instead.
 */
const layout = [
  `CREATE TABLE runs (
    no INTEGER PRIMARY KEY CHECK (no < 536870912),
    run_id TEXT NOT NULL UNIQUE,
    meta_checksum INTEGER NOT NULL,
    extras_checksum INTEGER NOT NULL,
    meta TEXT NOT NULL,
    extras TEXT
  ) STRICT`,
  `CREATE TABLE heads (
    no INTEGER PRIMARY KEY,
    generation INTEGER NOT NULL,
    version INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    updated_at REAL NOT NULL,
    message_count INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    head TEXT NOT NULL
  ) STRICT`,
  `CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    checksum INTEGER NOT NULL,
    messages TEXT NOT NULL
  ) STRICT`,
  `CREATE TABLE claims (
    run_id TEXT PRIMARY KEY,
    owner TEXT,
    epoch INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    expires_at REAL NOT NULL,
    boot TEXT NOT NULL
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE outcomes (
    no INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    until REAL NOT NULL,
    epoch INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    outcome TEXT NOT NULL
  ) STRICT`,
  `CREATE TABLE commands (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL,
    command_id TEXT NOT NULL,
    checksum INTEGER NOT NULL,
    command TEXT NOT NULL,
    UNIQUE (run_id, command_id)
  ) STRICT`,
  `CREATE INDEX outcomes_until ON outcomes (until)`,
];

/**
 * Creates the tables in a new SQLite file, and otherwise checks the owner and the layout of the file. A file of another
 * application stays untouched.
 * @throws {CheckpointTooNewError} if a newer version wrote the layout
 * @throws {StoreUnavailableError} for a database of another application, or a damaged one
 */
export function prepareSchema(db: DatabaseSync, path: string): void {
  if (isEmpty(db)) {
    // Both must come before the first table. A step writes its head and the header of the file besides its own data, each a
    // page: with small pages a step of 2 KB costs a quarter fewer bytes than with pages of 2 KB.
    db.exec('PRAGMA page_size = 1024');
    db.exec('PRAGMA journal_mode = WAL');
    createTables(db);
  }
  const version = readPragma(db, 'user_version');
  if (readPragma(db, 'application_id') !== APPLICATION_ID) {
    throw new StoreUnavailableError(`${path} is a database of another application; choose another path`);
  }
  if (version > SCHEMA_VERSION) {
    throw new CheckpointTooNewError(
      `${path} has layout ${version}, this Pawl knows ${SCHEMA_VERSION}: upgrade the package (the file is untouched)`,
    );
  }
  const found = db.prepare('SELECT sql FROM sqlite_schema').all();
  // One flipped bit in the name of a column is enough to confuse rows.
  if (!layout.every((statement) => found.some(({ sql }) => sql === statement))) {
    throw new StoreUnavailableError(`the layout of ${path} is damaged; ${DAMAGE_ADVICE}`);
  }
}

/** Another process may be doing the same: the second one finds the tables created. */
function createTables(db: DatabaseSync): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    if (isEmpty(db)) {
      for (const statement of layout) db.exec(statement);
      db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}`);
    }
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

function isEmpty(db: DatabaseSync): boolean {
  return db.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined;
}

function readPragma(db: DatabaseSync, name: 'user_version' | 'application_id'): number {
  return Number(db.prepare(`PRAGMA ${name}`).get()?.[name]);
}
