import type { Due } from '../due.ts';
import type { StoredBody } from '../encoding/stored-body.ts';
import {
  type Change,
  type Decided,
  decideNow,
  type EndedToKeep,
  type InboxFacts,
  type RecordFacts,
  type RunFacts,
} from '../rules/decision.ts';
import type { Lease } from '../rules/lease.ts';
import { noteRow } from '../schedules/note-row.ts';
import type { ScheduleWrite, StoreWrite } from '../store-driver.ts';
import type { DeliveryTable } from './deliveries.ts';
import type { EndedTable } from './ended.ts';
import type { InboxTable } from './inboxes.ts';
import type { JournalTables } from './journals.ts';
import type { KnownRuns, Stored } from './known-runs.ts';
import type { LeaseTable } from './leases.ts';
import type { LimitTable } from './limits/limit-table.ts';
import type { OutcomeTable } from './outcomes.ts';
import type { RecordTable, WholeRecord } from './records.ts';
import type { ScheduleTable } from './schedules/schedule-table.ts';
import type { TakingTables } from './taking.ts';
import type { ThreadTables } from './threads.ts';
import type { TopicTables } from './topics.ts';

/** The tables of one open database. */
export interface Tables {
  readonly records: RecordTable;
  readonly leases: LeaseTable;
  readonly outcomes: OutcomeTable;
  readonly inboxes: InboxTable;
  readonly topics: TopicTables;
  readonly taking: TakingTables;
  readonly ended: EndedTable;
  readonly deliveries: DeliveryTable;
  readonly journals: JournalTables;
  readonly threads: ThreadTables;
  readonly schedules: ScheduleTable;
  readonly limits: LimitTable;
  /** What the tables of records and leases remember of written rows. */
  readonly known: KnownRuns;
}

/** A write that was made. */
export interface Made<T> {
  readonly value: T;
  /** Data was removed. */
  readonly hasRemoved: boolean;
  /** The number of a record whose messages are not all removed yet. */
  readonly rest: number | undefined;
}

/** Makes one write inside a transaction of SQLite that others may share: decides it, and changes the rows. */
export function make<T>(tables: Tables, write: Pick<StoreWrite<T>, 'runId' | 'decide' | 'body'>): Made<T> {
  return makeDecided(tables, decideWrite(tables, write));
}

/** A write that is decided, and not made yet. */
export interface DecidedWrite<T> extends Decided<T> {
  readonly runId: string;
  readonly body: StoredBody | undefined;
  /** The record before the write. */
  readonly facts: Pick<RunFacts, 'record'>;
}

/** Decides one write. Several to different runs may be decided before the first one is made. */
export function decideWrite<T>(
  tables: Tables,
  { runId, decide, body }: Pick<StoreWrite<T>, 'runId' | 'decide' | 'body'>,
): DecidedWrite<T> {
  const facts = new TableFacts(tables, runId);
  return { ...decideNow(decide, facts), runId, body, facts };
}

/** Makes a decided write. */
export function makeDecided<T>(tables: Tables, { value, change, runId, body }: DecidedWrite<T>): Made<T> {
  const rest = change && makeChange(tables, { runId, body, change });
  const hasRemoved = rest !== undefined || (change !== undefined && isRemoval(change));
  return { value, hasRemoved, rest };
}

/** Stores a schedule in SQLite, with the run that begins, inside a transaction that others may share. @returns whether it is noted */
export function writeSchedule(tables: Tables, write: ScheduleWrite): boolean {
  const isKnown = write.run !== undefined && isRunKnown(tables, write.run.runId);
  const { isNoted, isNew, run } = noteRow(write, { stored: tables.schedules.find(write.row.id), isKnown });
  const decided = run && decideWrite(tables, run);
  if (decided) makeDecided(tables, decided);
  if (isNew) tables.schedules.put(write.row);
  return isNoted;
}

function isRunKnown({ records, outcomes }: Tables, runId: string): boolean {
  const isStored = records.find(runId) !== undefined || records.findEnded(runId) !== undefined;
  return isStored || outcomes.epoch(runId) > 0;
}

function isRemoval({ remove, forget, end, erase }: Change): boolean {
  return remove !== undefined || forget !== undefined || end !== undefined || erase !== undefined;
}

interface ToMake {
  readonly runId: string;
  readonly body: StoredBody | undefined;
  readonly change: Change;
}

/**
 * Makes the change that a decision asks for in the tables.
 * @returns the number of a record, if not all of its messages were removed
 */
function makeChange(tables: Tables, { runId, body, change }: ToMake): number | undefined {
  const { keep, raiseEpoch, deliver, delivered, remove, send, forget, due, definition, pausedBy } = change;
  if (keep) tables.outcomes.put(runId, keep);
  if (raiseEpoch !== undefined) tables.outcomes.raiseEpoch(runId, raiseEpoch);
  if (deliver) tables.deliveries.put(runId, deliver);
  if (delivered !== undefined) tables.deliveries.remove(runId, delivered);
  if (send) tables.inboxes.put(send);
  if (forget) tables.inboxes.forget(runId, forget);
  if (remove) return removeRun(tables, runId);
  if (change.erase) return eraseRun(tables, runId);
  if (change.end) endRun(tables, runId, change.end);
  const rest = body && change.record ? storeBody(tables, body, change) : undefined;
  if (change.lease || change.ttlMs !== undefined) own(tables, runId, change);
  if (due !== undefined) tables.records.setDue(runId, due);
  if (definition !== undefined) tables.records.setDefinition(runId, definition);
  if (pausedBy !== undefined) tables.records.setPause(runId, pausedBy);
  return rest;
}

function storeBody({ records, journals }: Tables, body: StoredBody, change: Change): number | undefined {
  const stored = records.find(body.runId);
  let rest: number | undefined;
  if (change.record === 'put') {
    rest = records.put(body, stored, change);
  } else {
    // An appended delta was decided from this record.
    records.append(body, stored as WholeRecord);
  }
  const no = body.journal && records.find(body.runId)?.no;
  if (body.journal && no !== undefined) journals.add(no, body.journal);
  return rest;
}

function removeRun({ records, leases, inboxes, topics }: Tables, runId: string): number | undefined {
  const stored = records.find(runId);
  const rest = stored && records.remove(runId, stored);
  inboxes.remove(runId);
  topics.runGone(runId);
  if (leases.find(runId)) leases.remove(runId);
  return rest;
}

/** The record of an earlier run that ended, and its outcome, go too. */
function eraseRun(tables: Tables, runId: string): number | undefined {
  const { records, outcomes } = tables;
  outcomes.remove(runId);
  const ended = records.findEnded(runId);
  const rest = removeRun(tables, runId);
  return ended === undefined ? rest : records.removeEnded(runId, ended);
}

/** The rows of the record stay as they are. */
function endRun({ records, leases, inboxes, topics, ended }: Tables, runId: string, end: EndedToKeep): void {
  const stored = records.find(runId);
  if (stored) {
    ended.put(runId, stored.no, end);
    records.end(runId, stored);
  }
  inboxes.remove(runId);
  topics.runGone(runId);
  leases.remove(runId);
}

/** Each grant also removes claims that are no longer needed. */
function own({ leases }: Tables, runId: string, { lease, ttlMs }: Change): void {
  const before = leases.find(runId);
  const owned = lease ?? before;
  if (!owned) return;
  if (lease && ttlMs !== undefined) leases.sweep();
  const expiresAt = ttlMs === undefined ? (before?.expiresAt ?? Number.NEGATIVE_INFINITY) : leases.now() + ttlMs;
  leases.put(runId, { ...owned, expiresAt });
}

/** The facts of a run, each read when a decision first uses it: no row changes before the decision is made. */
class TableFacts implements RunFacts {
  readonly #tables: Tables;
  readonly #runId: string;
  #lease: Lease | null | undefined;
  #stored: Stored | null | undefined;
  #attempts: number | undefined;
  #keptEpoch: number | undefined;

  constructor(tables: Tables, runId: string) {
    this.#tables = tables;
    this.#runId = runId;
  }

  get lease(): Lease | null {
    if (this.#lease === undefined) this.#lease = this.#tables.leases.find(this.#runId) ?? null;
    return this.#lease;
  }

  get expiresAt(): number | undefined {
    return this.lease?.expiresAt;
  }

  get now(): number {
    return this.#tables.leases.now();
  }

  get record(): RecordFacts | 'unreadable' | null {
    const stored = this.#row;
    if (!stored) return null;
    if (!isWhole(stored)) return 'unreadable';
    const { version, revision, message_count: messageCount } = stored;
    return { version, revision, messageCount };
  }

  get due(): Due {
    return this.#row ? this.#row.due_at : 0;
  }

  get attempts(): number {
    this.#attempts ??= this.#tables.records.attempts(this.#runId);
    return this.#attempts;
  }

  get keptEpoch(): number {
    this.#keptEpoch ??= this.#tables.outcomes.epoch(this.#runId);
    return this.#keptEpoch;
  }

  get inbox(): InboxFacts {
    return this.#tables.inboxes.facts(this.#runId);
  }

  get #row(): Stored | null {
    if (this.#stored === undefined) this.#stored = this.#tables.records.find(this.#runId) ?? null;
    return this.#stored;
  }
}

function isWhole(stored: Stored): stored is WholeRecord {
  return stored.revision !== null;
}
