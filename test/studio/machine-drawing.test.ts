import { describe, expect, test } from 'vitest';
import { createMachine } from 'xstate';
import { drawingOf } from '../../src/studio/machine/drawing.ts';
import type { DrawnArrow, MachineDrawing } from '../../src/studio/machine/wire.ts';
import { outlineOf } from '../../src/workflow/outline.ts';
import { drawnMachines, randomMachine } from './drawn-machines.ts';

const drawingFor = (config: object): MachineDrawing => drawingOf(outlineOf(createMachine(config as never)));

interface Rect {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}
const rectOf = ([x, y, width, height]: readonly number[] = []): Rect => ({
  ...{ left: x ?? 0, right: (x ?? 0) + (width ?? 0), top: y ?? 0, bottom: (y ?? 0) + (height ?? 0) },
});
const meet = (a: Rect, b: Rect, by = 0.5) =>
  a.left < b.right - by && b.left < a.right - by && a.top < b.bottom - by && b.top < a.bottom - by;
const isInside = (a: Rect, b: Rect) => a.left >= b.left && a.right <= b.right && a.top >= b.top && a.bottom <= b.bottom;
const isIn = (inner: string, outer: string) => outer === '' || inner === outer || inner.startsWith(`${outer}.`);

/** The corners of a path whose corners are round: the points in which its curves would meet. */
function cornersOf(path: string): readonly (readonly [x: number, y: number])[] {
  const points = path.match(/[MLQ][^MLQ]+/g) ?? [];
  return points.flatMap((step, at) => {
    const [x = 0, y = 0] = step.slice(1).trim().split(/[ ,]/).map(Number);
    return step[0] === 'Q' || at === 0 || at === points.length - 1 ? [[x, y] as const] : [];
  });
}

/** The straight parts of an arrow. */
function linesOf({ path }: DrawnArrow): readonly Rect[] {
  const corners = cornersOf(path);
  return corners.slice(1).map(([toX, toY], at) => {
    const [x, y] = corners[at] as readonly [number, number];
    return { left: Math.min(x, toX), right: Math.max(x, toX), top: Math.min(y, toY), bottom: Math.max(y, toY) };
  });
}

function onBorder([x, y]: readonly [number, number], box: Rect): boolean {
  const near = (one: number, other: number) => Math.abs(one - other) < 0.6;
  const isBeside = (near(x, box.left) || near(x, box.right)) && y >= box.top - 0.6 && y <= box.bottom + 0.6;
  return isBeside || ((near(y, box.top) || near(y, box.bottom)) && x >= box.left - 0.6 && x <= box.right + 0.6);
}

/** All that is wrong with a drawing. */
function faultsOf({ width, height, states, arrows, dots }: MachineDrawing): readonly string[] {
  const boxes = new Map(states.map(({ path, box }) => [path, rectOf(box)]));
  const labels = arrows.flatMap(({ from = '', to = '', label }) => (label ? [{ from, to, ...rectOf(label.box) }] : []));
  const whole = { left: 0, top: 0, right: width, bottom: height };
  const all = [...boxes];
  const pairs = all.flatMap((one, at) => all.slice(at + 1).map((other) => [...one, ...other] as const));
  const isLeaf = (path: string) => !all.some(([other]) => other !== path && isIn(other, path));
  return [
    ...pairs.flatMap(([path, box, other, its]) =>
      isIn(other, path)
        ? isInside(its, box) && its.top >= box.top + 30
          ? []
          : [`${other} is not in ${path}`]
        : meet(box, its)
          ? [`${path} and ${other} overlap`]
          : [],
    ),
    ...labels.flatMap((label, at) => [
      ...(isInside(label, whole) ? [] : [`the label of ${label.from} > ${label.to} is outside`]),
      ...labels
        .slice(at + 1)
        .flatMap((other) =>
          meet(label, other) ? [`labels of ${label.from} > ${label.to} and ${other.from} > ${other.to} overlap`] : [],
        ),
      ...all.flatMap(([path, box]) =>
        meet(label, box) && !isInside(label, box) ? [`the label of ${label.from} > ${label.to} is over ${path}`] : [],
      ),
      ...all.flatMap(([path, box]) =>
        isLeaf(path) && meet(label, box) ? [`the label of ${label.from} > ${label.to} is in ${path}`] : [],
      ),
    ]),
    ...arrows.flatMap((arrow) => {
      const { from, to, path } = arrow;
      const name = `${from} > ${to}`;
      const corners = cornersOf(path);
      const ends = [corners[0], corners.at(-1)] as [readonly [number, number], readonly [number, number]];
      return [
        ...(from === undefined || onBorder(ends[0], boxes.get(from) as Rect)
          ? []
          : [`${name} does not begin at its state`]),
        ...(to === undefined || onBorder(ends[1], boxes.get(to) as Rect) ? [] : [`${name} does not end at its state`]),
        ...linesOf(arrow).flatMap((line) => [
          ...(Math.min(line.right - line.left, line.bottom - line.top) < 0.6 ? [] : [`${name} has a slanted line`]),
          ...all.flatMap(([state, box]) =>
            isLeaf(state) && meet(line, box, 1) ? [`${name} runs through ${state}`] : [],
          ),
          ...labels.flatMap((label) =>
            (label.from === from && label.to === to) || !meet(line, label, 1)
              ? []
              : [`${name} runs through the label of ${label.from} > ${label.to}`],
          ),
        ]),
      ];
    }),
    ...(dots.every(([x, y]) => isInside({ left: x - 5, right: x + 5, top: y - 5, bottom: y + 5 }, whole))
      ? []
      : ['a dot is outside']),
  ];
}

describe('the drawing of a machine', () => {
  test.for(Object.entries(drawnMachines))(
    'of %s has no overlap, and each arrow ends at its states (workflow 23)',
    ([, config]) => {
      expect(faultsOf(drawingFor(config))).toEqual([]);
    },
  );

  test('of 150 random nested machines has no overlap, and each arrow ends at its states (workflow 23)', () => {
    for (let seed = 1; seed <= 150; seed += 1)
      expect([seed, faultsOf(drawingFor(randomMachine(seed)))]).toEqual([seed, []]);
  });
});
