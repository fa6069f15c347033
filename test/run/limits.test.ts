import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { countStep, type GuardCounters, noCounters, toolLoopOf } from '../../src/run/limits.ts';
import type { OpenCall } from '../../src/run/open-step.ts';
import { torture } from '../crash/random.ts';

const limits = {
  maxSteps: 20,
  maxRuntimeMs: 1,
  maxConsecutiveToolErrors: 3,
  maxSameToolCallRepeats: 3,
  toolConcurrency: 8,
};
type Call = { name: string; input: number; ok: boolean };
const line = ({ name, input, ok }: Call, i: number): OpenCall => ({
  callId: `c${i}`,
  name,
  input,
  effect: 'read',
  state: 'done',
  attempt: 1,
  result: ok ? { type: 'text', value: 'x' } : { type: 'error-text', value: 'x' },
});
const count = (counters: GuardCounters, calls: Call[]) =>
  countStep(counters, { message: { role: 'assistant', content: [] }, calls: calls.map(line) });

test('over any steps the guards see what a person would count: steps in a row that failed, calls in a row that were made (executor 16)', () => {
  const call = fc.record({ name: fc.constantFrom('a', 'b'), input: fc.nat(1), ok: fc.boolean() });
  const steps = fc.array(fc.array(call, { minLength: 1, maxLength: 3 }), { maxLength: 8 });
  fc.assert(
    fc.property(steps, (all) => {
      const counters = all.reduce(count, noCounters);
      let failed = 0;
      for (const step of [...all].reverse()) {
        if (step.some(({ ok }) => ok)) break;
        failed += 1;
      }
      const keys = ({ name, input }: Call) => `${name} ${input}`;
      const runs = new Set((all.at(-1) ?? []).map(keys));
      const longest = [...runs].map((key) => {
        const back = [...all].reverse().findIndex((step) => !step.map(keys).includes(key));
        return back === -1 ? all.length : back;
      });
      const isLoop = failed >= 3 || Math.max(0, ...longest) >= 3;
      expect(counters.failedSteps).toBe(failed);
      expect(Object.values(counters.repeats).sort()).toEqual(longest.sort());
      expect(toolLoopOf(counters, limits) !== undefined).toBe(isLoop);
    }),
    { numRuns: 500 * torture },
  );
});

describe('the error of a tool loop', () => {
  test('says which limit was reached, and has code TOOL_LOOP (executor 16)', () => {
    const failing = toolLoopOf({ failedSteps: 3, repeats: {} }, limits);
    const repeating = toolLoopOf({ failedSteps: 0, repeats: { x: 3 } }, limits);
    expect(failing).toMatchObject({ code: 'TOOL_LOOP', message: expect.stringContaining('maxConsecutiveToolErrors') });
    expect(repeating).toMatchObject({ code: 'TOOL_LOOP', message: expect.stringContaining('maxSameToolCallRepeats') });
  });

  test('the counters stay small however long a run gets: they hold the last step only', () => {
    let counters = noCounters;
    for (let step = 0; step < 1_000; step++) counters = count(counters, [{ name: 'a', input: step, ok: true }]);
    expect(Object.keys(counters.repeats)).toHaveLength(1);
  });
});
