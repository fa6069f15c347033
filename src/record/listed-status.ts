import type { ListedStatus } from '../run/result.ts';

/**
 * Returns the status of a stored run in a list: live, interrupted, waiting, parked or quarantined. A readable one with an owner is live,
 * because lists name owners of live claims only.
 * @param asker the owner that asks: its own claims say nothing
 */
export function listedStatus(
  entry: { readonly status?: Exclude<ListedStatus, 'live'>; readonly owner?: string },
  asker?: string,
): ListedStatus {
  const { status = 'interrupted', owner } = entry;
  if (status === 'quarantined') return status;
  return owner !== undefined && owner !== asker ? 'live' : status;
}
