import { HttpAgent } from '@ag-ui/client';
import { describe, expect, test } from 'vitest';
import { followAgUi } from '../../src/ag-ui/follow.ts';
import { inputOfAgUi, newMessage } from '../../src/ag-ui/input.ts';
import type { PersonWait } from '../../src/ag-ui/interrupts.ts';
import { agUiMessagesOf, type RecordedMessage } from '../../src/ag-ui/messages.ts';
import type { AnsweredInterrupts } from '../../src/ag-ui/open-waits.ts';
import type { AgUiEvent } from '../../src/ag-ui/protocol.ts';
import type { RunEventBody } from '../../src/index.ts';
import { FakeConversation, FakeRun, hastyClock } from './fake-conversation.ts';

const usage = { inputTokens: 10, outputTokens: 5, reasoningTokens: 1, cacheReadTokens: 2, cacheWriteTokens: 3 };
const user = (id: string, runId: string, text: string): RecordedMessage => ({
  ...{ id, runId },
  message: { role: 'user', content: [{ type: 'text', text }] },
});
const answer = (runId: string, text: string): RecordedMessage => ({
  ...{ id: `${runId}:1`, runId },
  message: { role: 'assistant', content: [{ type: 'text', text }] },
});
const said = (text: string, offset = 0): RunEventBody => ({
  ...{ type: 'model.delta', step: 1, block: 0, offset, text },
  kind: 'text',
});
const begun: RunEventBody[] = [{ type: 'run.started' }, { type: 'step.started', step: 1 }];
const ended: RunEventBody[] = [
  { type: 'step.done', step: 1, usage, tools: [], finishReason: 'length' },
  { type: 'run.ended', status: 'ok', output: 'Hi Ada.' },
];
const wait = (id: string, votes: object[] = []): PersonWait =>
  ({
    ...{
      id,
      kind: 'approval',
      createdAt: 0,
      dueAt: 86_400_000,
      step: 1,
      callId: 'c',
      tool: 'mail',
      digest: 'd',
      quorum: 2,
    },
    ...{ votes, editable: false, onExpiry: 'deny', prompt: 'Send it?', input: { to: 'Bob' } },
  }) as unknown as PersonWait;
const opened = (id: string): RunEventBody => ({ type: 'wait.opened', wait: wait(id) as never, input: { to: 'Bob' } });
const rests: RunEventBody = { type: 'run.waiting', waits: 1 };
const asked = (id: string, votes: object[] = []) => ({
  hasChildren: false,
  persons: [{ wait: wait(id, votes), toolCallId: 'r1:1:call:c', isOwn: true }],
});

/** A conversation with one live run, `r1`, and the message that began it. */
function conversation(...events: RunEventBody[]): { readonly it: FakeConversation; readonly run: FakeRun } {
  const it = new FakeConversation();
  const run = new FakeRun('r1', ...begun, ...events);
  it.runs.set('r1', run);
  it.turns = [{ runId: 'r1', state: 'live' }];
  it.recorded = [user('m1', 'r1', 'Who am I?')];
  return { it, run };
}

/** Posts to the conversation with the real client, which has its messages from before. */
async function post(
  it: FakeConversation,
  options: {
    readonly agent?: HttpAgent;
    readonly runId?: string;
    readonly answered?: AnsweredInterrupts;
    /** Happens when the stream has shown what there is. */
    readonly onShown?: () => void;
  } = {},
): Promise<{ readonly agent: HttpAgent; readonly events: AgUiEvent[] }> {
  const events: AgUiEvent[] = [];
  const { runId = 'r1', answered = new Map() } = options;
  const agent = options.agent ?? new HttpAgent({ url: 'http://agent.invalid/', threadId: 't' });
  agent.fetch = async (_url, { body }) => {
    const input = inputOfAgUi(JSON.parse(String(body)));
    const posted = newMessage(input.tail.slice(-1));
    const stream = followAgUi({
      ...{ conversation: it, input, runId, posted, answered },
      ...{ signal: new AbortController().signal, clock: hastyClock },
    });
    return new Response(
      ReadableStream.from(
        (async function* () {
          for await (const event of stream) {
            events.push(structuredClone(event));
            if (event.type === 'MESSAGES_SNAPSHOT') setTimeout(() => options.onShown?.(), 5);
            yield new TextEncoder().encode(`data: ${JSON.stringify(event)}\n\n`);
          }
        })(),
      ),
      { headers: { 'content-type': 'text/event-stream' } },
    );
  };
  await agent.runAgent({ runId: 'mine' });
  return { agent, events };
}

const once = (work: () => void) => {
  let isDone = false;
  return () => {
    if (!isDone) work();
    isDone = true;
  };
};
const types = (events: readonly AgUiEvent[]) => events.map(({ type }) => type);

describe('a post', () => {
  test('streams its turn: the posted run id, a snapshot, what is new, the result with its usage and how it ended (web 34, edges 7)', async () => {
    const { it, run } = conversation();
    const onShown = () => {
      run.add(said('Hi '), said('Ada.', 3));
      it.recorded.push(answer('r1', 'Hi Ada.'));
      run.add(...ended);
    };
    const agent = new HttpAgent({
      ...{ url: 'http://agent.invalid/', threadId: 't' },
      initialMessages: [{ id: 'm1', role: 'user', content: 'Who am I?' }],
    });
    const { events } = await post(it, { agent, onShown });
    expect(events[0]).toEqual({
      ...{ type: 'RUN_STARTED', threadId: 't', runId: 'mine', protocolVersion: '1.0' },
      metadata: { pawl: { runId: 'r1' } },
    });
    expect(types(events)).toEqual([
      ...['RUN_STARTED', 'MESSAGES_SNAPSHOT', 'STEP_STARTED', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT'],
      ...['TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'STEP_FINISHED', 'RUN_FINISHED'],
    ]);
    expect(events.at(-1)).toEqual({
      ...{ type: 'RUN_FINISHED', threadId: 't', runId: 'mine', outcome: { type: 'success' }, result: 'Hi Ada.' },
      metadata: { pawl: { finishReason: 'length' } },
      usage: [
        {
          inputTokens: 10,
          outputTokens: 5,
          totalTokens: 15,
          reasoningTokens: 1,
          cachedInputTokens: 2,
          cacheWriteInputTokens: 3,
        },
      ],
    });
    expect(agent.messages).toEqual(agUiMessagesOf(it.recorded));
  });

  test('keeps a new message in the snapshot although the conversation does not show it yet (web 34)', async () => {
    const { it } = conversation(said('Hi Ada.'), ...ended);
    it.recorded = [];
    const agent = new HttpAgent({
      ...{ url: 'http://agent.invalid/', threadId: 't' },
      initialMessages: [{ id: 'm1', role: 'user', content: 'Who am I?' }],
    });
    const { events } = await post(it, { agent });
    expect(events[1]).toMatchObject({
      messages: [{ id: 'm1', role: 'user', content: 'Who am I?' }, { content: 'Hi Ada.' }],
    });
  });

  test('that comes again in the middle of a text gets it in the snapshot, and then only the rest (web 34, 35)', async () => {
    const { it, run } = conversation(said('Hi '));
    const agent = new HttpAgent({
      ...{ url: 'http://agent.invalid/', threadId: 't' },
      initialMessages: [
        { id: 'm1', role: 'user', content: 'Who am I?' },
        { id: 'r1:1.0', role: 'assistant', content: 'H' },
      ],
    });
    const onShown = () => {
      it.recorded.push(answer('r1', 'Hi Ada.'));
      run.add(said('Ada.', 3), ...ended);
    };
    const { events } = await post(it, { agent, onShown });
    expect(events[1]).toMatchObject({
      type: 'MESSAGES_SNAPSHOT',
      messages: [{ id: 'm1' }, { id: 'r1:1.0', content: 'Hi ' }],
    });
    expect(events.filter(({ type }) => type === 'TEXT_MESSAGE_CONTENT')).toEqual([
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 'r1:1.0', delta: 'Ada.' },
    ]);
    expect(agent.messages).toEqual(agUiMessagesOf(it.recorded));
  });

  test('whose step is begun again gets the whole conversation again, which its stream has not kept (web 34, edges 26)', async () => {
    const { it, run } = conversation();
    it.recorded.unshift(user('m0', 'r0', 'Hello.'), answer('r0', 'Hi.'));
    const again = once(() => {
      it.recorded.push(answer('r1', 'Hello Ada.'));
      run.add({ type: 'step.started', step: 1 }, said('Hello Ada.'), ...ended);
    });
    const begin = once(() => run.add(said('Hi '), { type: 'step.reset', step: 1 }));
    let shown = 0;
    const { agent, events } = await post(it, { onShown: () => (++shown === 1 ? begin() : again()) });
    expect(it.reads).toBe(3);
    expect(events.filter(({ type }) => type === 'MESSAGES_SNAPSHOT')).toEqual([
      { type: 'MESSAGES_SNAPSHOT', messages: agUiMessagesOf(it.recorded.slice(0, 3)) },
      { type: 'MESSAGES_SNAPSHOT', messages: agUiMessagesOf(it.recorded.slice(0, 3)) },
    ]);
    expect(agent.messages).toEqual(agUiMessagesOf(it.recorded));
  });

  test('gets the conversation again once, also beside a store that is slower than the pause of a stream (edges 26)', async () => {
    const { it, run } = conversation();
    it.events = async function* () {
      for await (const event of run.read()) {
        await new Promise((resolve) => setTimeout(resolve, 20));
        yield { ...event, at: event.seq };
      }
    };
    run.add(said('Hi '), { type: 'step.reset', step: 1 }, { type: 'step.started', step: 1 }, said('Hello Ada.'));
    it.recorded.push(answer('r1', 'Hello Ada.'));
    run.add(...ended);
    const { agent } = await post(it);
    expect(it.reads).toBeLessThanOrEqual(3);
    expect(agent.messages).toEqual(agUiMessagesOf(it.recorded));
  });

  test('of a run that is over gets all messages and its end (web 34)', async () => {
    const { it } = conversation(said('Hi Ada.'), ...ended);
    it.recorded.push(answer('r1', 'Hi Ada.'));
    it.turns = [{ runId: 'r1', state: 'ended' }];
    const { agent, events } = await post(it);
    expect(types(events)).toEqual(['RUN_STARTED', 'MESSAGES_SNAPSHOT', 'RUN_FINISHED']);
    expect(agent.messages).toEqual(agUiMessagesOf(it.recorded));
  });

  test('of a run whose events are gone gets the recorded messages (web 34)', async () => {
    const { it } = conversation();
    it.recorded.push(answer('r1', 'Hi Ada.'));
    it.runs.clear();
    const { agent, events } = await post(it);
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } });
    expect(agent.messages).toEqual(agUiMessagesOf(it.recorded));
  });

  test('is put right at the end where the record differs from the pieces (web 34)', async () => {
    const { it, run } = conversation();
    const onShown = () => {
      it.recorded.push({ ...user('r1:1', 'r1', 'Also say hello.') }, answer('r1', 'Hello Ada.'));
      run.add(said('Hi Ada.'), ...ended);
    };
    const { agent, events } = await post(it, { onShown: once(onShown) });
    expect(types(events).slice(-3)).toEqual(['MESSAGES_SNAPSHOT', 'MESSAGES_SNAPSHOT', 'RUN_FINISHED']);
    expect(agent.messages).toEqual(agUiMessagesOf(it.recorded));
  });

  test('shows the code of a failed run with its public text, and nothing of its message (web 34)', async () => {
    const error = { name: 'ModelError', code: 'MODEL', message: 'key sk-123 refused' };
    const { it } = conversation({ type: 'run.ended', status: 'error', output: '', error });
    const { events } = await post(it);
    expect(events.at(-1)).toEqual({ type: 'RUN_ERROR', code: 'MODEL', message: 'The model failed' });
  });

  test('of a cancelled run ends as cancelled (web 34)', async () => {
    const { it } = conversation({ type: 'run.ended', status: 'cancelled', output: '' });
    expect((await post(it)).events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } });
  });

  test('breaks, and does not end, where the events break (web 34)', async () => {
    const { it, run } = conversation(said('Hi '));
    const input = inputOfAgUi({ threadId: 't', runId: 'mine' });
    const signal = new AbortController().signal;
    const stream = followAgUi({ conversation: it, input, runId: 'r1', answered: new Map(), signal, clock: hastyClock });
    const types: string[] = [];
    const read = async () => {
      for await (const { type } of stream) if (types.push(type) === 2) run.fail(new Error('the store is gone'));
    };
    await expect(read()).rejects.toThrow('the store is gone');
    expect(types).toEqual(['RUN_STARTED', 'MESSAGES_SNAPSHOT']);
  });
});

describe('a run that waits for a person', () => {
  test('ends the stream with an interrupt, behind a snapshot of all messages (web 34)', async () => {
    const { it } = conversation(opened('w1'), rests);
    it.open = asked('w1');
    const { agent, events } = await post(it);
    expect(types(events).slice(-2)).toEqual(['MESSAGES_SNAPSHOT', 'RUN_FINISHED']);
    expect(agent.pendingInterrupts).toEqual([
      {
        ...{ id: 'w1', reason: 'tool_call', message: 'Send it?', toolCallId: 'r1:1:call:c' },
        expiresAt: '1970-01-02T00:00:00.000Z',
        responseSchema: {
          type: 'object',
          properties: { approved: { type: 'boolean' }, note: { type: 'string', description: expect.any(String) } },
          required: ['approved'],
        },
        metadata: { pawl: { tool: 'mail', digest: 'd', quorum: 2, votes: 0, given: [], input: { to: 'Bob' } } },
      },
    ]);
    expect(agent.messages.at(-1)).toMatchObject({
      toolCalls: [{ id: 'r1:1:call:c', function: { name: 'mail', arguments: '{"to":"Bob"}' } }],
    });
  });

  test('does not interrupt a stream that has not read all of its events yet (web 34)', async () => {
    const { it, run } = conversation(opened('w1'), rests);
    it.open = asked('w2');
    const later: RunEventBody[] = [
      { type: 'wait.answered', waitId: 'w1', kind: 'approval', how: 'approve' },
      ...[{ type: 'run.woken' } as const, said('One more.'), opened('w2'), rests],
    ];
    const { agent } = await post(it, { onShown: once(() => run.add(...later)) });
    expect(agent.pendingInterrupts.map(({ id }) => id)).toEqual(['w2']);
    expect(agent.messages.at(-1)).toMatchObject({ content: 'One more.' });
  });

  test('keeps the stream open while it waits for a time or an event only (web 34)', async () => {
    const { it, run } = conversation(rests);
    const onShown = once(() => run.add({ type: 'run.woken' }, said('Hi Ada.'), ...ended));
    expect((await post(it, { onShown })).events.at(-1)).toMatchObject({ outcome: { type: 'success' } });
  });

  test('is not interrupted again by a wait whose answer is on its way, but by one that needs another vote (web 34)', async () => {
    const { it } = conversation(opened('w1'), rests);
    it.open = asked('w1');
    const answered = new Map([['w1', { votes: 0, at: 1_000 }]]);
    const onShown = () => {
      it.open = asked('w1', [{ by: { id: 'ada' }, at: 0 }]);
    };
    const { agent } = await post(it, { answered, onShown });
    expect(it.looks).toBeGreaterThan(1);
    expect(agent.pendingInterrupts[0]).toMatchObject({ metadata: { pawl: { votes: 1 } } });
  });

  test('asks a person whose wait no event reports: the process that opened it died before it could (web 34, 35)', async () => {
    const { it } = conversation(said('Hm.'));
    it.status = 'waiting';
    it.open = asked('w1');
    const { agent } = await post(it);
    expect(agent.pendingInterrupts.map(({ id }) => id)).toEqual(['w1']);
    expect(agent.messages.at(-1)).toMatchObject({ content: 'Hm.' });
  });

  test('that is set aside without an event of it ends the stream with an error (web 34, 35)', async () => {
    const { it } = conversation();
    it.status = 'parked';
    expect((await post(it)).events.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'RUN_PARKED' });
  });

  test('looks at the waits of the runs below it, which are in no event of its own (web 34)', async () => {
    const { it } = conversation(rests);
    it.open = { persons: [], hasChildren: true };
    it.status = 'waiting';
    const onShown = () => {
      it.open = { hasChildren: true, persons: [{ wait: wait('below'), toolCallId: 'r1:1:call:c', isOwn: false }] };
    };
    expect((await post(it, { onShown })).agent.pendingInterrupts.map(({ id }) => id)).toEqual(['below']);
  });

  test('that is set aside ends the stream with an error, but not if it was set aside only before (web 34, edges 19)', async () => {
    const parked: RunEventBody = { type: 'run.parked', code: 'X', reason: 'secret' };
    const { it } = conversation(parked);
    it.status = 'parked';
    expect((await post(it)).events.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'RUN_PARKED' });
    const { it: again } = conversation(parked, ...ended);
    expect((await post(again)).events.at(-1)).toMatchObject({ outcome: { type: 'success' } });
  });
});

describe('a message in the queue', () => {
  function queued(...events: RunEventBody[]) {
    const { it, run } = conversation(...events);
    it.turns.push({ runId: 'r2', state: 'queued' });
    const agent = new HttpAgent({
      ...{ url: 'http://agent.invalid/', threadId: 't' },
      initialMessages: [{ id: 'm2', role: 'user', content: 'And you?' }],
    });
    return { it, run, agent };
  }

  test('streams its own run after the one before it, and the messages are in the order of the turns (web 34)', async () => {
    const { it, run, agent } = queued();
    const onShown = once(() => {
      it.recorded.push(answer('r1', 'Hi Ada.'), user('m2', 'r2', 'And you?'));
      it.turns = [
        { runId: 'r1', state: 'ended' },
        { runId: 'r2', state: 'live' },
      ];
      it.runs.set('r2', new FakeRun('r2', ...begun, said('A bot.'), ...ended));
      run.add(said('Hi Ada.'), ...ended);
      it.recorded.push(answer('r2', 'A bot.'));
    });
    const { events } = await post(it, { agent, runId: 'r2', onShown });
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', runId: 'mine', outcome: { type: 'success' } });
    expect(agent.messages).toEqual(agUiMessagesOf(it.recorded));
  });

  test('ends with the interrupt of the run before it, and stays in the snapshot (web 34)', async () => {
    const { it, agent } = queued(opened('w1'), rests);
    it.open = asked('w1');
    await post(it, { agent, runId: 'r2' });
    expect(agent.pendingInterrupts.map(({ id }) => id)).toEqual(['w1']);
    expect(agent.messages.at(-1)).toMatchObject({ id: 'm2' });
  });

  test('behind a run that is set aside waits for its turn: that run ends for it (edges 31)', async () => {
    const { it, run, agent } = queued({ type: 'run.parked', code: 'X', reason: 'r' });
    it.status = 'parked';
    const onShown = once(() => {
      it.status = 'other';
      it.turns = [
        { runId: 'r1', state: 'ended' },
        { runId: 'r2', state: 'live' },
      ];
      it.runs.set('r2', new FakeRun('r2', ...begun, said('A bot.'), ...ended));
      run.add({ type: 'run.ended', status: 'error', output: '' });
      it.recorded.push(user('m2', 'r2', 'And you?'), answer('r2', 'A bot.'));
    });
    const { events } = await post(it, { agent, runId: 'r2', onShown });
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } });
    expect(agent.messages.at(-1)).toMatchObject({ content: 'A bot.' });
  });

  test('that was removed ends as cancelled (web 34)', async () => {
    const { it, agent } = queued(...ended);
    it.turns = [{ runId: 'r1', state: 'ended' }];
    const { events } = await post(it, { agent, runId: 'r2' });
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } });
  });
});
