import type { DatabaseSync } from 'node:sqlite';
import { totalColumns } from '../../record/totals.ts';
import { DAMAGE_ADVICE } from '../../sqlite/errors.ts';
import { CheckpointTooNewError, StoreUnavailableError } from '../../values/errors.ts';
import { ON_COMMAND } from '../due.ts';
import { olderLayout } from '../read-only.ts';
import { fileState, refuseBackup } from './copies/file-state.ts';

/** The layout that this code reads and writes; kept in the file as `user_version`. */
const SCHEMA_VERSION = 10;

/** "Pawl" in ASCII, kept in the file as `application_id`: identifies Pawl's database. */
const APPLICATION_ID = 0x5061776c;

/**
 * One save = one row of `messages` (a log, its key is `no * 2^24 + index of its first message`, without a second index) and
 * one small row of `heads`. Constant data (`runs`) is a row of its own, because SQLite writes whole rows. No column that
 * changes with each save has an index: a list sorts instead.
 */
const first = [
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
 * When each record is due, what runs wait for, and signals that were early, or were delivered (then `run_id` has them). The times
 * are a table of their own: a head is large, and only runs that begin, rest or are woken change theirs.
 */
const second = [
  `CREATE TABLE due (
    no INTEGER PRIMARY KEY,
    due_at REAL,
    run_id TEXT NOT NULL
  ) STRICT`,
  `CREATE INDEX due_at ON due (due_at, run_id)`,
  `CREATE TABLE waits (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    topic TEXT NOT NULL,
    run_id TEXT NOT NULL,
    wait_id TEXT NOT NULL,
    UNIQUE (run_id, wait_id)
  ) STRICT`,
  `CREATE INDEX waits_topic ON waits (topic)`,
  `CREATE TABLE signals (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    signal TEXT NOT NULL UNIQUE,
    topic TEXT NOT NULL,
    until REAL NOT NULL,
    run_id TEXT,
    checksum INTEGER NOT NULL,
    content TEXT
  ) STRICT`,
  `CREATE INDEX signals_kept ON signals (topic) WHERE run_id IS NULL`,
  `CREATE INDEX signals_until ON signals (until)`,
];

/**
 * The runs that ended and whose record is kept: the rows of their records stay where they are. `agent` and `caller` are hashes if
 * the texts are encrypted.
 */
const third = [
  `CREATE TABLE ended (
    no INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL,
    ended_at REAL NOT NULL,
    keep_until REAL NOT NULL,
    epoch INTEGER NOT NULL,
    agent TEXT,
    caller TEXT,
    checksum INTEGER NOT NULL,
    line TEXT NOT NULL
  ) STRICT`,
  `CREATE INDEX ended_at ON ended (ended_at DESC, run_id)`,
  `CREATE INDEX ended_caller ON ended (caller, ended_at DESC, run_id)`,
  `CREATE INDEX ended_agent ON ended (agent, ended_at DESC, run_id)`,
  `CREATE INDEX ended_until ON ended (keep_until)`,
  `CREATE TABLE threads (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    thread TEXT NOT NULL UNIQUE,
    caller TEXT NOT NULL,
    updated_at REAL NOT NULL,
    turns INTEGER NOT NULL,
    length INTEGER NOT NULL,
    rewinds INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    content TEXT NOT NULL
  ) STRICT`,
  `CREATE INDEX threads_caller ON threads (caller, updated_at, thread)`,
  `CREATE INDEX threads_updated ON threads (updated_at, thread)`,
  `CREATE TABLE thread_turns (
    no INTEGER PRIMARY KEY,
    thread INTEGER NOT NULL,
    message TEXT NOT NULL,
    state TEXT NOT NULL,
    place INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    first INTEGER NOT NULL,
    count INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    content TEXT NOT NULL,
    compaction TEXT,
    UNIQUE (thread, message)
  ) STRICT`,
  `CREATE INDEX thread_turns_place ON thread_turns (thread, state, place)`,
  `CREATE INDEX thread_turns_run ON thread_turns (run_id)`,
];

/**
 * The journals of runs. A row has the entries that one write added; its key ends with the place of the last one. The rows of
 * `passing` are deleted with each step: in a table of their own they leave no holes between those that stay.
 */
const fourth = [
  `CREATE TABLE journal (
    no INTEGER NOT NULL,
    place INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    entries TEXT NOT NULL,
    PRIMARY KEY (no, place)
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE passing (
    no INTEGER NOT NULL,
    place INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    entries TEXT NOT NULL,
    PRIMARY KEY (no, place)
  ) STRICT, WITHOUT ROWID`,
];

/** Whether a run was given back: its time has half a ms. */
export const GIVEN_BACK = '(due_at <> CAST(due_at AS INTEGER))';

/** Columns that were added to a table of an earlier layout. */
const added = {
  commands: [', sent_at REAL'],
  due: [", fair TEXT NOT NULL DEFAULT ''", ", agent TEXT NOT NULL DEFAULT ''", ', caller TEXT'],
  claims: [', deployment INTEGER'],
};
const addedLater = { due: [', definition TEXT'] };
/** Why a run is not due. Rows of an earlier layout do not say it, until their record is written again. */
const addedLast = { due: [', paused_by TEXT'] };

const adding = (table: string, columns: readonly string[]) =>
  columns.map((column) => `ALTER TABLE ${table} ADD COLUMN ${column.slice(2)}`);

/**
 * Under what runs are found: hashes if the texts are encrypted, empty or null in rows of an earlier layout. Only a run that is due
 * at some time can have a turn. `turns` has one row: the fair key of the run that was taken last.
 */
const fifth = [
  `CREATE INDEX due_turns ON due (fair, due_at, run_id, agent) WHERE due_at < ${ON_COMMAND}`,
  'CREATE INDEX due_caller ON due (caller)',
  `CREATE TABLE turns (
    no INTEGER PRIMARY KEY,
    fair TEXT NOT NULL
  ) STRICT`,
];

/**
 * Due runs are found by their agent too: what others have due costs a search nothing. `definition` is that for which a run was
 * parked; such a run is never due.
 */
const sixth = [
  'CREATE INDEX due_agent ON due (agent, due_at, run_id)',
  `CREATE INDEX due_agent_turns ON due (agent, fair, due_at, run_id) WHERE due_at < ${ON_COMMAND}`,
  'CREATE INDEX due_definition ON due (definition, run_id) WHERE due_at IS NULL AND definition IS NOT NULL',
];

/**
 * The ends that no process has delivered. A row outlives the outcome and the record of its run. Ends from before this layout have
 * none: they count as delivered. `agent` is a hash if the texts are encrypted.
 */
const seventh = [
  `CREATE TABLE deliveries (
    run_id TEXT NOT NULL,
    outcome_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    due_at REAL NOT NULL,
    until REAL NOT NULL,
    tries INTEGER NOT NULL,
    mark TEXT NOT NULL,
    PRIMARY KEY (run_id, outcome_id)
  ) STRICT, WITHOUT ROWID`,
  'CREATE INDEX deliveries_due ON deliveries (agent, due_at)',
  'CREATE INDEX deliveries_until ON deliveries (until)',
];

/** The totals of the runs that began on a day and ended with a status. No run is named in them. */
const eighth = [
  `CREATE TABLE totals (
    day TEXT NOT NULL,
    status TEXT NOT NULL,
    ${totalColumns.map((column) => `${column} REAL NOT NULL`).join(', ')},
    PRIMARY KEY (day, status)
  ) STRICT, WITHOUT ROWID`,
];

/** What is kept of schedules. */
const ninth = [
  `CREATE TABLE schedules (
    id TEXT PRIMARY KEY,
    revision INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    content TEXT NOT NULL
  ) STRICT, WITHOUT ROWID`,
];

/** When the next call of a bucket may begin, and when the bucket is equal to none. */
const tenth = [
  `CREATE TABLE limits (
    id TEXT PRIMARY KEY,
    next_at REAL NOT NULL,
    idle_at REAL NOT NULL
  ) STRICT, WITHOUT ROWID`,
  'CREATE INDEX limits_by_idle ON limits (idle_at)',
];

/** The steps from each layout to the next; the first one starts from nothing. A released layout is never changed. */
const steps: readonly (readonly string[])[] = [
  first,
  [
    ...second,
    ...adding('commands', added.commands),
    // A record of an earlier version that is parked says so itself.
    'INSERT INTO due (no, due_at, run_id) SELECT no, 0, run_id FROM runs',
  ],
  [...third, ...fourth],
  [...adding('due', added.due), ...adding('claims', added.claims), ...fifth],
  [...adding('due', addedLater.due), ...sixth],
  [...seventh, ...fileState],
  eighth,
  adding('due', addedLast.due),
  ninth,
  tenth,
];

/**
 * Creates the tables in a new SQLite file, and otherwise checks the owner and the layout of the file. A file of another
 * application stays untouched.
 * @throws {CHECKPOINT_TOO_NEW} if a newer version wrote the layout
 * @throws {STORE_UNAVAILABLE} for a database of another application, or a damaged one
 */
export function prepareSchema(db: DatabaseSync, path: string): void {
  if (isEmpty(db)) {
    // Both must come before the first table. A step writes its head and the header of the file besides its own data, each a
    // page: with small pages a step of 2 KB costs a quarter fewer bytes than with pages of 2 KB.
    db.exec('PRAGMA page_size = 1024');
    db.exec('PRAGMA journal_mode = WAL');
    migrate(db);
  }
  const version = readLayout(db, path);
  refuseBackup(db, path);
  if (version < SCHEMA_VERSION) migrate(db);
  checkTables(db, path);
}

/**
 * Checks the owner and the layout of a file, and changes nothing.
 * @throws {CHECKPOINT_TOO_NEW} if a newer version wrote the layout
 * @throws {STORE_UNAVAILABLE} for a file without tables or with an older layout, and as `prepareSchema`
 */
export function checkSchema(db: DatabaseSync, path: string): void {
  if (isEmpty(db)) throw new StoreUnavailableError(`the store ${path} is an empty file: no run was recorded in it yet`);
  const version = readLayout(db, path);
  if (version < SCHEMA_VERSION) throw olderLayout(path, version, SCHEMA_VERSION);
  checkTables(db, path);
}

/** Reads the layout of a file. @throws {CHECKPOINT_TOO_NEW} @throws {STORE_UNAVAILABLE} */
function readLayout(db: DatabaseSync, path: string): number {
  const version = readPragma(db, 'user_version');
  if (readPragma(db, 'application_id') !== APPLICATION_ID) {
    throw new StoreUnavailableError(`${path} is a database of another application; choose another path`);
  }
  if (version > SCHEMA_VERSION) {
    throw new CheckpointTooNewError(
      `${path} has layout ${version}, this Pawl knows ${SCHEMA_VERSION}: upgrade the package (the file is untouched)`,
    );
  }
  return version;
}

function checkTables(db: DatabaseSync, path: string): void {
  // Versions of SQLite put a column that was added at different places.
  const found = new Set(
    db
      .prepare('SELECT sql FROM sqlite_schema')
      .all()
      .map(({ sql }) =>
        [added, addedLater, addedLast]
          .flatMap((columns) => Object.values(columns))
          .flat()
          .reduce((text, column) => text.replace(column, ''), String(sql)),
      ),
  );
  // One flipped bit in the name of a column is enough to confuse rows.
  if (
    ![first, second, third, fourth, fifth, sixth, seventh, fileState, eighth, ninth, tenth]
      .flat()
      .every((statement) => found.has(statement))
  ) {
    throw new StoreUnavailableError(`the layout of ${path} is damaged; ${DAMAGE_ADVICE}`);
  }
}

/** Makes the present layout. Another process may be doing the same: the second one finds it done. */
function migrate(db: DatabaseSync): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    const from = isEmpty(db) ? 0 : readPragma(db, 'user_version');
    for (const statement of steps.slice(from).flat()) db.exec(statement);
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}`);
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
