import type { DueOfRecord } from '../../record/interrupted.ts';
import type { TotalsRow } from '../../record/totals.ts';
import type { CommandToSend } from '../commands.ts';
import type { Due } from '../due.ts';
import type { Filed } from '../encoding/filed.ts';
import type { Claim } from '../port.ts';
import type { Ownership } from './lease.ts';

/*
 * The rules of every store, written once. Each write is a pure decision: from the facts of one run it
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
  /** `unreadable`: there is a record, but its revision cannot be read. The record of a run that ended is none. */
  readonly record?: RecordFacts | 'unreadable' | null | undefined;
  /** The attempts in the record; 0 without a record. */
  readonly attempts?: number | undefined;
  /** The highest epoch in a kept outcome, and in the kept record of a run that ended; 0 without either. */
  readonly keptEpoch?: number | undefined;
  readonly inbox?: InboxFacts | undefined;
  /** When the run is due; 0 without a record. Only drivers with `due` have it. */
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
  /** The highest `seq` of the waiting commands; 0 if there are none. Only drivers with `due` have it. */
  readonly newest?: number | undefined;
  /** Whether a command of this id waits. */
  has(id: string): boolean;
}

/** The change of a run: all of it, or nothing. Absent fields stay unchanged. */
export interface Change {
  /** Stores the body of the write: `put` replaces the record, `append` adds to it. */
  readonly record?: 'put' | 'append';
  /** A record that is put replaces that of the same run, which had ended: the journal stays. */
  readonly keepsJournal?: true;
  /** Removes the record, the lease, and the waiting commands. The record of an earlier run that ended stays. */
  readonly remove?: true;
  /**
   * Marks the record as that of a run that ended: from now on only `history` finds it, and a record that is put
   * replaces it. Removes the lease, the waiting commands and the waits. Only drivers with `history` get it.
   */
  readonly end?: EndedToKeep;
  /** Removes all that is stored of the run, also the record of one that ended, and its outcome. */
  readonly erase?: true;
  /** Owner, epoch and attempts from now on. Only `ttlMs` changes when the lease expires. */
  readonly lease?: Ownership;
  /** From now on the lease is valid for this time, by the store's clock. */
  readonly ttlMs?: number;
  readonly keep?: OutcomeToKeep & { readonly epoch: number };
  /** A kept outcome remembers at least this epoch. */
  readonly raiseEpoch?: number;
  /** Marks an end as undelivered. Only drivers with `deliveries` get it. */
  readonly deliver?: EndToDeliver | undefined;
  /** Removes the mark of the end with this id. */
  readonly delivered?: string;
  /** Adds a command after the waiting ones. */
  readonly send?: CommandToSend;
  /** Removes the waiting commands with these ids. */
  readonly forget?: readonly string[];
  /** When the run is due from now on. A record that replaces none is due at 0, unless this says otherwise. */
  readonly due?: Due;
  /** The definition by which a run that is never due is found: see `TakeDue.definitions`. Empty = none. */
  readonly definition?: string;
  /** Why the run is not due, as `pauseOf` says it. It stays as it is while the run works, and then means nothing. */
  readonly pausedBy?: string;
  /** Under what the run is found: only with `record: 'put'`. */
  readonly filed?: Filed;
}

export interface OutcomeToKeep {
  /** As it is stored. */
  readonly text: string;
  /** Wall clock, ms. */
  readonly untilMs: number;
}

/**
 * The mark of an end that no process has delivered. It outlives the kept outcome, which a later end of the run replaces and `erase`
 * removes: then `text` is what is left to deliver.
 */
export interface EndToDeliver {
  /** The id of the outcome. A mark with the id of another one replaces it. */
  readonly id: string;
  /** Under this its agent is searched; empty = it cannot be searched. */
  readonly agent: string;
  /** The end without its contents, as it is stored. */
  readonly text: string;
  /** Until when it is kept, wall clock, ms. */
  readonly untilMs: number;
}

/** What is kept of a run that ends, besides its record. */
export interface EndedToKeep {
  /** The entry of `history.list`, as it is stored. */
  readonly text: string;
  /** Under these its agent and its caller are searched; null = they cannot be searched. */
  readonly agent: string | null;
  readonly caller: string | null;
  /** Wall clock, ms. */
  readonly keepUntil: number;
  readonly epoch: number;
  /** What the run adds to the totals of its day. Only drivers with `totals` get it. */
  readonly totals?: TotalsRow | undefined;
}

/** An answer, with the change that must be made first. */
export interface Decided<T> {
  readonly value: T;
  readonly change?: Change;
}

/** The facts that a decision lacks. */
export type Need = { readonly need: readonly Fact[] };
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
  /** Of a record that is parked: the definition by which it is found, as it is stored; empty = none. */
  readonly definition?: string | undefined;
  /** Why the run of the record is not due. */
  readonly pausedBy?: string | undefined;
  /** Of a whole record. */
  readonly filed?: Filed | undefined;
  /** Of a whole record: its run had ended, and continues. */
  readonly reopens?: boolean | undefined;
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

/** Facts that decisions ask for together. */
export const none: readonly Fact[] = [];
export const ofLease: readonly Fact[] = ['lease'];
export const ofHeld: readonly Fact[] = ['lease', 'expiresAt', 'now'];
export const ofRecord: readonly Fact[] = ['record'];
export const ofKept: readonly Fact[] = ['keptEpoch'];
export const ofCounts: readonly Fact[] = ['keptEpoch', 'attempts'];
export const ofInbox: readonly Fact[] = ['inbox'];
export const ofRecordAndDue: readonly Fact[] = ['record', 'due'];

/** The decision that changes nothing. */
export const unchanged: Decided<void> = { value: undefined };
/** Returns the decision for a change without an answer. */
export const changed = (change: Change): Decided<void> => ({ value: undefined, change });

/** Returns the need of the facts that a decision lacks; undefined if it has all. */
export function lacking(facts: RunFacts, names: readonly Fact[], more: readonly Fact[] = none): Need | undefined {
  if (hasAll(facts, names) && hasAll(facts, more)) return undefined;
  return { need: [...names, ...more].filter((name) => facts[name] === undefined) };
}

function hasAll(facts: RunFacts, names: readonly Fact[]): boolean {
  for (const name of names) if (facts[name] === undefined) return false;
  return true;
}

/** Returns the facts that a change of a record needs. */
export const factsOfRecord = ({ keepsDue }: Pick<Writer, 'keepsDue'>) => (keepsDue ? ofRecordAndDue : ofRecord);
