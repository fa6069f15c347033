import * as edits from 'pawl/edits';
import * as fanOut from 'pawl/fan-out';
import { expect, test } from 'vitest';

const names = ['applyWrites', 'previewWrites', 'rewind'] as const;

test('pawl/edits offers exactly these names', () => expect(Object.keys(edits).sort()).toEqual([...names]));

test('pawl/fan-out offers the same functions', () => {
  expect(fanOut).toMatchObject({ ...edits });
});
