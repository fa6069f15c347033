import { DatabaseSync } from 'node:sqlite';
import { callMessage, resultMessage } from './workload.ts';

/**
 * The floor: what no durable runtime on SQLite can go below. One row with what a step adds, in a transaction of its own,
 * made durable like ours (WAL, a disk sync each commit), and nothing else: no model, no tool, no event loop.
 */
export class Floor {
  readonly #db: DatabaseSync;
  readonly #insert: ReturnType<DatabaseSync['prepare']>;
  readonly #delete: ReturnType<DatabaseSync['prepare']>;

  constructor(path: string) {
    this.#db = new DatabaseSync(path);
    this.#db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
    this.#db.exec('CREATE TABLE steps (id INTEGER PRIMARY KEY, delta TEXT NOT NULL) STRICT');
    this.#insert = this.#db.prepare('INSERT INTO steps (delta) VALUES (?)');
    this.#delete = this.#db.prepare('DELETE FROM steps WHERE id > (SELECT max(id) FROM steps) - ?');
  }

  /** @param commits 2 = the call is recorded before it runs, as an effect that must not happen twice needs it */
  run(steps: number, commits: 1 | 2): void {
    for (let step = 0; step < steps; step++) {
      const call = callMessage(step);
      if (commits === 2) this.#insert.run(JSON.stringify(call));
      this.#insert.run(JSON.stringify([call, resultMessage(step)]));
    }
  }

  /** A whole run: begun, its steps, its outcome, and gone; each a transaction of its own, as without a group commit. */
  wholeRun(steps: number, commits: 1 | 2): void {
    this.#insert.run('begun');
    this.run(steps, commits);
    this.#insert.run('outcome');
    this.#delete.run(steps * commits + 2);
  }

  close(): void {
    this.#db.close();
  }
}
