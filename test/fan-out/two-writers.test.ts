import { IncrementalSaver, loadCheckpoint, snapshotFromPartial } from 'pawl/fan-out';
import { callTool, reply } from 'pawl/testing';
import { expect, test } from 'vitest';
import { gate, toolOf } from '../fixtures/host.ts';
import { around, asked, freshPath, prompt } from './asking.ts';

test('fan-out 4: a saver is refused the file of a fanOut of its process, which loses nothing, and gets it afterwards', async () => {
  const path = freshPath();
  const held = gate();
  const look = toolOf('look', 'read', () => held.pass());
  const call = asked({ models: { a: [callTool('look'), reply('of a')] }, path, tools: [look] });
  const running = call.start();
  await held.reached;
  await using saver = new IncrementalSaver(path, prompt, ['a'], false);
  const ofAnother = snapshotFromPartial('a', { text: 'of somebody else', steps: 7 });
  await expect(saver.update('a', ofAnother)).rejects.toMatchObject({ code: 'FAN_OUT_OWNED_ELSEWHERE' });
  expect((await loadCheckpoint(path))?.responses).toEqual([]);
  held.open();
  const { responses, saveError } = await running;
  expect([responses[0]?.text, saveError, around(path)]).toEqual(['of a', undefined, ['.pawl']]);
  await saver.update('a', ofAnother);
  expect((await loadCheckpoint(path))?.responses[0]).toMatchObject({ text: 'of somebody else' });
});
