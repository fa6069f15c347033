import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  callsToStart,
  isAllAnswered,
  isLastUnanswered,
  markStarted,
  markUnbegun,
  type OpenCall,
  type OpenStep,
  recordCallResult,
  stepOf,
} from '../../src/run/open-step.ts';

const message: OpenStep['message'] = { role: 'assistant', content: [] };
const names = ['any', 'one', 'two'];
const limits = { all: 3, ofTool: (name: string) => ({ one: 1, two: 2 })[name] ?? 3 };
const line = (name: string, i: number): OpenCall => ({
  callId: `c${i}`,
  name,
  input: null,
  effect: 'read',
  state: 'planned',
  attempt: 0,
});
const result = { type: 'text', value: 'ok' } as const;

/** The calls that may start, found by going through all of them. */
function startableOf(calls: readonly OpenCall[]): string[] {
  const running = calls.filter(({ state }) => state === 'started').map(({ name }) => name);
  const starting: string[] = [];
  for (const { callId, name, state } of calls) {
    const isFull =
      running.length >= limits.all || running.filter((each) => each === name).length >= limits.ofTool(name);
    if (state !== 'planned' || isFull) continue;
    running.push(name);
    starting.push(callId);
  }
  return starting;
}

describe('the ledger of a step', () => {
  const doing = fc.record({
    what: fc.constantFrom('start', 'answer', 'withdraw'),
    which: fc.nat(23),
    from: fc.nat(3),
  });

  test('says of each version of the step what going through its calls says, also of one that others have followed', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 24 }),
        fc.array(doing),
        (tools, story) => {
          const versions = [stepOf(message, tools.map(line))];
          const copies = versions.map(({ calls }) => [...calls]);
          for (const { what, which, from } of story) {
            const step = versions.at(-1 - (from % versions.length)) as OpenStep;
            const callId = `c${which % tools.length}`;
            if (what === 'start')
              versions.push(markStarted(step, new Set(callsToStart(step, limits).map((call) => call.callId))));
            else if (what === 'answer') versions.push(recordCallResult(step, callId, result));
            else versions.push(markUnbegun(step, new Set([callId])));
            copies.push([...(versions.at(-1) as OpenStep).calls]);
          }
          for (const [i, step] of versions.entries()) {
            const calls = copies[i] as OpenCall[];
            expect(step.calls).toEqual(calls);
            expect(callsToStart(step, limits).map(({ callId }) => callId)).toEqual(startableOf(calls));
            expect(isAllAnswered(step)).toBe(calls.every(({ state }) => state === 'done'));
            const open = calls.filter(({ state }) => state !== 'done');
            for (const { callId, state } of calls) {
              expect(isLastUnanswered(step, callId)).toBe(open.length === 1 && state === 'started');
            }
          }
        },
      ),
    );
  });

  test('is plain JSON to those who store or print the step', () => {
    const step = markStarted(stepOf(message, Array.from({ length: 20 }, () => 'any').map(line)), new Set(['c0']));
    expect(JSON.parse(JSON.stringify(step))).toEqual({ message, calls: [...step.calls] });
    expect({ ...step }.calls).toEqual(step.calls);
  });
});
