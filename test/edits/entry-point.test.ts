import * as edits from 'pawl/edits';
import * as fanOut from 'pawl/fan-out';
import { expect, test } from 'vitest';

const names = [
  'WriteConflictError',
  'WriteFailedError',
  'WriteOutsideRootError',
  'applyWrites',
  'previewWrites',
  'rewind',
] as const;

test('pawl/edits offers exactly these names', () => expect(Object.keys(edits).sort()).toEqual([...names]));

test('pawl/fan-out offers the same functions and classes, so that an error of one is an error of the other', () => {
  expect(fanOut).toMatchObject({ ...edits });
  expect(fanOut.WriteConflictError).toBe(edits.WriteConflictError);
});
