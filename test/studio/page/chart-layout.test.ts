import { runMachine } from 'pawl/machines';
import { describe, expect, it } from 'vitest';
import {
  boxLeft,
  boxWidth,
  type Edge,
  type Layout,
  layoutOf,
  type Node,
  nodeHeight,
  stagesOf,
} from '../../../src/studio/page/chart/layout.ts';

interface StateNode {
  readonly path: readonly string[];
  readonly type: string;
  readonly meta?: { readonly resumesAt?: string } | undefined;
  readonly states: Readonly<Record<string, StateNode>>;
  readonly transitions: ReadonlyMap<string, readonly { readonly target?: readonly StateNode[] | undefined }[]>;
  readonly always?: readonly { readonly target?: readonly StateNode[] | undefined }[] | undefined;
}

const machineOf = (phases: number) => {
  const names = Array.from({ length: phases }, (_, index) => ({ name: `phase ${index}` }));
  const { root } = runMachine(phases === 0 ? { id: 'agent' } : { id: 'agent', phases: names });
  const states = new Map<string, StateNode>();
  const edges = new Set<string>();
  const visit = (state: StateNode) => {
    const id = state.path.join('.');
    // Only a run inside a host's machine has it, and only there.
    if (state.path[0] === 'left') return;
    if (id !== '') states.set(id, state);
    for (const { target = [] } of [...[...state.transitions.values()].flat(), ...(state.always ?? [])])
      for (const to of target) if (to.path[0] !== 'left') edges.add(`${id}>${to.path.join('.')}`);
    for (const child of Object.values(state.states)) visit(child);
  };
  visit(root as unknown as StateNode);
  return { states, edges };
};

const each = [0, 1, 3, 5].map((phases) => ({
  phases,
  layouts: Array.from({ length: Math.max(1, phases) }, (_, open) => layoutOf(phases, open)),
}));

interface Rect {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}
const rectOf = ({ x, y, width }: Node): Rect => ({
  left: x - width / 2,
  right: x + width / 2,
  top: y - nodeHeight / 2,
  bottom: y + nodeHeight / 2,
});
const segmentsOf = ({ points }: Edge): readonly Rect[] => {
  const found: Rect[] = [];
  for (let at = 0; at + 3 < points.length; at += 2) {
    const [x, y, toX, toY] = points.slice(at, at + 4) as [number, number, number, number];
    found.push({ left: Math.min(x, toX), right: Math.max(x, toX), top: Math.min(y, toY), bottom: Math.max(y, toY) });
  }
  return found;
};
const meet = (a: Rect, b: Rect) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
/** A line that lies in a rectangle or crosses it; one that ends at its side does not. */
const runsThrough = (line: Rect, rect: Rect) =>
  line.left < rect.right && line.right > rect.left && line.top < rect.bottom && line.bottom > rect.top;
/** How much of two lines is the same. */
const shared = (a: Rect, b: Rect) => {
  const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  return across < 0 || down < 0 ? 0 : Math.max(across, down);
};
const [closed, opened] = [
  ({ boxes }: Layout) => boxes.filter((box) => !box.isOpen),
  ({ boxes }: Layout) => boxes.filter((box) => box.isOpen),
];
const boxRect = ({ y, height }: Layout['boxes'][number]): Rect => ({
  left: boxLeft,
  right: boxLeft + boxWidth,
  top: y,
  bottom: y + height,
});

describe.each(each)('the chart of a run with $phases phases (studio 30)', ({ phases, layouts }) => {
  const machine = machineOf(phases);

  it('draws every state of the machine, and nothing else: the states of the open loop, and the others as bars', () => {
    const drawn = new Set(layouts.flatMap(({ nodes, boxes }) => [...nodes, ...boxes].map(({ id }) => id)));
    expect([...drawn].sort()).toEqual([...machine.states.keys()].sort());
    for (const layout of layouts) {
      const ids = [...layout.nodes, ...layout.boxes].map(({ id }) => id);
      expect(new Set(ids).size).toBe(ids.length);
      const isShown = (id: string) => !closed(layout).some((box) => id.startsWith(`${box.id}.`));
      expect([...ids].sort()).toEqual([...machine.states.keys()].filter(isShown).sort());
    }
  });

  it('draws every edge of the machine once, and nothing else', () => {
    for (const layout of layouts) {
      const ids = layout.edges.map(({ id }) => id);
      expect(new Set(ids).size).toBe(ids.length);
      const isShown = (id: string) => !closed(layout).some((box) => id.startsWith(`${box.id}.`));
      expect(ids.sort()).toEqual([...machine.edges].filter(isShown).sort());
    }
  });

  it('draws a final state round, and marks exactly the states where a restart continues', () => {
    for (const { nodes } of layouts)
      for (const { id, label, isFinal } of nodes) {
        expect([id, isFinal]).toEqual([id, machine.states.get(id)?.type === 'final']);
        expect([id, label.endsWith(' ↺')]).toEqual([id, machine.states.get(id)?.meta?.resumesAt === 'here']);
      }
  });

  it('puts no state over another one, and each inside the picture and its own loop', () => {
    for (const layout of layouts) {
      const rects = layout.nodes.map((node) => ({ id: node.id, ...rectOf(node) }));
      for (const [at, rect] of rects.entries()) {
        expect(rects.slice(at + 1).filter((other) => meet(rect, other))).toEqual([]);
        expect(rect.left >= 0 && rect.right <= layout.width && rect.top >= 0 && rect.bottom <= layout.height).toBe(
          true,
        );
        for (const box of layout.boxes) {
          const own = boxRect(box);
          const isInside =
            rect.left >= own.left && rect.right <= own.right && rect.top > own.top && rect.bottom < own.bottom;
          expect([rect.id, isInside]).toEqual([rect.id, rect.id.startsWith(`${box.id}.`)]);
          expect(isInside || !meet(rect, own)).toBe(true);
        }
      }
      const boxes = layout.boxes.map(boxRect);
      for (const [at, box] of boxes.entries())
        expect(boxes.slice(at + 1).some((other) => meet(box, other))).toBe(false);
    }
  });

  it('begins and ends each edge at the side of its own states', () => {
    for (const layout of layouts) {
      const places = new Map<string, Rect>([
        ...layout.nodes.map((node) => [node.id, rectOf(node)] as const),
        ...layout.boxes.map((box) => [box.id, boxRect(box)] as const),
      ]);
      const touches = (id: string | undefined, x: number, y: number) => {
        const rect = places.get(id ?? '') as Rect;
        const isBeside = (x === rect.left || x === rect.right) && y >= rect.top && y <= rect.bottom;
        return isBeside || ((y === rect.top || y === rect.bottom) && x >= rect.left && x <= rect.right);
      };
      for (const { id, points } of layout.edges) {
        const [from, to] = id.split('>');
        expect([id, touches(from, points[0] ?? 0, points[1] ?? 0)]).toEqual([id, true]);
        expect([id, touches(to, points.at(-2) ?? 0, points.at(-1) ?? 0)]).toEqual([id, true]);
      }
    }
  });

  it('leads no edge through a state or a bar, and all along rows and columns', () => {
    for (const layout of layouts) {
      const walls = [
        ...layout.nodes.map((node) => ({ id: node.id, ...rectOf(node) })),
        ...closed(layout).map((box) => ({ id: box.id, ...boxRect(box) })),
      ];
      for (const edge of layout.edges)
        for (const line of segmentsOf(edge)) {
          expect([edge.id, line.left === line.right || line.top === line.bottom]).toEqual([edge.id, true]);
          expect([edge.id, walls.filter((wall) => runsThrough(line, wall)).map(({ id }) => id)]).toEqual([edge.id, []]);
          for (const box of opened(layout))
            expect([edge.id, runsThrough(line, boxRect(box))]).toEqual([edge.id, edge.id.startsWith(`${box.id}.`)]);
        }
    }
  });

  it('lets two edges share a line only if they come from one state or lead to one', () => {
    for (const { edges } of layouts)
      for (const [at, edge] of edges.entries())
        for (const other of edges.slice(at + 1)) {
          const [[from, to], [otherFrom, otherTo]] = [edge.id.split('>'), other.id.split('>')];
          if (from === otherFrom || to === otherTo) continue;
          const most = Math.max(...segmentsOf(edge).flatMap((a) => segmentsOf(other).map((b) => shared(a, b))));
          expect([edge.id, other.id, most > 0]).toEqual([edge.id, other.id, false]);
        }
  });

  it('writes labels that fit their states', () => {
    // 11 px sans: about 6.2 px a character; a browser measures the real ones.
    for (const { nodes } of layouts)
      for (const { label, width } of nodes) expect([label, label.length * 6.2 + 8 <= width]).toEqual([label, true]);
  });
});

it('draws at most 200 phases, for any number in an event of a hostile store (studio 27)', () => {
  expect(stagesOf(3)).toEqual(['phase(0)', 'phase(1)', 'phase(2)']);
  for (const many of [201, 100_000_000, 1e308]) expect(stagesOf(many)).toHaveLength(200);
});
