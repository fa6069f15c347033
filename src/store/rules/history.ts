import { RunNotEndedError } from '../../values/errors.ts';
import type { Claim } from '../port.ts';
import {
  changed,
  type Decide,
  type EndedToKeep,
  type EndToDeliver,
  lacking,
  none,
  type OutcomeToKeep,
  ofKept,
  ofLease,
  ofRecord,
  unchanged,
  type Writer,
} from './decision.ts';
import { checkClaim } from './lease.ts';
import { factsOfWriter, writableLease } from './ownership.ts';

/* How the record of a run is kept after its end, and how all of a run is erased. */

/** What a run leaves at its end. */
export interface RunToEnd {
  /** Undefined: no outcome is kept. */
  readonly outcome: OutcomeToKeep | undefined;
  /** Undefined: the end is delivered. */
  readonly deliver?: EndToDeliver | undefined;
  readonly ended: Omit<EndedToKeep, 'epoch'>;
}

/**
 * Decides the end of a run: its outcome and its record are kept, its lease is removed. A run that this claim has ended already
 * stays as it is: the answer may have been lost. A run without a record leaves its outcome only.
 * @throws {LEASE_LOST}
 */
export function endRun(claim: Claim, { outcome, deliver, ended }: RunToEnd): Decide<void> {
  return (facts) => {
    const need = lacking(facts, ofLease, facts.lease === null ? ofKept : facts.lease ? ofRecord : none);
    if (need) return need;
    if (facts.lease === null && facts.keptEpoch === claim.epoch) return unchanged;
    const { epoch } = checkClaim(facts.lease ?? undefined, claim);
    const keep = { ...(outcome ? { keep: { ...outcome, epoch } } : {}), deliver };
    if (facts.record === null) return changed({ ...keep, remove: true, raiseEpoch: epoch });
    return changed({ ...keep, end: { ...ended, epoch } });
  };
}

/**
 * Decides whether all that is stored of a run may be erased: it has ended, and no owner holds it.
 * @throws {RUN_OWNED_ELSEWHERE} @throws {RUN_NOT_ENDED}
 */
export function eraseRun(runId: string, by: Pick<Writer, 'isDead'>): Decide<void> {
  return (facts) => {
    const need = lacking(facts, factsOfWriter(facts, by), ofRecord);
    if (need) return need;
    writableLease(runId, facts, by);
    // A record that is certainly damaged is no run that could continue.
    if (facts.record !== null && facts.record !== 'unreadable') {
      throw new RunNotEndedError(`run ${runId} has not ended: cancel it, then erase it`);
    }
    return changed({ erase: true });
  };
}
