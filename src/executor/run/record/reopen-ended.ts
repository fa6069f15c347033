import type { RunCheckpoint } from '../../../record/checkpoint.ts';
import { identified } from '../../../record/identify.ts';
import { type EndedRecord, reopened, whyOver } from '../../../record/reopen.ts';
import type { RunOutcome } from '../../../run/result.ts';
import type { Person } from '../../../run/waits/wait.ts';
import type { CheckpointStore, Claim } from '../../../store/port.ts';
import { RecordGoneError, RunEndedError } from '../../../values/errors.ts';
import type { ActiveRun, ExecutorServices } from '../active-run.ts';
import { fairKeyOf } from '../run-info.ts';
import { askerOf, conflict, isAskedRecord } from './same-request.ts';
import { journalWrite } from './stored-run.ts';

/** A run that ended, and is claimed. */
interface Reopening {
  readonly record: EndedRecord;
  readonly store: CheckpointStore;
  readonly claim: Claim | undefined;
  readonly by?: Person | undefined;
  /** The call that began it is made again. */
  readonly isCalled?: boolean;
}

/**
 * Makes a run that ended badly one that continues, in one commit. A crash before it leaves the end as it was, a crash after it a run
 * that is due.
 * @returns its record @throws {RUN_ENDED} if nothing may continue it
 */
export async function reopen(
  services: ExecutorServices,
  { record, store, claim, by, isCalled = false }: Reopening,
): Promise<RunCheckpoint> {
  const { config } = services;
  const over = isCalled ? undefined : whyOver(record);
  if (over !== undefined) throw new RunEndedError(over);
  const { status, error } = record.outcome;
  const event = { type: 'run.retried', status, ...(error ? { error } : {}), ...(by ? { by } : {}) } as const;
  const events = journalWrite(services, { record, claim }, event);
  // The events of this claim come after that one.
  const seq = events?.entries[0]?.place;
  const next = { ...reopened(record, config.clock.now()), ...(seq === undefined ? {} : { seq }) };
  await store.save(next, {
    claim,
    reopens: true,
    events,
    fairKey: fairKeyOf(config, record.labels),
  });
  return next;
}

/**
 * Reopens the run of a start that asks for a retry.
 * @returns its record; null: the start asks for none, or there is no record of a run that ended badly
 * @throws {RUN_ID_CONFLICT} for that of another request @throws {RUN_ENDED}
 */
export async function reopenAsked(run: ActiveRun, store: CheckpointStore): Promise<RunCheckpoint | null> {
  const { retry } = run.seed;
  if (!retry || !store.history) return null;
  const record = await store.load(run.runId, { ended: true });
  if (!isBadEnd(record)) return null;
  if (!isAskedRecord(askerOf(run), identified(record))) throw conflict(askerOf(run));
  const isCalled = run.seed.request.parent !== undefined;
  // A call that is made again has not read the end of its run; that run was cancelled because its parent ended.
  if (isCalled && record.outcome.status !== 'cancelled') return null;
  return reopen(run.services, { record, store, claim: run.resources.claim, isCalled, ...retry });
}

/** Returns whether a record is that of a run that ended without its answer. */
export function isBadEnd(record: RunCheckpoint | null): record is EndedRecord {
  return record?.outcome !== undefined && record.outcome.status !== 'ok';
}

/**
 * Returns the end of a run that a start found.
 * @throws {RECORD_GONE} if the start asks for a retry of it: without its record nothing is there from which it could continue
 */
export function withRecord({ seed, runId }: ActiveRun, outcome: RunOutcome): RunOutcome {
  if (!seed.retry || seed.request.parent || outcome.status === 'ok') return outcome;
  throw recordGone(runId, outcome);
}

/** Returns the error of a retry of a run whose end alone is kept. */
export function recordGone(runId: string, { status, iterations }: Pick<RunOutcome, 'status' | 'iterations'>): Error {
  const how = `run ${runId} has ended with status ${status} after ${iterations} steps, and its record is not kept (retention.records)`;
  const next =
    iterations === 0 ? 'it did nothing: start it again' : 'erase it, and start it again, if its effects may come twice';
  return new RecordGoneError(`${how}; ${next}`);
}
