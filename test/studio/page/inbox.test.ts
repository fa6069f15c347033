import { describe, expect, test } from 'vitest';
import { takeWords } from '../../../src/studio/page/frame/words.ts';
import { fieldsOf, filledOf, refusalsIn, typedOf } from '../../../src/studio/page/inbox/form-fields.ts';
import {
  afterRecord,
  answerIn,
  headOfStage,
  isStageOver,
  type StageAnswer,
  stageAfter,
  stagesOfAnswers,
} from '../../../src/studio/page/inbox/stages.ts';
import {
  dueOfWait,
  fullerWait,
  overText,
  resultOfExpiry,
  settledText,
  titleOf,
  votesShownOf,
  voteText,
  waitRows,
  when,
  whereOf,
} from '../../../src/studio/page/inbox/waits.ts';
import { pageWords } from '../../../src/studio/page-words.ts';
import type { JournalEvent, RecordView, WaitLine } from '../../../src/studio/wire.ts';

takeWords(
  pageWords(
    { journal: true, waits: true, commands: true, history: true, threads: true },
    { write: true, apply: false },
  ),
);

const NOON = new Date('2026-03-02T12:00:00').getTime();

const approval = (more: object = {}) =>
  ({
    kind: 'approval',
    id: 'w1',
    runId: 'r1',
    rootRunId: 'r1',
    path: [{ runId: 'r1', agentId: 'desk' }],
    agentId: 'desk',
    callerId: 'shop',
    labels: {},
    createdAt: NOON,
    step: 3,
    callId: 'c1',
    tool: 'refund',
    input: { cents: 700 },
    digest: 'd1',
    quorum: 1,
    votes: [],
    editable: true,
    onExpiry: 'deny',
    ...more,
  }) as unknown as WaitLine;

const approved = (more: Partial<StageAnswer> = {}, wait = approval()): StageAnswer => ({
  wait,
  how: 'approve',
  isSending: false,
  isStored: true,
  ...more,
});
const event = (type: string, more: object) => ({ type, runId: 'r1', ...more }) as unknown as JournalEvent;
const record = (more: object = {}) =>
  ({ waits: [], line: { steps: 0, state: 'run', where: 'step 3' }, ...more }) as unknown as RecordView;
const isDone = (own: StageAnswer) => stagesOfAnswers(own).map((stage) => stage.isDone);

describe('the list of waits (studio 8)', () => {
  test('shows first what needs a person, and in each group what ends soonest', () => {
    const late = approval({ id: 'late', dueAt: NOON + 9_000 });
    const never = approval({ id: 'never' });
    const soon = approval({ id: 'soon', dueAt: NOON + 1_000 });
    const timer = approval({ id: 'timer', kind: 'timer', dueAt: NOON });
    const outage = approval({ id: 'outage', kind: 'retry', needsPerson: true, dueAt: NOON + 5_000 });
    const namesOf = (...answered: readonly string[]) =>
      waitRows([timer, never, late, outage, soon], ({ id }) => answered.includes(id)).map((row) =>
        'wait' in row ? row.wait.id : row.group,
      );
    expect(namesOf('never', 'soon').slice(0, 6)).toEqual(['Needs you', 'outage', 'late', 'Answered', 'soon', 'never']);
    expect(namesOf()).toEqual(['Needs you', 'soon', 'outage', 'late', 'never', 'Time and events', 'timer']);
  });

  test('says who has given which vote, and when (workflow 23)', () => {
    const ada = { by: { id: 'ada' }, at: NOON };
    expect(voteText({ ...ada, value: 'yes' })).toMatch(/^ada answered "yes" at .*12:00/);
    expect(voteText({ ...ada, note: 'fine' })).toMatch(/^ada approved at .*12:00.*: fine$/);
  });

  test('names the question, the runs above, the votes, the end and what the end means', () => {
    const path = [
      { runId: 'r1', agentId: 'desk' },
      { runId: '~x', agentId: 'clerk', callId: 'c0' },
    ];
    const wait = approval({ path, prompt: 'Pay?', quorum: 2, dueAt: NOON + 82_800_000, onExpiry: 'park' });
    expect([titleOf(wait), whereOf(wait), votesShownOf(wait), dueOfWait(wait, NOON)]).toEqual([
      'Pay?',
      ['r1', 'clerk', 'refund'],
      'needs 2, 0 given',
      'approval · expires in 23 h',
    ]);
    expect(resultOfExpiry(wait).join(' ')).toBe('the run is parked');
    expect(dueOfWait(wait, NOON + 90_000_000)).toBe('approval · its time is over');
    expect([when(NOON, NOON), when(NOON + 86_400_000, NOON)]).toEqual(['12:00', 'tomorrow 12:00']);
  });

  test('says which rule holds back the request of a run that rests for its turn, and until when (failover 18)', () => {
    const wait = approval({ kind: 'limit', model: 'anthropic/opus', rule: 'label:tenant', dueAt: NOON + 90_000 });
    expect([titleOf(wait), dueOfWait(wait, NOON)]).toEqual(['label:tenant', 'limit · in 1 m 30 s']);
    expect(titleOf(approval({ kind: 'limit', model: 'm' }))).toBe('m');
  });

  test('takes what the list had no room for from the record of the run, if it is the same input (studio 27)', () => {
    const long = { input: { text: '', bytes: 900, at: 'x' } };
    const listed = approval({ input: undefined, long });
    const has = (own: object) => fullerWait(listed, record({ waits: [approval(own)] }));
    expect(has({})).toMatchObject({ input: { cents: 700 }, path: [{ runId: 'r1' }] });
    expect(has({})).not.toHaveProperty('long');
    expect(has({ input: undefined, long })).toMatchObject({ long });
    for (const other of [{ digest: 'd2' }, { id: 'w2' }]) expect(has(other)).toBe(listed);
    expect(fullerWait(listed, undefined)).toBe(listed);
  });

  test('says how a wait ended, and by whom, from an error or from the record', () => {
    const settled = { id: 'w1', how: 'deny', by: { id: 'bob', name: 'Bob' }, at: NOON };
    expect(settledText(settled)).toMatch(/^Denied by Bob at .*12:00$/);
    expect(settledText({ how: 'x' })).toBeUndefined();
    expect(settledText('Denied')).toBeUndefined();
    const kept = record({ record: { raw: { value: { waiting: { settled: [null, settled] } } } } });
    expect(overText(kept, 'w1')).toMatch(/^Denied by Bob at .*12:00\.$/);
    expect(settledText({ how: 'approve', by: { id: 'ada' }, note: 'I rang.' })).toBe('Approved by ada: I rang.');
    expect(overText(record({ line: { state: 'cut', where: 'ended: cancelled' } }), 'w1')).toBe(
      'The run has ended: ended: cancelled.',
    );
  });
});

describe('the stages of an answer (studio 9)', () => {
  test('are true one after the other, from the events of the run: stored, taken up, the call runs, its result', () => {
    let own = approved();
    expect(isDone(own)).toEqual([true, false, false]);
    own = stageAfter(own, event('tool.started', { callId: 'c1' }), 'api-1');
    expect(isDone(own)).toEqual([true, false, false]);
    own = stageAfter(own, event('wait.answered', { waitId: 'w1', how: 'approve' }), 'api-2');
    expect(stagesOfAnswers(own)[1]).toEqual({ text: 'Taken up by api-2', isDone: true });
    own = stageAfter(own, event('tool.started', { callId: 'c2' }), 'api-2');
    expect(isDone(own)).toEqual([true, true, false]);
    own = stageAfter(own, event('tool.started', { callId: 'c1', owner: 'api-2' }), 'api-2');
    expect([isDone(own), isStageOver(own)]).toEqual([[true, true, true], false]);
    own = stageAfter(own, event('tool.done', { callId: 'c1', output: { type: 'error-text', value: 'no' } }), 'api-2');
    expect([stagesOfAnswers(own)[2]?.text, isStageOver(own)]).toEqual(['refund has failed: the model reads why', true]);
  });

  test('are what the record proves where no journal is: the wait is gone, its call has started, its step is over', () => {
    const open = record({ waits: [approval()] });
    expect(isDone(afterRecord(approved(), open))).toEqual([true, false, false]);
    const calls = [{ callId: 'c1', state: 'started' }];
    const started = afterRecord(
      approved(),
      record({ owner: { id: 'x|api-2', name: 'api-2' }, record: { openStep: { calls } } }),
    );
    expect([started.takenBy, started.call]).toEqual(['api-2', 'started']);
    expect(afterRecord(approved(), record({ line: { steps: 2 } })).call).toBeUndefined();
    expect(afterRecord(approved(), record({ line: { steps: 3 } })).call).toBe('recorded');
  });

  test('tell of an answer that another person gave first, and of one that was refused', () => {
    const settled = [{ id: 'w1', how: 'deny', by: { id: 'bob' }, at: NOON }];
    const raw = { value: { waiting: { settled } } };
    const { trouble } = afterRecord(approved(), record({ record: { raw } }));
    expect(trouble).toMatchObject({ code: 'ALREADY_ANSWERED', message: expect.stringContaining('Denied by bob') });
    const refused = event('wait.refused', { waitId: 'w1', code: 'ANSWER_REFUSED', reason: 'not yours' });
    expect(stageAfter(approved(), refused).trouble).toEqual({ code: 'ANSWER_REFUSED', message: 'not yours' });
  });

  test('of an answer that was refused are none: it never reads Stored (edges 22)', () => {
    const refused = event('wait.refused', { waitId: 'w1', code: 'ANSWER_REFUSED', reason: 'not yours' });
    expect(stagesOfAnswers(stageAfter(approved({ isPending: true }), refused))).toEqual([]);
    // The record of a wait that was asked again does not have it any more, and may be read first.
    const again = event('wait.refused', { waitId: 'w1', code: 'WAIT_GONE', reason: 'wait w2 asks again' });
    expect(stagesOfAnswers(stageAfter(approved({ takenBy: '' }), again))).toEqual([]);
  });

  test('of an answer that its process may refuse begin with that: it is not called stored (edges 22)', () => {
    expect(stagesOfAnswers(approved({ isPending: true }))[0]?.text).toMatch(/may refuse it$/);
    expect(stagesOfAnswers(approved({ isPending: true, takenBy: 'api-2' }))[0]?.text).toMatch(/^Stored/);
  });

  test('of one vote of two end with the vote: no call runs yet', () => {
    const wait = approval({ quorum: 2 });
    const voted = stageAfter(approved({}, wait), event('wait.answered', { waitId: 'w1', votes: 1 }), 'api-2');
    expect(stagesOfAnswers(voted).at(-1)?.text).toBe('1 of 2 have approved: others are needed');
    const votes = [{ by: { id: 'ada' }, at: NOON }];
    expect(afterRecord(approved({}, wait), record({ waits: [approval({ quorum: 2, votes })] })).votes).toBe(1);
  });

  test('of a denial end when it is taken up', () => {
    expect(isStageOver(approved({ how: 'deny', takenBy: '' }))).toBe(true);
    expect(isStageOver(approved({ how: 'deny' }))).toBe(false);
  });

  test('that have not come are said as what is to come', () => {
    expect(stagesOfAnswers(approved()).map(({ text }) => text)).toEqual([
      'Stored: your answer survives a crash from here on',
      'Next: a process takes up the run',
      'Then: refund runs',
    ]);
    expect(stagesOfAnswers(approved({ how: 'deny' }))[2]?.text).toBe('Then: The model reads that it was denied');
  });

  test('stand below the answer, which names the person and what became of the call', () => {
    const ada = { id: 'ada' };
    const heads = [
      approved(),
      approved({ takenBy: '', call: 'started' }),
      approved({ takenBy: '', call: 'done' }),
      approved({ takenBy: '', call: 'failed' }),
      approved({ how: 'deny' }),
      approved({ by: { id: 'bob', name: 'Bob' } }),
      approved({}, approval({ quorum: 2 })),
    ].map((own) => headOfStage(own, ada));
    expect(heads).toEqual([
      'Approved by ada. refund has not started yet.',
      'Approved by ada. refund runs.',
      'Approved by ada. refund is done.',
      'Approved by ada. refund has failed.',
      'Denied by ada. refund does not run.',
      'Approved by Bob. refund has not started yet.',
      'Approved by ada. Each person has one vote.',
    ]);
  });

  test('begin with an answer that another tab, or the command line, has stored', () => {
    const answers = { w1: [{ how: 'deny', by: { id: 'bob' }, isLast: true }] };
    const stored = record({ waits: [approval()], answers });
    expect(answerIn(approval(), stored)).toMatchObject({ how: 'deny', by: { id: 'bob' }, isStored: true });
    expect(answerIn(approval({ id: 'w2' }), stored)).toBeUndefined();
    // One vote of two: this person may have to give the other.
    expect(answerIn(approval({ quorum: 2 }), stored)).toBeUndefined();
    // The run may refuse it: another one may count.
    expect(
      answerIn(approval(), record({ waits: [approval()], answers: { w1: [{ how: 'approve' }] } })),
    ).toBeUndefined();
  });
});

describe('the form of an edit or an answer (studio 8)', () => {
  const schema = {
    type: 'object',
    properties: {
      cents: { type: 'integer', description: 'How much.' },
      why: { enum: ['late', 'lost'] },
      now: { type: 'boolean' },
      tags: { type: 'array' },
    },
    required: ['cents'],
  } as const;

  test('has a field for each property of the schema, with its kind and its help', () => {
    expect(fieldsOf(schema, undefined).map(({ name, kind, isRequired }) => [name, kind, isRequired])).toEqual([
      ['cents', 'integer', true],
      ['why', 'choice', false],
      ['now', 'flag', false],
      ['tags', 'json', false],
    ]);
    expect(fieldsOf({ type: 'string' }, undefined)).toMatchObject([{ name: '', kind: 'text' }]);
    expect(fieldsOf(undefined, [1])).toMatchObject([{ name: '', kind: 'json' }]);
  });

  test('has what the schema asks for and the input lacks, and JSON for what is deeper', () => {
    const deep = {
      type: 'object',
      properties: { to: { anyOf: [{ type: 'string' }] }, at: { type: ['string', 'null'] } },
    };
    expect(fieldsOf(deep, { to: 'x', at: null, more: 1 }).map(({ name, kind }) => [name, kind])).toEqual([
      ['to', 'json'],
      ['at', 'json'],
      ['more', 'number'],
    ]);
    const fields = fieldsOf(schema, { tags: ['a'] });
    expect(filledOf(fields, typedOf(fields, { tags: ['a'] }), { tags: ['a'] }).wrong).toEqual({
      cents: 'It needs a value.',
    });
  });

  test('without a schema keeps the types of the value, and what it does not show', () => {
    const value = { to: 'Ada', cents: 700, tags: ['a'] };
    const fields = fieldsOf(undefined, value);
    const typed = { ...typedOf(fields, value), cents: '500' };
    expect(filledOf(fields, typed, value)).toEqual({ value: { to: 'Ada', cents: 500, tags: ['a'] } });
  });

  test('says at each field what is wrong, and leaves out what may be absent', () => {
    const fields = fieldsOf(schema, undefined);
    expect(filledOf(fields, { cents: '1.5', why: '"x"', tags: '[' }, undefined).wrong).toEqual({
      cents: 'It needs a whole number.',
      why: 'It needs a choice.',
      tags: 'It is not valid JSON.',
    });
    expect(filledOf(fields, {}, undefined).wrong).toEqual({ cents: 'It needs a value.' });
    expect(filledOf(fields, { cents: '5', why: '"late"' }, undefined)).toEqual({ value: { cents: 5, why: 'late' } });
  });

  test('takes from a refusal of the server what it says of each field', () => {
    const fields = ['to', 'cents', 'tags', 'why', '__proto__'].map((name) => ({
      ...fieldsOf(schema, undefined)[0],
      name,
    }));
    const said = 'the changed input does not fit: cents: must be <= 9; tags[0].id: is missing; tone: is unknown';
    expect(refusalsIn(fields as never, said)).toEqual({ cents: 'cents: must be <= 9', tags: 'tags[0].id: is missing' });
    expect(refusalsIn(fields as never, 'ada may not decide about this call')).toEqual({});
    expect(refusalsIn(fields as never)).toEqual({});
  });

  test('changes no prototype by a property with the name of one', () => {
    const value = JSON.parse('{"__proto__":{"x":1}}');
    const fields = fieldsOf(undefined, value);
    const filled = filledOf(fields, typedOf(fields, value), value);
    expect(({} as { x?: unknown }).x).toBeUndefined();
    expect(JSON.stringify(filled.value)).toBe('{"__proto__":{"x":1}}');
  });
});
