import type { DueOfRecord } from '../../record/interrupted.ts';
import { isInboxFull, placesFor } from '../../run/command.ts';
import { type CommandToSend, refuseFull, refuseLarge, refuseMissing } from '../commands.ts';
import type { Due } from '../due.ts';
import { checkReplaceable, isNewRevision } from '../encoding/revision.ts';
import type { Claim, LeaveOptions, ReleaseOptions } from '../port.ts';
import {
  checkClaim,
  checkWrite,
  damageIn,
  freed,
  grantLease,
  isNewest,
  type Lease,
  type Ownership,
  refuseDamaged,
  sound,
} from './lease.ts';

/*
 * The rules of every store, written once. Each of the ten transitions is a pure decision: from the facts of one run it
 * returns the answer and the change, or names the missing facts. The driver reads facts, asks again, and makes the change, all
 * while no other writer can change the run. A refusal throws before any change.
 */

/**
 * The facts of one run that a driver knows. An absent or undefined fact was not read; a driver may read each when a decision
 * first asks for it (by getters, or after a decision has named it).
 */
export interface RunFacts {
  /** Null: the run has no lease, because it was never claimed, or deleted since. */
  readonly lease?: Ownership | null | undefined;
  /** When the lease expires, on the lease clock, ms. */
  readonly expiresAt?: number | undefined;
  /** The lease clock, ms. */
  readonly now?: number | undefined;
  /** `unreadable`: there is a record, but its revision cannot be read. */
  readonly record?: RecordFacts | 'unreadable' | null | undefined;
  /** The attempts in the record; 0 without a record. */
  readonly attempts?: number | undefined;
  /** The epoch in a kept outcome; 0 without one. */
  readonly keptEpoch?: number | undefined;
  readonly inbox?: InboxFacts | undefined;
  /** When the run is due; 0 without a record. Only drivers with `listDue` have it. */
  readonly due?: Due | undefined;
  /** Why the facts of the run are invalid, if reading them showed that. Decisions never ask for it. */
  readonly damage?: unknown;
}

/** Returns the facts of a run whose stored value cannot be read: it can be saved as a whole, or deleted. */
export function factsOfDamage(damage: unknown): RunFacts {
  return { damage, lease: null, record: 'unreadable', attempts: 0, keptEpoch: 0, due: 0 };
}

/** A fact that a decision can ask for. */
export type Fact = Exclude<keyof RunFacts, 'damage'>;

/** A stored record, without its texts. */
export interface RecordFacts {
  readonly version: number;
  readonly revision: number;
  readonly messageCount: number;
}

/** The commands that wait for a run. */
export interface InboxFacts {
  readonly size: number;
  /** Characters of the stored texts. */
  readonly chars: number;
  /** The highest `seq` of the waiting commands; 0 if there are none. Only drivers with `listDue` have it. */
  readonly newest?: number | undefined;
  /** Whether a command of this id waits. */
  has(id: string): boolean;
}

/** The change of a run: all of it, or nothing. Absent fields stay unchanged. */
export interface Change {
  /** Stores the body of the write: `put` replaces the record, `append` adds to it. */
  readonly record?: 'put' | 'append';
  /** Removes the record, the lease, and the waiting commands. */
  readonly remove?: true;
  /** Owner, epoch and attempts from now on. Only `ttlMs` changes when the lease expires. */
  readonly lease?: Ownership;
  /** From now on the lease is valid for this time, by the store's clock. */
  readonly ttlMs?: number;
  readonly keep?: OutcomeToKeep & { readonly epoch: number };
  /** A kept outcome remembers at least this epoch. */
  readonly raiseEpoch?: number;
  /** Adds a command after the waiting ones. */
  readonly send?: CommandToSend;
  /** Removes the waiting commands with these ids. */
  readonly forget?: readonly string[];
  /** When the run is due from now on. A record that replaces none is due at 0, unless this says otherwise. */
  readonly due?: Due;
}

export interface OutcomeToKeep {
  /** As it is stored. */
  readonly text: string;
  /** Wall clock, ms. */
  readonly untilMs: number;
}

/** An answer, with the change that must be made first. */
export interface Decided<T> {
  readonly value: T;
  readonly change?: Change;
}

type Need = { readonly need: readonly Fact[] };
/** A decision, or the facts that it lacks. */
export type Decision<T> = Decided<T> | Need;

/** @throws errors of Pawl, if the write is refused */
export type Decide<T> = (facts: RunFacts) => Decision<T>;

/** The writer. */
export interface Writer {
  readonly claim?: Claim | undefined;
  /** Whether an owner is certainly dead, so that its lease counts as expired. */
  readonly isDead?: ((owner: string) => boolean) | undefined;
  /** Whether the driver keeps when runs are due. */
  readonly keepsDue?: boolean | undefined;
}

/** The fields of a record, or of a delta, that a decision uses: a `StoredBody` has them. */
export interface ToStore {
  readonly runId: string;
  /** Undefined: the record has no count. */
  readonly attempts: number | undefined;
  readonly due?: DueOfRecord | undefined;
}

/**
 * Decides whether a writer may store a whole record, in place of the existing one.
 * @throws {LeaseLostError} @throws {RunOwnedElsewhereError} @throws {CheckpointTooNewError} over a record of a newer version
 */
export function saveRecord(record: ToStore, by: Writer): Decide<void> {
  const { runId, attempts } = record;
  return (facts) => {
    const need = lacking(facts, factsOfWriter(facts, by), factsOfRecord(by));
    if (need) return need;
    const lease = writableLease(runId, facts, by);
    checkReplaceable(runId, readable(facts)?.version);
    return changed({ record: 'put', ...leaseAfter(lease, sound(lease), attempts), ...dueAfter(record, facts, by) });
  };
}

/**
 * Decides whether a writer may append the new part of a record. A revision that is already stored changes nothing.
 * @param delta the new part, and the revision that it follows
 * @throws the errors of `saveRecord` @throws {RevisionGapError} @throws {CheckpointCorruptError} if the run was released as
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
 * @throws {LeaseLostError} @throws {RunOwnedElsewhereError}
 */
export function deleteRun(runId: string, by: Writer): Decide<void> {
  return (facts) => {
    const need = lacking(facts, factsOfWriter(facts, by));
    if (need) return need;
    const lease = writableLease(runId, facts, by);
    return changed({ remove: true, ...(lease ? { raiseEpoch: lease.epoch } : {}) });
  };
}

/** Decides whether a writer may keep the outcome of a run. @throws {LeaseLostError} @throws {RunOwnedElsewhereError} */
export function keepOutcome({ runId, text, untilMs }: OutcomeToKeep & { runId: string }, by: Writer): Decide<void> {
  return (facts) => {
    const need = lacking(facts, factsOfWriter(facts, by), facts.lease === null ? ofKept : none);
    if (need) return need;
    const epoch = writableLease(runId, facts, by)?.epoch ?? facts.keptEpoch ?? 0;
    return changed({ keep: { text, untilMs, epoch } });
  };
}

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
 * Decides whether a command is stored in the inbox of a run. A command that waits already is not added again.
 * @throws {CheckpointMissingError} @throws {UndeliveredError} if its inbox is full
 */
export function sendCommand(command: CommandToSend, { keepsDue }: Pick<Writer, 'keepsDue'> = {}): Decide<void> {
  const { runId, id, kind, text } = command;
  return (facts) => {
    if (facts.damage !== undefined) throw facts.damage;
    const need = lacking(facts, factsOfRecord({ keepsDue }));
    if (need) return need;
    if (facts.record === null) throw refuseMissing(runId);
    const { inbox } = facts;
    if (!inbox) return { need: ofInbox };
    if (inbox.has(id)) return unchanged;
    if (inbox.size >= placesFor(kind)) throw refuseFull(runId);
    if (isInboxFull(inbox.chars, text, kind)) throw refuseLarge(runId, inbox.chars);
    return changed(facts.due ? { send: command, due: 0 } : { send: command });
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

/** Decides the removal of commands from the inbox of a run. @throws {LeaseLostError} */
export function acknowledge(claim: Claim, ids: readonly string[]): Decide<void> {
  return (facts) => {
    const need = lacking(facts, ofLease);
    if (need) return need;
    checkClaim(facts.lease ?? undefined, claim);
    return changed({ forget: ids });
  };
}

/**
 * Makes a decision for a driver that has every fact, or reads each at its first use.
 * @throws {TypeError} if a fact is missing all the same: a defect of the driver
 */
export function decideNow<T>(decide: Decide<T>, facts: RunFacts): Decided<T> {
  const decision = decide(facts);
  if ('need' in decision) throw missingFacts(decision.need);
  return decision;
}

/**
 * Makes a decision for a driver that reads the requested facts, and asks again with them.
 * @param facts the facts that it already has
 * @param read returns the named facts, and may return others
 * @throws {TypeError} if it does not
 */
export async function decideAsking<T>(
  decide: Decide<T>,
  facts: RunFacts,
  read: (need: readonly Fact[]) => Promise<RunFacts>,
): Promise<Decided<T>> {
  for (let known = facts; ; ) {
    const decision = decide(known);
    if (!('need' in decision)) return decision;
    const { need } = decision;
    known = { ...known, ...(await read(need)) };
    const missing = need.filter((fact) => known[fact] === undefined);
    if (missing.length > 0) throw missingFacts(missing);
  }
}

const missingFacts = (names: readonly Fact[]) =>
  new TypeError(`the store's driver does not give the facts that a decision asks for: ${names.join(', ')}`);

const none: readonly Fact[] = [];
const ofLease: readonly Fact[] = ['lease'];
const ofHeld: readonly Fact[] = ['lease', 'expiresAt', 'now'];
const ofRecord: readonly Fact[] = ['record'];
const ofKept: readonly Fact[] = ['keptEpoch'];
const ofCounts: readonly Fact[] = ['keptEpoch', 'attempts'];
const ofInbox: readonly Fact[] = ['inbox'];
const ofRecordAndDue: readonly Fact[] = ['record', 'due'];

const unchanged: Decided<void> = { value: undefined };
const changed = (change: Change): Decided<void> => ({ value: undefined, change });

function lacking(facts: RunFacts, names: readonly Fact[], more: readonly Fact[] = none): Need | undefined {
  if (hasAll(facts, names) && hasAll(facts, more)) return undefined;
  return { need: [...names, ...more].filter((name) => facts[name] === undefined) };
}

function hasAll(facts: RunFacts, names: readonly Fact[]): boolean {
  for (const name of names) if (facts[name] === undefined) return false;
  return true;
}

const factsOfRecord = ({ keepsDue }: Pick<Writer, 'keepsDue'>) => (keepsDue ? ofRecordAndDue : ofRecord);

/** A run with work to do is due as soon as no process owns it. Nearly every write finds it so. */
function dueAfter({ due: said }: ToStore, { due }: RunFacts, { keepsDue }: Writer): Pick<Change, 'due'> {
  if (!keepsDue || said === undefined || said === 'kept') return {};
  const after = said === 'never' ? null : 0;
  return after === due ? {} : { due: after };
}

/** Only a write without a claim needs the expiry of a lease. */
function factsOfWriter({ lease }: RunFacts, { claim }: Writer): readonly Fact[] {
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

/** The run's lease, after the check that this write is allowed. @throws {LeaseLostError} @throws {RunOwnedElsewhereError} */
function writableLease(runId: string, facts: RunFacts, { claim, isDead }: Writer): Ownership | undefined {
  if (claim) return checkClaim(facts.lease ?? undefined, claim);
  checkWrite(timed(facts), { runId, claim, now: facts.now ?? 0, isDead });
  return facts.lease ?? undefined;
}

/** Decisions ask for `expiresAt` only where it matters; elsewhere any time is fine. */
function timed({ lease, expiresAt = Number.NEGATIVE_INFINITY }: RunFacts): Lease | undefined {
  return lease ? { owner: lease.owner, epoch: lease.epoch, attempts: lease.attempts, expiresAt } : undefined;
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
