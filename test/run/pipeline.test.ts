import { describe, expect, test } from 'vitest';
import {
  askForRepair,
  beginPhase,
  closePhase,
  currentPhase,
  isPhasePassable,
  keepPhase,
  recordable,
} from '../../src/run/pipeline.ts';
import { deliver, type Progress } from '../../src/run/progress.ts';
import { StepLimitError, ToolLoopError } from '../../src/values/errors.ts';
import { enterMessage } from '../../src/values/message.ts';
import { answered, completed, facts, fresh, spend, stepped, usage } from '../fixtures/pipelines.ts';

const [a, b] = [facts('a'), facts('b')] as const;
const textsOf = (progress: Progress) => progress.transcript.slice().map((message) => JSON.stringify(message.content));

describe('a phase', () => {
  test('begins with the opening turn alone, and with counters of its own (pipeline 1)', () => {
    const second = beginPhase(closePhase(stepped(beginPhase(fresh(), a)), a, { hasFailed: false }), b);
    expect(second.transcript.slice()).toEqual(fresh().transcript.slice());
    expect(second.counters).toEqual({ failedSteps: 0, repeats: {} });
    expect(second.openPhase).toEqual({ index: 1, hash: b.hash, iteration: 0, from: 3 });
    expect(second).toMatchObject({ iteration: 1, usage });
  });

  test('counts its own turns beside those of the run (pipeline 1)', () => {
    const progress = stepped(beginPhase(stepped(stepped(beginPhase(completed([a]), b))), b));
    expect(progress.openPhase).toMatchObject({ index: 1, iteration: 3 });
    expect(progress.iteration).toBe(4);
  });

  test('in progress is not begun again: nothing of it changes (pipeline 8)', () => {
    const progress = stepped(beginPhase(fresh(), a));
    expect(beginPhase(progress, a)).toBe(progress);
  });

  test('leaves its last text, its place and the hash of its definition (pipeline 9)', () => {
    const done = closePhase(answered(stepped(beginPhase(completed([a]), b)), 'told'), b, { hasFailed: false });
    expect(done.completedPhases[1]).toEqual({
      ...{ name: 'b', output: 'told', index: 1, hash: b.hash, from: 2 },
      finishReason: 'stop',
    });
    expect(done).not.toHaveProperty('openPhase');
  });

  test('that failed leaves its fallback, after any text of its model (pipeline 4)', () => {
    const optional = facts('a', { isOptional: true, fallback: 'nothing' });
    const done = closePhase(answered(beginPhase(fresh(), optional), 'half'), optional, { hasFailed: true });
    expect(done.completedPhases[0]?.output).toBe('nothing');
  });

  test('that is not open cannot be closed', () => {
    const progress = fresh();
    expect(closePhase(progress, a, { hasFailed: false })).toBe(progress);
  });

  test.for([
    [undefined, false, true],
    ['STEP_LIMIT', false, true],
    ['TOOL_LOOP', false, false],
    ['MODEL', false, false],
    ['OUTPUT_INVALID', false, false],
    ['TOOL_LOOP', true, true],
    ['MODEL', true, true],
  ] as const)(
    'that ended with %s (optional: %s) lets the pipeline continue: %s (pipeline 4, 5)',
    ([code, isOptional, goesOn]) => {
      const error = code && { name: 'E', code, message: 'm' };
      expect(isPhasePassable(error, facts('a', { isOptional }))).toBe(goesOn);
    },
  );

  test('passes by the codes that the errors have', () => {
    expect([new StepLimitError().code, new ToolLoopError().code]).toEqual(['STEP_LIMIT', 'TOOL_LOOP']);
  });

  test('is found by how many are complete, or by the one in progress', () => {
    expect(currentPhase(fresh(), [a, b])).toBe(a);
    expect(currentPhase(completed([a]), [a, b])).toBe(b);
    expect(currentPhase(beginPhase(completed([a]), b), [a, b])).toBe(b);
    expect(currentPhase(completed([a, b]), [a, b])).toBeUndefined();
    expect(currentPhase(fresh(), [])).toBeUndefined();
  });

  test('asked for repair has the problem as its last message, and remembers that it was asked', () => {
    const asked = askForRepair(answered(beginPhase(fresh(), a), 'no'), 'n is missing');
    expect(textsOf(asked).at(-1)).toContain('n is missing');
    expect(asked.transcript.at(-1)?.role).toBe('user');
    expect(asked.counters.repairs).toBe(1);
    expect(askForRepair(asked, 'again').counters.repairs).toBe(2);
    expect(stepped(asked).counters.repairs).toBe(1);
  });
});

describe('what a record says of a pipeline', () => {
  const anew = facts('b', { recovery: 'boundary' });

  test('between two phases: the messages of those that are complete (checkpoint 3)', () => {
    const between = completed([a]);
    expect(recordable(between).transcript.slice()).toEqual(between.transcript.slice());
    expect(recordable(between).completedPhases).toEqual(between.completedPhases);
  });

  test('before the first phase, and of a single loop: all there is', () => {
    const progress = fresh();
    expect(recordable(progress)).toBe(progress);
    expect(recordable(answered(progress, 'x')).transcript).toHaveLength(2);
  });

  test('within a phase: the messages of all phases, and where its own begin (checkpoint 3)', () => {
    const before = completed([a]);
    const progress = stepped(beginPhase(before, b));
    const { transcript, openPhase } = recordable(progress);
    expect(openPhase?.from).toBe(before.transcript.length);
    expect(transcript.slice()).toEqual([...before.transcript.slice(), ...progress.transcript.slice(1)]);
    expect(transcript.continues(before.transcript)).toBe(true);
  });

  test('within a phase that begins again: what it said when that phase began (pipeline 8)', () => {
    const before = completed([a]);
    const within = stepped(stepped(beginPhase(before, anew)));
    expect(within.openPhase?.start).toBeDefined();
    const { openPhase: _, ...expected } = recordable(before);
    expect(recordable(within)).toEqual({ ...expected, attempts: 0 });
    expect(recordable(within).transcript.slice()).toEqual(before.transcript.slice());
  });

  test('within a first phase that begins again: that nothing was spent (pipeline 8)', () => {
    const within = stepped(beginPhase(fresh(), facts('a', { recovery: 'boundary' })));
    expect(within.spend).toEqual(spend);
    expect(recordable(within)).not.toHaveProperty('spend');
    expect(recordable(within)).toMatchObject({ iteration: 0, usage: fresh().usage, counters: fresh().counters });
  });

  test('within such a phase after it did something that must not be done twice: its steps (pipeline 8)', () => {
    const kept = stepped(keepPhase(stepped(beginPhase(completed([a]), anew))));
    expect(recordable(kept).transcript).toBe(kept.whole);
    expect(kept.openPhase).toEqual({ index: 1, hash: b.hash, iteration: 2, from: 2 });
    expect(keepPhase(kept)).toBe(kept);
    expect(keepPhase(fresh())).toMatchObject({ iteration: 0 });
  });

  test('within such a phase that got a message: the message once, waiting or in the conversation (supervision 9)', () => {
    const message = enterMessage({ role: 'user', content: [{ type: 'text', text: 'also X' }] });
    const told = { ...stepped(beginPhase(completed([a]), anew)), undelivered: [message] };
    expect(recordable(told)).toMatchObject({ undelivered: [message], iteration: 1 });
    const heard = recordable(deliver(told));
    expect(heard).toMatchObject({ undelivered: [], iteration: 2 });
    expect(heard.transcript.at(-1)).toEqual(message);
  });
});
