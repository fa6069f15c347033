import { withFile } from '../../files/atomic-write.ts';
import { orAbsent } from '../../files/errors.ts';
import type { FileSystem } from '../../files/file-system.ts';
import { decodeLine, encodeLine, readLineAt } from '../../files/lines.ts';
import type { Lease } from '../lease.ts';
import type { LeaseClock } from '../lease-clock.ts';
import type { StoredLease } from './journal/lines.ts';

/*
 * Who holds a run, and with which epoch, stands in its journal, where each write sees it. A renewal changes neither: it is
 * a small file of its own, written over in place, that only those look at who want the run for themselves. Should it be
 * lost, the lease ends earlier than it could have, and its owner learns that from the epoch.
 */

/** A lease as of the clock of today. One of an earlier boot has run out. */
export function toLiveLease(lease: StoredLease | undefined, clock: LeaseClock): Lease | undefined {
  if (!lease) return undefined;
  const { boot, ...rest } = lease;
  return { ...rest, expiresAt: boot === clock.boot ? lease.expiresAt : Number.NEGATIVE_INFINITY };
}

/** A lease with its last renewal. */
export async function renewed(files: FileSystem, path: string, lease: StoredLease): Promise<StoredLease> {
  const bytes = await orAbsent(withFile(files.open(path, 'read'), (file) => readLineAt(file, 0, 256)));
  const [epoch, expiresAt, boot] = (bytes && decodeLine(bytes)?.fields) ?? [];
  const isOfThisOne = Number(epoch) === lease.epoch && boot === JSON.stringify(lease.boot);
  return isOfThisOne ? { ...lease, expiresAt: Number(expiresAt) } : lease;
}

export async function writeRenewal(files: FileSystem, path: string, lease: StoredLease): Promise<void> {
  const line = encodeLine('renewal', [lease.epoch, lease.expiresAt, JSON.stringify(lease.boot)]);
  const file = (await orAbsent(files.open(path, 'update'))) ?? (await files.open(path, 'create'));
  try {
    // What a longer line leaves behind this one is never read.
    await file.write(line, 0);
  } finally {
    await file.close();
  }
}
