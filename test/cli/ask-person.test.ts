import { expect, test } from 'vitest';
import { endOfWait, WaitEnds } from '../../src/cli/commands/waits/ask-person.ts';
import type { ListedWait, RunEvent } from '../../src/index.ts';

const facts = { runId: 'r1', rootRunId: 'r1', id: 'w1' };
const approval = { ...facts, kind: 'approval', quorum: 1, onExpiry: 'deny' } as unknown as ListedWait;
const question = { ...facts, kind: 'question' } as unknown as ListedWait;
const at = { runId: 'r1', waitId: 'w1', seq: 1, at: 1 } as const;
const event = (more: object) => ({ ...at, ...more }) as RunEvent;

test('a terminal that asks says how the wait was over (waiting 22)', () => {
  const said = (more: object, wait = approval) => endOfWait(event(more), wait);
  const approved = { type: 'wait.answered', kind: 'approval', how: 'approve' };
  expect(said({ ...approved, by: { id: 'root' } })).toBe('approved by root; continuing');
  expect(said({ ...approved, by: { id: 'u7', name: 'Ada' } })).toBe('approved by Ada; continuing');
  expect(said(approved)).toBe('approved elsewhere; continuing');
  const vote = { ...approved, by: { id: 'ada' }, votes: 1 };
  expect(said(vote, { ...approval, quorum: 2 } as ListedWait)).toBe(
    'approved by ada, 1 of 2; it still needs an answer',
  );
  expect(said({ type: 'wait.expired' })).toBe('its time was over: the call is denied');
  expect(said({ type: 'wait.expired' }, { ...approval, onExpiry: 'park' } as ListedWait)).toBe(
    'its time was over: the run is parked',
  );
  expect(said({ type: 'wait.expired' }, question)).toBe('its time was over: the call gets no answer');
  expect(said({ type: 'wait.withdrawn' })).toBe('no answer is needed any more');
  expect(said({ type: 'run.ended', status: 'interrupted' })).toBe('this process leaves the run');
  expect(said({ type: 'wait.answered', waitId: 'w2' })).toBeUndefined();
  expect(said({ type: 'wait.refused' })).toBeUndefined();
});

test('a terminal that asks misses no end between the list of the waits and its question (waiting 22)', () => {
  const ends = new WaitEnds();
  ends.onEvent(event({ type: 'wait.expired', runId: 'r2' }));
  ends.onEvent(event({ type: 'wait.expired' }));
  ends.onEvent(event({ type: 'wait.withdrawn' }));
  expect(ends.of(approval).reason).toBe('its time was over: the call is denied');
  const later = new WaitEnds();
  const over = later.of(question);
  expect(over.aborted).toBe(false);
  later.onEvent(event({ type: 'run.ended', status: 'ok', waitId: undefined }));
  expect(over.reason).toBe('the run has ended');
});
