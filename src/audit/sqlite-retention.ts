import { ENTRIES_PER_RUN, type Statements } from './sqlite-layout.ts';

/** One transaction removes no more than this, so that it cannot hold up the event loop for long. */
const RUNS_AT_ONCE = 50;
const ENTRIES_AT_ONCE = 1_000;

/**
 * Removes some of the runs that ended before a time. One that has not ended stays, however old it is.
 * @param before wall clock, ms
 * @returns whether there may be more
 */
export function removeEnded({ db }: Statements, before: number): boolean {
  const old = db.prepare('SELECT no FROM heads WHERE ended_at < ? ORDER BY ended_at LIMIT ?').all(before, RUNS_AT_ONCE);
  const removeEntries = db.prepare(
    'DELETE FROM entries WHERE id IN (SELECT id FROM entries WHERE id >= ? AND id < ? ORDER BY id LIMIT ?)',
  );
  const removeRun = ['ends', 'heads', 'runs'].map((table) => db.prepare(`DELETE FROM ${table} WHERE no = ?`));
  let left = ENTRIES_AT_ONCE;
  for (const row of old) {
    const no = Number(row.no);
    left -= Number(removeEntries.run(no * ENTRIES_PER_RUN, (no + 1) * ENTRIES_PER_RUN, left).changes);
    if (left === 0) return true;
    for (const statement of removeRun) statement.run(no);
  }
  return old.length === RUNS_AT_ONCE;
}
