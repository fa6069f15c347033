import { phaseFactsOf } from '../../agent/phase.ts';
import type { RunCheckpoint } from '../../record/checkpoint.ts';
import { identified } from '../../record/identify.ts';
import { migrateRecord } from '../../record/migrate.ts';
import { parseOutcome } from '../../record/parse.ts';
import type { ParkedReason } from '../../run/fields.ts';
import { hasUnknownOutcome } from '../../run/open-step.ts';
import { isSamePipeline } from '../../run/pipeline.ts';
import type { RunOutcome } from '../../run/result.ts';
import { type CheckpointStore, isKeepingOutcomes, isOwning, type ReleaseOptions } from '../../store/port.ts';
import { withDeadline } from '../../values/deadline.ts';
import { hasCode, toErrorData } from '../../values/error-data.ts';
import { CheckpointMissingError, RunOwnedElsewhereError, RunParkedError } from '../../values/errors.ts';
import { enterStored } from '../../values/message.ts';
import type { Config } from '../host/config.ts';
import type { ActiveRun } from './active-run.ts';
import { announceParked } from './oversight.ts';
import { refuseWaits } from './run-info.ts';
import { askerOf, conflict, isAskedOutcome, isAskedRecord, isComparing, withIdentity } from './same-request.ts';
import { rewriteHead, untilUntouched } from './stored-run.ts';

/** What the store knows of a run that is about to start. */
export interface Found {
  /** The record it goes on from. */
  readonly record?: RunCheckpoint;
  /** It ended before, and this was the answer. */
  readonly outcome?: RunOutcome;
  /** Starts in a row without progress, this one included. */
  readonly attempts: number;
}

export const DEFAULT_MAX_ATTEMPTS = 3;

/** A call to the store that ends, whatever the store does. */
export function askStore<T>(run: ActiveRun, what: string, answer: Promise<T>): Promise<T> {
  const { clock, defaults } = run.services.config;
  return withDeadline(answer, { ms: defaults.portMs, clock, what });
}

/**
 * Makes the run ours and reads what is stored of it. The start is counted (by the claim) before anything of the run is
 * looked at: a record that kills whoever reads it must not be read for ever. One that is merely refused counts nothing.
 * @throws RunOwnedElsewhereError, RunIdConflictError, RunParkedError, CheckpointMissingError, CheckpointCorruptError, …:
 *   then the run is not ours and its record is as it was
 */
export async function acquireRun(run: ActiveRun): Promise<Found> {
  const { store } = run.services.config;
  if (!store || run.options.checkpointer) return { attempts: 1 };
  // Whoever cancels or parks it here just now has the same owner: a claim of ours would take the run from them.
  await untilUntouched(run.services, run.runId);
  if (!(await claim(run, store))) return lookElsewhere(run, store);
  try {
    return await look(run, store);
  } catch (error) {
    await releaseClaim(run, { ...uncounted(run), ...damageFrom(run, error) });
    throw error;
  }
}

/**
 * What a record has that no list could see, because lists read no transcripts: it is quarantined. Where the store was just
 * asked for this run by its id, nobody knows whether a list could read it: the key may be a wrong one.
 */
function damageFrom({ seed }: ActiveRun, error: unknown): ReleaseOptions {
  const { code, message } = toErrorData(error);
  // Only the store's own word counts: a `migrate` that returns a bad record says nothing of the stored one.
  return seed.mustExist === true && code === 'CHECKPOINT_CORRUPT' ? { damage: message } : {};
}

/** As before a start that could not even try: the claim counts it before anybody knows whether the record can be read. */
export function uncounted({ claim }: ActiveRun): ReleaseOptions {
  return claim ? { attempts: Math.max(0, claim.attempts - 1) } : {};
}

/** False when another process has the run. */
async function claim(run: ActiveRun, store: CheckpointStore): Promise<boolean> {
  if (!isOwning(store)) return true;
  const { services, runId } = run;
  const askedAt = services.config.clock.monotonic();
  const claimed = await askStore(
    run,
    'store.claim',
    store.claim(runId, services.owner, services.config.defaults.leaseMs),
  );
  if (!claimed) return false;
  run.resources.claim = claimed;
  services.leases.keep(run, askedAt);
  return true;
}

/**
 * What a start gets of a run that another process has: its answer, when that is kept already, or the error that says so.
 * @throws RunIdConflictError, RunOwnedElsewhereError: then `scope.isElsewhere` says whether it is the run that is asked for
 */
async function lookElsewhere(run: ActiveRun, store: CheckpointStore): Promise<Found> {
  const { runId } = run;
  const owned = new RunOwnedElsewhereError(`run ${runId} is being worked on by another process`);
  if (!isComparing(askerOf(run))) throw owned;
  const record = await askStore(run, 'store.load', store.load(runId));
  if (record) {
    if (!isAskedRecord(askerOf(run), identified(record))) throw conflict(askerOf(run));
    run.life.isElsewhere = true;
    throw owned;
  }
  const outcome = await keptOutcome(run, store);
  // Without either, that process has claimed the id and recorded nothing yet: there is nothing to compare.
  if (!outcome) throw owned;
  return { outcome, attempts: 1 };
}

async function keptOutcome(run: ActiveRun, store: CheckpointStore): Promise<RunOutcome | undefined> {
  if (!isKeepingOutcomes(store)) return undefined;
  const kept = await askStore(run, 'store.outcome', store.outcome(run.runId));
  if (!kept) return undefined;
  const outcome = parseOutcome(kept);
  if (!isAskedOutcome(askerOf(run), outcome)) throw conflict(askerOf(run));
  return outcome;
}

async function look(run: ActiveRun, store: CheckpointStore): Promise<Found> {
  const { runId, seed, services } = run;
  // No run has a random id yet. That of a host's own port may be the id of a run that is stored, or that has ended.
  if (seed.isNewId && services.config.hasRandomIds) return { attempts: 1 };
  const record = await load(run, store);
  if (!record) {
    const outcome = await keptOutcome(run, store);
    if (outcome) return { outcome, attempts: 1 };
    if (!seed.mustExist && !hasBegun(run, store)) return { attempts: run.resources.claim?.attempts ?? 1 };
    throw new CheckpointMissingError(`the store has no record of run ${runId}`);
  }
  const attempts = run.resources.claim?.attempts ?? (record.attempts ?? 0) + 1;
  const messages = record.messages.map(enterStored);
  const stored = comparedAndMigrated(run, identified({ ...record, messages, attempts }));
  refuseWaits(runId, stored);
  await refuseParked(run, store, stored);
  const { parked: _, ...taken } = stored;
  run.resources.record = taken;
  return { record: taken, attempts };
}

/** One read of wrong bytes says nothing of the disk: a record is damaged when it is so twice. */
async function load(run: ActiveRun, store: CheckpointStore): Promise<RunCheckpoint | null> {
  const read = () => askStore(run, 'store.load', store.load(run.runId));
  try {
    return await read();
  } catch (error) {
    if (hasCode(error, 'CHECKPOINT_CORRUPT')) return read();
    throw error;
  }
}

/**
 * Whether a run of which the store knows nothing has begun all the same. A snapshot that a host took before the first
 * record was stored cannot say; but a run that had ended since would still be known from its outcome, as long as that is kept.
 */
function hasBegun({ seed: { persisted }, services }: ActiveRun, store: CheckpointStore): boolean {
  if (!persisted?.unstored) return persisted?.stored ?? false;
  const { clock, keepOutcomesMs } = services.config;
  return !isKeepingOutcomes(store) || clock.now() - persisted.updatedAt >= keepOutcomesMs;
}

/**
 * The record as the host's `migrate` leaves it. A deploy may rename what a request says: the record is compared before and
 * after. Of another request's record nothing is told, also not that it cannot be migrated.
 */
function comparedAndMigrated(run: ActiveRun, record: RunCheckpoint): RunCheckpoint {
  const isAsked = isAskedRecord(askerOf(run), record);
  const { migrate } = run.services.config;
  if (!isAsked && !migrate) throw conflict(askerOf(run));
  try {
    const migrated = withIdentity(record, migrateRecord(record, migrate));
    if (isAsked || isAskedRecord(askerOf(run), migrated)) return migrated;
  } catch (error) {
    if (isAsked) throw error;
  }
  throw conflict(askerOf(run));
}

/** This start did not count: nothing of the run was tried. The record goes back as it was, and the claim with it. */
export async function returnRun(run: ActiveRun): Promise<void> {
  const { services } = run;
  const { record } = run.resources;
  const { store, warn } = services.config;
  try {
    if (record && store && isOwning(store) && run.resources.claim)
      await rewrite(run, store, { ...record, attempts: record.attempts - 1 });
  } catch (error) {
    warn('run: the record could not be given back', { runId: run.runId, error: toErrorData(error) });
  }
  await releaseClaim(run, uncounted(run));
}

async function refuseParked(run: ActiveRun, store: CheckpointStore, record: RunCheckpoint): Promise<void> {
  const maxAttempts = run.seed.maxAttempts ?? DEFAULT_MAX_ATTEMPTS;
  // What was parked because its agent had changed goes on when the agent is again what it was.
  const standing = record.parked?.code === 'DEFINITION_CHANGED' ? undefined : record.parked;
  const parked = standing ?? parkingOf(record, maxAttempts, run.services.config) ?? changeOf(run, record);
  if (!parked) return;
  await rewrite(run, store, { ...record, attempts: record.attempts - 1, parked });
  announceParked(run, record, parked);
  throw new RunParkedError(`run ${record.meta.runId} is parked: ${parked.reason}`);
}

/** Why a start of this record, which is counted in its `attempts`, sets it aside instead. */
export function parkingOf(
  record: RunCheckpoint,
  maxAttempts: number,
  { onUnknownOutcome }: Pick<Config, 'onUnknownOutcome'>,
): ParkedReason | undefined {
  if (record.attempts > maxAttempts) {
    return {
      code: 'TOO_MANY_ATTEMPTS',
      reason: `it was started ${maxAttempts} times in a row without recording anything new`,
    };
  }
  if (onUnknownOutcome === 'park' && record.openStep && hasUnknownOutcome(record.openStep)) {
    return { code: 'OUTCOME_UNKNOWN', reason: 'the process died during a call that must not be repeated' };
  }
  return undefined;
}

/** Whether the agent's list of phases is still the one that the record was made with. */
export function isPipelineSame({ agent }: Pick<ActiveRun, 'agent'>, record: RunCheckpoint): boolean {
  const opening = 1 + (record.earlier?.length ?? 0);
  const hasBegun = record.messages.length > opening || record.openStep !== undefined;
  return isSamePipeline(record, phaseFactsOf(agent.phases, 1), hasBegun);
}

function changeOf(run: ActiveRun, record: RunCheckpoint): ParkedReason | undefined {
  const isRefused = run.services.config.onDefinitionChange === 'refuse' && !record.outcome;
  if (!isRefused || isPipelineSame(run, record)) return undefined;
  const reason = `the phases of agent ${run.agent.id} are not those that it was begun with (onDefinitionChange)`;
  return { code: 'DEFINITION_CHANGED', reason };
}

async function rewrite(run: ActiveRun, store: CheckpointStore, record: RunCheckpoint): Promise<void> {
  run.checkOurs();
  return askStore(run, 'store.append', rewriteHead(store, record, run.resources.claim));
}

/** The claim went with the record that it was for. */
export function forgetClaim(run: ActiveRun): void {
  run.resources.claim = undefined;
  run.services.leases.drop(run);
}

/** Lets the run go. What goes wrong here is harmless: an unreleased claim runs out by itself. */
export async function releaseClaim(run: ActiveRun, options?: ReleaseOptions): Promise<void> {
  const { claim: held, services } = run;
  const { store } = services.config;
  forgetClaim(run);
  if (!held || !store || !isOwning(store)) return;
  try {
    await askStore(run, 'store.release', store.release(held, options));
  } catch (error) {
    services.config.warn('run: claim release failed', { runId: run.runId, error: toErrorData(error) });
  }
}

/** The whole record that a host's snapshot carries, when it is not just a reference. */
export function carriedRecord(run: ActiveRun): RunCheckpoint | undefined {
  const { persisted } = run.seed;
  return persisted && !persisted.stored ? identified(persisted) : undefined;
}
