import { isInboxFull, placesFor } from '../../run/command.ts';
import type { CommandToSend } from '../commands.ts';
import { refuseFull, refuseLarge, refuseMissing } from '../commands.ts';
import type { Pieces } from '../encoding/blob-refs.ts';
import type { EncodedDelta, EncodedHead, EncodedRecord } from '../encoding/encode.ts';
import type { MessageRows } from '../encoding/encryption.ts';
import { checkReplaceable, isNewRevision } from '../encoding/revision.ts';
import { checkClaim, checkWrite, freed, grantLease, isNewest, type Lease, refuseDamaged, sound } from '../lease.ts';
import type { Claim, ReleaseOptions } from '../port.ts';
import type { KeptOutcome } from './outcomes.ts';
import type { RunSession } from './session.ts';

/*
 * The writes to a run, in a group with others. All of them check first and change afterwards: one that is refused leaves
 * nothing behind, so that the group can go on without it.
 */

export async function saveRecord(
  session: RunSession,
  record: EncodedRecord & Pieces & MessageRows,
  claim: Claim | undefined,
): Promise<void> {
  const lease = await writable(session, claim);
  checkReplaceable(session.runId, session.record?.version);
  session.putRecord(record);
  const free = sound(lease);
  if (free && free !== lease) session.putLease(free, true);
  countAttempts(session, record, free);
}

export async function appendDelta(
  session: RunSession,
  delta: EncodedDelta & Pieces & MessageRows,
  claim: Claim | undefined,
): Promise<void> {
  refuseDamaged(session.lease);
  const lease = claim ? checkClaim(session.lease, claim) : await writable(session, claim);
  checkReplaceable(session.runId, session.record?.version);
  if (!isNewRevision(delta, session.record)) return;
  session.addDelta(delta);
  countAttempts(session, delta, lease);
}

export async function deleteRun(session: RunSession, claim: Claim | undefined): Promise<void> {
  const lease = await writable(session, claim);
  const kept = lease && (await session.keptOutcome());
  session.remove();
  if (kept) raiseEpoch(session, kept, lease);
}

export async function keepOutcome(
  session: RunSession,
  { text, untilMs }: { readonly text: string; readonly untilMs: number },
  claim: Claim | undefined,
): Promise<void> {
  const lease = await writable(session, claim);
  const epoch = lease?.epoch ?? (await session.keptOutcome())?.epoch ?? 0;
  session.putOutcome({ runId: session.runId, text, untilMs, epoch });
}

/** @throws {CheckpointCorruptError} nobody can own what cannot be read */
export async function claimRun(
  session: RunSession,
  { owner, ttlMs }: { readonly owner: string; readonly ttlMs: number },
): Promise<Claim | null> {
  if (session.damage !== undefined) throw session.damage;
  const found = await session.renewedLease();
  const lease = grantLease(found, {
    owner,
    ttlMs,
    now: session.now(),
    ...(found ? noneBefore : await countsOf(session)),
  });
  if (!lease) return null;
  session.putLease(lease, session.record !== undefined);
  return { runId: session.runId, owner, epoch: lease.epoch, attempts: lease.attempts };
}

const noneBefore = { lastEpoch: 0, lastAttempts: 0 };

/** Where epoch and attempts go on when a run has no lease yet. */
async function countsOf(session: RunSession): Promise<typeof noneBefore> {
  return { lastEpoch: (await session.keptOutcome())?.epoch ?? 0, lastAttempts: await session.attempts() };
}

export function renewClaim(session: RunSession, claim: Claim, ttlMs: number): Claim {
  const lease = checkClaim(session.lease, claim);
  session.renewLease({ ...lease, expiresAt: session.now() + ttlMs });
  return { ...claim, attempts: lease.attempts };
}

/** Where a kept outcome remembers the epoch, nothing else is to be kept of a run that has no record. */
export async function releaseClaim(session: RunSession, claim: Claim, options?: ReleaseOptions): Promise<void> {
  const { lease, damage } = session;
  if (!lease || !isNewest(lease, claim) || damage !== undefined) return;
  const kept = session.record ? undefined : await session.keptOutcome();
  if (!kept) return session.putLease(freed(lease, options), false);
  session.remove();
  raiseEpoch(session, kept, lease);
}

/** @throws {CheckpointMissingError} @throws {UndeliveredError} @throws {CheckpointCorruptError} */
export async function sendCommand(session: RunSession, command: CommandToSend): Promise<void> {
  if (session.damage !== undefined) throw session.damage;
  refuseDamaged(session.lease);
  if (!session.record) throw refuseMissing(session.runId);
  const mail = await session.mail();
  if (mail.has(command.id)) return;
  if (mail.size >= placesFor(command.kind)) throw refuseFull(session.runId);
  const chars = [...mail.values()].reduce((sum, { text }) => sum + text.length, 0);
  if (isInboxFull(chars, command.text, command.kind)) throw refuseLarge(session.runId, chars);
  session.putMail(new Map([...mail, [command.id, command]]));
}

export async function acknowledge(session: RunSession, claim: Claim, ids: readonly string[]): Promise<void> {
  checkClaim(session.lease, claim);
  const mail = await session.mail();
  const left = [...mail].filter(([id]) => !ids.includes(id));
  if (left.length < mail.size) session.putMail(new Map(left));
}

function raiseEpoch(session: RunSession, kept: KeptOutcome, { epoch }: Lease): void {
  if (kept.epoch < epoch) session.putOutcome({ ...kept, epoch });
}

/** The run's lease, once it is sure that this write may go on. Only a write without a claim asks until when it holds. */
async function writable(session: RunSession, claim: Claim | undefined): Promise<Lease | undefined> {
  const lease = claim ? session.lease : await session.renewedLease();
  checkWrite(lease, { runId: session.runId, claim, now: session.now() });
  return lease;
}

/** The lease's count is the true one: `claim` counts before anything of the run is loaded. */
function countAttempts(session: RunSession, { attempts }: EncodedHead, lease: Lease | undefined): void {
  if (lease && attempts !== undefined && attempts !== lease.attempts) session.putLease({ ...lease, attempts }, true);
}
