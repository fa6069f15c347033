import { describe, expect, test } from 'vitest';
import { type RunState, unknownRun, withEvent } from '../../src/react/run-state.ts';
import type { RunEventBody } from '../../src/run/events/body.ts';
import type { JournalEvent } from '../../src/run/journal/reader.ts';
import type { Wait } from '../../src/run/waits/wait.ts';

const eventOf = (body: RunEventBody, seq = 1): JournalEvent => ({ ...body, runId: 'r', seq, at: 0, cursor: `${seq}` });
const seen = (...bodies: readonly RunEventBody[]): RunState =>
  bodies.reduce((state, body) => withEvent(state, eventOf(body)), unknownRun);

const said = (text: string, offset = 0, block = 0, step = 1): RunEventBody => ({
  type: 'model.delta',
  step,
  block,
  offset,
  kind: 'text',
  text,
});
const called = (text: string, offset = 0, block = 1): RunEventBody => ({
  type: 'tool.input',
  step: 1,
  block,
  offset,
  callId: 'k',
  name: 'look',
  text,
});
const began: RunEventBody = {
  type: 'tool.started',
  step: 1,
  callId: 'k',
  name: 'look',
  effect: 'read',
  input: { at: 1 },
  attempt: 1,
};
const returned: RunEventBody = {
  type: 'tool.done',
  step: 1,
  callId: 'k',
  name: 'look',
  effect: 'read',
  output: { type: 'text', value: 'two' },
  ms: 5,
};
const wait: Wait = {
  id: 'w',
  kind: 'approval',
  createdAt: 0,
  step: 1,
  callId: 'k',
  digest: 'd',
  quorum: 1,
  votes: [],
  editable: false,
  onExpiry: 'deny',
};
const opened: RunEventBody = { type: 'wait.opened', wait, input: { at: 1 } };

describe('what a page knows of a run', () => {
  test('is a text in the order of its pieces, and a piece that comes again adds nothing (web 33)', () => {
    const state = seen({ type: 'run.started' }, said('Hel'), said('lo', 3), said('lo', 3), said('!', 5));
    expect(state.status).toBe('running');
    expect(state.steps).toEqual([
      { step: 1, parts: [{ type: 'text', block: 0, text: 'Hello!' }], sources: [], isDone: false },
    ]);
  });

  test('is the beginning of a text where pieces are missing, until the record brings the rest (web 4, 33)', () => {
    const broken = seen(said('Hel'), said('!', 5), said('you', 2, 1), said('He'), called('1}', 6, 2));
    expect(broken.steps[0]?.parts).toEqual([{ type: 'text', block: 0, text: 'Hel' }]);
    const whole = withEvent(broken, eventOf(said('lo!', 3)));
    expect(whole.steps[0]?.parts).toEqual([{ type: 'text', block: 0, text: 'Hello!' }]);
  });

  test('is a call from the first piece of its input to its result', () => {
    const story = [called('{"at"'), called(':1}', 5), began, returned];
    const states = story.map((_, i) => seen(...story.slice(0, i + 1)));
    expect(states.map(({ steps }) => steps[0]?.parts[0])).toMatchObject([
      { state: 'writing', inputText: '{"at"' },
      { state: 'writing', inputText: '{"at":1}' },
      { state: 'running', input: { at: 1 } },
      { state: 'done', input: { at: 1 }, output: { type: 'text', value: 'two' } },
    ]);
    const progressed = seen(called('{}'), began, {
      type: 'tool.progress',
      callId: 'k',
      name: 'look',
      progress: { at: 0.5 },
    });
    expect(progressed.steps[0]?.parts[0]).toMatchObject({ state: 'running', progress: { at: 0.5 } });
  });

  test('takes no late result of a call', () => {
    const known = seen(called('{}'), began);
    expect(withEvent(known, eventOf({ ...returned, isLate: true } as RunEventBody))).toBe(known);
  });

  test('has parts in the order of the message, in any order of arrival', () => {
    const state = seen(called('{}', 0, 2), said('a', 0, 0), {
      type: 'model.file',
      step: 1,
      block: 1,
      mediaType: 'image/png',
    });
    expect(state.steps[0]?.parts.map(({ type, block }) => [type, block])).toEqual([
      ['text', 0],
      ['file', 1],
      ['call', 2],
    ]);
  });

  test('loses a step that is void, and later ones (web 5)', () => {
    const state = seen(
      said('a'),
      said('b', 0, 0, 2),
      said('c', 0, 0, 3),
      { type: 'step.reset', step: 2 },
      said('B', 0, 0, 2),
    );
    expect(state.steps.map(({ step, parts }) => [step, parts])).toEqual([
      [1, [{ type: 'text', block: 0, text: 'a' }]],
      [2, [{ type: 'text', block: 0, text: 'B' }]],
    ]);
  });

  test('is a recorded message in place of its pieces, and keeps what its calls did meanwhile (web 4)', () => {
    const content = [
      { type: 'reasoning', text: 'Hm.' },
      { type: 'text', text: 'Look.' },
      { type: 'tool-call', toolCallId: 'k', toolName: 'look', input: { at: 1 } },
      { type: 'tool-call', toolCallId: 'l', toolName: 'look', input: {} },
      { type: 'file', mediaType: 'image/png', data: 'AAAA' },
      { type: 'tool-result', toolCallId: 'z', toolName: 'search', output: { type: 'text', value: '' } },
    ] as const;
    const snapshot = { type: 'step.snapshot', step: 1, content } as unknown as RunEventBody;
    for (const state of [
      seen(called('{}', 0, 2), began, snapshot),
      seen(snapshot, began),
      seen(snapshot, began, snapshot),
    ]) {
      expect(state.steps[0]?.parts).toMatchObject([
        { type: 'reasoning', text: 'Hm.' },
        { type: 'text', text: 'Look.' },
        { type: 'call', callId: 'k', state: 'running', input: { at: 1 } },
        { type: 'call', callId: 'l', state: 'called', input: {} },
        { type: 'file', mediaType: 'image/png', data: 'AAAA' },
        { type: 'other', part: { type: 'tool-result' } },
      ]);
    }
  });

  test('has the waits that are open: with votes one stays, an answer that was not taken says why', () => {
    const answered = { type: 'wait.answered', waitId: 'w', kind: 'approval', how: 'approve' } as const;
    const refused = { type: 'wait.refused', waitId: 'w', code: 'ANSWER_REFUSED', reason: 'not you' } as const;
    expect(seen(opened).waits).toEqual([{ ...wait, input: { at: 1 } }]);
    expect(seen(opened, opened).waits).toHaveLength(1);
    expect(seen(opened, { ...answered, votes: 1 }).waits).toHaveLength(1);
    expect(seen(opened, refused).waits).toMatchObject([
      { id: 'w', refused: { code: 'ANSWER_REFUSED', reason: 'not you' } },
    ]);
    for (const end of [
      answered,
      { type: 'wait.expired', waitId: 'w', kind: 'approval' },
      { type: 'wait.withdrawn', waitId: 'w', kind: 'approval' },
      { type: 'run.ended', status: 'cancelled', output: '' },
    ] as const)
      expect(seen(opened, end).waits).toEqual([]);
  });

  test('says whether the run works, waits, is set aside or is over, and how it ended', () => {
    expect(seen({ type: 'run.waiting', waits: 1 }).status).toBe('waiting');
    expect(seen({ type: 'run.waiting', waits: 1 }, { type: 'run.woken' }).status).toBe('running');
    expect(seen({ type: 'run.parked', code: 'PARKED', reason: '' }).status).toBe('parked');
    const error = { name: 'Error', code: 'MODEL', message: 'The model failed' };
    expect(seen({ type: 'run.ended', status: 'error', output: 'So far', error })).toMatchObject({
      status: 'ended',
      result: { status: 'error', output: 'So far', error: { code: 'MODEL' } },
    });
  });

  test('keeps the objects of steps and parts that an event does not change: pages draw only what is new', () => {
    const known = seen(said('a'), said('b', 0, 0, 2), said('c', 0, 1, 2));
    const next = withEvent(known, eventOf(said('d', 1, 1, 2)));
    expect(next.steps[0]).toBe(known.steps[0]);
    expect(next.steps[1]?.parts[0]).toBe(known.steps[1]?.parts[0]);
    expect(next.steps[1]?.parts[1]).not.toBe(known.steps[1]?.parts[1]);
  });

  test('is not changed by events that a page does not show, of this version or a later one', () => {
    const known = seen(said('a'));
    for (const type of ['checkpoint.saved', 'phase.started', 'constructor', '__proto__', 'new.in.2030'])
      expect(withEvent(known, { type, runId: 'r', seq: 1, at: 0, cursor: '1' } as never)).toBe(known);
  });
});
