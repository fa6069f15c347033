import { isTimeToTake } from '../due.ts';
import type { LeaveOptions } from '../due-port.ts';
import type { Claim, ReleaseOptions } from '../port.ts';
import {
  changed,
  type Decide,
  type Fact,
  factsOfRecord,
  lacking,
  none,
  ofCounts,
  ofHeld,
  ofInbox,
  ofLease,
  ofRecordAndDue,
  type RunFacts,
  unchanged,
  type Writer,
} from './decision.ts';
import {
  checkClaim,
  checkWrite,
  damageOf,
  freed,
  grantLease,
  isHeld,
  isNewest,
  type Lease,
  type Ownership,
} from './lease.ts';

/* Who owns a run: claims, their renewal and release, and the check of each write. */

/** The owner that wants a run, and for how long, ms. */
export interface ClaimWish {
  readonly runId: string;
  readonly owner: string;
  readonly ttlMs: number;
  /** The number of its deployment. */
  readonly deployment?: number | undefined;
}

/**
 * Decides whether an owner gets the claim of a run; null = another one holds it. Each grant counts one more attempt, and
 * has a higher epoch.
 * @throws {CHECKPOINT_CORRUPT} if the run cannot be read, or was released as damaged
 * @throws {NEWER_DEPLOYMENT} if a higher deployment has claimed it
 */
export function claimRun(wish: ClaimWish, { isDead }: Pick<Writer, 'isDead'> = {}): Decide<Claim | null> {
  const { runId, owner, ttlMs, deployment } = wish;
  return (facts) => {
    if (facts.damage !== undefined) throw facts.damage;
    const need = lacking(facts, factsOfHolder(facts.lease, owner), facts.lease === null ? ofCounts : none);
    if (need) return need;
    const granted = grantLease(timed(facts), {
      owner,
      now: facts.now ?? 0,
      // A driver may have to decrypt the record for its attempts: they are read only without a lease.
      lastEpoch: (facts.lease ? undefined : facts.keptEpoch) ?? 0,
      lastAttempts: (facts.lease ? undefined : facts.attempts) ?? 0,
      deployment,
      isDead,
    });
    if (!granted) return { value: null };
    const { epoch, attempts } = granted;
    return { value: { runId, owner, epoch, attempts }, change: { lease: granted, ttlMs } };
  };
}

/**
 * Decides whether an owner gets the claim of a run because it is due; null = it has no record, is not due, or an owner holds it,
 * be it this one.
 * @param wish `isNamed`: one that was given back need not be due yet; `isParked`: it is never due, and was found by its definition
 * @param now the store's wall clock, ms
 * @throws the errors of `claimRun`
 */
export function takeRun(
  wish: ClaimWish & { readonly isNamed?: boolean; readonly isParked?: boolean },
  { isDead, now }: Pick<Writer, 'isDead'> & { readonly now: number },
): Decide<Claim | null> {
  const claim = claimRun(wish, { isDead });
  return (facts) => {
    if (facts.damage !== undefined) throw facts.damage;
    const need = lacking(facts, factsOfHolder(facts.lease), ofRecordAndDue);
    if (need) return need;
    const isTime = wish.isParked ? facts.due === null : isTimeToTake(facts.due, now, wish.isNamed ?? false);
    if (facts.record === null || !isTime || isHeld(timed(facts), facts.now ?? 0, isDead)) return { value: null };
    return claim(facts);
  };
}

/** Decides nothing: answers how much longer the claim of a run holds, ms; null = no live owner holds it. */
export function heldFor({ isDead }: Pick<Writer, 'isDead'> = {}): Decide<number | null> {
  return (facts) => {
    if (facts.damage !== undefined) return { value: null };
    const need = lacking(facts, factsOfHolder(facts.lease));
    if (need) return need;
    const lease = timed(facts);
    const now = facts.now ?? 0;
    return { value: isHeld(lease, now, isDead) ? lease.expiresAt - now : null };
  };
}

/** Decides nothing: answers with the highest deployment that has claimed a run; null = none said its number. */
export const readDeployment: Decide<number | null> = (facts) => {
  if (facts.damage !== undefined) return { value: null };
  const need = lacking(facts, ofLease);
  return need ?? { value: facts.lease?.deployment ?? null };
};

/** Decides the renewal of a lease for another `ttlMs`. @throws {LEASE_LOST} */
export function renewClaim(claim: Claim, ttlMs: number): Decide<Claim> {
  return (facts) => {
    const need = lacking(facts, ofLease);
    if (need) return need;
    const { attempts } = checkClaim(facts.lease ?? undefined, claim);
    return { value: { ...claim, attempts }, change: { ttlMs } };
  };
}

/** Decides the release of a claim. Releasing a lost claim has no effect. */
export function releaseClaim(claim: Claim, options?: ReleaseOptions): Decide<void> {
  return (facts) => {
    const need = lacking(facts, ofLease);
    if (need) return need;
    const { lease, damage } = facts;
    if (!lease || damage !== undefined || !isNewest(lease, claim)) return unchanged;
    return changed({ lease: freed(lease, options) });
  };
}

/**
 * Decides: frees a run that waits. False, without a change, if its inbox holds a command that it has not read. A run that is
 * never due stays so.
 * @throws {LEASE_LOST}
 */
export function leaveRun(claim: Claim, { due, readUpTo, attempts }: LeaveOptions & { due: number }): Decide<boolean> {
  return (facts) => {
    const need = lacking(facts, ofLease, factsOfRecord({ keepsDue: true }));
    if (need) return need;
    const lease = checkClaim(facts.lease ?? undefined, claim);
    const newest = facts.inbox?.newest;
    if (newest === undefined) return { need: ofInbox };
    if (newest > readUpTo) return { value: false };
    const isTimed = facts.record !== null && facts.due !== null && facts.due !== due;
    return { value: true, change: { lease: freed(lease, { attempts }), ...(isTimed ? { due } : {}) } };
  };
}

/** Returns the facts of the lease that a write needs. Only one without a claim needs the expiry. */
export function factsOfWriter({ lease }: RunFacts, { claim }: Writer): readonly Fact[] {
  return claim ? ofLease : factsOfHolder(lease);
}

/**
 * The facts that a claim needs, by whether another owner holds the run.
 * @param owner may always claim a run that it holds already
 */
function factsOfHolder(lease: Ownership | null | undefined, owner?: string): readonly Fact[] {
  const isFree = !lease || lease.owner === null || lease.owner === owner || damageOf(lease) !== undefined;
  return isFree ? ofLease : ofHeld;
}

/**
 * Returns the lease of a run, after the check that this write is allowed.
 * @throws {LEASE_LOST} @throws {RUN_OWNED_ELSEWHERE}
 */
export function writableLease(runId: string, facts: RunFacts, { claim, isDead }: Writer): Ownership | undefined {
  if (claim) return checkClaim(facts.lease ?? undefined, claim);
  checkWrite(timed(facts), { runId, claim, now: facts.now ?? 0, isDead });
  return facts.lease ?? undefined;
}

/** Decisions ask for `expiresAt` only where it matters; elsewhere any time is fine. */
function timed({ lease, expiresAt = Number.NEGATIVE_INFINITY }: RunFacts): Lease | undefined {
  return lease ? { ...lease, expiresAt } : undefined;
}
