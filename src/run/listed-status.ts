/** What a list says of a run. */
export type ListedStatus = 'live' | 'interrupted' | 'parked' | 'quarantined';

/** The status of a stored run in a list: a readable one that has an owner is live, because owners are listed of live claims only. */
export function listedStatus(entry: {
  readonly status?: 'interrupted' | 'parked' | 'quarantined';
  readonly owner?: string;
}): ListedStatus {
  if (entry.status !== 'quarantined' && entry.owner !== undefined) return 'live';
  return entry.status ?? 'interrupted';
}
