import { isResting, ON_COMMAND } from './due.ts';
import type { ListDueOptions } from './due-port.ts';
import type { EndedCursor } from './history-port.ts';
import type { Cursor } from './port.ts';
import { damageOf, type IsDead, isHeld } from './rules/lease.ts';
import type { DueHeads, EndedHead, EndedPage, ListedHead, ListPage } from './store-driver.ts';

/**
 * Returns a page of the heads of all records, which may be in any order.
 * @param now wall clock, ms: tells the runs that rest from the others, if the driver keeps when runs are due
 */
export function pageOf(
  heads: Iterable<ListedHead>,
  { after, limit, resting, callers }: ListPage,
  now?: number,
): ListedHead[] {
  const isListed = ({ due, caller = null }: ListedHead) =>
    (now === undefined || resting === undefined || isResting(due, now) === resting) &&
    (!callers || caller === null || callers.includes(caller));
  const following = [...heads].filter((head) => isListed(head) && (!after || compareCursors(head, after) > 0));
  return following.sort(compareCursors).slice(0, limit);
}

/** Returns whether no live owner holds a run, and no owner found its record damaged. @param now the lease clock, ms */
export function isFree({ lease, now }: Pick<ListedHead, 'lease' | 'now'>, isDead?: IsDead): boolean {
  return damageOf(lease) === undefined && !isHeld(lease, now, isDead);
}

/** Returns a page of the due runs among the heads of all records, for drivers without an index. @param now wall clock, ms */
export function dueAmong(heads: Iterable<ListedHead>, { limit, after }: ListDueOptions, now: number): DueHeads {
  const found: ListedHead[] = [];
  let nextAt = ON_COMMAND;
  for (const head of heads) {
    const { due = 0, error } = head;
    if (due === null || error !== undefined) continue;
    if (due > now) nextAt = Math.min(nextAt, due);
    else if (isFree(head)) found.push(head);
  }
  const from = after && { updatedAt: after.dueAt, runId: after.runId };
  const following = from ? found.filter((head) => compareCursors(byDue(head), from) > 0) : found;
  const page = following.sort((a, b) => compareCursors(byDue(a), byDue(b))).slice(0, limit);
  return { now, heads: page, ...(nextAt < ON_COMMAND ? { nextAt } : {}) };
}

/** The kept record of a run that ended, with the texts by which its agent and its caller are found. */
export type FoundEnded = EndedHead & { readonly agent: string | null; readonly caller: string | null };

/** Returns a page of the runs that ended, among all of them in any order, for drivers without an index. */
export function endedPageOf(runs: readonly FoundEnded[], { after, limit, agents, callers }: EndedPage): EndedHead[] {
  const isOf = (ids: readonly string[] | undefined, id: string | null) => !ids || id === null || ids.includes(id);
  const isWanted = ({ agent, caller, ...at }: FoundEnded) =>
    isOf(agents, agent) && isOf(callers, caller) && (!after || compareEnds(at, after) > 0);
  const following = runs.filter(isWanted).sort(compareEnds).slice(0, limit);
  return following.map(({ runId, endedAt, text, error }) => ({ runId, endedAt, text, error }));
}

/** The newest end comes first; equal ends are in the order of their ids. */
export function compareEnds(a: EndedCursor, b: EndedCursor): number {
  return b.endedAt - a.endedAt || compareBytes(a.runId, b.runId);
}

const byDue = ({ due, runId }: ListedHead): Cursor => ({ updatedAt: due ?? 0, runId });

/**
 * Compares the cursors of two listed runs, by the order of a list: by time, then by id in the order of its UTF-8 bytes, as
 * databases sort.
 */
export function compareCursors(a: Cursor, b: Cursor): number {
  return a.updatedAt - b.updatedAt || compareBytes(a.runId, b.runId);
}

/** Many runs may have the same time, so this must not allocate buffers. */
function compareBytes(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    if (a.charCodeAt(i) !== b.charCodeAt(i)) return rank(a.charCodeAt(i)) - rank(b.charCodeAt(i));
  }
  return a.length - b.length;
}

/** Surrogate halves encode characters that sort after all others. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit;
}
