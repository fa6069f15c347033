// The layers of a drawing: in which each vertex is, in which order, and where long lines bend. Pure.
import { orderLayers, type Span } from './ordering.ts';

/** Something that is placed. Its size is in px. */
export interface Vertex {
  readonly width: number;
  readonly height: number;
  /** `title`: at the left of the first layer. `top`, `bottom`: on the border, where lines enter or leave. */
  readonly kind: 'box' | 'label' | 'title' | 'dot' | 'top' | 'bottom';
  /** Of a label: whether it is as near as possible to what is above it, or below it. */
  readonly near?: 'above' | 'below';
  /** The first layer in which it may be. */
  readonly from?: number;
  /** How much of its width takes lines, from the left; default all. */
  readonly reach?: number;
}

/** A line between two vertices, the upper one first. `at`: where it is on their sides, px from their left; absent = anywhere. */
export interface Line {
  readonly upper: number;
  readonly lower: number;
  readonly upperAt?: number | undefined;
  readonly lowerAt?: number | undefined;
}

/** A part of a line between two layers that follow each other. */
export interface EdgePiece {
  readonly line: number;
  readonly upper: number;
  readonly lower: number;
  /** Where it is, px from the left of its vertices. */
  upperAt: number | undefined;
  lowerAt: number | undefined;
}

/** Vertices in layers. */
export class LayeredGraph {
  /** Also the bends of long lines, which have no width. */
  readonly vertices: (Vertex | undefined)[];
  readonly lines: readonly Line[];
  readonly pieces: EdgePiece[] = [];
  /** The vertices of each layer, from the left. */
  all: number[][] = [];
  #layer: number[] = [];

  constructor(vertices: readonly Vertex[], lines: readonly Line[]) {
    this.vertices = [...vertices];
    this.lines = lines;
    this.#assign();
    this.#addBends();
    this.#order();
  }

  /** The width of a vertex, px. */
  width(vertex: number): number {
    return this.vertices[vertex]?.width ?? 0;
  }

  /** The part of a side that takes lines. */
  reach(vertex: number): number {
    return this.vertices[vertex]?.reach ?? this.width(vertex);
  }

  /** Each vertex is below all that have a line to it. */
  #assign(): void {
    const first = (vertex: Vertex | undefined): number =>
      vertex?.kind === 'box' || vertex?.kind === 'label' ? Math.max(1, vertex.from ?? 1) : 0;
    this.#layer = this.vertices.map(first);
    const ordered = this.#topological();
    for (const vertex of ordered)
      for (const { upper } of this.#into(vertex)) this.#layer[vertex] = Math.max(this.at(vertex), this.at(upper) + 1);
    this.#pullDown(ordered);
    const last = Math.max(0, ...this.#layer.filter((_, index) => this.vertices[index]?.kind !== 'bottom')) + 1;
    for (const [index, vertex] of this.vertices.entries()) if (vertex?.kind === 'bottom') this.#layer[index] = last;
    for (const [index, vertex] of this.vertices.entries()) {
      if (vertex?.near === 'above')
        this.#layer[index] = Math.max(...this.#into(index).map(({ upper }) => this.at(upper))) + 1;
      if (vertex?.near === 'below')
        this.#layer[index] = Math.min(...this.#outOf(index).map(({ lower }) => this.at(lower))) - 1;
    }
  }

  /** What is bound more to what is below it goes down to it. */
  #pullDown(ordered: readonly number[]): void {
    for (const vertex of ordered.toReversed()) {
      const [into, out] = [this.#into(vertex), this.#outOf(vertex)];
      const isBound = out.length > into.length && into.length > 0;
      const room = out
        .filter(({ lower }) => this.vertices[lower]?.kind !== 'bottom')
        .map(({ lower }) => this.at(lower));
      if (isBound && room.length === out.length) this.#layer[vertex] = Math.min(...room) - 1;
    }
  }

  /** The index of the layer of a vertex. */
  at(vertex: number): number {
    return this.#layer[vertex] ?? 0;
  }

  #into(vertex: number): readonly Line[] {
    return this.lines.filter(({ lower }) => lower === vertex);
  }

  #outOf(vertex: number): readonly Line[] {
    return this.lines.filter(({ upper }) => upper === vertex);
  }

  #topological(): readonly number[] {
    const waits = this.vertices.map((_, vertex) => this.#into(vertex).length);
    const ready = [...this.vertices.keys()].filter((vertex) => waits[vertex] === 0);
    for (const vertex of ready)
      for (const { lower } of this.#outOf(vertex)) {
        waits[lower] = (waits[lower] ?? 0) - 1;
        if (waits[lower] === 0) ready.push(lower);
      }
    return ready;
  }

  /** A line over several layers is cut in pieces, with a vertex of no width in each layer between. */
  #addBends(): void {
    for (const [index, { upper, lower, upperAt, lowerAt }] of this.lines.entries()) {
      let from = upper;
      for (let layer = this.at(upper) + 1; layer < this.at(lower); layer += 1) {
        const bend = this.vertices.push(undefined) - 1;
        this.#layer[bend] = layer;
        this.pieces.push({ line: index, upper: from, lower: bend, upperAt: from === upper ? upperAt : 0, lowerAt: 0 });
        from = bend;
      }
      this.pieces.push({ line: index, upper: from, lower, upperAt: from === upper ? upperAt : 0, lowerAt });
    }
  }

  #order(): void {
    const count = Math.max(0, ...this.#layer) + 1;
    this.all = Array.from({ length: count }, () => []);
    const seen = new Set<number>();
    const below = new Map<number, number[]>();
    for (const { upper, lower } of this.pieces) below.set(upper, [...(below.get(upper) ?? []), lower]);
    const visit = (start: number): void => {
      const open = [start];
      for (let vertex = open.pop(); vertex !== undefined; vertex = open.pop()) {
        if (seen.has(vertex)) continue;
        seen.add(vertex);
        this.all[this.at(vertex)]?.push(vertex);
        open.push(...(below.get(vertex) ?? []).toReversed());
      }
    };
    for (const vertex of this.vertices.keys()) if (this.at(vertex) === 0) visit(vertex);
    for (const vertex of this.vertices.keys()) visit(vertex);
    const part = (vertex: number, at: number | undefined) => (at === undefined ? 0.5 : at / (this.width(vertex) || 1));
    const spans = this.pieces.map(
      ({ upper, lower, upperAt, lowerAt }): Span => ({
        ...{ from: upper, fromAt: part(upper, upperAt), to: lower, toAt: part(lower, lowerAt) },
      }),
    );
    const pinned = new Set([...this.vertices.keys()].filter((vertex) => this.vertices[vertex]?.kind === 'title'));
    orderLayers(this.all, spans, pinned);
  }
}
