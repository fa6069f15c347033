import { checkReplaceable, isNewRevision } from '../encoding/revision.ts';
import {
  type Change,
  changed,
  type Decide,
  type EndToDeliver,
  factsOfRecord,
  lacking,
  none,
  type OutcomeToKeep,
  ofKept,
  type RunFacts,
  type ToStore,
  unchanged,
  type Writer,
} from './decision.ts';
import { type Ownership, refuseDamaged, sound } from './lease.ts';
import { factsOfWriter, writableLease } from './ownership.ts';

/* Who may save, append, delete, or keep an outcome, and which revision fits. */

/**
 * Decides whether a writer may store a whole record, in place of the existing one.
 * @throws {LEASE_LOST} @throws {RUN_OWNED_ELSEWHERE} @throws {CHECKPOINT_TOO_NEW} over a record of a newer version
 */
export function saveRecord(record: ToStore, by: Writer): Decide<void> {
  const { runId, attempts } = record;
  return (facts) => {
    const need = lacking(facts, factsOfWriter(facts, by), factsOfRecord(by));
    if (need) return need;
    const lease = writableLease(runId, facts, by);
    checkReplaceable(runId, readable(facts)?.version);
    const filed = by.keepsDue && record.filed ? { filed: record.filed } : {};
    const change = { ...leaseAfter(lease, sound(lease), attempts), ...dueAfter(record, facts, by), ...filed };
    return changed({ record: 'put', ...change, ...(record.reopens ? { keepsJournal: true as const } : {}) });
  };
}

/**
 * Decides whether a writer may append the new part of a record. A revision that is already stored changes nothing.
 * @param delta the new part, and the revision that it follows
 * @throws the errors of `saveRecord` @throws {REVISION_GAP} @throws {CHECKPOINT_CORRUPT} if the run was released as
 *   damaged
 */
export function appendDelta(
  delta: ToStore & { readonly revision: number; readonly from: number },
  by: Writer,
): Decide<void> {
  const { runId, attempts } = delta;
  return (facts) => {
    const need = lacking(facts, factsOfWriter(facts, by), factsOfRecord(by));
    if (need) return need;
    refuseDamaged(facts.lease);
    const lease = writableLease(runId, facts, by);
    const record = readable(facts);
    checkReplaceable(runId, record?.version);
    return isNewRevision(delta, record)
      ? changed({ record: 'append', ...leaseAfter(lease, lease, attempts), ...dueAfter(delta, facts, by) })
      : unchanged;
  };
}

/**
 * Decides whether a writer may delete a run. Its epoch outlives the record with its outcome: a lost owner must stay lost.
 * @throws {LEASE_LOST} @throws {RUN_OWNED_ELSEWHERE}
 */
export function deleteRun(runId: string, by: Writer): Decide<void> {
  return (facts) => {
    const need = lacking(facts, factsOfWriter(facts, by));
    if (need) return need;
    const lease = writableLease(runId, facts, by);
    return changed({ remove: true, ...(lease ? { raiseEpoch: lease.epoch } : {}) });
  };
}

/** An outcome to keep, and the mark of an end that no process has delivered. */
export interface RunOutcomeToKeep extends OutcomeToKeep {
  readonly runId: string;
  readonly deliver?: EndToDeliver | undefined;
}

/** Decides whether a writer may keep the outcome of a run. @throws {LEASE_LOST} @throws {RUN_OWNED_ELSEWHERE} */
export function keepOutcome({ runId, text, untilMs, deliver }: RunOutcomeToKeep, by: Writer): Decide<void> {
  return (facts) => {
    const need = lacking(facts, factsOfWriter(facts, by), facts.lease === null ? ofKept : none);
    if (need) return need;
    const epoch = writableLease(runId, facts, by)?.epoch ?? facts.keptEpoch ?? 0;
    return changed({ keep: { text, untilMs, epoch }, deliver });
  };
}

/** A run with work to do is due as soon as no process owns it. Nearly every write finds it so. */
function dueAfter(
  { due: said, definition, pausedBy }: ToStore,
  { due }: RunFacts,
  { keepsDue }: Writer,
): Pick<Change, 'due' | 'definition' | 'pausedBy'> {
  if (!keepsDue || said === undefined) return {};
  const pause = pausedBy === undefined ? {} : { pausedBy };
  // A run that was parked while it waited: the time at which it would have continued is not known any more.
  if (said === 'kept') return due === null ? { due: 0, ...pause } : pause;
  const after = said === 'never' ? null : 0;
  return { ...(after === due ? {} : { due: after }), ...(definition === undefined ? {} : { definition }), ...pause };
}

const readable = ({ record }: RunFacts) => (record === null || record === 'unreadable' ? undefined : record);

/** The lease has the correct count of attempts: `claim` counts before any of the run is loaded. */
function leaseAfter(
  found: Ownership | undefined,
  lease: Ownership | undefined,
  attempts: number | undefined,
): Pick<Change, 'lease'> {
  const isCounted = lease === undefined || attempts === undefined || attempts === lease.attempts;
  const after = isCounted ? lease : { ...lease, attempts };
  return after && after !== found ? { lease: after } : {};
}
