import { expect, test } from 'vitest';
import { isAtRest } from '../../../src/run/waits/model-waits.ts';

test('a few looks at the calls of a run with 3,000 waiting calls say whether it rests, not one for each wait (studio 27)', () => {
  const ids = Array.from({ length: 3_000 }, (_, i) => `c${i}`);
  const calls = ids.map((callId) => ({ callId, name: 'ask', input: {}, effect: 'once', state: 'waiting', attempt: 0 }));
  let looks = 0;
  const openStep = {
    message: { role: 'assistant', content: [] },
    get calls() {
      looks += 1;
      return calls;
    },
  };
  const waits = ids.map((callId) => ({ id: `w-${callId}`, kind: 'approval', createdAt: 1, step: 1, callId }));
  expect(isAtRest({ openStep, waiting: { waits, settled: [] } } as never)).toBe(true);
  expect(looks).toBeLessThan(10);
});
