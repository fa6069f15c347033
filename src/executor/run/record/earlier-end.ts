import type { RunCheckpoint } from '../../../record/checkpoint.ts';
import { identified } from '../../../record/identify.ts';
import { parseOutcome } from '../../../record/parse.ts';
import type { RunOutcome } from '../../../run/result.ts';
import type { CheckpointStore } from '../../../store/port.ts';
import type { ActiveRun } from '../active-run.ts';
import { askerOf, conflict, isAskedOutcome, isAskedRecord } from './same-request.ts';
import { hasRecorded } from './setup-fault.ts';

/**
 * Returns how the run of this id ended before this start: its kept outcome, or that of its kept record, which may be kept longer.
 * @throws {RUN_ID_CONFLICT} if it was the run of another request
 */
export async function readEarlierEnd(run: ActiveRun, store: CheckpointStore): Promise<RunOutcome | undefined> {
  return (await readKeptOutcome(run, store)) ?? (await readOutcomeOfRecord(run, store));
}

/** Returns the kept outcome of the run. @throws {RUN_ID_CONFLICT} if it is that of another request */
export async function readKeptOutcome(run: ActiveRun, store: CheckpointStore): Promise<RunOutcome | undefined> {
  const kept = await store.outcomes?.find(run.runId);
  if (!kept) return undefined;
  const outcome = parseOutcome(kept);
  if (!isAskedOutcome(askerOf(run), outcome)) throw conflict(askerOf(run));
  return outcome;
}

async function readOutcomeOfRecord(run: ActiveRun, store: CheckpointStore): Promise<RunOutcome | undefined> {
  // A host that keeps no records does without this read.
  if (run.services.config.keepRecordsMs <= 0 || !store.history) return undefined;
  const record = await store.load(run.runId, { ended: true, messages: false });
  if (!record?.outcome) return undefined;
  if (!isAskedRecord(askerOf(run), identified(record))) throw conflict(askerOf(run));
  return endedWith(record, record.outcome);
}

const endedWith = (record: RunCheckpoint, outcome: RunOutcome): RunOutcome => ({
  ...outcome,
  endedAt: record.updatedAt,
  ...unbegunIn(record, outcome),
});

/**
 * Returns what a kept outcome says of a run that recorded no step. An answer stays the answer, and a request
 * that comes twice must not undo a cancel.
 */
export function unbegunIn(
  run: Parameters<typeof hasRecorded>[0],
  { status }: Pick<RunOutcome, 'status'>,
): Pick<RunOutcome, 'isUnbegun'> {
  return status === 'ok' || status === 'cancelled' || hasRecorded(run) ? {} : { isUnbegun: true };
}

/**
 * Returns whether a start begins a run again that ended like this. A call of a parent, a run that is recovered, restored or looked for
 * again, and one of which a snapshot exists have this end: they asked for the run that ended.
 */
export function isBegunAgain({ seed }: ActiveRun, { isUnbegun }: RunOutcome): boolean {
  const { request, mustExist, persisted, tries } = seed;
  return isUnbegun === true && !request.parent && !mustExist && !persisted && tries === undefined;
}

/** Removes a kept outcome before its run begins again: no reader takes it for the end of the new run. */
export async function forgetOutcome(run: ActiveRun, store: CheckpointStore, outcome: RunOutcome): Promise<void> {
  const { claim } = run.resources;
  await store.outcomes?.keep(run.runId, outcome, 0, claim ? { claim } : {});
}
