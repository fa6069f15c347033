// Boxes in boxes, and the arrows between them: each box is drawn in layers, with its inner boxes as they were drawn before. Pure.
import { layered, type Placed } from './layered.ts';
import type { Line, Vertex } from './layers.ts';

interface Size {
  readonly width: number;
  readonly height: number;
}

/** A box that is to be placed. */
export interface DrawnBox {
  readonly id: string;
  /** What is written at its top. */
  readonly title: Size;
  /** What stands at its right: an arrow to itself. */
  readonly aside?: Size | undefined;
  readonly boxes: readonly DrawnBox[];
  /** The inner box in which it begins. */
  readonly initial?: string | undefined;
}

/** An arrow between two boxes that are not the same, anywhere in the drawing. */
export interface Arrow {
  readonly from: string;
  readonly to: string;
  readonly label?: Size | undefined;
}

interface Place {
  readonly x: number;
  readonly y: number;
}

/** Where boxes, arrows and their labels are, px. */
export interface Drawing extends Size {
  readonly boxes: ReadonlyMap<string, Place & Size>;
  /** By their order: the points, x, y, x, y …, and the left upper corner of the label. */
  readonly arrows: readonly { readonly points: readonly number[]; readonly label?: Place }[];
  /** The marks of the beginning, and the arrows from them. */
  readonly dots: readonly (Place & { readonly points: readonly number[] })[];
}

/** The mark of a beginning, px. */
export const DOT = 10;
const PADDING = 16;
/** Between a box and what stands at its right. */
const ASIDE = 12;
/** Two lines on one side of a box, and a line and the corner. */
const LINE = 12;
/** Boxes that no arrow ties are put in rows of about this width. */
const ROW = 1_300;

/** Places boxes and arrows. @param root the outermost box */
export function nested(root: DrawnBox, arrows: readonly Arrow[]): Drawing {
  return new Nest(root, arrows).drawing();
}

/** A box that was laid out: what is in it has places from its left upper corner. */
interface Laid extends Size {
  readonly inner: ReadonlyMap<string, Place>;
  /** Where arrows cross its border, px from its left. */
  readonly gates: ReadonlyMap<number, number>;
  readonly parts: readonly Part[];
  readonly dot?: (Place & { readonly points: readonly number[] }) | undefined;
}

/** The part of an arrow that is in a box and in none of its inner boxes. */
interface Part {
  readonly arrow: number;
  readonly points: readonly number[];
  readonly label?: Place | undefined;
  /** Its target is further out. */
  readonly isOut: boolean;
}

class Nest {
  readonly #root: DrawnBox;
  readonly #arrows: readonly Arrow[];
  readonly #parents = new Map<string, DrawnBox>();
  readonly #laid = new Map<string, Laid>();
  /** The arrows that run up. */
  readonly #up = new Set<number>();

  constructor(root: DrawnBox, arrows: readonly Arrow[]) {
    this.#root = root;
    this.#arrows = arrows;
    this.#adopt(root);
    this.#direct(root);
    this.#lay(root);
  }

  #adopt(box: DrawnBox): void {
    for (const inner of box.boxes) {
      this.#parents.set(inner.id, box);
      this.#adopt(inner);
    }
  }

  /** The inner box of `box` that has another one in it, or is it. */
  #childWith(box: DrawnBox, id: string): DrawnBox | undefined {
    let found: DrawnBox | undefined;
    for (let at: string | undefined = id; at !== undefined; at = this.#parents.get(at)?.id) {
      if (at === box.id) return found;
      found = this.#parents.get(at)?.boxes.find((each) => each.id === at);
    }
    return undefined;
  }

  /** The arrows between two inner boxes of a box. */
  #ties(box: DrawnBox): readonly Tie[] {
    return this.#arrows.flatMap(({ from, to }, arrow) => {
      const [source, target] = [this.#childWith(box, from), this.#childWith(box, to)];
      return source && target && source !== target ? [{ arrow, from: source.id, to: target.id }] : [];
    });
  }

  /** From the beginning on arrows run down; one that leads back runs up. */
  #direct(box: DrawnBox): void {
    const out = new Map<string, Tie[]>();
    for (const tie of this.#ties(box)) out.set(tie.from, [...(out.get(tie.from) ?? []), tie]);
    const onWay = new Set<string>();
    const seen = new Set<string>();
    const visit = (id: string): void => {
      seen.add(id);
      onWay.add(id);
      for (const { to, arrow } of out.get(id) ?? [])
        if (onWay.has(to)) this.#up.add(arrow);
        else if (!seen.has(to)) visit(to);
      onWay.delete(id);
    };
    for (const id of [box.initial, ...box.boxes.map((inner) => inner.id)])
      if (id !== undefined && !seen.has(id)) visit(id);
    for (const inner of box.boxes) this.#direct(inner);
  }

  #lay(box: DrawnBox): Laid {
    for (const inner of box.boxes) this.#lay(inner);
    const laid = box.boxes.length === 0 ? this.#leaf(box) : this.#compound(box);
    this.#laid.set(box.id, laid);
    return laid;
  }

  #leaf({ id, title, aside }: DrawnBox): Laid {
    const width = Math.max(title.width, this.#widthOfLines(id));
    return { width, height: Math.max(title.height, aside?.height ?? 0), inner: new Map(), gates: new Map(), parts: [] };
  }

  /** What the lines on the fuller side of a box need. */
  #widthOfLines(id: string): number {
    const sides = [0, 0];
    for (const [arrow, { from, to }] of this.#arrows.entries()) {
      if (from !== id && to !== id) continue;
      const side = (from === id) === this.#up.has(arrow) ? 0 : 1;
      sides[side] = (sides[side] ?? 0) + 1;
    }
    return LINE * (Math.max(...sides) + 2);
  }

  #compound(box: DrawnBox): Laid {
    const level = new Level(box, {
      laid: this.#laid,
      rows: rowsOf(box, { ties: this.#ties(box), up: this.#up, laid: this.#laid }),
    });
    for (const [arrow, { from, to, label }] of this.#arrows.entries()) {
      const [source, target] = [this.#childWith(box, from), this.#childWith(box, to)];
      if (source === target) continue;
      const isOwn = from === box.id || to === box.id;
      level.add({ arrow, source, target, label, from, to, isUp: !isOwn && this.#up.has(arrow) });
    }
    return level.laid(this.#widthOfLines(box.id));
  }

  drawing(): Drawing {
    const boxes = new Map<string, Place & Size>();
    const parts = new Map<number, Part[]>();
    const dots: Drawing['dots'][number][] = [];
    const walk = (box: DrawnBox, { x, y }: Place): void => {
      const { inner, width, height, parts: own, dot } = this.#laid.get(box.id) as Laid;
      boxes.set(box.id, { x, y, width, height });
      const moved = (points: readonly number[]) => points.map((value, at) => value + (at % 2 === 0 ? x : y));
      if (dot) dots.push({ x: dot.x + x, y: dot.y + y, points: moved(dot.points) });
      for (const { points, label, ...part } of own) {
        const known = parts.get(part.arrow) ?? [];
        parts.set(part.arrow, known);
        known.push({ ...part, points: moved(points), label: label && { x: label.x + x, y: label.y + y } });
      }
      for (const each of box.boxes) {
        const place = inner.get(each.id) as Place;
        walk(each, { x: x + place.x, y: y + place.y });
      }
    };
    walk(this.#root, { x: 0, y: 0 });
    const arrows = this.#arrows.map((_, arrow) => joined(parts.get(arrow) ?? []));
    const { width, height } = this.#laid.get(this.#root.id) as Laid;
    return { width, height, boxes, arrows, dots };
  }
}

/** An arrow between two inner boxes of one box. */
interface Tie {
  readonly arrow: number;
  readonly from: string;
  readonly to: string;
}

/** Joins the parts of an arrow, which come from the outer boxes to the inner ones: out of its source, then into its target. */
function joined(parts: readonly Part[]): Drawing['arrows'][number] {
  const ordered = [...parts.filter(({ isOut }) => isOut).toReversed(), ...parts.filter(({ isOut }) => !isOut)];
  const points = ordered.flatMap((part, at) => part.points.slice(at === 0 ? 0 : 2));
  const label = parts.find((part) => part.label)?.label;
  return { points, ...(label ? { label } : {}) };
}

interface RowFacts {
  readonly ties: readonly Tie[];
  readonly up: ReadonlySet<number>;
  readonly laid: ReadonlyMap<string, Laid>;
}

/** The first layer of each inner box: groups that no arrow ties are put in rows, where one row would be too wide. */
function rowsOf({ boxes }: DrawnBox, { ties, up, laid }: RowFacts): ReadonlyMap<string, number> {
  const group = new Map(boxes.map(({ id }) => [id, id]));
  for (const { from, to } of ties) {
    const [one, other] = [group.get(from) as string, group.get(to) as string];
    for (const [id, its] of group) if (its === other) group.set(id, one);
  }
  const depth = new Map(boxes.map(({ id }) => [id, 1]));
  const down = ties.map((tie) => (up.has(tie.arrow) ? { from: tie.to, to: tie.from } : tie));
  for (let round = 0; round < boxes.length; round += 1)
    for (const { from, to } of down) depth.set(to, Math.max(depth.get(to) ?? 1, (depth.get(from) ?? 1) + 2));
  const first = new Map<string, number>();
  let [row, below, filled] = [1, 1, 0];
  for (const id of new Set(group.values())) {
    const members = boxes.filter((box) => group.get(box.id) === id);
    const width = Math.max(...members.map((member) => laid.get(member.id)?.width ?? 0));
    if (filled > 0 && filled + width > ROW) [row, filled] = [below, 0];
    filled += width;
    for (const member of members) {
      first.set(member.id, row);
      below = Math.max(below, row + (depth.get(member.id) ?? 1));
    }
  }
  return first;
}

/** An arrow as the box sees it through which it runs: an end that is not in it is on its border. */
interface Passing {
  readonly arrow: number;
  readonly source: DrawnBox | undefined;
  readonly target: DrawnBox | undefined;
  readonly from: string;
  readonly to: string;
  readonly label: Size | undefined;
  readonly isUp: boolean;
}

/** The same with its vertices: the lines from above to below, its label, and where it crosses the border. */
interface Passed {
  readonly of: Passing;
  readonly lines: readonly number[];
  readonly label?: number;
  readonly gate?: number;
}

/** One box and what is directly in it. */
class Level {
  readonly #box: DrawnBox;
  readonly #known: { readonly laid: ReadonlyMap<string, Laid>; readonly rows: ReadonlyMap<string, number> };
  readonly #vertices: Vertex[];
  readonly #lines: Line[] = [];
  readonly #places = new Map<string, number>();
  readonly #passing: Passed[] = [];
  readonly #dot: number | undefined;

  constructor(
    box: DrawnBox,
    known: { readonly laid: ReadonlyMap<string, Laid>; readonly rows: ReadonlyMap<string, number> },
  ) {
    this.#box = box;
    this.#known = known;
    this.#vertices = [{ ...box.title, kind: 'title' }];
    for (const inner of box.boxes) {
      const { width, height } = known.laid.get(inner.id) as Laid;
      const { aside } = inner;
      const vertex = {
        width: width + (aside ? ASIDE + aside.width : 0),
        ...{ height, reach: width, kind: 'box' as const, from: known.rows.get(inner.id) ?? 1 },
      };
      this.#places.set(inner.id, this.#vertices.push(vertex) - 1);
    }
    const begin = box.initial === undefined ? undefined : this.#places.get(box.initial);
    if (begin === undefined) return;
    this.#dot = this.#vertices.push({ width: DOT, height: DOT, kind: 'dot' }) - 1;
    this.#lines.push({ upper: this.#dot, lower: begin, upperAt: DOT / 2 });
  }

  /** Adds an arrow, or the part of it that is in this box. */
  add(of: Passing): void {
    const { arrow, source, target, from, to, isUp, label: size } = of;
    const gate = source && target ? undefined : this.#addGate(source ? !isUp : isUp);
    const hasLabel = size && (source?.id === from || from === this.#box.id);
    const near = isUp ? ('below' as const) : ('above' as const);
    const label = hasLabel ? this.#vertices.push({ ...size, kind: 'label', near }) - 1 : undefined;
    const end = (box: DrawnBox | undefined, id: string) => {
      if (!box) return { vertex: gate as number, at: 0 };
      return { vertex: this.#places.get(box.id) as number, at: box.id === id ? undefined : this.#gateOf(box, arrow) };
    };
    const ends = [
      end(source, from),
      ...(label === undefined ? [] : [{ vertex: label, at: undefined }]),
      end(target, to),
    ];
    const down = isUp ? ends.toReversed() : ends;
    const lines = down.slice(1).map((lower, index) => {
      const upper = down[index] as typeof lower;
      return this.#lines.push({ upper: upper.vertex, lower: lower.vertex, upperAt: upper.at, lowerAt: lower.at }) - 1;
    });
    this.#passing.push({
      of,
      lines,
      ...(label === undefined ? {} : { label }),
      ...(gate === undefined ? {} : { gate }),
    });
  }

  #addGate(isBelow: boolean): number {
    return this.#vertices.push({ width: 0, height: 0, kind: isBelow ? 'bottom' : 'top' }) - 1;
  }

  #gateOf({ id }: DrawnBox, arrow: number): number {
    return this.#known.laid.get(id)?.gates.get(arrow) ?? 0;
  }

  laid(least: number): Laid {
    const placed = layered(this.#vertices, this.#lines, PADDING);
    const inner = new Map([...this.#places].map(([id, vertex]) => [id, placed.places[vertex] as Place]));
    const gates = new Map(
      this.#passing.flatMap(({ of, gate }) =>
        gate === undefined ? [] : [[of.arrow, placed.places[gate]?.x ?? 0] as const],
      ),
    );
    const dot = this.#dot === undefined ? undefined : placed.places[this.#dot];
    return {
      width: Math.max(placed.width, least),
      height: placed.height,
      ...{ inner, gates },
      parts: this.#passing.map((passing) => this.#part(passing, placed)),
      ...(dot ? { dot: { ...dot, points: placed.routes[0] ?? [] } } : {}),
    };
  }

  #part({ of, lines, label }: Passed, { routes, places }: Placed): Part {
    const down = lines.map((line) => routes[line] ?? []);
    const points = down.flatMap((route, at) => {
      // Behind its label a line changes its place.
      const before = at === 0 ? undefined : down[at - 1];
      if (!before) return route;
      const [x = 0, y = 0] = before.slice(-2);
      const middle = (y + (route[1] ?? 0)) / 2;
      return x === route[0] ? route : [x, middle, route[0] ?? 0, middle, ...route];
    });
    const place = label === undefined ? undefined : places[label];
    const isOut = of.target === undefined;
    return { arrow: of.arrow, points: of.isUp ? reversed(points) : points, label: place, isOut };
  }
}

function reversed(points: readonly number[]): readonly number[] {
  return points.flatMap((_, at) =>
    at % 2 === 0 ? [points[points.length - 2 - at] ?? 0, points[points.length - 1 - at] ?? 0] : [],
  );
}
