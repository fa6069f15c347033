import type { Message, ResumeState } from 'pawl';
import { describe, expect, test } from 'vitest';
import { hasUnknownOutcome, recoverOpenStep } from '../../src/run/open-step.ts';
import { beginProgress, type ToolFacts } from '../../src/run/progress.ts';
import { resumeProgress } from '../../src/run/resume.ts';
import { metaOf } from '../fixtures/states.ts';

const fresh = beginProgress(metaOf(), { version: '2', hash: 'new' });
const facts: ToolFacts = { read: { effect: 'read' }, keyed: { effect: 'idempotent' }, once: { effect: 'once' } };
const user: Message = { role: 'user', content: [{ type: 'text', text: 'Go.' }] };
const asks = (...names: string[]): Message => ({
  role: 'assistant',
  content: names.map((toolName, i) => ({ type: 'tool-call', toolCallId: `c${i}`, toolName, input: { i } })),
});
const answers = (...ids: string[]): Message => ({
  role: 'tool',
  content: ids.map((toolCallId) => ({
    type: 'tool-result',
    toolCallId,
    toolName: 'x',
    output: { type: 'text', value: toolCallId },
  })),
});
const resume = (...history: Message[]) => resumeProgress(fresh, { history }, facts);
const refused = (code = 'TRANSCRIPT_INVALID') => expect.objectContaining({ code });

describe('a history', () => {
  test('whose calls all have results becomes the transcript as it is (executor 12)', () => {
    const history = [user, asks('read', 'once'), answers('c0', 'c1'), user, asks('read'), answers('c0')];
    const progress = resume(...history);
    expect(progress.transcript.slice()).toEqual(history);
    expect(progress.openStep).toBeUndefined();
    expect(progress.meta).toBe(fresh.meta);
    expect(progress.definition).toBe(fresh.definition);
  });

  test('whose results are spread over several tool messages is fine (executor 17)', () => {
    expect(resume(user, asks('read', 'read'), answers('c1'), answers('c0')).openStep).toBeUndefined();
  });

  test('that ends in calls without results: they are the open step, and all of them count as started (executor 12)', () => {
    const progress = resume(user, asks('read', 'keyed', 'once', 'nobody'));
    expect(progress.transcript.slice()).toEqual([user]);
    expect(progress.openStep).toMatchObject({ message: asks('read', 'keyed', 'once', 'nobody') });
    expect(progress.openStep?.calls.map(({ name, effect, state }) => [name, effect, state])).toEqual([
      ['read', 'read', 'started'],
      ['keyed', 'idempotent', 'started'],
      ['once', 'once', 'started'],
      ['nobody', 'read', 'started'],
    ]);
  });

  test('that ends in calls some of which have results: these are done, in the ledger (executor 12)', () => {
    const progress = resume(user, asks('once', 'once', 'read'), answers('c1'));
    expect(progress.transcript.slice()).toEqual([user]);
    expect(progress.openStep?.calls).toMatchObject([
      { callId: 'c0', state: 'started' },
      { callId: 'c1', state: 'done', result: { type: 'text', value: 'c1' } },
      { callId: 'c2', state: 'started' },
    ]);
  });

  test('a call that the provider ran itself needs no result of ours', () => {
    const provided: Message = {
      role: 'assistant',
      content: [{ type: 'tool-call', toolCallId: 'p', toolName: 'search', input: {}, providerExecuted: true }],
    };
    expect(resume(user, provided, user).openStep).toBeUndefined();
  });

  test('that is empty is a fresh start (executor 12)', () => {
    expect(resume().transcript.slice()).toEqual(fresh.transcript.slice());
  });

  test.for<[string, Message[]]>([
    ['a result first', [answers('c0')]],
    ['a result after the prompt', [user, answers('c0')]],
    ['a result of another call', [user, asks('read'), answers('zzz')]],
    ['one result twice', [user, asks('read', 'read'), answers('c0', 'c0')]],
    ['one result too many', [user, asks('read'), answers('c0'), answers('c0')]],
    ['a call in the middle without a result', [user, asks('read', 'read'), answers('c0'), user]],
    ['a result after another message came between', [user, asks('read'), user, answers('c0')]],
    ['a message without a content', [{ role: 'user' } as never]],
    ['a content that is a text', [{ role: 'user', content: 'text' } as never]],
    ['parts that are no objects', [{ role: 'assistant', content: ['text'] } as never]],
  ])('with %s is refused with TRANSCRIPT_INVALID (executor 12)', ([, history]) => {
    expect(() => resume(...history)).toThrow(refused());
  });

  test('that is not JSON is refused with the path (checkpoint 11)', () => {
    const bad = {
      role: 'user',
      content: [{ type: 'text', text: 'x', providerOptions: { when: new Date() } }],
    } as never;
    expect(() => resume(user, bad)).toThrow(/history\[1\]\.content\[0\]\.providerOptions\.when/);
  });
});

test('everything else of a resume state is taken over; what it leaves out is as at the start (executor 13)', () => {
  const usage = { inputTokens: 5, outputTokens: 4, reasoningTokens: 3, cacheReadTokens: 2, cacheWriteTokens: 1 };
  const state: ResumeState = {
    history: [user],
    iteration: 7,
    usage,
    counters: { failedSteps: 2, repeats: { x: 1 } },
    attempts: 2,
    elapsedMs: 99,
    inputs: { a: 1 },
    completedPhases: [{ name: 'p', output: 'o' }],
    definition: { version: '1', hash: 'old' },
  };
  const { history: _, definition: __, inputs, ...rest } = state;
  const resumed = resumeProgress(fresh, state);
  expect(resumed).toMatchObject({ ...rest, definition: fresh.definition });
  expect(resumed.inputs.value).toEqual(inputs);
  const bare = resumeProgress(fresh, { history: [user] });
  expect(bare).toMatchObject({ iteration: 0, elapsedMs: 0, completedPhases: [] });
  expect(bare.inputs.value).toEqual({});
});

describe('the ledger after a crash (executor 14)', () => {
  const line = (effect: 'read' | 'idempotent' | 'once', state: 'planned' | 'started' | 'done') => ({
    callId: `${effect}-${state}`,
    name: 'x',
    input: null,
    effect,
    state,
    attempt: state === 'planned' ? 0 : 1,
    ...(state === 'done' ? { result: { type: 'text' as const, value: 'kept' } } : {}),
  });
  const effects = ['read', 'idempotent', 'once'] as const;
  const calls = effects.flatMap((effect) =>
    (['planned', 'started', 'done'] as const).map((state) => line(effect, state)),
  );
  const step = { message: { role: 'assistant' as const, content: [] }, calls };

  test('done stays done, planned stays planned, started goes by effect', () => {
    const after = recoverOpenStep(step).calls;
    expect(after.filter(({ callId }) => !callId.endsWith('started'))).toEqual(
      calls.filter(({ state }) => state !== 'started'),
    );
    expect(
      after
        .filter(({ callId }) => callId.endsWith('started'))
        .map(({ callId, state, attempt }) => [callId, state, attempt]),
    ).toEqual([
      ['read-started', 'planned', 1],
      ['idempotent-started', 'planned', 1],
      ['once-started', 'done', 1],
    ]);
    expect(after.find(({ callId }) => callId === 'once-started')?.result).toMatchObject({ type: 'error-text' });
  });

  test('a second crash changes nothing more', () => {
    const once = recoverOpenStep(step);
    expect(recoverOpenStep(once)).toEqual(once);
  });

  test('only a once call under way leaves an unknown outcome', () => {
    for (const call of calls) {
      expect(hasUnknownOutcome({ ...step, calls: [call] })).toBe(call.callId === 'once-started');
    }
  });
});
