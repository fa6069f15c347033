// A host's own table of jobs. One column of it holds the record of the run that works on a job; `store` is what Pawl sees of
// the table: the four methods of a store, in plain SQL.
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite';
import { type CheckpointStore, type InterruptedRun, PawlError, type RunCheckpoint, type RunOutcome } from 'pawl';
import { checkRunId, decodeCheckpoint, interruptedRun, quarantinedRun } from 'pawl/stores/kit';
import { fittingText, parkedText, type SizeCap } from './size-cap.ts';

export interface Job {
  readonly id: string;
  readonly prompt: string;
  /** `open` until its run has ended, then how that run ended. */
  readonly status: string;
  readonly answer: string | null;
}

export interface JobTable {
  readonly db: DatabaseSync;
  readonly store: CheckpointStore;
  add(id: string, prompt: string): void;
  jobs(): readonly Job[];
  /** Open jobs of which no run is stored: they have no run, or one that was not worth a record. */
  unstored(): readonly Job[];
  /** Takes the end of a run down. The same outcome may come twice, after a crash: the second changes nothing. */
  finish(outcome: RunOutcome): void;
}

const layout = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  CREATE TABLE IF NOT EXISTS jobs (
    id TEXT PRIMARY KEY,
    prompt TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'open',
    answer TEXT,
    record TEXT,
    version INTEGER,
    recorded_at REAL
  ) STRICT;
  CREATE INDEX IF NOT EXISTS recorded ON jobs (recorded_at, id) WHERE record IS NOT NULL;
`;

/** @param options.cap how large a stored record may be, and what becomes of one that is larger */
export function openJobs(path: string, { cap }: { readonly cap: SizeCap }): JobTable {
  const db = new DatabaseSync(path);
  db.exec(layout);
  const all = db.prepare('SELECT id, prompt, status, answer FROM jobs ORDER BY rowid');
  const unstored = db.prepare(
    "SELECT id, prompt, status, answer FROM jobs WHERE status = 'open' AND record IS NULL ORDER BY rowid",
  );
  const add = db.prepare('INSERT INTO jobs (id, prompt) VALUES (?, ?)');
  const finish = db.prepare("UPDATE jobs SET status = ?, answer = ? WHERE id = ? AND status = 'open'");
  return {
    db,
    store: storeOn(db, cap),
    add: (id, prompt) => void add.run(checkRunId(id), prompt),
    jobs: () => all.all() as unknown as Job[],
    unstored: () => unstored.all() as unknown as Job[],
    finish: ({ runId, status, output, error }) => void finish.run(status, error?.message ?? output, runId),
  };
}

/** The four methods. Each is one statement, so that a write has taken effect when its promise resolves. */
function storeOn(db: DatabaseSync, cap: SizeCap): CheckpointStore {
  // A run that a run has begun is no job of the host: its row goes with its record.
  const save = db.prepare(`
    INSERT INTO jobs (id, prompt, status, record, version, recorded_at) VALUES (?, ?, 'child', ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET record = excluded.record, version = excluded.version, recorded_at = excluded.recorded_at
    WHERE jobs.version IS NULL OR jobs.version <= excluded.version`);
  const load = db.prepare('SELECT record FROM jobs WHERE id = ? AND record IS NOT NULL');
  const clear = db.prepare('UPDATE jobs SET record = NULL, version = NULL, recorded_at = NULL WHERE id = ?');
  const remove = db.prepare("DELETE FROM jobs WHERE id = ? AND status = 'child'");
  const list = db.prepare(`
    SELECT id, record, recorded_at FROM jobs
    WHERE record IS NOT NULL AND (recorded_at, id) > (?, ?) ORDER BY recorded_at, id LIMIT ?`);
  const recordOf = (runId: string) => load.get(checkRunId(runId))?.record as string | undefined;
  const write = ({ meta, version, updatedAt }: RunCheckpoint, text: string) => {
    const { changes } = save.run(meta.runId, meta.prompt, text, version, updatedAt);
    if (changes === 0)
      throw new PawlError('CHECKPOINT_TOO_NEW', `a newer version of Pawl wrote the record of ${meta.runId}`);
  };
  return {
    async save(record, { signal } = {}) {
      signal?.throwIfAborted();
      const text = fittingText(record, cap);
      if (text !== undefined) return write(record, text);
      const { parked, error } = parkedText(record, recordOf(record.meta.runId));
      if (parked !== undefined) write(record, parked);
      throw error;
    },
    async load(runId, { signal } = {}) {
      signal?.throwIfAborted();
      const text = recordOf(runId);
      return text === undefined ? null : decodeCheckpoint(text, runId);
    },
    async delete(runId, { signal } = {}) {
      signal?.throwIfAborted();
      clear.run(checkRunId(runId));
      remove.run(runId);
    },
    async listInterrupted({ after, limit = -1, signal } = {}) {
      signal?.throwIfAborted();
      const lines: InterruptedRun[] = [];
      // One record at a time: a list holds no transcripts.
      for (const row of list.iterate(after?.updatedAt ?? -1, after?.runId ?? '', limit)) lines.push(lineOf(row));
      return lines;
    },
  };
}

function lineOf({ id, record, recorded_at: updatedAt }: Record<string, SQLOutputValue>): InterruptedRun {
  const runId = String(id);
  try {
    return interruptedRun(decodeCheckpoint(String(record), runId));
  } catch (error) {
    return quarantinedRun({ runId, updatedAt: Number(updatedAt) }, error);
  }
}
