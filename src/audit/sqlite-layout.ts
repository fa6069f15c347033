import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Layout } from '../sqlite/file.ts';

/** The key of an entry is `no of its run * 2^24 + its number`, so that the entries of a run are adjacent without an index. */
export const ENTRIES_PER_RUN = 2 ** 24;

/**
 * The constant fields of a run (`runs`), the changing ones (`heads`, small), its end (`ends`), and its entries (`entries`,
 * a log). A run id that is used again has several rows: the one with the highest number is current.
 */
const tables = `
  CREATE TABLE runs (
    no INTEGER PRIMARY KEY CHECK (no < 536870912),
    run_id TEXT NOT NULL,
    parent_run_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    agent_name TEXT NOT NULL,
    caller_id TEXT NOT NULL,
    channel_id TEXT NOT NULL,
    guild_id TEXT NOT NULL,
    model_tier TEXT NOT NULL,
    started_at REAL NOT NULL,
    prompt TEXT NOT NULL,
    inputs TEXT NOT NULL
  ) STRICT;
  CREATE INDEX runs_by_id ON runs (run_id);
  CREATE INDEX runs_by_parent ON runs (parent_run_id) WHERE parent_run_id <> '';
  CREATE INDEX runs_by_start ON runs (started_at, run_id);
  CREATE INDEX runs_by_caller ON runs (caller_id, started_at, run_id);
  CREATE INDEX runs_by_agent ON runs (agent_id, started_at, run_id);
  CREATE TABLE heads (
    no INTEGER PRIMARY KEY,
    status TEXT NOT NULL,
    seen_at REAL NOT NULL,
    ended_at REAL,
    resumes INTEGER NOT NULL,
    iterations REAL NOT NULL,
    input_tokens REAL NOT NULL,
    output_tokens REAL NOT NULL,
    reasoning_tokens REAL NOT NULL,
    cache_read_tokens REAL NOT NULL,
    cache_write_tokens REAL NOT NULL,
    elapsed_ms REAL NOT NULL,
    save_errors REAL NOT NULL,
    dropped INTEGER NOT NULL,
    spent_tokens REAL,
    spent_usd REAL,
    spent_seconds REAL
  ) STRICT;
  CREATE INDEX heads_by_end ON heads (ended_at) WHERE ended_at IS NOT NULL;
  CREATE TABLE ends (no INTEGER PRIMARY KEY, output TEXT NOT NULL, error TEXT) STRICT;
  CREATE TABLE entries (id INTEGER PRIMARY KEY, type TEXT NOT NULL, at REAL NOT NULL, fields TEXT NOT NULL) STRICT;
`;

/** The tables and indexes of an audit's SQLite file. */
export const layout: Layout<Statements> = {
  applicationId: 0x50774164,
  version: 1,
  tables,
  prepare: (db) => new Statements(db),
};

/** The prepared SQL statements of an audit's open database: those that write are prepared once, queries at each use. */
export class Statements {
  readonly db: DatabaseSync;
  readonly find: StatementSync;
  readonly addRun: StatementSync;
  readonly addHead: StatementSync;
  readonly takeUp: StatementSync;
  readonly lastEntry: StatementSync;
  readonly addEntry: StatementSync;
  readonly progress: StatementSync;
  readonly close: StatementSync;
  readonly end: StatementSync;
  readonly addDropped: StatementSync;

  constructor(db: DatabaseSync) {
    this.db = db;
    this.find = db.prepare(
      'SELECT no, status, resumes FROM runs JOIN heads USING (no) WHERE run_id = ? ORDER BY no DESC LIMIT 1',
    );
    this.addRun = db.prepare('INSERT INTO runs VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)');
    this.addHead = db.prepare(
      "INSERT INTO heads VALUES (?, 'open', ?, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL)",
    );
    this.takeUp = db.prepare(
      "UPDATE heads SET status = 'open', ended_at = NULL, resumes = resumes + 1, seen_at = ? WHERE no = ?",
    );
    this.lastEntry = db.prepare('SELECT max(id) AS id FROM entries WHERE id >= ? AND id < ?');
    this.addEntry = db.prepare('INSERT INTO entries VALUES (?, ?, ?, ?)');
    this.progress = db.prepare(
      `UPDATE heads SET seen_at = ?, iterations = ?, input_tokens = ?, output_tokens = ?, reasoning_tokens = ?,
       cache_read_tokens = ?, cache_write_tokens = ? WHERE no = ?`,
    );
    this.close = db.prepare(
      `UPDATE heads SET status = ?, seen_at = ?, ended_at = ?, iterations = ?, input_tokens = ?, output_tokens = ?,
       reasoning_tokens = ?, cache_read_tokens = ?, cache_write_tokens = ?, elapsed_ms = ?, save_errors = ?,
       spent_tokens = ?, spent_usd = ?, spent_seconds = ? WHERE no = ? AND resumes = ?`,
    );
    this.end = db.prepare('INSERT OR REPLACE INTO ends VALUES (?, ?, ?)');
    this.addDropped = db.prepare('UPDATE heads SET dropped = dropped + ? WHERE no = ?');
  }
}
