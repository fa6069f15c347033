import { hasCode } from '../../values/error-data.ts';
import { compareCursors, isFree } from '../cursor.ts';
import { isTimeToTake, ON_COMMAND } from '../due.ts';
import type { Claim } from '../port.ts';
import { type IsDead, isOfNewer } from '../rules/lease.ts';
import type { ListedHead, StoreDriver, TakeDue, TakenHead, TakenHeads } from '../store-driver.ts';

/** Returns whether a wish may get a run, as far as that is known without its texts. */
export function isWished(head: ListedHead, { agents, fullKeys, deployment }: TakeDue, isDead?: IsDead): boolean {
  const { agent = '', fair = '', lease, error } = head;
  if (error !== undefined || isOfNewer(lease, deployment) || fullKeys.includes(fair)) return false;
  return (!agents || agent === '' || agents.includes(agent)) && isFree(head, isDead);
}

/**
 * Yields due runs in the order in which they are taken: the k-th run of each fair key before the (k+1)-th of any. Keys follow each
 * other by their bytes, from the one after `after` on, and around; within a key runs do by their time.
 * @param after absent = from any key on
 */
export function* inTurns(heads: readonly ListedHead[], after: string | undefined): Generator<ListedHead> {
  const byKey = new Map<string, ListedHead[]>();
  for (const head of heads) {
    const { fair = '' } = head;
    const same = byKey.get(fair);
    if (same) same.push(head);
    else byKey.set(fair, [head]);
  }
  const lines = [...byKey].sort(([a], [b]) => compareCursors(at(0, a), at(0, b)));
  for (const [, line] of lines) line.sort((a, b) => compareCursors(at(a.due, a.runId), at(b.due, b.runId)));
  const next = lines.findIndex(([key]) => after !== undefined && compareCursors(at(0, key), at(0, after)) > 0);
  const first = after === undefined ? Math.floor(Math.random() * lines.length) : Math.max(next, 0);
  const turns = [...lines.slice(first), ...lines.slice(0, first)].map(([, line]) => line);
  for (let k = 0, left = turns; left.length > 0; k++, left = left.filter((line) => line.length > k)) {
    for (const line of left) yield line[k] as ListedHead;
  }
}

const at = (time: number | null | undefined, runId: string) => ({ updatedAt: time ?? 0, runId });

/** What `takeAmong` needs of a driver. */
export interface Taking {
  /** Wall clock, ms. */
  readonly now: number;
  readonly driver: Pick<StoreDriver, 'write'>;
  readonly isDead?: IsDead | undefined;
}

/**
 * Takes due runs among the heads of all records, for drivers without an index: each claim is a write of its own, and a run that
 * another process took meanwhile is passed over.
 */
export async function takeAmong(
  heads: Iterable<ListedHead>,
  take: TakeDue,
  { now, driver, isDead }: Taking,
): Promise<TakenHeads> {
  const found: ListedHead[] = [];
  let nextAt = ON_COMMAND;
  for (const head of heads) {
    const { due = 0 } = head;
    const isParked = due === null && mayNeed(head, take);
    if (isParked && isWished(head, take, isDead)) found.push(head);
    if (due === null || due >= ON_COMMAND || take.runIds?.has(head.runId) === false) continue;
    if (!isTimeToTake(due, now, take.runIds !== undefined)) nextAt = Math.min(nextAt, due);
    else if (isWished(head, take, isDead)) found.push(head);
  }
  const taken: TakenHead[] = [];
  for (const head of inTurns(found, take.after)) {
    if (!take.isTakeable(head)) continue;
    if (taken.length >= take.limit) return { now, taken, nextAt: now };
    const claim = await tryToClaim(head, { take, now, driver, taken });
    if (claim === 'failed') return { now, taken, nextAt: now };
    if (claim) taken.push({ head, claim });
  }
  return { now, taken, ...(nextAt < ON_COMMAND ? { nextAt } : {}) };
}

/** Whether a run that is never due may be parked for a definition of the wish: only its texts say so. */
function mayNeed({ runId, definition }: ListedHead, { definitions = [], runIds }: TakeDue): boolean {
  if (definitions.length === 0 || runIds?.has(runId) === false) return false;
  return definition === undefined || definitions.includes(definition);
}

/** A failure must not lose the claims that are made already: no process would work on their runs. */
async function tryToClaim(
  head: ListedHead,
  { take, now, driver, taken }: Taking & { readonly take: TakeDue; readonly taken: readonly TakenHead[] },
): Promise<Claim | null | 'failed'> {
  const { runId } = head;
  try {
    const decide = take.decide(runId, now, head.due === null);
    return await driver.write({ kind: 'claim', runId, decide, size: 0, hasClaim: false });
  } catch (error) {
    if (isOfThisRun(error)) return null;
    if (taken.length > 0) return 'failed';
    throw error;
  }
}

/** Returns whether an error of a claim is about its run, and not about the store: other runs can be taken. */
export function isOfThisRun(error: unknown): boolean {
  return ['NEWER_DEPLOYMENT', 'CHECKPOINT_CORRUPT', 'CHECKPOINT_TOO_NEW', 'KEY_MISMATCH'].some((code) =>
    hasCode(error, code),
  );
}
