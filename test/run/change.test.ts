import { setAutoFreeze } from 'immer';
import { describe, expect, onTestFinished, test } from 'vitest';
import { change } from '../../src/run/change.ts';
import { markUnbegun, recoverOpenStep } from '../../src/run/open-step.ts';
import { beginPhase, closePhase } from '../../src/run/pipeline.ts';
import { deliver, type Progress } from '../../src/run/progress.ts';
import { Hidden } from '../../src/values/hidden.ts';
import { frozenJson } from '../../src/values/json.ts';
import { enterMessage } from '../../src/values/message.ts';
import { answered, facts, fresh } from '../fixtures/pipelines.ts';

const said = (text: string) => enterMessage({ role: 'user', content: [{ type: 'text', text }] });
const calls = (['done', 'started', 'planned'] as const).map((state, i) => ({
  callId: `c${i}`,
  name: 'look',
  input: { deep: [i] },
  effect: 'once' as const,
  state,
  attempt: state === 'planned' ? 0 : 1,
  ...(state === 'done' ? { result: { type: 'text' as const, value: 'found' } } : {}),
}));
const step = { message: { role: 'assistant' as const, content: [] }, calls };

describe('change()', () => {
  test('gives a new state with what the recipe changed, shares the rest, and leaves the old state as it was', () => {
    const state: { a: { n: number }; b: { n: number }; list: readonly number[] } = frozenJson({
      a: { n: 1 },
      b: { n: 2 },
      list: [1],
    }) as never;
    const next = change(state, (draft) => {
      draft.a.n = 5;
    });
    expect(next).toEqual({ a: { n: 5 }, b: { n: 2 }, list: [1] });
    expect(next.b).toBe(state.b);
    expect(next.list).toBe(state.list);
    expect(state.a.n).toBe(1);
  });

  test('gives the very state back where the recipe changed nothing', () => {
    const state = { a: { n: 1 } };
    expect(change(state, () => {})).toBe(state);
    expect(change(state, ({ a }) => void Object.assign(a, { n: 1 }))).toBe(state);
  });

  test('freezes nothing, and a host that sets immer’s shared instance changes nothing of that', () => {
    setAutoFreeze(true);
    onTestFinished(() => setAutoFreeze(true));
    const next = change({ a: { n: 1 }, list: [1] }, (draft) => void draft.list.push(2));
    expect([next, next.a, next.list].map(Object.isFrozen)).toEqual([false, false, false]);
  });
});

describe('a run’s state off the per-step path', () => {
  test('keeps its transcript and its hidden values outside drafts: they come through as the same objects', () => {
    const progress: Progress = { ...fresh(), undelivered: [said('first'), said('second')], nudges: [said('third')] };
    const next = deliver(progress);
    expect(next.transcript.continues(progress.transcript)).toBe(true);
    expect(next.inputs).toBe(progress.inputs);
    expect(next.inputs).toBeInstanceOf(Hidden);
    const untouched = closePhase(answered(beginPhase(progress, facts('a')), 'done'), facts('a'), { hasFailed: false });
    expect(untouched.undelivered).toBe(progress.undelivered);
  });

  test('hands a transcript no message that was read from a draft: what is delivered are the messages that waited', () => {
    const waiting = [said('first'), said('second')];
    const { transcript, undelivered } = deliver({ ...fresh(), undelivered: waiting });
    expect(undelivered).toEqual([]);
    expect(transcript.slice(1).map((message, i) => message === waiting[i])).toEqual([true, true]);
  });

  test('shares the calls that recovery and withdrawal leave alone', () => {
    const recovered = recoverOpenStep(step);
    expect(recovered.calls.map(({ state }) => state)).toEqual(['done', 'done', 'planned']);
    expect(recovered.calls[1]?.result).toMatchObject({ type: 'error-text' });
    expect([recovered.calls[0], recovered.calls[2], recovered.message]).toEqual([calls[0], calls[2], step.message]);
    expect(recovered.calls[0]).toBe(calls[0]);
    const withdrawn = markUnbegun(step, new Set(['c0', 'c1', 'c2']));
    expect(withdrawn.calls.map(({ state, attempt }) => [state, attempt])).toEqual([
      ['done', 1],
      ['planned', 0],
      ['planned', 0],
    ]);
    expect(markUnbegun(step, new Set(['c0']))).toBe(step);
  });
});
