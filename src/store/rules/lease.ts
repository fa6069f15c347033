import {
  CheckpointCorruptError,
  LeaseLostError,
  NewerDeploymentError,
  RunOwnedElsewhereError,
} from '../../values/errors.ts';
import { isDeadProcess } from '../owner.ts';
import type { Claim, ReleaseOptions } from '../port.ts';

/** The ownership of a run in a store. It outlives a release: epoch and attempts keep counting. */
export interface Ownership {
  /** Null after a release; a mark if the record was found damaged. */
  readonly owner: string | null;
  readonly epoch: number;
  readonly attempts: number;
  /** The highest deployment that has claimed the run; absent = none said its number. */
  readonly deployment?: number | undefined;
}

/** Ownership, and its expiry. */
export interface Lease extends Ownership {
  /** On the store's own lease clock, ms. */
  readonly expiresAt: number;
}

/** The request of a lease, and the counters to continue if the run has none yet. */
interface LeaseRequest {
  readonly owner: string;
  readonly now: number;
  /** The epoch in a kept outcome. */
  readonly lastEpoch: number;
  /** The attempts in the record. */
  readonly lastAttempts: number;
  /** The number of the deployment that asks. */
  readonly deployment?: number | undefined;
  readonly isDead?: IsDead | undefined;
}

/** Whether an owner is certainly dead. */
export type IsDead = (owner: string) => boolean;

/** Replaces an owner if a record was found damaged. An owner begins with the name of its host. */
const DAMAGED = '|quarantined|';
const MAX_DAMAGE = 500;

/** Returns the damage that the last owner found in a record; undefined if it was found intact, or not read yet. */
export function damageOf(lease: Pick<Lease, 'owner'> | null | undefined): string | undefined {
  return lease?.owner?.startsWith(DAMAGED) ? lease.owner.slice(DAMAGED.length) : undefined;
}

/** Refuses to use a lease whose record was found damaged. @throws {CHECKPOINT_CORRUPT} if the record was found damaged */
export function refuseDamaged(lease: Pick<Lease, 'owner'> | null | undefined): void {
  const damage = damageOf(lease);
  if (damage !== undefined) throw new CheckpointCorruptError(damage);
}

/** Returns the lease after a save of the whole record: earlier damage is gone. */
export function sound<T extends Ownership>(lease: T | undefined): T | undefined {
  return lease && damageOf(lease) !== undefined ? { ...lease, owner: null } : lease;
}

/** Returns whether an owner holds the run: not released, not expired, and not certainly dead. */
export function isHeld(
  lease: Lease | undefined,
  now: number,
  isDead: IsDead = isDeadProcess,
): lease is Lease & { readonly owner: string } {
  if (lease === undefined || lease.owner === null || damageOf(lease) !== undefined) return false;
  return lease.expiresAt > now && !isDead(lease.owner);
}

/**
 * Returns the lease of a new owner, or null if another owner holds the run. Each grant counts one more attempt.
 * @throws {CHECKPOINT_CORRUPT} if the record was found damaged
 * @throws {NEWER_DEPLOYMENT} if a higher deployment has claimed the run
 */
export function grantLease(lease: Lease | undefined, request: LeaseRequest): (Ownership & { owner: string }) | null {
  const { owner, now, isDead, deployment = lease?.deployment } = request;
  refuseDamaged(lease);
  if (lease?.owner !== owner && isHeld(lease, now, isDead)) return null;
  if (isOfNewer(lease, deployment)) {
    throw new NewerDeploymentError(
      `deployment ${lease?.deployment} has worked on this run; deployment ${deployment} leaves it to that one`,
    );
  }
  return {
    owner,
    epoch: (lease?.epoch ?? request.lastEpoch) + 1,
    attempts: (lease?.attempts ?? request.lastAttempts) + 1,
    ...(deployment === undefined ? {} : { deployment }),
  };
}

/** Returns whether a higher deployment has claimed a run. @param deployment undefined is not compared */
export function isOfNewer(lease: Pick<Ownership, 'deployment'> | undefined, deployment: number | undefined): boolean {
  return deployment !== undefined && lease?.deployment !== undefined && lease.deployment > deployment;
}

/** Returns whether a claim is the newest of its run. An expired claim still is, as long as no other owner took the run. */
export function isNewest(lease: Ownership | undefined, claim: Claim): boolean {
  return lease?.owner === claim.owner && lease.epoch === claim.epoch;
}

/** Returns the lease after its owner has released it. */
export function freed<T extends Ownership>(lease: T, { attempts = lease.attempts, damage }: ReleaseOptions = {}): T {
  return { ...lease, owner: damage === undefined ? null : DAMAGED + damage.slice(0, MAX_DAMAGE), attempts };
}

/**
 * Checks that a claim is the newest of its run, and returns the run's lease.
 * @throws {LEASE_LOST} if the claim is not the newest of its run
 */
export function checkClaim<T extends Ownership>(lease: T | undefined, claim: Claim): T {
  if (lease !== undefined && isNewest(lease, claim)) return lease;
  const found = lease === undefined ? 'the run has no claim any more' : `the newest claim has epoch ${lease.epoch}`;
  throw new LeaseLostError(
    `run ${claim.runId}: the claim with epoch ${claim.epoch} is lost (${found}); stop working on it`,
  );
}

/**
 * Checks whether a write is allowed. Without a claim it is, if no owner holds the run.
 * @throws {LEASE_LOST} if its claim is not the newest
 * @throws {RUN_OWNED_ELSEWHERE} if it has none and the run is held
 */
export function checkWrite(
  lease: Lease | undefined,
  write: { runId: string; claim: Claim | undefined; now: number; isDead?: IsDead | undefined },
): void {
  if (write.claim) checkClaim(lease, write.claim);
  else if (isHeld(lease, write.now, write.isDead)) {
    throw new RunOwnedElsewhereError(`run ${write.runId} is held by ${lease.owner}; claim it before writing`);
  }
}
