import { describe, expect, test } from 'vitest';
import { sharedPlaces } from '../../src/studio/fan-outs/shared-places.ts';

const answersOf = (...texts: string[]) => texts.map((text, i) => ({ modelId: `m${i}`, text }));

describe('the answers of a fan-out that name the same place of a file', () => {
  test('are found between any characters, and the place that most of them name comes first (studio 10)', () => {
    const answers = answersOf(
      'src/a.ts:50 drops a save. See also ./src/b.ts:7, and src/c.ts:1.',
      '* `src/a.ts:50`: the caller waits.\n* (src/b.ts:7:12)',
      '**src/b.ts:7-9** is wrong; [src/d.ts:3]',
    );
    expect(sharedPlaces(answers)).toEqual([
      { place: 'src/b.ts:7', modelIds: ['m0', 'm1', 'm2'] },
      { place: 'src/a.ts:50', modelIds: ['m0', 'm1'] },
    ]);
  });

  test('must name it themselves: one that repeats a place counts once, and times, addresses and versions are no places (studio 10)', () => {
    const other = 'at 12:30 on https://example.com:8080, node:24, v1.2:x, a.:5, x.ts:0';
    expect(sharedPlaces(answersOf(`src/a.ts:5 src/a.ts:5 ${other}`, other))).toEqual([]);
  });

  test('are searched in proportion to their length, and 50 places are shown (studio 10, 27)', () => {
    const many = Array.from({ length: 5_000 }, (_, n) => `f.ts:${n + 1}`).join(' ');
    expect(sharedPlaces(answersOf(many, many))).toHaveLength(50);
    const hostile = `${'a.b/'.repeat(100_000)}:1 ${'x.'.repeat(100_000)} ${':'.repeat(100_000)}`;
    expect(sharedPlaces(answersOf(hostile, hostile))).toEqual([]);
  });
});
