import type { RunCheckpoint } from '../../../record/checkpoint.ts';
import type { RunOutcome } from '../../../run/result.ts';
import type { KeepingStore } from '../../../store/history-port.ts';
import { hasCode } from '../../../values/error-data.ts';
import type { ExecutorServices } from '../../run/active-run.ts';
import { untilUntouched } from '../../run/record/stored-run.ts';
import { changeMarkOf } from './explain.ts';
import { type ForkOptions, forkStored } from './fork.ts';
import { earlierOf, historyStoreOf } from './history.ts';

/** Makes the parts of an executor that are for other parts of this package: see `ExecutorInside`. */
export function insidePartsOf(services: ExecutorServices) {
  const { journal } = services.config;
  return {
    changeMark: () => changeMarkOf(services),
    hasJournal: Boolean(journal),
    lingerMs: journal?.lingerMs ?? 0,
    earlierOf: (record: RunCheckpoint) => earlierOf(services, record),
    forkStored: (runId: string, options: ForkOptions) => forkStored(services, runId, options),
    importRun: (record: RunCheckpoint, outcome: RunOutcome) => importRun(services, record, outcome),
  };
}

/** Why a record stands that an import did not complete. Parked runs are never due, and no start continues them. */
const IMPORTED = { code: 'IMPORTED', reason: 'its import was cut off: import the file again' } as const;

/**
 * Puts a run that has ended into the store, unless one of its id is known there. It is kept as long as `retention.records` says, and
 * until it is erased without that option.
 * @returns whether it is new here
 * @throws {UNSUPPORTED} if the store keeps no records of ended runs @throws {NOT_DURABLE} @throws the store's own error
 */
async function importRun(services: ExecutorServices, record: RunCheckpoint, outcome: RunOutcome): Promise<boolean> {
  const store = historyStoreOf(services);
  const { runId } = record.meta;
  const { keepRecordsMs, keepOutcomesMs, defaults, clock } = services.config;
  await untilUntouched(services, runId);
  const isTaken = () => isKnown(store, runId);
  if (services.registry.live(runId) || (await isTaken())) return false;
  const claim = await store.claim(runId, services.owner, defaults.leaseMs);
  if (!claim) return false;
  // Another process may have begun it before the claim.
  if (await isTaken()) {
    await store.release(claim, { attempts: Math.max(0, claim.attempts - 1) });
    return false;
  }
  const endedAt = clock.now();
  const keepUntil = keepRecordsMs > 0 ? endedAt + keepRecordsMs : Number.POSITIVE_INFINITY;
  // Asked for in one turn: stores that write in groups make one commit of it.
  await Promise.all([
    store.save({ ...record, outcome, parked: IMPORTED, updatedAt: endedAt }, { claim }),
    store.history.end(claim, { outcome, keepUntil, outcomeUntil: keepOutcomesMs > 0 ? endedAt + keepOutcomesMs : 0 }),
  ]);
  return true;
}

async function isKnown(store: KeepingStore, runId: string): Promise<boolean> {
  try {
    const part = { messages: false } as const;
    const open = await store.load(runId, part);
    if (open) return open.parked?.code !== IMPORTED.code;
    return (await store.load(runId, { ...part, ended: true })) !== null || (await store.outcomes.find(runId)) !== null;
  } catch (error) {
    // What cannot be read is there all the same.
    if (unreadable.some((code) => hasCode(error, code))) return true;
    throw error;
  }
}

const unreadable = ['CHECKPOINT_CORRUPT', 'CHECKPOINT_TOO_NEW', 'KEY_MISMATCH'];
