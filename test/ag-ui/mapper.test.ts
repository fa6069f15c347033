import { describe, expect, test } from 'vitest';
import { Mapper } from '../../src/ag-ui/mapper.ts';
import { agUiMessagesOf, callIdOfMessage, type RecordedMessage } from '../../src/ag-ui/messages.ts';
import type { AgUiEvent, AgUiMessage } from '../../src/ag-ui/protocol.ts';
import { AgUiReader } from '../../src/ag-ui/reader.ts';
import type { RunEvent, RunEventBody } from '../../src/run/events/body.ts';
import type { Message } from '../../src/values/message.ts';
import { applied, framed } from './real-client.ts';

const RUN = 'turn-1';
const usage = { inputTokens: 10, outputTokens: 5, reasoningTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0 };

function eventsOf(...bodies: RunEventBody[]): RunEvent[] {
  return bodies.map((body, index) => ({ ...body, runId: RUN, seq: index + 1, at: 0 }));
}

const started = (step: number): RunEventBody => ({ type: 'step.started', step });
const done = (step: number): RunEventBody => ({ type: 'step.done', step, usage: usage as never, tools: [] });
const said = (step: number, block: number, text: string, offset = 0): RunEventBody => ({
  ...{ type: 'model.delta', step, block, offset, text },
  kind: 'text',
});
const thought = (step: number, block: number, text: string, offset = 0): RunEventBody => ({
  ...{ type: 'model.delta', step, block, offset, text },
  kind: 'reasoning',
});
const typed = (at: { step: number; block: number; offset?: number }, callId: string, text: string): RunEventBody => ({
  ...{ type: 'tool.input', offset: 0, ...at, callId, text },
  name: 'look',
});
const begins = (step: number, callId: string, input: object): RunEventBody => ({
  ...{ type: 'tool.started', step, callId, name: 'look', effect: 'read', attempt: 1 },
  input: input as never,
});
const ends = (step: number, callId: string, value: string): RunEventBody => ({
  ...{ type: 'tool.done', step, callId, name: 'look', effect: 'read', ms: 1 },
  output: { type: 'text', value },
});
const snapshot = (step: number, content: object[]): RunEventBody => ({
  type: 'step.snapshot',
  step,
  content: content as never,
});

/** The events for a reader who has some messages. */
function mapped(events: readonly RunEvent[], reader = new AgUiReader()): AgUiEvent[] {
  const mapper = new Mapper(RUN, reader);
  return [...events.flatMap((event) => mapper.map(event)), ...mapper.close()];
}

const recorded = (...messages: object[]): RecordedMessage[] =>
  messages.map((message, index) => ({ id: `${RUN}:${index}`, runId: RUN, message: message as Message }));
const text = (value: string) => ({ type: 'text', text: value });
const call = (toolCallId: string, input: object) => ({ type: 'tool-call', toolCallId, toolName: 'look', input });
const result = (toolCallId: string, value: string) => ({
  ...{ type: 'tool-result', toolCallId, toolName: 'look' },
  output: text(value) && { type: 'text', value },
});

const transcript = recorded(
  {
    role: 'assistant',
    content: [{ type: 'reasoning', text: 'Hm, two.' }, text('Let me look.'), call('a', { id: 1 }), call('b', {})],
  },
  { role: 'tool', content: [result('a', 'one'), result('b', 'two')] },
  { role: 'assistant', content: [text('Both are there.')] },
);
const live = eventsOf(
  { type: 'run.started' },
  started(1),
  thought(1, 0, 'Hm, '),
  thought(1, 0, 'two.', 4),
  said(1, 1, 'Let me '),
  said(1, 1, 'look.', 7),
  typed({ step: 1, block: 2 }, 'a', '{"id"'),
  typed({ step: 1, block: 3 }, 'b', '{}'),
  typed({ step: 1, block: 2, offset: 5 }, 'a', ':1}'),
  begins(1, 'a', { id: 1 }),
  begins(1, 'b', {}),
  { type: 'tool.progress', callId: 'b', name: 'look', progress: { part: 1 } },
  ends(1, 'b', 'two'),
  ends(1, 'a', 'one'),
  done(1),
  started(2),
  said(2, 0, 'Both are there.'),
  done(2),
  { type: 'run.ended', status: 'ok', output: 'Both are there.' },
);
const replayed = eventsOf(
  { type: 'run.started' },
  snapshot(1, transcript[0]?.message.content as object[]),
  begins(1, 'a', { id: 1 }),
  ends(1, 'b', 'two'),
  ends(1, 'a', 'one'),
  done(1),
  snapshot(2, transcript[2]?.message.content as object[]),
  done(2),
);

describe('a stream of a run', () => {
  test('gives the real client the messages of the transcript, in its order, though the second call ended first (web 34)', async () => {
    const messages = await applied(framed(mapped(live)));
    expect(messages).toEqual(agUiMessagesOf(transcript));
    expect(messages.map(({ role }) => role)).toEqual([
      'reasoning',
      'assistant',
      'assistant',
      'tool',
      'assistant',
      'tool',
      'assistant',
    ]);
  });

  test('has the same messages for a reader who comes when the steps are recorded (web 34)', async () => {
    expect(await applied(framed(mapped(replayed)))).toEqual(agUiMessagesOf(transcript));
  });

  test('names each step once, and reports the progress of a tool (web 34)', () => {
    const events = mapped(live);
    expect(events.filter(({ type }) => type.startsWith('STEP'))).toEqual([
      { type: 'STEP_STARTED', stepName: 'step 1' },
      { type: 'STEP_FINISHED', stepName: 'step 1' },
      { type: 'STEP_STARTED', stepName: 'step 2' },
      { type: 'STEP_FINISHED', stepName: 'step 2' },
    ]);
    expect(events.find(({ type }) => type === 'CUSTOM')).toEqual({
      type: 'CUSTOM',
      name: 'pawl.tool.progress',
      value: { toolCallId: callIdOfMessage({ runId: RUN, step: 1 }, 'b'), toolName: 'look', progress: { part: 1 } },
    });
  });

  test('cut after any event and begun again at the first one gives the messages of an uncut one (web 34, 35)', async () => {
    for (let cut = 1; cut < live.length; cut += 1) {
      const first = mapped(live.slice(0, cut));
      const had = await applied(framed(first));
      const reader = new AgUiReader(had as AgUiMessage[]);
      // Of the run only the recorded messages stand in the snapshot: those of the steps before the one that is in progress.
      const steps = live.slice(0, cut).filter(({ type }) => type === 'step.done').length;
      const stored = steps === 0 ? [] : steps === 1 ? transcript.slice(0, 2) : transcript;
      const again = [...reader.replace(agUiMessagesOf(stored)), ...mapped(live, reader)];
      expect(await applied(framed(again), had)).toEqual(agUiMessagesOf(transcript));
    }
  });

  test('sends nothing to a reader who has all of it (web 34)', () => {
    const reader = new AgUiReader();
    mapped(live, reader);
    expect(mapped(live, reader).filter(({ type }) => !type.startsWith('STEP'))).toEqual([
      expect.objectContaining({ name: 'pawl.tool.progress' }),
    ]);
    expect(mapped(replayed, reader)).toEqual([]);
  });

  test('is put right by a recorded step that differs from its pieces (web 34)', async () => {
    const pieces = eventsOf(started(1), said(1, 0, 'Draft.'), typed({ step: 1, block: 1 }, 'x', '{"a" : 1}'));
    const content = [text('Final.'), call('x-2', { a: 1 })];
    const messages = await applied(framed(mapped([...pieces, ...eventsOf(snapshot(1, content), done(1))])));
    expect(messages).toEqual(agUiMessagesOf(recorded({ role: 'assistant', content })));
  });

  test('leaves out pieces after a gap: the recorded message brings the rest, and no snapshot is needed (web 34)', async () => {
    const pieces = eventsOf(
      ...[started(1), said(1, 0, 'He'), said(1, 0, 'o', 4), typed({ step: 1, block: 1, offset: 3 }, 'x', '"a":1}')],
      snapshot(1, [text('Hello'), call('x', { a: 1 })]),
    );
    const events = mapped(pieces);
    expect(events.flatMap((event) => (event.type === 'TEXT_MESSAGE_CONTENT' ? event.delta : []))).toEqual([
      'He',
      'llo',
    ]);
    expect(events.some(({ type }) => type === 'MESSAGES_SNAPSHOT')).toBe(false);
    expect(await applied(framed(events))).toEqual(
      agUiMessagesOf(recorded({ role: 'assistant', content: [text('Hello'), call('x', { a: 1 })] })),
    );
  });

  test('keeps the arguments of a call as the model wrote them, if they are the same JSON (web 34)', async () => {
    const pieces = eventsOf(
      started(1),
      typed({ step: 1, block: 0 }, 'x', '{"a" : 1}'),
      snapshot(1, [call('x', { a: 1 })]),
    );
    const events = mapped(pieces);
    expect(events.some(({ type }) => type === 'MESSAGES_SNAPSHOT')).toBe(false);
    expect(JSON.stringify(await applied(framed(events)))).toContain('{\\"a\\" : 1}');
  });

  test('has the arguments of a call that were hidden while the model wrote them (web 34)', async () => {
    const pieces = eventsOf(
      started(1),
      typed({ step: 1, block: 0 }, 'x', ''),
      begins(1, 'x', { a: 1 }),
      ends(1, 'x', 'one'),
    );
    expect(await applied(framed(mapped(pieces)))).toEqual(
      agUiMessagesOf(
        recorded(
          { role: 'assistant', content: [call('x', { a: 1 })] },
          { role: 'tool', content: [result('x', 'one')] },
        ),
      ),
    );
  });

  test('has a call that waits for approval before its tool starts (web 34)', async () => {
    const wait = {
      id: 'w',
      kind: 'approval',
      createdAt: 0,
      step: 1,
      callId: 'x',
      tool: 'look',
      digest: 'd',
      quorum: 1,
      votes: [],
    };
    const opened = {
      type: 'wait.opened',
      wait: { ...wait, editable: false, onExpiry: 'deny' },
      input: { a: 1 },
    } as unknown as RunEventBody;
    const messages = await applied(framed(mapped(eventsOf(started(1), opened))));
    expect(messages).toEqual(agUiMessagesOf(recorded({ role: 'assistant', content: [call('x', { a: 1 })] })));
  });

  test('leaves out a result that came after its call was answered without it (web 34)', () => {
    const late = { ...ends(1, 'x', 'late'), isLate: true } as RunEventBody;
    expect(mapped(eventsOf(late))).toEqual([]);
  });

  test('gives the calls of two steps with the same id different ids (web 34)', async () => {
    const twice = eventsOf(
      ...[started(1), typed({ step: 1, block: 0 }, 'x', '{}'), begins(1, 'x', {}), ends(1, 'x', 'one'), done(1)],
      ...[started(2), typed({ step: 2, block: 0 }, 'x', '{}'), begins(2, 'x', {}), ends(2, 'x', 'two'), done(2)],
    );
    const messages = await applied(framed(mapped(twice)));
    expect(messages.map(({ role, content }) => [role, content])).toEqual([
      ['assistant', undefined],
      ['tool', 'one'],
      ['assistant', undefined],
      ['tool', 'two'],
    ]);
  });
});

describe('a reset', () => {
  test('removes the pieces of its step from the real client, reasoning too, and sends the step again (web 34)', async () => {
    const lost = live.slice(0, 8);
    const events = mapped([...lost, ...eventsOf({ type: 'step.reset', step: 1 }), ...live.slice(1)]);
    expect(await applied(framed(events))).toEqual(agUiMessagesOf(transcript));
  });

  test('leaves no reasoning of the first attempt where the second one has none (web 34)', async () => {
    const before: AgUiMessage[] = [{ id: 'u', role: 'user', content: 'Go.' }];
    const events = mapped(
      eventsOf(
        started(1),
        thought(1, 0, 'Hm.'),
        { type: 'step.reset', step: 1 },
        started(1),
        said(1, 0, 'Yes.'),
        done(1),
      ),
      new AgUiReader(before),
    );
    const messages = await applied(framed(events), before as never);
    expect(messages).toEqual([...before, { id: `${RUN}:1.0`, role: 'assistant', content: 'Yes.' }]);
  });

  test('keeps the steps before it, and sends no snapshot where no message was lost (web 34)', async () => {
    const events = mapped([...live, ...eventsOf({ type: 'step.reset', step: 2 }, said(2, 0, 'Again.'))]);
    const messages = await applied(framed(events));
    expect(messages.slice(0, -1)).toEqual(agUiMessagesOf(transcript.slice(0, 2)));
    expect(messages.at(-1)).toMatchObject({ content: 'Again.' });
    expect(mapped(eventsOf(started(1), { type: 'step.reset', step: 1 })).map(({ type }) => type)).toEqual([
      'STEP_STARTED',
      'STEP_FINISHED',
    ]);
  });

  test('says which limit holds back the next request, and until when (failover 18)', () => {
    const limit = { id: 'x', createdAt: 5, dueAt: 9, step: 2, kind: 'limit', turnAt: 1_009, model: 'm' } as const;
    const opened: RunEventBody = { type: 'wait.opened', wait: { ...limit, rule: 'label:tenant' } };
    expect(mapped(eventsOf(started(1), done(1), opened))).toContainEqual({
      ...{ type: 'CUSTOM', name: 'pawl.wait' },
      value: { kind: 'limit', turnAt: 1_009, rule: 'label:tenant' },
    });
  });
});
