import { describe, expect, test } from 'vitest';
import type { ResumeEntry } from '../../src/ag-ui/input.ts';
import {
  answerLate,
  decideInterrupt,
  ignoreLate,
  interruptOf,
  matchResume,
  type PersonWait,
} from '../../src/ag-ui/interrupts.ts';
import type { JsonValue, RunControl } from '../../src/index.ts';
import { AlreadyAnsweredError, WaitGoneError } from '../../src/values/errors.ts';

const facts = { createdAt: 0, step: 1, callId: 'c', tool: 'mail' };
const approval = (id: string, more: object = {}): PersonWait =>
  ({
    id,
    kind: 'approval',
    ...facts,
    digest: 'd',
    quorum: 1,
    votes: [],
    editable: true,
    onExpiry: 'deny',
    ...more,
  }) as never;
const question = (id: string, more: object = {}): PersonWait =>
  ({ id, kind: 'question', ...facts, question: 'Which one?', ...more }) as never;
const resolved = (interruptId: string, payload?: JsonValue): ResumeEntry => ({
  interruptId,
  status: 'resolved',
  payload,
});
const cancelled = (interruptId: string): ResumeEntry => ({ interruptId, status: 'cancelled', payload: undefined });

/** A control that notes its calls, and fails with an error. */
function control(error?: Error) {
  const calls: unknown[][] = [];
  const call =
    (name: string) =>
    async (...given: unknown[]) => {
      calls.push([name, ...given]);
      if (error) throw error;
      return 'recorded';
    };
  return {
    calls,
    it: { approve: call('approve'), deny: call('deny'), answer: call('answer') } as unknown as RunControl,
  };
}

describe('an interrupt', () => {
  test('offers edits of the arguments only where the tool allows them (web 34)', () => {
    expect(interruptOf(approval('w'), { toolCallId: 'call' }).responseSchema).toMatchObject({
      properties: { editedArgs: { type: 'object' } },
    });
    expect(
      interruptOf(approval('w', { editable: false }), { toolCallId: 'call' }).responseSchema?.properties,
    ).not.toHaveProperty('editedArgs');
  });

  test('shows who changed the input, both inputs, and why the last answer was refused (edges 22)', () => {
    const wait = approval('w', { input: { to: 'Eve' }, modelInput: { to: 'Bob' }, changedBy: { id: 'ada' } });
    expect(interruptOf(wait, { refused: 'ANSWER_REFUSED' }).metadata).toMatchObject({
      pawl: { input: { to: 'Eve' }, modelInput: { to: 'Bob' }, changedBy: { id: 'ada' }, refused: 'ANSWER_REFUSED' },
    });
    expect(interruptOf(question('w'), { refused: 'ANSWER_REFUSED' }).metadata).toEqual({
      pawl: { refused: 'ANSWER_REFUSED' },
    });
  });

  test('says who has given which vote, where several persons must agree (web 34, workflow 23)', () => {
    const votes = [{ by: { id: 'ada' }, at: 7, value: 'yes' }];
    expect(interruptOf(question('w', { quorum: 2, votes })).metadata).toEqual({
      pawl: { quorum: 2, votes: 1, given: [{ by: { id: 'ada' }, at: 7, value: 'yes' }] },
    });
    const approvals = [{ by: { id: 'ada' }, at: 7, note: 'fine' }];
    expect(interruptOf(approval('w', { quorum: 2, votes: approvals })).metadata).toMatchObject({
      pawl: { quorum: 2, votes: 1, given: [{ by: { id: 'ada' }, at: 7 }] },
    });
    expect(interruptOf(approval('w')).metadata?.pawl).not.toHaveProperty('given');
  });

  test('of a question has its text, and the schema or the options of the answer (web 34)', () => {
    expect(interruptOf(question('w', { options: ['a', 'b'] }))).toEqual({
      ...{ id: 'w', reason: 'input_required', message: 'Which one?', responseSchema: { enum: ['a', 'b'] } },
    });
    expect(interruptOf(question('w', { schema: { type: 'number' } })).responseSchema).toEqual({
      type: 'number',
    });
    expect(interruptOf(question('w'))).not.toHaveProperty('responseSchema');
  });
});

describe('resume', () => {
  const open = [approval('a'), question('q')];

  test('needs one answer for each open interrupt (web 34)', () => {
    const { decisions, late } = matchResume([resolved('q', 7), resolved('a', { approved: true })], open);
    expect(decisions.map(({ wait }) => wait.id)).toEqual(['q', 'a']);
    expect(late).toEqual([]);
  });

  test.for([
    ['without one of them', [resolved('a', { approved: true })], 'without one: q'],
    ['with one twice', [cancelled('a'), resolved('q', 7), cancelled('a')], 'twice'],
    ['with no decision', [resolved('a', {}), resolved('q', 7)], '{ approved, editedArgs?, note? }'],
    [
      'with a text for a decision',
      [resolved('a', { approved: 'true' }), resolved('q', 7)],
      '{ approved, editedArgs?, note? }',
    ],
    ['with a note that is none', [resolved('a', { approved: true, note: {} }), resolved('q', 7)], 'note'],
    ['without an answer to a question', [cancelled('a'), resolved('q')], 'payload'],
    ['that gives up a question', [cancelled('a'), cancelled('q')], 'cancel the run'],
  ] as [string, ResumeEntry[], string][])('%s is refused (web 34)', ([, entries, message]) => {
    expect(() => matchResume(entries, open)).toThrow(
      expect.objectContaining({ code: 'RESUME_MISMATCH', message: expect.stringContaining(message) }),
    );
  });

  test('approves, approves an edit, denies with a reason, and takes `cancelled` for a denial (web 34)', async () => {
    const by = { id: 'ada' };
    const { calls, it } = control();
    const wait = approval('a');
    const give = (entry: ResumeEntry) => decideInterrupt(it, { wait, entry }, by);
    await give(resolved('a', { approved: true }));
    await give(resolved('a', { approved: true, editedArgs: { to: 'Bob' }, note: 'Fine.' }));
    await give(resolved('a', { approved: false, editedArgs: { to: 'Bob' }, note: 'No.' }));
    await give(cancelled('a'));
    expect(calls).toEqual([
      ['approve', 'a', { by, digest: 'd' }],
      ['approve', 'a', { by, input: { to: 'Bob' }, note: 'Fine.', digest: 'd' }],
      ['deny', 'a', { by, reason: 'No.' }],
      ['deny', 'a', { by }],
    ]);
  });

  test('answers a question with its payload (web 34)', async () => {
    const { calls, it } = control();
    await decideInterrupt(it, { wait: question('q'), entry: resolved('q', { n: 1 }) }, undefined);
    expect(calls).toEqual([['answer', 'q', { n: 1 }, {}]]);
  });

  test('that comes late is no error, and one for a wait that the run never had is refused (web 34)', async () => {
    const other = new AlreadyAnsweredError('taken', { answered: { at: 0, how: 'deny' } } as never);
    await answerLate(control(other).it, resolved('a', { approved: true }), undefined);
    await answerLate(control().it, cancelled('a'), undefined);
    const late = answerLate(control(new WaitGoneError('none')).it, resolved('x', 7), undefined);
    await expect(late).rejects.toMatchObject({ code: 'RESUME_MISMATCH' });
    expect(() => ignoreLate(new WaitGoneError('none'))).not.toThrow();
    expect(() => ignoreLate(new Error('other'))).toThrow('other');
  });
});
