import { describe, expect, test } from 'vitest';
import {
  isAllAnswered,
  markStarted,
  type OpenCall,
  type OpenStep,
  recordCallResult,
  resultsMessage,
} from '../../src/run/open-step.ts';

const line = (callId: string, state: OpenCall['state'], rest: Partial<OpenCall> = {}): OpenCall => ({
  callId,
  name: 'x',
  input: null,
  effect: 'once',
  state,
  attempt: state === 'planned' ? 0 : 1,
  ...rest,
});
const kept = { type: 'text', value: 'kept' } as const;
const late = { type: 'text', value: 'late' } as const;
const step = (...calls: OpenCall[]): OpenStep => ({ message: { role: 'assistant', content: [] }, calls });

describe('the ledger of a step', () => {
  test('starting a call counts its attempt and leaves the others alone', () => {
    const before = step(line('a', 'planned'), line('b', 'planned', { attempt: 2 }), line('c', 'started'));
    expect(markStarted(before, new Set(['b'])).calls.map(({ state, attempt }) => [state, attempt])).toEqual([
      ['planned', 0],
      ['started', 3],
      ['started', 1],
    ]);
    expect(before.calls[1]?.state).toBe('planned');
  });

  test('a result is recorded once: one that comes later, or for a call that is not under way, changes nothing (executor 7)', () => {
    const calls = step(line('a', 'done', { result: kept }), line('b', 'planned'), line('c', 'started'));
    expect(recordCallResult(calls, 'a', late)).toEqual(calls);
    expect(recordCallResult(calls, 'b', late)).toEqual(calls);
    expect(recordCallResult(calls, 'nobody', late)).toEqual(calls);
    expect(recordCallResult(calls, 'c', late).calls[2]).toMatchObject({ state: 'done', result: late });
  });

  test('is answered when every call is done, and its results are in call order (executor 14)', () => {
    const open = step(line('a', 'started'), line('b', 'done', { result: kept }));
    expect(isAllAnswered(open)).toBe(false);
    const answered = recordCallResult(open, 'a', late);
    expect(isAllAnswered(answered)).toBe(true);
    expect(resultsMessage(answered)).toMatchObject({
      role: 'tool',
      content: [
        { toolCallId: 'a', output: late },
        { toolCallId: 'b', output: kept },
      ],
    });
  });
});
