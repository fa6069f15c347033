import { IncrementalSaver, loadCheckpoint, snapshotFromPartial } from 'pawl/fan-out';
import { expect, test } from 'vitest';
import { around, freshPath, heldWithin, prompt } from './asking.ts';

test('a saver is refused the file of a fanOut of its process, which loses nothing, and gets it afterwards (fan-out 4)', async () => {
  const path = freshPath();
  const { running, open } = await heldWithin(path);
  await using saver = new IncrementalSaver(path, prompt, ['a'], false);
  const ofAnother = snapshotFromPartial('a', { text: 'of somebody else', steps: 7 });
  await expect(saver.update('a', ofAnother)).rejects.toMatchObject({ code: 'FAN_OUT_OWNED_ELSEWHERE' });
  expect((await loadCheckpoint(path))?.responses).toEqual([]);
  open();
  const { responses, saveError } = await running;
  expect([responses[0]?.text, saveError, around(path)]).toEqual(['of a', undefined, ['.pawl']]);
  await saver.update('a', ofAnother);
  expect((await loadCheckpoint(path))?.responses[0]).toMatchObject({ text: 'of somebody else' });
});
