import { describe, expect, test } from 'vitest';
import { timelineOfRecord, withEffects } from '../../../src/studio/page/run/record-timeline.ts';
import { emptyTimeline, type TimelineStep } from '../../../src/studio/page/run/timeline.ts';
import { nextRow, rowsOfTimeline, toolsOf } from '../../../src/studio/page/run/timeline-rows.ts';
import { verdictLine } from '../../../src/studio/record/verdict-line.ts';
import type { RecordView } from '../../../src/studio/wire.ts';

const NOW = 1_000_000;
const line = { runId: 'r', agentId: 'a', agentName: 'Desk', prompt: '', where: 'step 3', steps: 2, tokens: 0 };
const viewOf = (state: string, more: object = {}) =>
  ({
    line: { ...line, state, children: 0, labels: {} },
    ...{ rootRunId: 'r', waits: [], children: [], usage: { inputTokens: 0, outputTokens: 0, models: [] } },
    verdict: { verdict: 'resumes', reason: 'it continues after 2 steps', needsPerson: false },
    ...more,
  }) as unknown as RecordView;

describe('the line above all else', () => {
  test('of a run that asks says which call, since when, who holds the run, and has the button that answers (studio 2)', () => {
    const wait = { id: 'w1', kind: 'approval', createdAt: NOW - 252_000, step: 3, callId: 'c', tool: 'pay' };
    expect(verdictLine(viewOf('you', { waits: [wait] }))).toEqual({
      state: 'you',
      title: 'Waits for a person. ',
      name: 'pay',
      text: [
        'asks for approval since ',
        { kind: 'age', at: NOW - 252_000 },
        '. ',
        'No process holds the run.',
        ' An answer is taken up as soon as a process looks for work.',
      ],
      action: { word: 'Review and answer', view: 'inbox', id: 'w1' },
    });
  });

  test('of a run that was answered says so, and what continues it (studio 2, 9)', () => {
    const wait = {
      id: 'w1',
      kind: 'approval',
      createdAt: NOW,
      step: 3,
      callId: 'c',
      tool: 'pay',
      quorum: 1,
      votes: [],
    };
    const answers = { w1: [{ how: 'approve', by: { id: 'ada' }, isLast: true }] };
    const resume = { text: 'It continues when a process takes it up:', command: 'npx --no-install pawl resume r' };
    expect(verdictLine(viewOf('you', { waits: [wait], answers, resume }))).toEqual({
      state: 'you',
      title: 'Approved by ada. ',
      text: ['No process holds the run.', ' It continues when a process takes it up: npx --no-install pawl resume r'],
    });
    const voted = viewOf('you', { waits: [{ ...wait, quorum: 2 }], answers, resume });
    expect(verdictLine(voted).title).toBe('Waits for a person. ');
    expect(verdictLine(viewOf('idle', { resume })).text.join('')).toBe(
      'It continues after 2 steps. No process works on it. It continues when a process takes it up: npx --no-install pawl resume r',
    );
  });

  test('of a run that works says where, which process holds it, and how long its lease lasts (studio 2)', () => {
    const owner = { name: 'process 7 on host', id: 'x', leaseUntil: NOW + 24_000, isHere: false };
    expect(verdictLine(viewOf('run', { owner })).text).toEqual([
      ...['Step 3.', ' ', 'Process 7 on host holds the run', { kind: 'lease', at: NOW + 24_000 }, '.'],
    ]);
  });

  test('of an interrupted, a parked and an ended run has the words of pawl doctor, and the code (studio 2, 12)', () => {
    expect(verdictLine(viewOf('idle')).text.join('')).toMatch(/^It continues after 2 steps\. No process works on it;/);
    const verdict = { verdict: 'parked', reason: 'it is parked: by hand', code: 'PARKED', needsPerson: true };
    expect(verdictLine(viewOf('park', { verdict }))).toMatchObject({
      name: 'PARKED',
      text: ['It is parked: by hand. It stays until a person unparks it.'],
    });
    const result = { status: 'error', output: '', error: { code: 'MODEL', message: 'overloaded' } };
    expect(verdictLine(viewOf('fail', { result }))).toEqual({
      ...{ state: 'fail', title: 'Ended: error. ', name: 'MODEL', text: ['Overloaded.', ' See docs/errors.md#model.'] },
    });
  });
});

const stepOf = (step: number, names: readonly string[] = []): TimelineStep => ({
  ...{ step, from: 0, words: 'said', isDone: true, retries: 0 },
  calls: names.map((name, i) => ({
    ...{ callId: `c${step}-${i}`, name, state: 'done', words: '', starts: [], attempts: 1, from: 0 },
  })),
});

describe('the rows of a timeline', () => {
  const steps = [stepOf(1, ['look', 'look', 'note']), stepOf(2, ['look']), stepOf(3)];
  const owner = { kind: 'owner', why: 'died', at: 0, ms: 0, cut: [], repeated: 0, again: [], unknown: [] } as const;
  const marks = [{ ...owner, isTurnAgain: false, step: 1, isInside: true }];

  test('fold old steps, and open what the reader opened (studio 3)', () => {
    const timeline = { ...emptyTimeline, steps };
    const keys = (turned: readonly number[]) =>
      rowsOfTimeline(timeline, { openFrom: 2, turned: new Set(turned) }).map(({ key }) => key);
    expect(keys([])).toEqual(['1', '2', '2/c2-0', '3']);
    expect(keys([1, 2])).toEqual(['1', '1/c1-0', '1/c1-1', '1/c1-2', '2', '3']);
    expect(steps.map(toolsOf)).toEqual(['2 look, 1 note', '1 look', 'said']);
  });

  test('begin with the steps that are not loaded, until they are (studio 3, 33)', () => {
    const timeline = { ...emptyTimeline, steps: [stepOf(41), stepOf(42)] };
    const rows = (hasEarlier: boolean) => rowsOfTimeline(timeline, { openFrom: 1, turned: new Set(), hasEarlier });
    expect(rows(true)[0]).toEqual({ key: 'earlier', kind: 'earlier', to: 40 });
    expect(rows(false).map(({ kind }) => kind)).toEqual(['step', 'step']);
    const whole = rowsOfTimeline({ ...timeline, steps }, { openFrom: 9, turned: new Set(), hasEarlier: true });
    expect(whole[0]?.kind).toBe('step');
  });

  test('a change of owner inside a step stands below its turn and opens the step; phases to come are named (studio 3, 4)', () => {
    const rows = rowsOfTimeline({ ...emptyTimeline, steps, marks }, { openFrom: 9, turned: new Set() }, [
      'survey',
      'report',
    ]);
    expect(rows.map(({ kind }) => kind)).toEqual([
      'step',
      'mark',
      'call',
      'call',
      'call',
      'step',
      'step',
      'later',
      'later',
    ]);
    expect(nextRow(rows, { from: 0, by: 1 })).toBe(2);
    expect(nextRow(rows, { from: 2, by: 1, isStep: true })).toBe(5);
    expect(nextRow(rows, { from: 6, by: 1 })).toBe(6);
  });
});

describe('without a journal', () => {
  const messages = [
    { index: 0, role: 'user', texts: [{ text: 'Go.', bytes: 3 }] },
    {
      index: 1,
      role: 'assistant',
      texts: [],
      calls: [{ callId: 'a', name: 'look', input: { value: { f: 'x.ts' }, bytes: 9 } }],
    },
    {
      index: 2,
      role: 'tool',
      texts: [],
      results: [{ callId: 'a', name: 'look', output: { value: 'no', bytes: 4 }, isError: true }],
    },
  ] as const;
  const call = {
    callId: 'b',
    name: 'pay',
    effect: 'once',
    state: 'started',
    attempt: 1,
    key: 'k',
    input: { value: {}, bytes: 2 },
  };
  const record = { iteration: 4, attempts: 1, openStep: { step: 5, calls: [call], more: 0 } };
  const view = viewOf('idle', { record });

  test('the timeline is made of the record and its messages (studio 3, 12)', () => {
    const timeline = timelineOfRecord(view, messages);
    expect(timeline.steps).toMatchObject([
      { step: 4, isDone: true, calls: [{ name: 'look', words: 'x.ts', state: 'failed' }] },
      { step: 5, isDone: false, calls: [{ name: 'pay', effect: 'once', state: 'started' }] },
    ]);
    expect(timeline.begin).toBe(0);
  });

  test('its last answer says how it ended, as the record does (edges 7)', () => {
    const { openStep: _, ...rest } = record;
    const cut = viewOf('idle', { record: { ...rest, finishReason: 'length' } });
    expect(timelineOfRecord(cut, messages).steps.at(-1)?.ending).toBe('cut at its length limit');
    expect(timelineOfRecord(view, messages).steps.at(-1)?.ending).toBeUndefined();
  });

  test('or with one, the effect of a call that has not begun comes from the record (studio 6)', () => {
    const { effect: _, ...planned } = { ...stepOf(5, ['pay']).calls[0], callId: 'b', effect: undefined };
    const timeline = { ...emptyTimeline, steps: [stepOf(4), { ...stepOf(5), calls: [planned as never] }] };
    expect(withEffects(timeline, view.record).steps[1]?.calls).toMatchObject([{ callId: 'b', effect: 'once' }]);
  });
});
