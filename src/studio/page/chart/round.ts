/** Returns the path of a line through these points (x, y, x, y, …) whose corners are round. */
export function roundPath(points: readonly number[], radius = 6): string {
  const at = (index: number): readonly [number, number] => [points[index * 2] ?? 0, points[index * 2 + 1] ?? 0];
  const last = points.length / 2 - 1;
  let path = `M${at(0)}`;
  for (let index = 1; index < last; index += 1) {
    const [before, corner, after] = [at(index - 1), at(index), at(index + 1)];
    const reach = Math.min(radius, length(before, corner) / 2, length(corner, after) / 2);
    path += `L${towards(corner, before, reach)}Q${corner} ${towards(corner, after, reach)}`;
  }
  return `${path}L${at(last)}`;
}

type Point = readonly [x: number, y: number];

function length([x, y]: Point, [toX, toY]: Point): number {
  return Math.hypot(toX - x, toY - y);
}

/** The point that is `reach` away from one in the direction of another. */
function towards(from: Point, to: Point, reach: number): string {
  const part = reach / (length(from, to) || 1);
  const on = (index: 0 | 1) => Math.round((from[index] + (to[index] - from[index]) * part) * 100) / 100;
  return `${on(0)},${on(1)}`;
}
