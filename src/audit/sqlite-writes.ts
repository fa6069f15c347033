import type { Usage } from '../values/usage.ts';
import type { Entry, Place, QueuedEntry, RunHandle, RunRow } from './entries.ts';
import { ENTRIES_PER_RUN, type Statements } from './sqlite-layout.ts';

type Closing = Extract<Entry, { type: 'close' }>;
type Happening = Extract<Entry, { text: string }>;

interface FoundRun {
  readonly no: number;
  readonly status: string;
  readonly resumes: number;
}

/**
 * Writes a batch of audit entries to the SQLite file within one transaction. The runs get their rows' numbers after the
 * commit.
 */
export class BatchWriter {
  readonly #statements: Statements;
  readonly #places = new Map<RunHandle, Place>();
  /** The last entry of each run that has entries in this batch. */
  readonly #lastEntries = new Map<number, number>();
  /** The progress of runs: written once, at the end. */
  readonly #progress = new Map<number, { readonly at: number; readonly step: number; readonly usage: Usage }>();

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  write(batch: readonly QueuedEntry[]): void {
    for (const { run, entry, row } of batch) {
      if (entry.type === 'begin') this.#begin(run, row, entry.at);
      else if (entry.type === 'close') this.#close(run, row, entry);
      else this.#append(run, row, entry);
    }
    for (const [no, { at, step, usage }] of this.#progress) {
      this.#statements.progress.run(at, step, ...valuesOf(usage), no);
    }
    for (const [run, place] of this.#places) this.#countDropped(run, place);
  }

  /** Called after the commit. */
  tellPlaces(): void {
    for (const [run, place] of this.#places) run.place = place;
  }

  #begin(run: RunHandle, row: RunRow, at: number): Place {
    const found = this.#statements.find.get(row.runId) as unknown as FoundRun | undefined;
    if (!found) return this.#put(run, this.#add(row, at));
    const hasEnded = found.status !== 'open' && found.status !== 'interrupted';
    if (!hasEnded) this.#statements.takeUp.run(at, found.no);
    return this.#put(run, { no: found.no, resumes: found.resumes + (hasEnded ? 0 : 1), hasEnded, dropped: 0 });
  }

  #append(run: RunHandle, row: RunRow, { type, at, text, progress, isNewRun }: Happening): void {
    const { no } = this.#placeOf(run, row, { at, isNewRun: isNewRun ?? false });
    const last = this.#lastEntries.get(no) ?? this.#findLast(no);
    if (last + 1 >= (no + 1) * ENTRIES_PER_RUN) {
      run.dropped += 1;
      return;
    }
    this.#lastEntries.set(no, last + 1);
    this.#statements.addEntry.run(last + 1, type, at, text);
    if (progress) this.#progress.set(no, { at, ...progress });
  }

  #close(run: RunHandle, row: RunRow, end: Closing): void {
    const { status, at, output, error, iterations, usage, elapsedMs, saveErrors, spend } = end;
    const { no, resumes } = this.#placeOf(run, row, { at, isNewRun: false });
    const endedAt = status === 'interrupted' ? null : at;
    const spent = spend ? ([spend.tokens, spend.usd, spend.seconds] as const) : ([null, null, null] as const);
    const totals = [iterations, ...valuesOf(usage), elapsedMs, saveErrors, ...spent] as const;
    // If another process has continued the run meanwhile, this process must not close it.
    const { changes } = this.#statements.close.run(status, at, endedAt, ...totals, no, resumes);
    if (Number(changes) === 0) return;
    this.#progress.delete(no);
    this.#statements.end.run(no, output, error);
  }

  /** The row of a run. An ended run with this id continues, unless this is a new run. */
  #placeOf(run: RunHandle, row: RunRow, { at, isNewRun }: { at: number; isNewRun: boolean }): Place {
    const place = this.#places.get(run) ?? run.place ?? this.#begin(run, row, at);
    if (!place.hasEnded) return this.#put(run, place);
    if (isNewRun) return this.#put(run, this.#add(row, at));
    this.#statements.takeUp.run(at, place.no);
    return this.#put(run, { ...place, resumes: place.resumes + 1, hasEnded: false });
  }

  #add(row: RunRow, at: number): Place {
    const { runId, parentRunId, agentId, agentName, callerId, channelId, guildId, modelTier } = row;
    const texts = [runId, parentRunId, agentId, agentName, callerId, channelId, guildId, modelTier] as const;
    const { lastInsertRowid } = this.#statements.addRun.run(...texts, row.startedAt, row.prompt, row.inputs);
    this.#statements.addHead.run(lastInsertRowid, at);
    return { no: Number(lastInsertRowid), resumes: 0, hasEnded: false, dropped: 0 };
  }

  #put(run: RunHandle, place: Place): Place {
    this.#places.set(run, place);
    return place;
  }

  #findLast(no: number): number {
    const { id } = this.#statements.lastEntry.get(no * ENTRIES_PER_RUN, (no + 1) * ENTRIES_PER_RUN) as {
      id: number | null;
    };
    return id ?? no * ENTRIES_PER_RUN;
  }

  #countDropped(run: RunHandle, place: Place): void {
    const missing = run.dropped - place.dropped;
    if (missing === 0) return;
    this.#statements.addDropped.run(missing, place.no);
    this.#put(run, { ...place, dropped: run.dropped });
  }
}

function valuesOf(usage: Usage): [number, number, number, number, number] {
  const { inputTokens, outputTokens, reasoningTokens, cacheReadTokens, cacheWriteTokens } = usage;
  return [inputTokens, outputTokens, reasoningTokens, cacheReadTokens, cacheWriteTokens];
}
