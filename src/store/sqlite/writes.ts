import type { CommandToSend } from '../commands.ts';
import { refuseMissing } from '../commands.ts';
import type { EncodedHead, EncodedRecord } from '../encoding/encode.ts';
import type { EncryptedDelta, MessageRows } from '../encoding/encryption.ts';
import { checkReplaceable, isNewRevision } from '../encoding/revision.ts';
import { checkClaim, checkWrite, freed, grantLease, isNewest, type Lease, refuseDamaged, sound } from '../lease.ts';
import type { Claim, ReleaseOptions } from '../port.ts';
import type { InboxTable } from './inboxes.ts';
import type { KnownRuns, Stored } from './known.ts';
import type { LeaseTable } from './leases.ts';
import type { OutcomeTable, OutcomeToKeep } from './outcomes.ts';
import type { RecordTable, WholeRecord } from './records.ts';

/** The tables of one open database. */
export interface Tables {
  readonly records: RecordTable;
  readonly leases: LeaseTable;
  readonly outcomes: OutcomeTable;
  readonly inboxes: InboxTable;
  /** What the tables of records and leases remember of what was written. */
  readonly known: KnownRuns;
}

/*
 * The writes, each within a transaction that others may share. All of them check first and write afterwards: one that is
 * refused leaves nothing behind, so that the transaction can go on without it.
 */

/** @returns what `RecordTable.put` returns */
export function saveRecord(
  tables: Tables,
  record: EncodedRecord & MessageRows,
  claim: Claim | undefined,
): number | undefined {
  const lease = writable(tables, record.runId, claim);
  const stored = tables.records.find(record.runId);
  checkReplaceable(record.runId, stored?.version ?? undefined);
  const rest = tables.records.put(record, stored);
  const free = sound(lease);
  if (free && free !== lease) tables.leases.put(record.runId, free);
  countAttempts(tables, record, free);
  return rest;
}

export function appendDelta(tables: Tables, delta: EncryptedDelta, claim: Claim | undefined): void {
  refuseDamaged(tables.leases.find(delta.runId));
  const lease = writable(tables, delta.runId, claim);
  const stored = tables.records.find(delta.runId);
  checkReplaceable(delta.runId, stored?.version ?? undefined);
  const found = isWhole(stored) ? stored : undefined;
  if (!isNewRevision(delta, found && { ...found, messageCount: found.message_count }) || !found) return;
  tables.records.append(delta, found);
  countAttempts(tables, delta, lease);
}

/** @returns what `RecordTable.remove` returns */
export function deleteRun(tables: Tables, runId: string, claim: Claim | undefined): number | undefined {
  const lease = writable(tables, runId, claim);
  const stored = tables.records.find(runId);
  const rest = stored && tables.records.remove(runId, stored);
  tables.inboxes.remove(runId);
  if (!lease) return rest;
  tables.outcomes.raiseEpoch(runId, lease.epoch);
  tables.leases.remove(runId);
  return rest;
}

export function keepOutcome(tables: Tables, kept: OutcomeToKeep, claim: Claim | undefined): void {
  const lease = writable(tables, kept.runId, claim);
  tables.outcomes.put(kept, lease?.epoch ?? tables.outcomes.epoch(kept.runId));
}

export function claimRun(tables: Tables, wish: { runId: string; owner: string; ttlMs: number }): Claim | null {
  const { runId, owner, ttlMs } = wish;
  const found = tables.leases.find(runId);
  const last = found
    ? noneBefore
    : { lastEpoch: tables.outcomes.epoch(runId), lastAttempts: tables.records.attempts(runId) };
  const lease = grantLease(found, { owner, ttlMs, now: tables.leases.now(), ...last });
  if (!lease) return null;
  tables.leases.sweep();
  tables.leases.put(runId, lease);
  return { runId, owner, epoch: lease.epoch, attempts: lease.attempts };
}

const noneBefore = { lastEpoch: 0, lastAttempts: 0 };

export function renewClaim(tables: Tables, claim: Claim, ttlMs: number): Claim {
  const lease = checkClaim(tables.leases.find(claim.runId), claim);
  tables.leases.put(claim.runId, { ...lease, expiresAt: tables.leases.now() + ttlMs });
  return { ...claim, attempts: lease.attempts };
}

export function releaseClaim(tables: Tables, claim: Claim, options?: ReleaseOptions): void {
  const lease = tables.leases.find(claim.runId);
  if (lease && isNewest(lease, claim)) tables.leases.put(claim.runId, freed(lease, options));
}

export function sendCommand(tables: Tables, command: CommandToSend): void {
  if (!tables.records.find(command.runId)) throw refuseMissing(command.runId);
  tables.inboxes.put(command);
}

export function acknowledge(tables: Tables, claim: Claim, ids: readonly string[]): void {
  checkClaim(tables.leases.find(claim.runId), claim);
  tables.inboxes.forget(claim.runId, ids);
}

/** The run's lease, once it is sure that this write may go on. */
function writable(tables: Tables, runId: string, claim: Claim | undefined): Lease | undefined {
  const lease = tables.leases.find(runId);
  checkWrite(lease, { runId, claim, now: tables.leases.now() });
  return lease;
}

/** The lease's count is the true one: `claim` counts before anything of the run is loaded. */
function countAttempts(tables: Tables, { runId, attempts }: EncodedHead, lease: Lease | undefined): void {
  if (lease && attempts !== undefined && attempts !== lease.attempts) tables.leases.put(runId, { ...lease, attempts });
}

function isWhole(stored: Stored | undefined): stored is WholeRecord {
  return stored !== undefined && stored.revision !== null;
}
