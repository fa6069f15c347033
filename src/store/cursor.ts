import type { Cursor } from './port.ts';
import type { ListedHead, ListPage } from './store-driver.ts';

/** Returns a page of the heads of all records, which may be in any order. */
export function pageOf(heads: Iterable<ListedHead>, { after, limit }: ListPage): ListedHead[] {
  const following = [...heads].filter((head) => !after || compareCursors(head, after) > 0);
  return following.sort(compareCursors).slice(0, limit);
}

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
