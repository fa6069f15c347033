import type { UIMessage, UIMessageChunk } from 'ai';
import { lastAssistantMessageIsCompleteWithApprovalResponses, lastAssistantMessageIsCompleteWithToolCalls } from 'ai';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { RunChunks } from '../../../src/http/chat/chunks.ts';
import type { UiChunk } from '../../../src/http/chat/ui-chunk.ts';
import type { ToolOutput } from '../../../src/values/message.ts';
import { chunksOf, messageOf, read } from './page.ts';
import {
  approval,
  type Bodies,
  type Body,
  begun,
  type Content,
  call,
  done,
  ended,
  opened,
  pieces,
  question,
  snapshot,
  started,
  stepDone,
  story,
  text,
  usage,
} from './run-story.ts';

const types = (chunks: readonly UiChunk[]) => chunks.map(({ type }) => type);
/** A page that asks by itself, as the package recommends. */
const asksAgain = (message: UIMessage | undefined) =>
  message !== undefined &&
  (lastAssistantMessageIsCompleteWithApprovalResponses({ messages: [message] }) ||
    lastAssistantMessageIsCompleteWithToolCalls({ messages: [message] }));
const partOf = (message: UIMessage | undefined, toolCallId: string) =>
  message?.parts.find((part) => 'toolCallId' in part && part.toolCallId === toolCallId);

describe('The chunks of a run', () => {
  test('are of the type that the AI SDK defines (web 26)', () => {
    expectTypeOf<
      Exclude<UiChunk, { type: `data-${string}` | 'steering-message' | 'tool-input-error' }>
    >().toExtend<UIMessageChunk>();
  });

  test('begin with `start` and the id of the run’s message, and end with `finish`, `stop` and the usage (web 26, 28)', () => {
    const chunks = chunksOf(story(started, text(1, 0, 0, 'Hel'), text(1, 0, 3, 'lo'), stepDone(1), ended()));
    expect(chunks).toEqual([
      { type: 'start', messageId: 'r:m' },
      { type: 'data-pawl-run', id: 'r', data: { runId: 'r', status: 'running' } },
      { type: 'start-step' },
      { type: 'text-start', id: '1.0' },
      { type: 'text-delta', id: '1.0', delta: 'Hel' },
      { type: 'text-delta', id: '1.0', delta: 'lo' },
      { type: 'text-end', id: '1.0' },
      { type: 'finish-step' },
      { type: 'data-pawl-run', id: 'r', data: { runId: 'r', status: 'ok' } },
      { type: 'finish', finishReason: 'stop', messageMetadata: { usage } },
    ]);
  });

  test.for([
    ['stop', 'stop'],
    ['length', 'length'],
    ['content-filter', 'content-filter'],
    ['refusal', 'content-filter'],
    ['other', 'other'],
  ] as const)('say in `finish` how an answer ended: %s as %s (edges 7)', ([finishReason, said]) => {
    const chunks = chunksOf(story(started, text(1, 0, 0, 'Half'), { ...stepDone(1), finishReason } as Body, ended()));
    expect(chunks.at(-1)).toEqual({ type: 'finish', finishReason: said, messageMetadata: { usage } });
  });

  test('make the same message from pieces, from recorded messages, and from pieces that a record completes (web 26)', async () => {
    const image = { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'aGk=' } } as const;
    const first: Content = [
      { type: 'reasoning', text: 'I think' },
      { type: 'text', text: '' },
      { type: 'text', text: 'Let me look.' },
      image,
      { type: 'custom', kind: 'acme.note' },
      call('c1', 'look', { at: [1, 2] }),
      { ...call('c2', 'search', { q: 'x' }), providerExecuted: true } as Content[number],
      { type: 'tool-result', toolCallId: 'c2', toolName: 'search', output: { type: 'json', value: [1] } },
    ];
    const last: Content = [{ type: 'text', text: 'Done, with 👍🏽 signs.' }];
    const source = {
      type: 'model.source',
      step: 1,
      source: { sourceType: 'url', id: 's', url: 'https://x.org' },
    } as const;
    const tools = [
      begun(1, 'c1', 'look'),
      done(1, 'c1', 'look', { type: 'json', value: { ok: true } }),
      stepDone(1, 'look'),
    ];
    const made = (one: Bodies, two: Bodies) => messageOf(story(started, one, source, tools, two, stepDone(2), ended()));
    const late = await made(snapshot(1, ...first), snapshot(2, ...last));
    expect(late?.parts.map(({ type }) => type)).toEqual([
      ...[
        'data-pawl-run',
        'step-start',
        'reasoning',
        'text',
        'file',
        'custom',
        'tool-look',
        'tool-search',
        'source-url',
      ],
      ...['step-start', 'text'],
    ]);
    for (const size of [1, 3, 1_000]) {
      const live = [...pieces(1, first, size), snapshot(1, ...first)];
      expect(await made(live, [...pieces(2, last, size), snapshot(2, ...last)])).toEqual(late);
      expect(await made(live, pieces(2, last, size))).toEqual(late);
    }
  });

  test('hold no metadata of a provider (web 26)', () => {
    const secret = { providerOptions: { acme: { signature: 'secret' } } };
    const content: Content = [
      { type: 'reasoning', text: 'a', ...secret },
      { ...call('c', 'look'), ...secret } as Content[number],
      { type: 'custom', kind: 'acme.note', ...secret },
    ];
    expect(JSON.stringify(chunksOf(story(snapshot(1, ...content))))).not.toContain('secret');
  });

  test('send what a page has already only once: pieces that overlap, an event twice, a second record (web 26)', async () => {
    const events = story(
      ...[
        started,
        text(1, 0, 0, 'abc'),
        text(1, 0, 1, 'bcd'),
        text(1, 0, 2, 'cd'),
        snapshot(1, { type: 'text', text: 'abcde' }),
      ],
      ...[snapshot(1, { type: 'text', text: 'abcde' }), text(1, 0, 4, 'e'), stepDone(1), ended()],
    );
    const deltas = chunksOf(events).flatMap((chunk) => (chunk.type === 'text-delta' ? chunk.delta : []));
    expect(deltas).toEqual(['abc', 'd', 'e']);
  });

  test('leave out pieces after a gap: the recorded message brings the rest (web 4)', () => {
    const events = story(text(1, 0, 0, 'ab'), text(1, 0, 4, 'ef'), snapshot(1, { type: 'text', text: 'abcdef' }));
    expect(chunksOf(events).flatMap((chunk) => (chunk.type === 'text-delta' ? chunk.delta : []))).toEqual([
      'ab',
      'cdef',
    ]);
  });

  test('take a step back with `reset-step` before its second attempt (web 5, 27)', async () => {
    const events = story(
      ...[started, text(1, 0, 0, 'One'), stepDone(1), text(2, 0, 0, 'wrong'), { type: 'step.reset', step: 2 } as const],
      ...[text(2, 0, 0, 'right'), stepDone(2), ended()],
    );
    expect(types(chunksOf(events)).filter((type) => type === 'reset-step')).toHaveLength(1);
    expect(await messageOf(events)).toEqual(
      await messageOf(story(started, text(1, 0, 0, 'One'), stepDone(1), text(2, 0, 0, 'right'), stepDone(2), ended())),
    );
  });

  test('take a step back if the recorded message does not continue its pieces (web 27)', async () => {
    const recorded = snapshot(1, { type: 'text', text: 'b' }, call('c', 'look'));
    const rest = [done(1, 'c', 'look', { type: 'text', value: 'x' }), stepDone(1, 'look'), ended()] as const;
    expect(await messageOf(story(started, text(1, 0, 0, 'a'), recorded, ...rest))).toEqual(
      await messageOf(story(started, recorded, ...rest)),
    );
  });

  test('never reset a step that is recorded (web 27)', () => {
    const events = story(snapshot(1, { type: 'text', text: 'a' }), { type: 'step.reset', step: 1 }, text(2, 0, 0, 'b'));
    expect(types(chunksOf(events))).not.toContain('reset-step');
  });
});

describe('A tool call in a page', () => {
  const parts: { type: 'text'; text: string }[] = [{ type: 'text', text: 'a' }];

  test.each([
    ['text', { type: 'text', value: 'hi' }, { state: 'output-available', output: 'hi' }],
    ['JSON', { type: 'json', value: { a: 1 } }, { state: 'output-available', output: { a: 1 } }],
    ['parts', { type: 'content', value: parts }, { output: parts }],
    ['an error', { type: 'error-text', value: 'no such file' }, { state: 'output-error', errorText: 'no such file' }],
    ['a JSON error', { type: 'error-json', value: { a: 1 } }, { state: 'output-error', errorText: '{"a":1}' }],
  ] as readonly [string, Exclude<ToolOutput, { type: 'execution-denied' }>, object][])(
    'has the output that the model read: %s (web 26)',
    async (_, output, shown) => {
      const events = story(
        started,
        snapshot(1, call('c', 'look', { at: 1 })),
        begun(1, 'c', 'look'),
        done(1, 'c', 'look', output),
      );
      expect(partOf(await messageOf(events), 'c')).toMatchObject({ type: 'tool-look', input: { at: 1 }, ...shown });
    },
  );

  test('has an input error for arguments that are not JSON (web 26)', () => {
    const output = { type: 'error-text', value: 'the arguments are not valid JSON' } as const;
    const chunks = chunksOf(story(snapshot(1, call('c', 'look', '{"a')), done(1, 'c', 'look', output)));
    expect(chunks.at(-1)).toEqual({
      ...{ type: 'tool-input-error', toolCallId: 'c', toolName: 'look', input: '{"a', errorText: output.value },
    });
  });

  test('shows progress as a preliminary output, and none after its end (web 26)', async () => {
    const progress = { type: 'tool.progress', callId: 'c', name: 'look', progress: { at: 50 } } as const;
    const until = story(started, snapshot(1, call('c', 'look')), begun(1, 'c', 'look'), progress);
    expect(partOf(await messageOf(until), 'c')).toMatchObject({ output: { at: 50 }, preliminary: true });
    const events = story(...until, done(1, 'c', 'look', { type: 'text', value: 'x' }), progress);
    expect(partOf(await messageOf(events), 'c')).toMatchObject({ output: 'x', preliminary: undefined });
  });

  test('that reports progress and then asks has no output (web 26, 29)', async () => {
    const progress = { type: 'tool.progress', callId: 'c', name: 'choose', progress: 50 } as const;
    const asks = [begun(1, 'c', 'choose'), progress, opened(question('q', 'c', 'choose'))];
    const message = await messageOf(story(started, snapshot(1, call('c', 'choose')), ...asks));
    expect(partOf(message, 'c')).toMatchObject({ state: 'input-available', output: undefined });
  });

  test('ignores a late result, which is not part of the run (web 26)', () => {
    const late = { ...done(1, 'c', 'look', { type: 'text', value: 'late' }), isLate: true } as const;
    expect(JSON.stringify(chunksOf(story(snapshot(1, call('c', 'look')), late)))).not.toContain('late');
  });

  test('is denied by a rule with the rule’s reason, without a question (web 26)', async () => {
    const denied = done(1, 'c', 'mail', { type: 'execution-denied', reason: 'not on Sundays' });
    const message = await messageOf(story(started, snapshot(1, call('c', 'mail')), begun(1, 'c', 'mail'), denied));
    expect(partOf(message, 'c')).toMatchObject({
      state: 'output-denied',
      approval: { approved: false, reason: 'not on Sundays', isAutomatic: true },
    });
  });
});

describe('An approval in a page', () => {
  const asked = [started, snapshot(1, call('c', 'mail', { to: 'ada' })), opened(approval('w', 'c', 'mail'))];
  const answered = (how: 'approve' | 'deny', more = {}) =>
    ({ type: 'wait.answered', waitId: 'w', kind: 'approval', how, callId: 'c', by: { id: 'ada' }, ...more }) as const;

  test('is a request with the wait’s id, its prompt and its digest (web 29)', async () => {
    expect(partOf(await messageOf(story(...asked)), 'c')).toMatchObject({
      state: 'approval-requested',
      approval: { id: 'w', requestReason: 'May I mail?', descriptor: { digest: 'd-w', quorum: 1, votes: 0 } },
    });
  });

  test('that is granted has its response, then the output (web 29)', async () => {
    const granted = story(...asked, answered('approve'));
    expect(partOf(await messageOf(granted), 'c')).toMatchObject({
      state: 'approval-responded',
      approval: { approved: true },
    });
    const sent = await messageOf(
      story(...granted, begun(1, 'c', 'mail'), done(1, 'c', 'mail', { type: 'text', value: 'sent' })),
    );
    expect(partOf(sent, 'c')).toMatchObject({
      state: 'output-available',
      output: 'sent',
      approval: { approved: true },
    });
    expect(sent?.parts.at(-1)).toMatchObject({
      type: 'data-pawl-wait',
      data: { state: 'answered', how: 'approve', by: { id: 'ada' } },
    });
  });

  test('that is denied has the person’s reason, in each order of the events (web 29)', async () => {
    const denied = [begun(1, 'c', 'mail'), done(1, 'c', 'mail', { type: 'execution-denied', reason: 'too late' })];
    const one = await messageOf(story(...asked, ...denied, answered('deny')));
    expect(partOf(one, 'c')).toMatchObject({
      state: 'output-denied',
      approval: { id: 'w', approved: false, reason: 'too late' },
    });
    expect(await messageOf(story(...asked, answered('deny'), ...denied))).toEqual(one);
  });

  test('that lacks votes asks again, and says how many it has (web 29)', async () => {
    const message = await messageOf(story(...asked, answered('approve', { votes: 1 })));
    expect(partOf(message, 'c')).toMatchObject({
      state: 'approval-requested',
      approval: { id: 'w', descriptor: { votes: 1 } },
    });
  });

  test('whose input another person has changed is asked about again with its new question and digest (edges 22)', async () => {
    const wait = {
      ...approval('w', 'c', 'mail'),
      prompt: 'Pay 5?',
      digest: 'new',
      input: { n: 5 },
      changedBy: { id: 'bo' },
    };
    const message = await messageOf(story(...asked, answered('approve', { votes: 1, wait: wait as never })));
    expect(partOf(message, 'c')).toMatchObject({
      state: 'approval-requested',
      approval: { id: 'w', descriptor: { votes: 1, digest: 'new', input: { n: 5 }, changedBy: { id: 'bo' } } },
    });
    expect(message?.parts.at(-1)).toMatchObject({ data: { state: 'open', prompt: 'Pay 5?', input: { n: 5 } } });
  });

  test('whose answer is refused asks again (web 29)', async () => {
    const refused = { type: 'wait.refused', waitId: 'w', code: 'ANSWER_REFUSED', reason: 'not you' } as const;
    const message = await messageOf(story(...asked, refused));
    expect(partOf(message, 'c')).toMatchObject({ state: 'approval-requested', approval: { id: 'w' } });
    expect(message?.parts.at(-1)).toMatchObject({ data: { state: 'open', refused: 'ANSWER_REFUSED' } });
  });

  test('is over with its step, also if no event says so: a process died before (web 29, 35)', async () => {
    const ran = [begun(1, 'c', 'mail'), done(1, 'c', 'mail', { type: 'text', value: 'sent' }), stepDone(1, 'mail')];
    for (const end of [[text(2, 0, 0, 'a')], [ended()]]) {
      const message = await messageOf(story(...asked, ...ran, ...end));
      const part = message?.parts.find(({ type }) => type === 'data-pawl-wait');
      expect(part).toMatchObject({ data: { state: 'answered' } });
    }
  });

  test('that is asked again replaces the old one: a call shows one approval (web 29)', async () => {
    const withdrawn = { type: 'wait.withdrawn', waitId: 'w', kind: 'approval', callId: 'c' } as const;
    const message = await messageOf(story(...asked, withdrawn, opened(approval('w2', 'c', 'mail'))));
    expect(partOf(message, 'c')).toMatchObject({ state: 'approval-requested', approval: { id: 'w2' } });
  });

  test('is denied in the page when its run ends without an answer (web 28, 29)', async () => {
    const withdrawn = { type: 'wait.withdrawn', waitId: 'w', kind: 'approval', callId: 'c' } as const;
    const message = await messageOf(story(...asked, withdrawn, ended('cancelled', 'CANCELLED')));
    expect(partOf(message, 'c')).toMatchObject({ state: 'output-denied', approval: { id: 'w', approved: false } });
  });

  test('of a run below is asked on the call that began it, one at a time (web 29)', () => {
    const chunks = new RunChunks('r');
    const two = [opened(approval('w', 'c', 'mail')), opened(approval('v', 'c', 'mail'))];
    const answer = { type: 'wait.answered', waitId: 'w', kind: 'approval', how: 'deny', callId: 'inner' } as const;
    const out = [snapshot(1, call('c', 'agent__b')), ...two, answer].flatMap((body) =>
      story(body).flatMap((event) => chunks.map(event, event.type.startsWith('wait.')).map(({ chunk }) => chunk)),
    );
    const approvals = out.flatMap((chunk) => ('approvalId' in chunk ? `${chunk.type} ${chunk.approvalId}` : []));
    expect(approvals).toEqual([...['tool-approval-request w', 'tool-approval-response w', 'tool-approval-request v']]);
    expect(types(out)).not.toContain('tool-output-denied');
  });

  test('of a question is none: the page shows the question as data and answers it with an output (web 29)', async () => {
    const events = story(
      started,
      snapshot(1, call('c', 'choose')),
      begun(1, 'c', 'choose'),
      opened(question('q', 'c', 'choose')),
    );
    const message = await messageOf(events);
    expect(partOf(message, 'c')).toMatchObject({ state: 'input-available' });
    expect(message?.parts.at(-1)).toMatchObject({
      type: 'data-pawl-wait',
      data: { kind: 'question', callId: 'c', question: 'Which?', options: ['a', 'b'] },
    });
  });
});

describe('The end of a stream', () => {
  const waiting = { type: 'run.waiting', waits: 1 } as const;
  const mapped = (...bodies: Bodies[]) => {
    const chunks = new RunChunks('r');
    const out = story(...bodies).flatMap((event) => [...chunks.map(event)]);
    return { chunks, out: out.map(({ chunk }) => chunk) };
  };

  test('waits for persons alone only if the run has nothing else to do (web 28)', () => {
    const asked = [snapshot(1, call('c', 'mail'), call('d', 'sleep')), opened(approval('w', 'c', 'mail'))];
    const timer = { id: 't', createdAt: 5, step: 1, callId: 'd', tool: 'sleep', kind: 'timer', dueAt: 9 } as const;
    expect(mapped(...asked).chunks.needsPerson).toBe(false);
    expect(mapped(...asked, waiting).chunks.needsPerson).toBe(true);
    expect(mapped(...asked, opened(timer), waiting).chunks.needsPerson).toBe(false);
    expect(mapped(...asked, waiting, { type: 'run.woken' }).chunks.needsPerson).toBe(false);
  });

  test('for a person is `finish` with `tool-calls`; nothing follows (web 28)', () => {
    const { chunks } = mapped(snapshot(1, call('c', 'mail')), opened(approval('w', 'c', 'mail')), waiting);
    expect(chunks.pause('tool-calls').map(({ chunk }) => chunk)).toEqual([
      { type: 'finish', finishReason: 'tool-calls' },
    ]);
    expect(story(ended()).flatMap((event) => chunks.map(event))).toEqual([]);
  });

  test('of a cancelled run is `abort` and `finish` with `interrupted` (web 28)', () => {
    const { out } = mapped(text(1, 0, 0, 'half'), ended('cancelled', 'CANCELLED'));
    expect(out.slice(-2)).toEqual([{ type: 'abort' }, { type: 'finish', finishReason: 'interrupted' }]);
    expect(types(out)).toContain('text-end');
  });

  test.each([
    ['MODEL', 'The model failed'],
    ['constructor', 'The run failed'],
    ['SECRET_CODE_OF_A_HOST', 'The run failed'],
  ])('of a failed run is the public text of its code, and never its message: %s (web 28)', async (code, errorText) => {
    const { out } = mapped(text(1, 0, 0, 'half'), ended('error', code));
    expect(out.at(-1)).toEqual({ type: 'error', errorText });
    expect(JSON.stringify(out)).not.toContain('secret of a provider');
    expect(await read(out)).toMatchObject({ error: errorText });
  });

  test('of a process is none: an interrupted or resting run continues (web 24)', () => {
    for (const status of ['interrupted', 'waiting'] as const) {
      const { chunks, out } = mapped(text(1, 0, 0, 'half'), { type: 'run.ended', status, output: '' });
      expect(chunks.isOver).toBe(false);
      expect(types(out)).not.toContain('finish');
    }
  });

  test('behind tool results has a step without calls, so that no page asks again by itself (web 28)', async () => {
    const events = story(
      ...[started, snapshot(1, call('c', 'mail')), opened(approval('w', 'c', 'mail'))],
      ...[done(1, 'c', 'mail', { type: 'text', value: 'sent' }), stepDone(1, 'mail'), ended()],
    );
    const message = await messageOf(events);
    expect(message?.parts.at(-1)).toEqual({ type: 'step-start' });
    expect(asksAgain(message)).toBe(false);
    expect(asksAgain({ ...(message as UIMessage), parts: message?.parts.slice(0, -1) ?? [] })).toBe(true);
  });

  test('shows messages that were steered into the run between its steps (web 26)', async () => {
    const steered = { type: 'steer.applied', count: 2, texts: ['faster', 'now'] } as const;
    const message = await messageOf(
      story(text(1, 0, 0, 'a'), stepDone(1), steered, text(2, 0, 0, 'b'), stepDone(2), ended()),
    );
    expect(message?.parts.map((part) => (part.type === 'steering-message' ? part.parts : part.type))).toEqual([
      ...['data-pawl-run', 'step-start', 'text', [{ type: 'text', text: 'faster' }], [{ type: 'text', text: 'now' }]],
      ...['step-start', 'text'],
    ]);
  });

  test('says at the head of the message what the run does (web 26)', async () => {
    const retry = {
      ...{
        id: 'x',
        createdAt: 5,
        step: 1,
        kind: 'retry' as const,
        failures: 6,
        since: 4,
        needsPerson: false,
        dueAt: 9,
      },
      error: { name: 'Error', code: 'MODEL', message: 'secret of a provider' },
    } as const;
    const away = [started, opened(retry), { ...waiting, wakeAt: 9 }] as const;
    expect((await messageOf(story(...away)))?.parts[0]).toEqual({
      ...{ type: 'data-pawl-run', id: 'r' },
      data: {
        runId: 'r',
        status: 'waiting',
        wakeAt: 9,
        retry: { code: 'MODEL', failures: 6, since: 4, needsPerson: false, dueAt: 9 },
      },
    });
    const back = { type: 'wait.answered', waitId: 'x', kind: 'retry', how: 'expire' } as const;
    expect((await messageOf(story(...away, back, { type: 'run.woken' })))?.parts).toEqual([
      { type: 'data-pawl-run', id: 'r', data: { runId: 'r', status: 'running' } },
    ]);
  });

  test('says at the head of the message which limit holds the run, and until when (failover 18)', async () => {
    const limit = { id: 'x', createdAt: 5, dueAt: 9, step: 1, kind: 'limit', turnAt: 1_009, model: 'm' } as const;
    const held = [started, opened({ ...limit, rule: 'label:tenant' }), { ...waiting, wakeAt: 9 }] as const;
    expect((await messageOf(story(...held)))?.parts[0]).toMatchObject({
      data: { status: 'waiting', wakeAt: 9, limit: { turnAt: 1_009, rule: 'label:tenant' } },
    });
    const turn = { type: 'wait.answered', waitId: 'x', kind: 'limit', how: 'expire' } as const;
    expect((await messageOf(story(...held, turn, { type: 'run.woken' })))?.parts).toEqual([
      { type: 'data-pawl-run', id: 'r', data: { runId: 'r', status: 'running' } },
    ]);
  });
});
