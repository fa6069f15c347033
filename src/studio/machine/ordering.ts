// The order of what stands side by side in a layered drawing: as few lines as possible cross. Pure.

/** A line from a place of one layer to a place of the next one. `at` of both: where on the width it is, 0 to 1. */
export interface Span {
  readonly from: number;
  readonly fromAt: number;
  readonly to: number;
  readonly toAt: number;
}

/** How often the layers are looked at. */
const SWEEPS = 12;
/** Swaps of neighbours cost more the more lines there are: from here on they are left out. */
const MANY_LINES = 400;

/**
 * Orders the layers of a drawing: `layers` is changed in place.
 * @param layers the vertices of each layer
 * @param spans the lines between two layers that follow each other
 * @param pinned vertices that stay first in their layer
 */
export function orderLayers(layers: number[][], spans: readonly Span[], pinned: ReadonlySet<number>): void {
  const above = grouped(spans, ({ to }) => to);
  const below = grouped(spans, ({ from }) => from);
  const lines = { layers, above, below, pinned };
  let best = layers.map((layer) => [...layer]);
  let fewest = crossings(lines);
  for (let sweep = 0; sweep < SWEEPS && fewest > 0; sweep += 1) {
    const isDown = sweep % 2 === 0;
    for (let step = 1; step < layers.length; step += 1)
      sortLayer(lines, isDown ? step : layers.length - 1 - step, isDown);
    if (spans.length < MANY_LINES) swapNeighbours(lines);
    const now = crossings(lines);
    if (now >= fewest) continue;
    fewest = now;
    best = layers.map((layer) => [...layer]);
  }
  for (const [index, layer] of best.entries()) layers[index] = layer;
}

interface Lines {
  readonly layers: number[][];
  readonly above: ReadonlyMap<number, readonly Span[]>;
  readonly below: ReadonlyMap<number, readonly Span[]>;
  readonly pinned: ReadonlySet<number>;
}

function grouped(spans: readonly Span[], keyOf: (span: Span) => number): ReadonlyMap<number, readonly Span[]> {
  const groups = new Map<number, Span[]>();
  for (const span of spans) {
    const known = groups.get(keyOf(span));
    if (known) known.push(span);
    else groups.set(keyOf(span), [span]);
  }
  return groups;
}

/** Sorts a layer by the middle of what each vertex is tied to; a vertex without ties stays where it is. */
function sortLayer({ layers, above, below, pinned }: Lines, index: number, isDown: boolean): void {
  const layer = layers[index] ?? [];
  const place = placesIn(layers[index + (isDown ? -1 : 1)] ?? []);
  const middle = (vertex: number, own: number): number => {
    if (pinned.has(vertex)) return -1;
    const ties = (isDown ? above : below).get(vertex) ?? [];
    if (ties.length === 0) return own;
    const sum = ties.reduce((total, tie) => {
      const [other, at] = isDown ? [tie.from, tie.fromAt] : [tie.to, tie.toAt];
      return total + (place.get(other) ?? 0) + at;
    }, 0);
    return sum / ties.length;
  };
  const sorted = layer.map((vertex, own) => ({ vertex, own, by: middle(vertex, own) }));
  sorted.sort((a, b) => a.by - b.by || a.own - b.own);
  layers[index] = sorted.map(({ vertex }) => vertex);
}

function placesIn(layer: readonly number[]): ReadonlyMap<number, number> {
  return new Map(layer.map((vertex, place) => [vertex, place]));
}

/** Swaps two neighbours wherever that takes a crossing away. */
function swapNeighbours(lines: Lines): void {
  for (const [index, layer] of lines.layers.entries()) {
    const [before, after] = [placesIn(lines.layers[index - 1] ?? []), placesIn(lines.layers[index + 1] ?? [])];
    for (let at = 0; at + 1 < layer.length; at += 1) {
      const [left, right] = [layer[at] as number, layer[at + 1] as number];
      if (lines.pinned.has(left)) continue;
      const sides = (one: number, other: number) =>
        crossed(lines.above.get(one), lines.above.get(other), ({ from, fromAt }) => (before.get(from) ?? 0) + fromAt) +
        crossed(lines.below.get(one), lines.below.get(other), ({ to, toAt }) => (after.get(to) ?? 0) + toAt);
      if (sides(right, left) >= sides(left, right)) continue;
      layer[at] = right;
      layer[at + 1] = left;
    }
  }
}

/** How many lines of a left vertex cross those of the one on its right. */
function crossed(left: readonly Span[] = [], right: readonly Span[] = [], placeOf: (span: Span) => number): number {
  let count = 0;
  for (const one of left) for (const other of right) if (placeOf(one) > placeOf(other)) count += 1;
  return count;
}

function crossings({ layers, below }: Lines): number {
  let count = 0;
  for (const [index, layer] of layers.entries()) {
    const place = placesIn(layers[index + 1] ?? []);
    const ends = layer.flatMap((vertex) => {
      const own = (below.get(vertex) ?? []).map(({ fromAt, to, toAt }) => ({
        fromAt,
        end: (place.get(to) ?? 0) + toAt,
      }));
      // Lines from anywhere on a side do not cross there.
      return own.sort((a, b) => a.fromAt - b.fromAt || a.end - b.end).map(({ end }) => end);
    });
    for (const [at, end] of ends.entries()) for (const other of ends.slice(at + 1)) if (end > other) count += 1;
  }
  return count;
}
