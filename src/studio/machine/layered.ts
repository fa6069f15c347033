// A drawing in layers: every line goes from a layer to a lower one. Pure.
import { APART, isBent, tracksOf } from './channel.ts';
import { type EdgePiece, LayeredGraph, type Line, type Vertex } from './layers.ts';
import { spread, type WishedPlace } from './spread.ts';

/** Where all is. Positions are those of the left upper corner, px. */
export interface Placed {
  readonly places: readonly { readonly x: number; readonly y: number }[];
  /** The points of each line, from above to below: x, y, x, y … */
  readonly routes: readonly (readonly number[])[];
  readonly width: number;
  readonly height: number;
}

const GAP = { box: 26, label: 12, line: 14 } as const;
const CHANNEL = { straight: 18, above: 10, below: 14 } as const;
const SWEEPS = 24;
/** A line keeps this distance from the corner of a box. */
const CORNER = 12;

/**
 * Places vertices in layers, so that lines run down and nothing lies on anything else.
 * @param padding px around everything but the first layer
 */
export function layered(vertices: readonly Vertex[], lines: readonly Line[], padding: number): Placed {
  const placing = new Placing(new LayeredGraph(vertices, lines));
  placing.assignX(padding);
  placing.attach();
  return placing.assignY(padding);
}

class Placing {
  readonly #of: LayeredGraph;
  #x: number[] = [];

  constructor(of: LayeredGraph) {
    this.#of = of;
  }

  /** The distance of the left sides of two neighbours. */
  #gap(left: number, right: number): number {
    const kinds = [left, right].map((vertex) => this.#of.vertices[vertex]?.kind);
    const isBoxed = kinds.every((kind) => kind === 'box');
    const isLine = kinds.some((kind) => kind === undefined || kind === 'top' || kind === 'bottom');
    return this.#of.width(left) + (isBoxed ? GAP.box : isLine ? GAP.line : GAP.label);
  }

  assignX(padding: number): void {
    this.#x = this.#of.vertices.map(() => 0);
    for (const layer of this.#of.all) this.#settle(layer, () => []);
    const [above, below] = [this.#tiesBy('lower'), this.#tiesBy('upper')];
    for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
      const isDown = sweep % 2 === 0;
      const isLast = sweep >= SWEEPS - 6;
      for (const layer of isDown ? this.#of.all : this.#of.all.toReversed())
        this.#settle(layer, (vertex) => [
          ...(isDown || isLast ? (above.get(vertex) ?? []) : []),
          ...(isDown && !isLast ? [] : (below.get(vertex) ?? [])),
        ]);
    }
    this.#straighten();
    this.#moveLabels();
    const left = Math.min(...this.#x);
    for (const vertex of this.#x.keys()) this.#x[vertex] = Math.round((this.#x[vertex] ?? 0) - left + padding);
    const title = this.#of.vertices.findIndex((vertex) => vertex?.kind === 'title');
    if (title >= 0) this.#x[title] = padding;
  }

  /** A label comes under the side of its box, where the line would have a corner otherwise. */
  #moveLabels(): void {
    for (const [vertex, label] of this.#of.vertices.entries()) {
      if (label?.kind !== 'label') continue;
      const layer = this.#of.all[this.#of.at(vertex)] ?? [];
      const at = layer.indexOf(vertex);
      const [left, right] = [layer[at - 1], layer[at + 1]];
      const low = left === undefined ? Number.NEGATIVE_INFINITY : this.#edge(left) + this.#gap(left, vertex);
      const high = right === undefined ? Number.POSITIVE_INFINITY : this.#edge(right) - this.#gap(vertex, right);
      for (const piece of this.#of.pieces) {
        const box = piece.lower === vertex ? piece.upper : piece.upper === vertex ? piece.lower : undefined;
        if (box === undefined || this.#of.vertices[box]?.kind !== 'box') continue;
        const fixed = piece.lower === vertex ? piece.upperAt : piece.lowerAt;
        const [from, to] = fixed === undefined ? [CORNER, this.#of.reach(box) - CORNER] : [fixed, fixed];
        const x = this.#edge(vertex);
        const wished = Math.min(
          this.#edge(box) + to - CORNER,
          Math.max(x, this.#edge(box) + from + CORNER - label.width),
        );
        this.#x[vertex] = Math.min(high, Math.max(low, wished));
      }
    }
  }

  /** The left side of a vertex. */
  #edge(vertex: number): number {
    return this.#x[vertex] ?? 0;
  }

  #tiesBy(
    side: 'upper' | 'lower',
  ): ReadonlyMap<number, readonly WishedPlace[]> & { get(vertex: number): readonly WishedPlace[] | undefined } {
    const other = side === 'upper' ? 'lower' : 'upper';
    const pieces = new Map<number, EdgePiece[]>();
    for (const piece of this.#of.pieces) pieces.set(piece[side], [...(pieces.get(piece[side]) ?? []), piece]);
    const wishes = (vertex: number): readonly WishedPlace[] | undefined =>
      pieces.get(vertex)?.map((piece) => {
        const own = (side === 'upper' ? piece.upperAt : piece.lowerAt) ?? this.#of.reach(vertex) / 2;
        const its = (side === 'upper' ? piece.lowerAt : piece.upperAt) ?? this.#of.reach(piece[other]) / 2;
        return { at: (this.#x[piece[other]] ?? 0) + its - own, weight: this.#tightness(piece) };
      });
    return { get: wishes } as never;
  }

  /** Long lines are straight before all else; then a label is where its arrow begins. */
  #tightness({ upper, lower }: EdgePiece): number {
    const bends = [upper, lower].filter((vertex) => this.#of.vertices[vertex] === undefined).length;
    const isBeginning = this.#of.vertices[lower]?.near === 'above' || this.#of.vertices[upper]?.near === 'below';
    return bends === 2 ? 8 : isBeginning ? 3 : bends === 1 ? 2 : 1;
  }

  /** Puts the vertices of a layer where their ties want them. */
  #settle(layer: readonly number[], tiesOf: (vertex: number) => readonly WishedPlace[]): void {
    const wishes = layer.map((vertex): WishedPlace => {
      const ties = tiesOf(vertex);
      const weight = ties.reduce((sum, tie) => sum + tie.weight, 0);
      if (weight === 0) return { at: this.#edge(vertex), weight: 0.01 };
      return { at: ties.reduce((sum, tie) => sum + tie.at * tie.weight, 0) / weight, weight };
    });
    const gaps = layer.map((vertex, at) => (at === 0 ? 0 : this.#gap(layer[at - 1] as number, vertex)));
    for (const [at, x] of spread(wishes, gaps).entries()) this.#x[layer[at] as number] = x;
  }

  /** The bends of one line are one below the other, where the vertices beside them leave the room. */
  #straighten(): void {
    const bends = new Map<number, number[]>();
    for (const { line, lower } of this.#of.pieces)
      if (this.#of.vertices[lower] === undefined) bends.set(line, [...(bends.get(line) ?? []), lower]);
    for (const chain of bends.values()) {
      let [low, high] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
      for (const vertex of chain) {
        const layer = this.#of.all[this.#of.at(vertex)] ?? [];
        const at = layer.indexOf(vertex);
        const [left, right] = [layer[at - 1], layer[at + 1]];
        if (left !== undefined) low = Math.max(low, (this.#x[left] ?? 0) + this.#gap(left, vertex));
        if (right !== undefined) high = Math.min(high, (this.#x[right] ?? 0) - this.#gap(vertex, right));
      }
      if (low > high) continue;
      const middle = chain.reduce((sum, vertex) => sum + (this.#x[vertex] ?? 0), 0) / chain.length;
      for (const vertex of chain) this.#x[vertex] = Math.min(high, Math.max(low, middle));
    }
  }

  /** Lines that may be anywhere on a side are there where they run straight. Boxes come first: a label gives way. */
  attach(): void {
    const isLabel = (vertex: number) => this.#of.vertices[vertex]?.kind === 'label';
    const all = [...this.#of.vertices.keys()].filter((vertex) => this.#of.vertices[vertex] !== undefined);
    for (const vertex of [...all.filter((one) => !isLabel(one)), ...all.filter(isLabel)]) {
      this.#attachSide(vertex, 'upper');
      this.#attachSide(vertex, 'lower');
    }
  }

  #attachSide(vertex: number, side: 'upper' | 'lower'): void {
    const [own, its] = side === 'upper' ? (['upperAt', 'lowerAt'] as const) : (['lowerAt', 'upperAt'] as const);
    const other = side === 'upper' ? 'lower' : 'upper';
    const pieces = this.#of.pieces.filter((piece) => piece[side] === vertex);
    if (pieces.every((piece) => piece[own] !== undefined)) return;
    const width = this.#of.reach(vertex);
    const corner = Math.min(CORNER, width / 2);
    const wished = pieces.map((piece) => {
      const far =
        (this.#x[piece[other]] ?? 0) + (piece[its] ?? this.#of.reach(piece[other]) / 2) - (this.#x[vertex] ?? 0);
      const fixed = piece[own];
      const at = fixed ?? Math.min(width - corner, Math.max(corner, far));
      return { piece, far, at, weight: fixed === undefined ? 1 : 1_000_000 };
    });
    wished.sort((a, b) => a.at - b.at || a.far - b.far);
    const step = Math.min(APART + 2, (width - 2 * corner) / Math.max(1, pieces.length - 1));
    const found = spread(
      wished,
      wished.map(() => step),
    );
    const most = width - corner;
    for (const [at, { piece }] of wished.entries()) {
      // What was pushed over a corner comes back, and leaves room for those beside it.
      const left = Math.max(found[at] ?? 0, corner + at * step);
      piece[own] ??= Math.min(left, most - (wished.length - 1 - at) * step);
    }
  }

  assignY(padding: number): Placed {
    const channels = this.#of.all.map((_, index) => this.#channelBelow(index));
    const heights = this.#of.all.map((layer) =>
      Math.max(0, ...layer.map((vertex) => this.#of.vertices[vertex]?.height ?? 0)),
    );
    const tops: number[] = [];
    let y = 0;
    for (const [index, height] of heights.entries()) {
      tops.push(y);
      y += height + (index < heights.length - 1 ? (channels[index]?.height ?? 0) : 0);
    }
    const isOnBorder = this.#of.all.at(-1)?.some((vertex) => this.#of.vertices[vertex]?.kind === 'bottom');
    const bottom = isOnBorder ? y : y + padding;
    const yOf = (vertex: number): number => {
      const { height = 0, near, kind } = this.#of.vertices[vertex] ?? {};
      const [layer, top] = [this.#of.at(vertex), tops[this.#of.at(vertex)] ?? 0];
      const room = (heights[layer] ?? 0) - height;
      return kind === 'dot' ? top + room / 2 : near === 'below' ? top + room : top;
    };
    const own = [...this.#of.vertices.keys()].filter((vertex) => this.#of.vertices[vertex] !== undefined);
    const right = Math.max(...[...this.#x.keys()].map((vertex) => (this.#x[vertex] ?? 0) + this.#of.width(vertex)));
    return {
      places: own.map((vertex) => ({ x: this.#x[vertex] ?? 0, y: yOf(vertex) })),
      routes: this.#routes({ yOf, tops, heights, channels }),
      width: right + padding,
      height: bottom,
    };
  }

  #channelBelow(layer: number): Channel {
    const pieces = this.#of.pieces.filter(({ upper }) => this.#of.at(upper) === layer);
    const bends = pieces.map((piece) => this.#ends(piece));
    const tracks = tracksOf(bends);
    const count = Math.max(-1, ...tracks) + 1;
    const height = count === 0 ? CHANNEL.straight : CHANNEL.above + CHANNEL.below + (count - 1) * APART;
    return { height, track: new Map(pieces.map((piece, index) => [piece, tracks[index] ?? -1])) };
  }

  #ends({ upper, lower, upperAt = 0, lowerAt = 0 }: EdgePiece): { readonly from: number; readonly to: number } {
    return { from: (this.#x[upper] ?? 0) + upperAt, to: (this.#x[lower] ?? 0) + lowerAt };
  }

  #routes({ yOf, tops, heights, channels }: Bands): readonly (readonly number[])[] {
    const routes: number[][] = this.#of.lines.map(() => []);
    for (const piece of this.#of.pieces) {
      const { line, upper, lower } = piece;
      const { from, to } = this.#ends(piece);
      const layer = this.#of.at(upper);
      const begin = yOf(upper) + (this.#of.vertices[upper]?.height ?? 0);
      const route = routes[line] as number[];
      if (route.length === 0) route.push(from, begin);
      if (isBent({ from, to })) {
        const track = channels[layer]?.track.get(piece) ?? 0;
        const y = (tops[layer] ?? 0) + (heights[layer] ?? 0) + CHANNEL.above + track * APART;
        route.push(from, y, to, y);
      }
      if (this.#of.vertices[lower] !== undefined) route.push(to, yOf(lower));
    }
    return routes;
  }
}

interface Channel {
  readonly height: number;
  readonly track: ReadonlyMap<EdgePiece, number>;
}

interface Bands {
  yOf(vertex: number): number;
  readonly tops: readonly number[];
  readonly heights: readonly number[];
  readonly channels: readonly Channel[];
}
