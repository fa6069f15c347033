import { SqliteFile } from '../sqlite/file.ts';
import { nextTurn } from '../values/event-loop.ts';
import type { JsonObject, JsonValue } from '../values/json.ts';
import type { QueuedEntry } from './entries.ts';
import type { AuditedPhase, AuditedStep, AuditedTool } from './port.ts';
import type {
  AuditedAt,
  AuditedRun,
  AuditedRunDetail,
  AuditedRunFilter,
  AuditedTree,
  AuditTotal,
  AuditTotalsFilter,
} from './queries.ts';
import type { EntryFile } from './queue.ts';
import { ENTRIES_PER_RUN, layout, type Statements } from './sqlite-layout.ts';
import { childrenOf, type EntryRow, type FoundRun, findRun, listRuns, readEntries, sumUp } from './sqlite-reads.ts';
import { BatchWriter } from './sqlite-writes.ts';

/** The most rows that are read in one turn of the event loop. */
const ROWS_PER_TURN = 1_000;

/**
 * The SQLite file of an audit: writes batches of entries, answers queries, deletes expired runs. The module is imported at
 * the first use because it loads SQLite.
 */
export class AuditFile implements EntryFile {
  readonly #file: SqliteFile<Statements>;

  constructor(options: { readonly path: string; readonly busyTimeoutMs: number }) {
    this.#file = new SqliteFile(layout, options);
  }

  async write(batch: readonly QueuedEntry[]): Promise<void> {
    const writer = await this.#file.transaction('write', (statements) => {
      const each = new BatchWriter(statements);
      each.write(batch);
      return each;
    });
    writer.tellPlaces();
  }

  async removeOld(before: number): Promise<boolean> {
    const hasMore = await this.#file.transaction('write', (statements) => removeEnded(statements, before));
    this.#file.scrubSoon();
    return hasMore;
  }

  async runs(filter: AuditedRunFilter, limit: number): Promise<AuditedRun[]> {
    const found: AuditedRun[] = [];
    for (let { after } = filter; found.length < limit; after = found.at(-1)) {
      const most = Math.min(ROWS_PER_TURN, limit - found.length);
      const page = await this.#file.transaction('read', (open) => listRuns(open, { ...filter, after }, most));
      found.push(...page);
      if (page.length < most) break;
      await nextTurn();
    }
    return found;
  }

  async run(runId: string, limit: number): Promise<AuditedRunDetail | null> {
    const found = await this.#file.transaction('read', (statements) => findRun(statements, runId));
    if (!found) return null;
    const entries: EntryRow[] = [];
    while (entries.length <= limit) {
      const page = { after: entries.at(-1)?.id ?? 0, limit: Math.min(ROWS_PER_TURN, limit + 1 - entries.length) };
      const more = await this.#file.transaction('read', (statements) => readEntries(statements, found.no, page));
      entries.push(...more);
      if (more.length < page.limit) break;
      await nextTurn();
    }
    return detailOf(found, entries.slice(0, limit), entries.length > limit);
  }

  /** Reads level by level, so that the limit cuts off the deepest runs. */
  async tree(runId: string, { depth, limit }: { depth: number; limit: number }): Promise<AuditedTree | null> {
    const found = await this.#file.transaction('read', (statements) => findRun(statements, runId));
    if (!found) return null;
    const root = leaf(found.run);
    const seen = new Set([runId]);
    let level = [root];
    for (let below = 0; below < depth && level.length > 0; below++) {
      const next: Branch[] = [];
      for (const branch of level) {
        const children = await this.#children(branch.run.runId, limit - seen.size);
        // Hosts choose parent ids freely: a run that is already in the tree is not added again.
        for (const child of children.filter((each) => !seen.has(each.runId))) {
          seen.add(child.runId);
          branch.children.push(leaf(child));
        }
        next.push(...branch.children);
      }
      level = next;
    }
    return root;
  }

  async totals(filter: AuditTotalsFilter, limit: number): Promise<AuditTotal[]> {
    return this.#file.transaction('read', (statements) => sumUp(statements, filter, limit));
  }

  close(): void {
    this.#file.close();
  }

  async #children(runId: string, limit: number): Promise<AuditedRun[]> {
    if (limit <= 0) return [];
    const children = await this.#file.transaction('read', (statements) => childrenOf(statements, runId, limit));
    await nextTurn();
    return children;
  }
}

interface Branch extends AuditedTree {
  readonly children: Branch[];
}

function leaf(run: AuditedRun): Branch {
  return { run, children: [] };
}

/** The entries of a run, grouped by type. */
function detailOf({ run, inputs, end }: FoundRun, entries: readonly EntryRow[], isCut: boolean): AuditedRunDetail {
  const of = <T>(type: string) => {
    const those = entries.filter((entry) => entry.type === type);
    return those.map(({ at, fields }) => ({ at, ...(parsed(fields) as object) }) as AuditedAt & T);
  };
  const steps = new Map(of<AuditedStep>('step').map((step) => [step.step, step]));
  const error = end?.error ?? null;
  return {
    ...run,
    inputs: parsed(inputs),
    output: end?.output ?? '',
    ...(error === null ? {} : { error: parsed(error) as unknown as NonNullable<AuditedRunDetail['error']> }),
    steps: [...steps.values()].sort((a, b) => a.step - b.step),
    tools: of<AuditedTool>('tool'),
    phases: of<AuditedPhase>('phase'),
    events: of<{ readonly type: string; readonly fields: JsonObject }>('event'),
    isCut,
  };
}

/** A text that someone has changed in the file must not hide the others. */
function parsed(text: string): JsonValue {
  try {
    return JSON.parse(text);
  } catch {
    return { clipped: text };
  }
}

/** One transaction removes at most this many runs, so that it does not block the event loop for long. */
const RUNS_AT_ONCE = 50;
const ENTRIES_AT_ONCE = 1_000;

/**
 * Removes some of the runs that ended before a time. A run that has not ended stays, even if it is old.
 * @param before wall clock, ms
 * @returns whether there may be more
 */
function removeEnded({ db }: Statements, before: number): boolean {
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
