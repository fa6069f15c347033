// Positions on a line that keep their order and their distances: pure.

/** Something that wants to be at a position; `weight`: how much. */
export interface WishedPlace {
  readonly at: number;
  readonly weight: number;
}

/**
 * Returns positions as near to the wished ones as possible, by the least sum of squares, in their order and with the distances.
 * @param gaps the least distance of each to the one before it; the first has none
 */
export function spread(wishes: readonly WishedPlace[], gaps: readonly number[]): number[] {
  // Without its distances to those before it, each position must not be less than the one before: then neighbours that
  // collide are one block, which stands where its members want to be together.
  const blocks: { at: number; weight: number; count: number }[] = [];
  let shift = 0;
  for (const [index, { at, weight }] of wishes.entries()) {
    shift += index === 0 ? 0 : (gaps[index] ?? 0);
    let block = { at: at - shift, weight, count: 1 };
    for (let before = blocks.at(-1); before && before.at > block.at; before = blocks.at(-1)) {
      blocks.pop();
      const sum = before.weight + block.weight;
      const middle = (before.at * before.weight + block.at * block.weight) / sum;
      block = { at: middle, weight: sum, count: before.count + block.count };
    }
    blocks.push(block);
  }
  const positions: number[] = [];
  shift = 0;
  for (const { at, count } of blocks) {
    for (let member = 0; member < count; member += 1) {
      shift += positions.length === 0 ? 0 : (gaps[positions.length] ?? 0);
      positions.push(at + shift);
    }
  }
  return positions;
}
