import type { Claim, LeaveOptions, ReleaseOptions } from '../port.ts';
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
  type RunFacts,
  unchanged,
  type Writer,
} from './decision.ts';
import { checkClaim, checkWrite, damageIn, freed, grantLease, isNewest, type Lease, type Ownership } from './lease.ts';

/* Who owns a run: claims, their renewal and release, and the check of each write. */

/** The owner that wants a run, and for how long, ms. */
export interface ClaimWish {
  readonly runId: string;
  readonly owner: string;
  readonly ttlMs: number;
}

/**
 * Decides whether an owner gets the claim of a run; null = another one holds it. Each grant counts one more attempt, and
 * has a higher epoch.
 * @throws {CheckpointCorruptError} if the run cannot be read, or was released as damaged
 */
export function claimRun(wish: ClaimWish, { isDead }: Pick<Writer, 'isDead'> = {}): Decide<Claim | null> {
  const { runId, owner, ttlMs } = wish;
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
      isDead,
    });
    if (!granted) return { value: null };
    return { value: { runId, ...granted }, change: { lease: granted, ttlMs } };
  };
}

/** Decides the renewal of a lease for another `ttlMs`. @throws {LeaseLostError} */
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
 * @throws {LeaseLostError}
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
  const isFree = !lease || lease.owner === null || lease.owner === owner || damageIn(lease) !== undefined;
  return isFree ? ofLease : ofHeld;
}

/**
 * Returns the lease of a run, after the check that this write is allowed.
 * @throws {LeaseLostError} @throws {RunOwnedElsewhereError}
 */
export function writableLease(runId: string, facts: RunFacts, { claim, isDead }: Writer): Ownership | undefined {
  if (claim) return checkClaim(facts.lease ?? undefined, claim);
  checkWrite(timed(facts), { runId, claim, now: facts.now ?? 0, isDead });
  return facts.lease ?? undefined;
}

/** Decisions ask for `expiresAt` only where it matters; elsewhere any time is fine. */
function timed({ lease, expiresAt = Number.NEGATIVE_INFINITY }: RunFacts): Lease | undefined {
  return lease ? { owner: lease.owner, epoch: lease.epoch, attempts: lease.attempts, expiresAt } : undefined;
}
