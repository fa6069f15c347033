import { orAbsent } from '../../files/errors.ts';
import type { FileSystem } from '../../files/file-system.ts';
import { withFile } from '../../files/file-system.ts';
import { decodeLine, encodeLine, readLineAt } from '../../files/lines.ts';
import type { LeaseClock } from '../lease-clock.ts';
import type { Lease } from '../rules/lease.ts';
import type { StoredLease } from './journal/lines.ts';

/*
 * A journal names the owner of a run and its epoch, so each write sees them. A renewal changes neither. It is a small separate
 * file, overwritten in place, which only processes that want the run read. If it is lost, the lease ends earlier than
 * necessary, and its owner sees that by the epoch.
 */

/** Converts a lease in a file to the present clock. A lease of an earlier boot has expired. */
export function toLiveLease(lease: StoredLease | undefined, clock: LeaseClock): Lease | undefined {
  if (!lease) return undefined;
  const { boot, ...rest } = lease;
  return { ...rest, expiresAt: boot === clock.boot ? lease.expiresAt : Number.NEGATIVE_INFINITY };
}

/** Reads the last renewal of a lease, which has a file of its own. */
export async function renewed(files: FileSystem, path: string, lease: StoredLease): Promise<StoredLease> {
  const bytes = await orAbsent(withFile(files.open(path, 'read'), (file) => readLineAt(file, 0, 256)));
  const [epoch, expiresAt, boot] = (bytes && decodeLine(bytes)?.fields) ?? [];
  const isOfThisOne = Number(epoch) === lease.epoch && boot === JSON.stringify(lease.boot);
  return isOfThisOne ? { ...lease, expiresAt: Number(expiresAt) } : lease;
}

/** Writes the last renewal of a lease into its file. */
export async function writeRenewal(files: FileSystem, path: string, lease: StoredLease): Promise<void> {
  const line = encodeLine('renewal', [lease.epoch, lease.expiresAt, JSON.stringify(lease.boot)]);
  const file = (await orAbsent(files.open(path, 'update'))) ?? (await files.open(path, 'create'));
  try {
    // The rest of a longer line after this one is never read.
    await file.write(line, 0);
  } finally {
    await file.close();
  }
}
