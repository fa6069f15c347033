import { expect, test } from 'vitest';
import { lineDiff, workOfView } from '../../src/studio/fan-outs/line-diff.ts';

const lines = (word: string) =>
  Array.from({ length: 900 }, (_, i) => (i % 2 === 0 ? 'same' : `${word} ${i}`)).join('\n');
const [before, after] = [lines('old'), lines('new')];

test('a diff keeps the lines that both texts have (studio 10)', () => {
  const { added, removed } = lineDiff(before, after);
  expect({ added, removed }).toEqual({ added: 450, removed: 450 });
});

test('the diffs of one view compare a bounded number of lines; after that a change is removed and added whole (studio 10, 27)', () => {
  const work = workOfView();
  const whole = Array.from({ length: 40 }, () => lineDiff(before, after, work)).findIndex(({ added }) => added > 450);
  expect(whole).toBeGreaterThan(20);
  expect(whole).toBeLessThan(40);
  expect(work.pairs).toBeGreaterThanOrEqual(0);
});
