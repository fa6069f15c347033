// The chart of a run's machine, placed by hand. A test holds it against `runMachine()`: a state or an edge more or less is red.

/** A state. Its rectangle is `width` x 24 around x, y. */
export interface Node {
  readonly id: string;
  /** What is written in it. */
  readonly label: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly isFinal: boolean;
}

/** A transition: x, y of its start, its corners and its end. */
export interface Edge {
  /** `from>to` */
  readonly id: string;
  readonly points: readonly number[];
  /** Taken every day. */
  readonly isMain: boolean;
}

/** The loop of an agent, or of a phase: only the open one shows its states. */
export interface Box {
  readonly id: string;
  readonly y: number;
  readonly height: number;
  readonly isOpen: boolean;
}

export interface Layout {
  readonly nodes: readonly Node[];
  readonly edges: readonly Edge[];
  readonly boxes: readonly Box[];
  readonly width: number;
  readonly height: number;
}

/** What it looks like and where it stands: s = spine of the loop, m = between, f = way out; a number is a width. */
type Place = readonly [name: string, x: number, y: number, kind: 's' | 'm' | 'f' | number];
type Line = readonly [edge: string, points: readonly number[], isMain?: 1];

export const boxLeft = 14;
export const boxWidth = 390;
export const nodeHeight = 24;
const widths = { s: 104, m: 108, f: 78 };
const OPEN = 270;
const CLOSED = 26;
const GAP = 8;

/** Where a restart continues. */
const resuming = new Set(['entering', 'calling-tools', 'waiting', 'between-phases']);

const loopNodes: readonly Place[] = [
  ['entering', 116, 44, 's'],
  ['calling-model', 116, 90, 's'],
  ['landing', 116, 136, 's'],
  ['calling-tools', 116, 184, 's'],
  ['waiting', 116, 234, 's'],
  ['asking-critic', 246, 44, 'm'],
  ['checking-output', 246, 136, 'm'],
  ['judging-calls', 246, 184, 'm'],
  ['exhausted', 356, 44, 'f'],
  ['failed', 356, 98, 'f'],
  ['answered', 356, 136, 'f'],
  ['left', 356, 234, 'f'],
];

const loopEdges: readonly Line[] = [
  ['entering>calling-model', [116, 56, 116, 78], 1],
  ['calling-model>landing', [116, 102, 116, 124], 1],
  ['landing>calling-tools', [116, 148, 116, 172], 1],
  ['calling-tools>entering', [64, 184, 34, 184, 34, 44, 64, 44], 1],
  ['calling-tools>waiting', [104, 196, 104, 222], 1],
  ['waiting>calling-tools', [128, 222, 128, 196], 1],
  ['landing>answered', [150, 148, 150, 158, 356, 158, 356, 148], 1],
  ['landing>checking-output', [168, 136, 192, 136]],
  ['landing>judging-calls', [150, 148, 150, 158, 246, 158, 246, 172]],
  ['judging-calls>calling-tools', [192, 188, 168, 188]],
  ['checking-output>answered', [300, 136, 317, 136]],
  ['checking-output>failed', [284, 124, 284, 116, 356, 116, 356, 110]],
  ['checking-output>entering', [206, 124, 206, 68, 152, 68, 152, 56]],
  ['calling-model>failed', [168, 98, 317, 98]],
  ['calling-model>left', [168, 90, 308, 90, 308, 208, 356, 208, 356, 222]],
  ['calling-model>waiting', [168, 94, 174, 94, 174, 228, 168, 228]],
  ['entering>calling-tools', [64, 50, 50, 50, 50, 178, 64, 178]],
  ['entering>waiting', [64, 50, 50, 50, 50, 228, 64, 228]],
  ['entering>left', [64, 38, 20, 38, 20, 256, 356, 256, 356, 246]],
  ['entering>asking-critic', [168, 44, 192, 44]],
  ['entering>exhausted', [140, 32, 140, 22, 356, 22, 356, 32]],
  ['entering>checking-output', [162, 56, 162, 62, 258, 62, 258, 124]],
  ['entering>judging-calls', [162, 56, 162, 62, 182, 62, 182, 179, 192, 179]],
  ['asking-critic>exhausted', [300, 44, 317, 44]],
  ['asking-critic>calling-model', [232, 56, 232, 84, 168, 84]],
  ['asking-critic>left', [286, 56, 286, 90, 308, 90, 308, 208, 356, 208, 356, 222]],
  ['calling-tools>left', [168, 194, 188, 194, 188, 208, 356, 208, 356, 222]],
  ['waiting>entering', [64, 240, 34, 240, 34, 44, 64, 44]],
  ['waiting>calling-model', [64, 234, 42, 234, 42, 90, 64, 90]],
  ['waiting>left', [168, 234, 317, 234]],
];

/** The loop that ends the run is over: what follows, from `y` on. */
function endOf(y: number): { readonly nodes: readonly Place[]; readonly edges: readonly Line[] } {
  const [below, last] = [y + 42, y + 84];
  return {
    nodes: [
      ['ending', 208, y, 70],
      ['completing', 74, below, 88],
      ['leaving-running', 208, below, 114],
      ['failing', 342, below, 70],
      ['settled', 208, last, 'f'],
    ],
    edges: [
      ['ending>completing', [173, y, 74, y, 74, below - 12], 1],
      ['ending>leaving-running', [208, y + 12, 208, below - 12]],
      ['ending>failing', [243, y + 4, 342, y + 4, 342, below - 12]],
      ['completing>settled', [74, below + 12, 74, last, 169, last], 1],
      ['leaving-running>settled', [208, below + 12, 208, last - 12]],
      ['failing>settled', [342, below + 12, 342, last, 247, last]],
      ['resolved>ending', [207, 18, 412, 18, 412, y - 6, 243, y - 6]],
      ['resolved>settled', [207, 10, 420, 10, 420, last + 6, 247, last + 6]],
    ],
  };
}

/** The ways between the phases and their `between-phases`: left there and back, right to the end. */
function linesOf(id: string, y: number, end: number): readonly Line[] {
  return [
    [`between-phases>${id}`, [109, 50, 8, 50, 8, y + 11, boxLeft, y + 11], 1],
    [`${id}>between-phases`, [boxLeft, y + 19, 2, y + 19, 2, 58, 109, 58], 1],
    [`${id}>ending`, [404, y + 13, 408, y + 13, 408, end, 243, end]],
  ];
}

/** Most phases that are drawn: an event of a hostile store may name any. */
const MAX_PHASES = 200;

/** Returns the ids of the loops of a run: `running`, or one for each phase. */
export function stagesOf(phases: number): readonly string[] {
  return phases === 0
    ? ['running']
    : Array.from({ length: Math.min(phases, MAX_PHASES) }, (_, index) => `phase(${index})`);
}

/**
 * Returns where everything stands.
 * @param phases how many the agent has; 0 = it is one loop
 * @param open the index of the loop whose states are shown
 */
export function layoutOf(phases: number, open: number): Layout {
  const stages = stagesOf(phases);
  const top = phases === 0 ? 42 : 80;
  const boxes: Box[] = [];
  let y = top;
  for (const [index, id] of stages.entries()) {
    const height = index === open ? OPEN : CLOSED;
    boxes.push({ id, y, height, isOpen: index === open });
    y += height + GAP;
  }
  const end = y + 22;
  const after = endOf(end);
  const nodes: Place[] = [['resolving', 58, 14, 78], ['resolved', 168, 14, 78], ...after.nodes];
  const edges: Line[] = [['resolving>resolved', [97, 14, 129, 14], 1], ...after.edges];
  if (phases === 0) {
    edges.push(['resolved>running', [168, 26, 168, top], 1], ['running>ending', [208, y - GAP, 208, end - 12], 1]);
  } else {
    nodes.push(['between-phases', 168, 54, 118]);
    edges.push(['resolved>between-phases', [168, 26, 168, 42], 1]);
    edges.push(['between-phases>ending', [227, 54, 408, 54, 408, end, 243, end], 1]);
    for (const box of boxes) edges.push(...linesOf(box.id, box.y, end));
  }
  const loops = boxes.filter((box) => box.isOpen);
  return {
    nodes: [
      ...nodes.map((place) => nodeOf(place)),
      ...loops.flatMap((box) => loopNodes.map((place) => nodeOf(place, box))),
    ],
    edges: [
      ...edges.map((line) => edgeOf(line)),
      ...loops.flatMap((box) => loopEdges.map((line) => edgeOf(line, box))),
    ],
    boxes,
    width: 424,
    height: end + 100,
  };
}

function nodeOf([name, x, y, kind]: Place, box?: Box): Node {
  return {
    id: box ? `${box.id}.${name}` : name,
    label: resuming.has(name) ? `${name} ↺` : name,
    x,
    y: y + (box?.y ?? 0),
    width: typeof kind === 'number' ? kind : widths[kind],
    isFinal: kind === 'f',
  };
}

function edgeOf([name, points, isMain]: Line, box?: Box): Edge {
  return {
    id: box ? inside(box.id, name) : name,
    points: box ? points.map((value, at) => (at % 2 === 1 ? value + box.y : value)) : points,
    isMain: isMain === 1,
  };
}

/** Returns the id of an edge of a loop in its stage: `running.entering>running.waiting`. */
function inside(stage: string, edge: string): string {
  return edge
    .split('>')
    .map((name) => `${stage}.${name}`)
    .join('>');
}

/** The edges of a loop, by their ids in it. */
export const loopLinks: readonly string[] = loopEdges.map(([name]) => name);
