import type { RunCheckpoint } from '../../../record/checkpoint.ts';
import { identified } from '../../../record/identify.ts';
import { migrateRecord } from '../../../record/migrate.ts';
import { toldAttempt } from '../../../run/attempt.ts';
import type { ParkedReason } from '../../../run/fields.ts';
import type { RunOutcome } from '../../../run/result.ts';
import { isOwning } from '../../../store/capabilities.ts';
import type { CheckpointStore, ReleaseOptions } from '../../../store/port.ts';
import { hasCode, toErrorData } from '../../../values/error-data.ts';
import { RunNotFoundError, RunOwnedElsewhereError, RunParkedError } from '../../../values/errors.ts';
import { enterStored } from '../../../values/message.ts';
import type { TakenClaim } from '../../services/due/taken-claim.ts';
import type { ActiveRun } from '../active-run.ts';
import { announceParked, isSameParking } from '../oversight.ts';
import { fairKeyOf } from '../run-info.ts';
import { forgetOutcome, isBegunAgain, readEarlierEnd, readKeptOutcome } from './earlier-end.ts';
import { reopenAsked, withRecord } from './reopen-ended.ts';
import { askerOf, conflict, isAskedRecord, isComparing, withIdentity } from './same-request.ts';
import { isMigrating, startByRules } from './start-rules.ts';
import { claimOptionsOf, journalWrite, rewriteHead, untilUntouched } from './stored-run.ts';

/** The state of a starting run in the store. */
export interface Found {
  /** The record that it continues from. */
  readonly record?: RunCheckpoint;
  /** It ended before, with this answer. */
  readonly outcome?: RunOutcome;
  /** Starts in a row without progress, this one included. */
  readonly attempts: number;
  /** Nothing has changed since the run rests: the store has it again. */
  readonly isResting?: true;
}

/** Gives a run back to its store if nothing has changed since it rests. @returns whether it did */
type RestAgain = (run: ActiveRun, record: RunCheckpoint) => Promise<boolean>;

/**
 * Claims the run and reads its stored state. The claim counts the start before any of the run is read: a record that kills its
 * reader must not be read endlessly. A start that is only refused counts nothing.
 * @throws RunOwnedElsewhereError, RunIdConflictError, RunParkedError, RunNotFoundError, CheckpointCorruptError, …: then
 *   this process does not have the run, and its record is unchanged
 */
export async function acquireRun(run: ActiveRun, restAgain: RestAgain): Promise<Found> {
  const { store } = run.services.config;
  if (!store || run.options.checkpointer) return { attempts: 1 };
  // A cancel or park in this process uses the same owner: a second claim would take the run from it.
  await untilUntouched(run.services, run.runId);
  if (!(await claim(run, store))) return lookElsewhere(run, store);
  try {
    return await look(run, store, restAgain);
  } catch (error) {
    await withdraw(run, { ...uncounted(run), ...damageFrom(run, error) });
    throw error;
  }
}

/**
 * Damage of a record that no list could see, because lists read no transcripts: it is quarantined. If the start named this run
 * by its id, it is unknown whether a list could read it: the key may be wrong.
 */
function damageFrom({ seed }: ActiveRun, error: unknown): ReleaseOptions {
  const { code, message } = toErrorData(error);
  // Only the store's own error counts: a bad record of `migrate` proves nothing about the stored one.
  return seed.mustExist === true && code === 'CHECKPOINT_CORRUPT' ? { damage: message } : {};
}

/** Returns the options that release a claim without counting the start, which could not even try. */
export function uncounted({ claim }: ActiveRun): ReleaseOptions {
  return claim ? { attempts: Math.max(0, claim.attempts - 1) } : {};
}

/** Returns false if another process has the run. */
async function claim(run: ActiveRun, store: CheckpointStore): Promise<boolean> {
  if (!isOwning(store)) return true;
  const { services, runId, seed } = run;
  if (seed.claim) return takeClaim(run, seed.claim);
  const askedAt = services.config.clock.monotonic();
  const claimed = await store.claim(runId, services.owner, services.config.defaults.leaseMs, claimOptionsOf(services));
  if (!claimed) return false;
  run.resources.claim = claimed;
  run.keepLease(askedAt);
  return true;
}

/** Returns false if another process has taken the run meanwhile. */
function takeClaim(run: ActiveRun, taken: TakenClaim): boolean {
  const given = taken.take();
  if (!given) return false;
  run.resources.claim = given.claim;
  run.keepLease(given.since);
  return true;
}

/**
 * Reads a run that another process has: returns its kept answer, or throws the error that reports the owner.
 * @throws RunIdConflictError, RunOwnedElsewhereError: then `startFacts.isElsewhere` says whether it is the requested run
 */
async function lookElsewhere(run: ActiveRun, store: CheckpointStore): Promise<Found> {
  const { runId } = run;
  const owned = new RunOwnedElsewhereError(`run ${runId} is being worked on by another process`);
  if (!isComparing(askerOf(run))) throw owned;
  const record = await store.load(runId);
  if (record) {
    if (!isAskedRecord(askerOf(run), identified(record))) throw conflict(askerOf(run));
    run.startFacts.isElsewhere = true;
    throw owned;
  }
  const outcome = await readKeptOutcome(run, store);
  // Without either, that process has claimed the id and recorded nothing yet: there is nothing to compare.
  if (!outcome) throw owned;
  if (!isBegunAgain(run, outcome)) return { outcome, attempts: 1 };
  // That process may begin the run again just now.
  run.startFacts.isElsewhere = true;
  throw owned;
}

async function look(run: ActiveRun, store: CheckpointStore, restAgain: RestAgain): Promise<Found> {
  const { runId, seed, services } = run;
  // No run has a random id yet. An id of a host's own port may belong to a run that is stored, or that has ended.
  if (seed.isNewId && services.config.hasRandomIds) return { attempts: 1 };
  const record = (await load(run, store)) ?? (await reopenAsked(run, store)) ?? (await beginFork(run, store));
  if (!record) {
    const outcome = await readEarlierEnd(run, store);
    if (outcome && !isBegunAgain(run, outcome)) return { outcome: withRecord(run, outcome), attempts: 1 };
    if (outcome) await forgetOutcome(run, store, outcome);
    if (!seed.mustExist && !hasBegun(run, store)) return { attempts: run.resources.claim?.attempts ?? 1 };
    throw new RunNotFoundError(`run ${runId} has ended, or never began`);
  }
  const attempts = run.resources.claim?.attempts ?? (record.attempts ?? 0) + 1;
  const messages = record.messages.map(enterStored);
  const stored = comparedAndMigrated(run, identified({ ...record, messages, attempts }));
  // Before it can be parked: a start that changes nothing is no attempt.
  const isAsIs = !stored.parked && !isMigrating(run.agent, stored);
  if (isAsIs && (await restAgain(run, stored))) return { record: stored, attempts, isResting: true };
  const { parked: _, ...taken } = await loadStarted(run, store, stored);
  run.resources.record = taken;
  return { record: taken, attempts };
}

/** Stores the first record of a fork. @returns it; null: the start is none, or its run has ended */
async function beginFork(run: ActiveRun, store: CheckpointStore): Promise<RunCheckpoint | null> {
  const { forked } = run.seed;
  if (!forked || (await readEarlierEnd(run, store))) return null;
  const { claim } = run.resources;
  const first = { ...forked, attempts: claim?.attempts ?? 0 };
  await store.save(first, { claim, fairKey: fairKeyOf(run.services.config, forked.labels) });
  return first;
}

/** One read of wrong bytes does not prove damage: a record is damaged if two reads fail. */
async function load(run: ActiveRun, store: CheckpointStore): Promise<RunCheckpoint | null> {
  const read = () => store.load(run.runId);
  try {
    return await read();
  } catch (error) {
    if (hasCode(error, 'CHECKPOINT_CORRUPT')) return read();
    throw error;
  }
}

/**
 * Whether a run without stored state has begun all the same. A host's snapshot from before the first record cannot tell. A run
 * that has ended since is still known from its outcome, as long as that is kept.
 */
function hasBegun({ seed: { persisted }, services }: ActiveRun, store: CheckpointStore): boolean {
  if (!persisted?.unstored) return persisted?.stored ?? false;
  const { clock, keepOutcomesMs } = services.config;
  return !store.outcomes || clock.now() - persisted.updatedAt >= keepOutcomesMs;
}

/**
 * Returns the record after the host's `migrate`. A deploy may rename fields of a request: the record is compared before and
 * after. No fact of another request's record is reported, not even that it cannot be migrated.
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

/**
 * Returns an acquired run to its store after a start that does not count: no part of the run was tried. The record is
 * restored unchanged, and the claim released.
 */
export async function returnRun(run: ActiveRun): Promise<void> {
  const { services } = run;
  const { record } = run.resources;
  const { store, warn } = services.config;
  try {
    if (record && store && isOwning(store) && run.resources.claim)
      await rewrite(run, store, { ...record, attempts: record.attempts - 1 }, record.parked);
  } catch (error) {
    warn('run.restore.failed', { runId: run.runId, error });
  }
  await withdraw(run, uncounted(run));
}

/** Returns the record that a start continues from. @throws {RUN_PARKED} for a run that it parks instead */
async function loadStarted(run: ActiveRun, store: CheckpointStore, record: RunCheckpoint): Promise<RunCheckpoint> {
  const { onUnknownOutcome, onDefinitionChange } = run.services.config;
  const { maxAttempts = run.services.config.defaults.maxAttempts } = run.seed;
  const agent = run.seed.fault ? undefined : run.agent;
  const start = startByRules(record, { agent, maxAttempts, onUnknownOutcome, onDefinitionChange });
  if (!('parks' in start)) return start.record;
  const parked = start.parks;
  const isKnown = isSameParking(record.parked, parked);
  const { tracing } = run.services.config;
  const told = tracing && !tracing.isIdle() ? toldAttempt(record, parked.code) : {};
  const kept = { ...record, ...told, attempts: record.attempts - 1, parked };
  await rewrite(run, store, kept, isKnown ? undefined : parked);
  announceParked(run, record, parked);
  throw new RunParkedError(`run ${record.meta.runId} is parked: ${parked.reason}`);
}

/** Writes the head of the record. @param news why the run is parked from now on: its journal says so */
async function rewrite(
  run: ActiveRun,
  store: CheckpointStore,
  ...[record, news]: [record: RunCheckpoint, news?: ParkedReason | undefined]
): Promise<void> {
  run.checkOurs();
  const { claim } = run.resources;
  const events = news && journalWrite(run.services, { record, claim }, { type: 'run.parked', ...news });
  return rewriteHead(store, record, { claim, events });
}

/** Forgets the claim of a run, which was deleted with its record. */
export function forgetClaim(run: ActiveRun): void {
  run.resources.claim = undefined;
  run.services.leases.drop(run);
}

/** Releases the claim of a run. A failure is harmless: a claim that is not released expires. */
export async function giveUpClaim(run: ActiveRun, options?: ReleaseOptions): Promise<void> {
  const { claim: held, services } = run;
  const { store } = services.config;
  forgetClaim(run);
  if (!held || !store || !isOwning(store)) return;
  try {
    await store.release(held, options);
  } catch (error) {
    services.config.warn('claim.release.failed', { runId: run.runId, error });
  }
}

/**
 * Releases the claim of a run that could not begin, or could not be ended. One that was found due goes back to its finder, who
 * decides when it is due again: otherwise it would be taken again at once.
 */
export async function withdraw(run: ActiveRun, options: ReleaseOptions = {}): Promise<void> {
  const { claim, seed } = run;
  if (!claim || !seed.claim || options.damage !== undefined) return giveUpClaim(run, options);
  forgetClaim(run);
  seed.claim.put(claim, options);
}

/** Returns the whole record that a host's snapshot carries, if it is not only a reference. */
export function carriedRecord(run: ActiveRun): RunCheckpoint | undefined {
  const { persisted } = run.seed;
  return persisted && !persisted.stored ? identified(persisted) : undefined;
}
