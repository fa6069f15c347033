import { expect, test } from 'vitest';
import { actionsFor, type Done, stageText } from '../../../src/studio/page/actions/action-stages.ts';
import { takeWords } from '../../../src/studio/page/frame/words.ts';
import { pageWords } from '../../../src/studio/page-words.ts';
import type { RecordView } from '../../../src/studio/wire.ts';

takeWords(
  pageWords(
    { journal: true, waits: true, commands: true, history: true, threads: true },
    { write: true, apply: false },
  ),
);

const run = (state: string, more: object = {}) =>
  ({ line: { state, where: `ended: ${state}` }, ...more }) as unknown as RecordView;
const done = (action: Done['action'], state = ''): Done => ({ action, state, revision: 4 });

test('a run has the actions that its state takes, and none once it has ended or cannot be read (studio 25, 28)', () => {
  expect(actionsFor(run('run'))).toEqual(['steer', 'cancel']);
  expect(actionsFor(run('wait'))).toEqual(['steer', 'park', 'cancel']);
  expect(actionsFor(run('wait', { owner: { name: 'p', id: 'p', isHere: false } }))).toEqual(['steer', 'cancel']);
  expect(actionsFor(run('park'))).toEqual(['unpark', 'cancel']);
  for (const state of ['ok', 'fail', 'cut', 'bad']) expect(actionsFor(run(state))).toEqual([]);
  for (const state of ['fail', 'cut']) expect(actionsFor(run(state, { record: {} }))).toEqual(['retry']);
  expect(actionsFor(run('ok', { record: {} }))).toEqual([]);
});

test('a steer is stored, and taken up once a later record has no steer that was not read (studio 9)', () => {
  const at = (revision: number, kinds: readonly string[]) =>
    run('wait', { record: { revision, commands: kinds.map((kind) => ({ kind })) } });
  expect(stageText(done('steer', 'sent'), at(4, ['steer']))).toMatch(/^Stored/);
  expect(stageText(done('steer', 'sent'), at(4, []))).toMatch(/^Stored/);
  expect(stageText(done('steer', 'sent'), at(5, []))).toMatch(/^Taken up/);
  expect(stageText(done('steer', 'durable'), at(4, []))).toMatch(/^Taken up/);
});

test('a cancel, a park and an unpark say what has become true (studio 9)', () => {
  expect(stageText(done('cancel', 'sent'), run('run'))).toBe('Stored: the process that works on it ends it');
  expect(stageText(done('cancel'), run('cut'))).toBe('Cancelled');
  expect(stageText(done('cancel'), run('ok'))).toBe('It had ended before: ended: ok');
  expect(stageText(done('park'), run('park'))).toMatch(/^Parked/);
  expect(stageText(done('unpark'), run('idle'))).toMatch(/^Unparked/);
});
