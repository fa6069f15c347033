import type { Snapshot } from 'xstate';
import { type RunCheckpoint, toCheckpoint } from '../../record/checkpoint.ts';
import { headOf } from '../../record/delta.ts';
import { parseCheckpoint } from '../../record/parse.ts';
import type { SaveMoment } from '../../record/state.ts';
import type { Progress } from '../../run/progress.ts';
import { isOver, type RunOutput } from '../../run/result.ts';
import { CheckpointCorruptError } from '../../values/errors.ts';
import { isDeeperThan, isObject, RECORD_DEPTH } from '../../values/json.ts';

/**
 * A run inside a host's persisted snapshot: its record, with XState's fields beside it. For a durable run it is only a
 * reference (`stored`, no messages): the store has the truth, and a host's snapshot stays small.
 */
export type PersistedRun = RunCheckpoint &
  Snapshot<RunOutput> & {
    /** A reference. */
    readonly stored?: true;
    /** A snapshot from before the first record: whole, and continued only while the run cannot have had an effect. */
    readonly unstored?: true;
  };

/**
 * Returns a run as the snapshot of a host's machine persists it: whole, or as a reference to its stored record.
 * @param now wall clock, ms
 */
export function persistedRun(
  progress: Progress,
  now: number,
  run: { isStored: boolean; isUnstored: boolean; output: RunOutput | undefined },
): PersistedRun {
  const record = toCheckpoint(progress, now);
  const output = run.output && isOver(run.output) ? run.output : undefined;
  const status = output
    ? ({ status: 'done', output, error: undefined } as const)
    : ({ status: 'active', output: undefined, error: undefined } as const);
  if (!run.isStored && !output) return { ...record, ...status, ...(run.isUnstored ? { unstored: true } : {}) };
  return { ...headOf(record), messages: [], ...status, stored: true };
}

/** Returns a persisted run with its present working time, last event number, critic's state and count of its tree. */
export function atMoment(run: PersistedRun, { elapsedMs, seq, critic, treeRuns }: SaveMoment): PersistedRun {
  if (run.stored || run.status !== 'active') return run;
  const now = { ...run, elapsedMs: Math.round(elapsedMs), seq };
  return { ...now, ...(critic ? { critic } : {}), ...(treeRuns ? { treeRuns } : {}) };
}

/**
 * Converts a stored record to a snapshot, for `createActor(executor.logic(agent), { snapshot })`.
 * @example createActor(executor.logic(agent), { snapshot: asSnapshot(record) }).start()
 */
export function asSnapshot(record: RunCheckpoint): PersistedRun {
  return { ...structuredClone(record), status: 'active', output: undefined, error: undefined };
}

/** Parses a run in the snapshot of a host's machine. @throws {CHECKPOINT_CORRUPT} {CHECKPOINT_TOO_NEW} */
export function parsePersisted(value: unknown): PersistedRun {
  if (isDeeperThan(RECORD_DEPTH + 1, value))
    throw new CheckpointCorruptError('this snapshot of a run is nested too deep');
  const record = parseCheckpoint(structuredClone(value)) as PersistedRun;
  const { status, output } = record as { status?: unknown; output?: unknown };
  if (status === 'done' && !(isObject(output) && typeof output.status === 'string')) {
    throw new CheckpointCorruptError('this snapshot of a run says done and has no output');
  }
  return record;
}
