// The lines between two layers: each bends on a track of its own where it would lie on another one. Pure.

/** A line that leaves the upper layer at `from` and enters the lower one at `to`. */
interface Bend {
  readonly from: number;
  readonly to: number;
}

/** Two lines that run side by side are at least this far apart, px. */
export const APART = 10;

/**
 * Returns the track of each line, 0 for the highest; -1 for a line that is straight.
 */
export function tracksOf(bends: readonly Bend[]): number[] {
  const tracks = bends.map(() => -1);
  const bent = [...bends.keys()].filter((index) => isBent(bends[index] as Bend));
  const higher = new Map<number, Set<number>>(bent.map((index) => [index, new Set()]));
  for (const [at, one] of bent.entries()) {
    for (const other of bent.slice(at + 1)) {
      const [a, b] = [bends[one] as Bend, bends[other] as Bend];
      if (!meet(a, b)) continue;
      const isFirst = cost(a, b) <= cost(b, a);
      higher.get(isFirst ? other : one)?.add(isFirst ? one : other);
    }
  }
  // Each line comes below those that must be higher; where they want that of each other, the one with the fewest wishes begins.
  const open = new Set(bent);
  while (open.size > 0) {
    const waiting = (index: number) => [...(higher.get(index) ?? [])].filter((one) => open.has(one)).length;
    const next = [...open].reduce((best, one) => (waiting(one) < waiting(best) ? one : best));
    open.delete(next);
    const used = bent.filter((one) => !open.has(one) && one !== next && meet(bends[one] as Bend, bends[next] as Bend));
    tracks[next] = used.reduce((lowest, one) => Math.max(lowest, (tracks[one] ?? -1) + 1), 0);
  }
  return tracks;
}

/** Returns whether a line has a corner. */
export function isBent({ from, to }: Bend): boolean {
  return Math.abs(from - to) > 0.5;
}

function meet(a: Bend, b: Bend): boolean {
  const margin = APART - 1;
  return low(a) < high(b) + margin && low(b) < high(a) + margin;
}

const low = ({ from, to }: Bend): number => Math.min(from, to);
const high = ({ from, to }: Bend): number => Math.max(from, to);

/** What it costs if `a` bends above `b`: crossings, and much more if one would lie on the other. */
function cost(a: Bend, b: Bend): number {
  const isOn = Math.abs(a.to - b.from) < APART / 2 ? 100 : 0;
  const crosses = (x: number, line: Bend) => (low(line) < x && x < high(line) ? 1 : 0);
  return isOn + crosses(b.from, a) + crosses(a.to, b);
}
