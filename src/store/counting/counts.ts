import { isResting } from '../due.ts';
import { damageOf, isHeld } from '../rules/lease.ts';
import type { ListedHead } from '../store-driver.ts';
import type { RunCounts } from './port.ts';

/** Under which kind a run is counted whose wait the store does not know. */
export const OTHER_KIND = 'other';

/** A run to count. */
export interface CountedHead extends ListedHead {
  /** As `change.pausedBy` had it; absent = unknown. */
  readonly pausedBy?: string | undefined;
  /** When its oldest waiting command was sent, wall clock, ms. */
  readonly sentAt?: number | undefined;
}

/** Counts runs of which each is read. @param now wall clock, ms */
export function countAmong(heads: Iterable<CountedHead>, now: number): RunCounts {
  let [live, due, parked, dueSince] = [0, 0, 0, Number.POSITIVE_INFINITY];
  const waiting: { [kind: string]: number } = {};
  for (const head of heads) {
    if (head.error !== undefined || damageOf(head.lease)) continue;
    const { pausedBy = OTHER_KIND } = head;
    if (isResting(head.due, now)) waiting[pausedBy] = (waiting[pausedBy] ?? 0) + 1;
    else if (isHeld(head.lease, head.now)) live += 1;
    else if (head.due === null) parked += pausedBy === 'parked' ? 1 : 0;
    else if ((head.due ?? 0) <= now) {
      due += 1;
      dueSince = Math.min(dueSince, Math.min(now, sinceOf(head, now)));
    }
  }
  return { now, live, due, ...(due > 0 ? { dueSince } : {}), waiting, parked };
}

/** A run whose process died has been due since its lease ended, and one that a command woke since that was sent. */
function sinceOf({ due, updatedAt, sentAt = 0, lease, now: leaseNow }: CountedHead, now: number): number {
  const expiredAt = lease?.owner ? now - (leaseNow - lease.expiresAt) : 0;
  return Math.max(due ?? 0, updatedAt, sentAt, expiredAt);
}
