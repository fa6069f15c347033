import type { UIMessage } from 'ai';
import { createPalette, defineAgent, defineTool } from 'pawl';
import { callTool, callTools, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import type { UiChunk } from '../../../src/http/chat/ui-chunk.ts';
import { systemClock } from '../../../src/values/clock.ts';
import { type ChatHost, chatHost, chooseTool, chunksIn, mailTool, received, said } from './chat-host.ts';
import { read } from './page.ts';

const types = (chunks: readonly UiChunk[]) => chunks.map(({ type }) => type).filter((type) => type !== 'data-pawl-run');
const textIn = (chunks: readonly UiChunk[]) =>
  chunks.flatMap((chunk) => (chunk.type === 'text-delta' ? chunk.delta : [])).join('');
const end = (chunks: readonly UiChunk[]) => chunks.at(-1);

/** A page without React: its messages, as posts and streams change them. */
function pageOf(host: ChatHost, id = 'chat') {
  const messages: UIMessage[] = [];
  const take = async (response: Response) => {
    const chunks = await chunksIn(response);
    const last = messages.at(-1);
    const { message } = await read(chunks, last?.role === 'assistant' ? last : undefined);
    if (message && last?.role === 'assistant') messages.pop();
    if (message) messages.push(message);
    return chunks;
  };
  const post = async (body: object = {}) => {
    const response = await host.ask('/chat', { body: { id, messages, trigger: 'submit-message', ...body } });
    expect(response.status).toBe(200);
    return take(response);
  };
  return {
    messages,
    post,
    say: (messageId: string, text: string) => {
      messages.push(said(messageId, text) as UIMessage);
      return post();
    },
    decide: (approved: boolean, reason?: string) => {
      for (const part of messages.at(-1)?.parts ?? []) {
        if (!('state' in part) || part.state !== 'approval-requested' || !part.approval) continue;
        Object.assign(part, { state: 'approval-responded', approval: { ...part.approval, approved, reason } });
      }
      return post({ messageId: messages.at(-1)?.id });
    },
  };
}

describe('POST /chat', () => {
  test('starts a run for a new message and streams its answer (web 25, 26, 30)', async () => {
    const host = chatHost({ script: [reply('Hello, Ada.')] });
    const response = await host.ask('/chat', { body: { id: 'chat', messages: [said('1', 'Hi')] } });
    expect(Object.fromEntries(response.headers)).toMatchObject({
      ...{
        'x-vercel-ai-ui-message-stream': 'v1',
        'cache-control': 'no-cache, no-transform',
        'x-accel-buffering': 'no',
      },
      'content-type': expect.stringContaining('text/event-stream'),
    });
    const { all, isDone } = await received(response);
    const chunks = all.map(({ chunk }) => chunk);
    expect([types(chunks)[0], textIn(chunks), end(chunks)?.type, isDone]).toEqual([
      'start',
      'Hello, Ada.',
      'finish',
      true,
    ]);
    const turn = await host.executor.thread('chat', { agent: host.agent, callerId: 'ada' }).turn('1');
    expect(chunks[0]).toEqual({ type: 'start', messageId: `${turn?.runId}:m` });
  });

  test('gives the model the earlier messages of the thread, and nothing that the page says of them (web 25)', async () => {
    const host = chatHost({ script: [reply('one'), reply('two')] });
    const page = pageOf(host);
    await page.say('1', 'Hi');
    Object.assign(page.messages[1] ?? {}, { parts: [{ type: 'text', text: 'forged' }] });
    expect(textIn(await page.say('2', 'And?'))).toBe('two');
    const seen = JSON.stringify(host.model.calls[1]?.messages);
    expect([seen.includes('one'), seen.includes('And?'), seen.includes('forged')]).toEqual([true, true, false]);
  });

  test('takes a message that is sent twice once, and streams its answer again (web 10, 30)', async () => {
    const host = chatHost({ script: [reply('one')] });
    const body = { id: 'chat', messages: [said('1', 'Hi')] };
    const [first, again] = [
      await chunksIn(await host.ask('/chat', { body })),
      await chunksIn(await host.ask('/chat', { body })),
    ];
    expect(again).toEqual(first);
    expect(host.model.calls).toHaveLength(1);
  });

  test('sends messages that no answer followed as one turn (web 25)', async () => {
    const host = chatHost({ script: [reply('both')] });
    await chunksIn(await host.ask('/chat', { body: { id: 'chat', messages: [said('1', 'Hi'), said('2', 'there')] } }));
    const [prompt] = host.model.calls[0]?.messages ?? [];
    expect(JSON.stringify(prompt)).toMatch(/Hi.*there/);
  });

  test('waits for a person with an approval card, and continues in the same message after the approval (web 28, 29, 30)', async () => {
    let mails = 0;
    const host = chatHost({
      script: [callTool('mail', { to: 'bo' }), reply('Sent.')],
      tools: [mailTool(() => `mail ${++mails}`)],
    });
    const page = pageOf(host);
    const asked = await page.say('1', 'Mail Bo');
    expect(end(asked)).toEqual({ type: 'finish', finishReason: 'tool-calls' });
    expect(page.messages[1]?.parts).toContainEqual(
      expect.objectContaining({ type: 'tool-mail', state: 'approval-requested' }),
    );
    const rest = await page.decide(true);
    expect(types(rest)).not.toContain('reset-step');
    expect([textIn(rest), end(rest)?.type, mails, page.messages.length]).toEqual(['Sent.', 'finish', 1, 2]);
    expect(page.messages[1]?.parts).toContainEqual(
      expect.objectContaining({ type: 'tool-mail', state: 'output-available', output: 'mail 1' }),
    );
    const replayed = await read(await chunksIn(await host.ask('/chat/chat/stream')));
    expect(replayed.message).toEqual(page.messages[1]);
  });

  test('denies a call with the person’s reason, which the model reads (web 29)', async () => {
    const host = chatHost({ script: [callTool('mail', {}), reply('As you wish.')], tools: [mailTool()] });
    const page = pageOf(host);
    await page.say('1', 'Mail Bo');
    expect(textIn(await page.decide(false, 'not today'))).toBe('As you wish.');
    expect(JSON.stringify(host.model.calls[1]?.messages)).toContain('not today');
    expect(page.messages[1]?.parts).toContainEqual(expect.objectContaining({ state: 'output-denied' }));
  });

  test('answers the question of a call with its posted output (web 29)', async () => {
    const host = chatHost({ script: [callTool('choose', {}), reply('Good.')], tools: [chooseTool] });
    const page = pageOf(host);
    expect(end(await page.say('1', 'Go'))).toEqual({ type: 'finish', finishReason: 'tool-calls' });
    for (const part of page.messages[1]?.parts ?? [])
      if ('toolCallId' in part) Object.assign(part, { state: 'output-available', output: 'b' });
    expect(textIn(await page.post())).toBe('Good.');
    expect(page.messages[1]?.parts).toContainEqual(expect.objectContaining({ output: 'chosen: "b"' }));
  });

  test('takes a late answer without an error, and continues the message (web 25, 30)', async () => {
    const host = chatHost({ script: [callTool('mail', {}), reply('Sent.')], tools: [mailTool()] });
    const [one, two] = [pageOf(host), pageOf(host)];
    await one.say('1', 'Mail Bo');
    two.messages.push(...structuredClone(one.messages));
    await one.decide(true);
    expect(textIn(await two.decide(false, 'too late'))).toBe('Sent.');
    expect(two.messages[1]?.parts.filter(({ type }) => type === 'text')).toHaveLength(1);
    expect(two.messages[1]?.parts).toContainEqual(
      expect.objectContaining({ state: 'output-available', output: 'sent' }),
    );
  });

  test('ends at once with `interrupted` if there is nothing new and the run is over (web 30)', async () => {
    const host = chatHost();
    const page = pageOf(host);
    await page.say('1', 'Hi');
    expect(await page.post()).toEqual([{ type: 'finish', finishReason: 'interrupted' }]);
  });

  test('with a message behind a wait for a person cancels the run, and answers the message (web 32)', async () => {
    const host = chatHost({ script: [callTool('mail', {}), reply('Hello.')], tools: [mailTool()] });
    const page = pageOf(host);
    await page.say('1', 'Mail Bo');
    expect(textIn(await page.say('2', 'Forget it'))).toBe('Hello.');
    const thread = host.executor.thread('chat', { agent: host.agent, callerId: 'ada' });
    const { runId = '' } = (await thread.turn('1')) ?? {};
    expect(await host.executor.find(runId)).toMatchObject({ status: 'ended', outcome: { status: 'cancelled' } });
  });

  test('that queues behind a wait for a person ends with `interrupted`; its turn comes later (web 32)', async () => {
    const host = chatHost({
      ...{ script: [callTool('mail', {}), reply('Sent.'), reply('Second.')], tools: [mailTool()] },
      http: { onWaiting: 'queue' },
    });
    const page = pageOf(host);
    await page.say('1', 'Mail Bo');
    const first = structuredClone(page.messages[1]);
    expect(await page.say('2', 'And then?')).toEqual([{ type: 'finish', finishReason: 'interrupted' }]);
    const other = pageOf(host);
    other.messages.push(said('1', 'Mail Bo') as UIMessage, first as UIMessage);
    expect(textIn(await other.decide(true))).toBe('Sent.');
    expect(textIn(await page.post())).toBe('Second.');
  });

  test('behind a parked run is answered without it (edges 31)', async () => {
    const parking = defineTool({
      ...{ name: 'mail', description: 'Sends a mail.', effect: 'once', input: { type: 'object' } },
      approval: { expiresInMs: 1, onExpiry: 'park' },
      needsApproval: true,
      execute: () => 'sent',
    });
    const host = chatHost({ script: [callTool('mail', {}), reply('Second.')], tools: [parking] });
    const page = pageOf(host);
    await page.say('1', 'Mail Bo');
    const runId = page.messages[1]?.id.slice(0, -2) ?? '';
    await expect.poll(async () => (await host.executor.find(runId))?.status, { interval: 5 }).toBe('parked');
    expect(textIn(await page.say('2', 'And then?'))).toBe('Second.');
    expect(await host.executor.find(runId)).toMatchObject({ status: 'ended', outcome: { status: 'error' } });
  });

  test('with more parts than one turn takes is a 400, in one message or in several (edges 29)', async () => {
    const host = chatHost({ script: [reply('one')] });
    const message = (id: string, count: number) => ({
      ...{ id, role: 'user', parts: Array.from({ length: count }, () => ({ type: 'text', text: 'a' })) },
    });
    for (const messages of [[message('1', 101)], [message('1', 60), message('2', 60)]]) {
      const response = await host.ask('/chat', { body: { id: 'chat', messages } });
      expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([400, 'BAD_REQUEST']);
    }
    expect(host.model.calls).toEqual([]);
  });

  test('makes an answer again: the turn is dropped, and the message begins another run (web 31)', async () => {
    const host = chatHost({ script: [reply('one'), reply('two')] });
    const page = pageOf(host);
    await page.say('1', 'Hi');
    const old = page.messages.pop();
    expect(textIn(await page.post({ trigger: 'regenerate-message', messageId: old?.id }))).toBe('two');
    expect(page.messages[1]?.id).not.toBe(old?.id);
    const thread = host.executor.thread('chat', { agent: host.agent, callerId: 'ada' });
    expect((await thread.messages()).map(({ message }) => message.role)).toEqual(['user', 'assistant']);
  });

  test('makes the answer of two messages that were one turn again with both (web 31)', async () => {
    const host = chatHost({ script: [reply('one'), reply('two')] });
    const messages = [said('1', 'Hi'), said('2', 'And?')];
    const post = async (how: object) =>
      textIn(await chunksIn(await host.ask('/chat', { body: { id: 'chat', messages, ...how } })));
    expect([await post({}), await post({ trigger: 'regenerate-message' })]).toEqual(['one', 'two']);
    expect(host.model.calls[1]?.messages).toEqual(host.model.calls[0]?.messages);
  });

  test('with an edited message drops its turn and all later ones (web 31)', async () => {
    const host = chatHost({ script: [reply('one'), reply('two'), reply('three')] });
    const page = pageOf(host);
    await page.say('1', 'Hi');
    await page.say('2', 'And?');
    page.messages.splice(0, 4, said('1', 'Hello') as UIMessage);
    expect(textIn(await page.post({ messageId: '1' }))).toBe('three');
    expect(JSON.stringify(host.model.calls[2]?.messages)).not.toMatch(/one|two|And/);
  });

  test('repeats a `regenerate-message` with the same Idempotency-Key without another run (web 20, 31)', async () => {
    const host = chatHost({ script: [reply('one'), reply('two')] });
    const page = pageOf(host);
    await page.say('1', 'Hi');
    const body = { id: 'chat', messages: [said('1', 'Hi')], trigger: 'regenerate-message' };
    const again = () => host.ask('/chat', { body, headers: { 'idempotency-key': 'k' } }).then(chunksIn);
    expect([textIn(await again()), textIn(await again())]).toEqual(['two', 'two']);
  });

  test('refuses an edit with the Idempotency-Key of another edit: the run of the first one stays (web 20, 31)', async () => {
    const host = chatHost({ script: [reply('one'), reply('two')] });
    await pageOf(host).say('1', 'Hi');
    const edit = (text: string) => {
      const body = { id: 'chat', messages: [said('1', text)], messageId: '1' };
      return host.ask('/chat', { body, headers: { 'idempotency-key': 'k' } });
    };
    expect(textIn(await chunksIn(await edit('Hello')))).toBe('two');
    const other = await edit('Bye');
    expect([other.status, await other.json()]).toMatchObject([409, { code: 'THREAD_MESSAGE_CONFLICT' }]);
    expect(textIn(await chunksIn(await edit('Hello')))).toBe('two');
    expect(host.model.calls).toHaveLength(2);
  });

  test('makes the answer of a live run again: that run is cancelled first (web 31)', async () => {
    const host = chatHost({ script: [callTool('mail', {}), reply('two')], tools: [mailTool()] });
    const page = pageOf(host);
    await page.say('1', 'Hi');
    page.messages.pop();
    expect(textIn(await page.post({ trigger: 'regenerate-message' }))).toBe('two');
  });

  test('asks for the approvals of a sub-agent on the call that runs it, one at a time (web 28, 29)', async () => {
    let mails = 0;
    const postman = defineAgent({
      ...{ id: 'postman', name: 'Postman', description: 'Mails.', instructions: 'Mail.' },
      tools: [mailTool(() => `mail ${++mails}`)],
    });
    const two = [
      { name: 'mail', input: { to: 'bo' } },
      { name: 'mail', input: { to: 'cy' } },
    ];
    const script = [
      callTool('agent__postman', { prompt: 'Mail both.' }),
      callTools(two),
      reply('Both out.'),
      reply('Done.'),
    ];
    const host = chatHost({
      script,
      agent: { subAgents: ['postman'] },
      ports: { palette: createPalette({ agents: [postman] }) },
    });
    const page = pageOf(host);
    const cards = () =>
      page.messages[1]?.parts.flatMap((part) =>
        'state' in part && part.state === 'approval-requested' ? part.type : [],
      );
    expect(end(await page.say('1', 'Mail both'))).toEqual({ type: 'finish', finishReason: 'tool-calls' });
    expect(cards()).toEqual(['tool-agent__postman']);
    expect(end(await page.decide(true))).toEqual({ type: 'finish', finishReason: 'tool-calls' });
    expect([cards(), mails]).toEqual([['tool-agent__postman'], 1]);
    expect([textIn(await page.decide(false)), mails]).toEqual(['Done.', 1]);
    expect(page.messages[1]?.parts).toContainEqual(
      expect.objectContaining({ type: 'tool-agent__postman', state: 'output-available' }),
    );
    const { message } = await read(await chunksIn(await host.ask('/chat/chat/stream')));
    expect(message).toEqual(page.messages[1]);
  });

  test('asks the host for each thing that it does (web 18)', async () => {
    const asked: string[] = [];
    const host = chatHost({
      ...{ script: [callTool('mail', {}), reply('Sent.'), reply('Again.')], tools: [mailTool()] },
      http: {
        authorize: (_, { action, threadId }) => {
          asked.push(`${action} ${threadId}`);
          return { callerId: 'ada', by: { id: 'ada' } };
        },
      },
    });
    const page = pageOf(host);
    const asks = async (work: Promise<unknown>) => {
      await work;
      return asked.splice(0);
    };
    // The id of a chat is in the body.
    expect(await asks(page.say('1', 'Hi'))).toEqual(['read undefined', 'read chat', 'start chat']);
    expect(await asks(page.decide(true))).toEqual(['read undefined', 'read chat', 'answer chat']);
    page.messages.pop();
    expect(await asks(page.post({ trigger: 'regenerate-message' }))).toEqual([
      'read undefined',
      'read chat',
      'delete chat',
      'start chat',
    ]);
  });
});

describe('GET /chat/:id/stream', () => {
  test('replays the newest message from its start (web 31)', async () => {
    const host = chatHost({ script: [reply('one')] });
    const page = pageOf(host);
    await page.say('1', 'Hi');
    const { message } = await read(await chunksIn(await host.ask('/chat/chat/stream')));
    expect(message).toEqual(page.messages[1]);
  });

  test('is 204 once retention.events is over, also while the record is kept (web 31)', async () => {
    let ahead = 0;
    const clock = { ...systemClock, now: () => Date.now() + ahead };
    const host = chatHost({
      script: [reply('one')],
      journal: {},
      retention: { records: 1e9, events: 30_000 },
      http: { clock },
    });
    await pageOf(host).say('1', 'Hi');
    ahead = 20_000;
    expect((await host.ask('/chat/chat/stream')).status).toBe(200);
    ahead = 31_000;
    expect((await host.ask('/chat/chat/stream')).status).toBe(204);
  });

  test('is 204 for a chat without a run, and for another caller (web 19, 31)', async () => {
    const host = chatHost();
    expect((await host.ask('/chat/chat/stream')).status).toBe(204);
    await pageOf(host).say('1', 'Hi');
    expect((await host.ask('/chat/chat/stream', { as: 'eve' })).status).toBe(204);
  });

  test('continues after any chunk with `Last-Event-ID`, and is 204 for who has the end (web 23, 31)', async () => {
    const host = chatHost({ script: [callTool('mail', { to: 'bo' }), reply('Sent.')], tools: [mailTool()] });
    const page = pageOf(host);
    await page.say('1', 'Mail Bo');
    await page.decide(true);
    const { all } = await received(await host.ask('/chat/chat/stream'));
    for (const [i, { id = '' }] of all.slice(0, -1).entries()) {
      const rest = await received(await host.ask('/chat/chat/stream', { headers: { 'last-event-id': id } }));
      const chunks = [...all.slice(0, i + 1), ...rest.all].map(({ chunk }) => chunk);
      expect([(await read(chunks)).message, rest.isDone]).toEqual([page.messages[1], true]);
    }
    const last = { 'last-event-id': all.at(-1)?.id ?? '' };
    expect((await host.ask('/chat/chat/stream', { headers: last })).status).toBe(204);
    expect((await host.ask('/chat/chat/stream', { headers: last, as: 'eve' })).status).toBe(404);
    expect((await host.ask('/chat/chat/stream', { headers: { 'last-event-id': 'r' } })).status).toBe(400);
  });
});

describe('POST /chat/:id/stop', () => {
  test('cancels the live run, whose stream ends with `abort` (web 28, 31)', async () => {
    const host = chatHost({ script: [{ type: 'hang' }] });
    const stream = host.ask('/chat', { body: { id: 'chat', messages: [said('1', 'Hi')] } }).then(chunksIn);
    await expect.poll(() => host.model.calls.length).toBe(1);
    const thread = host.executor.thread('chat', { agent: host.agent, callerId: 'ada' });
    const { runId } = (await thread.turn('1')) ?? {};
    expect((await host.ask('/chat/chat/stop', { body: {}, as: 'eve' })).status).toBe(200);
    expect(await (await host.ask('/chat/chat/stop', { body: { messageId: 'other:m' } })).json()).toEqual({
      state: 'ended',
    });
    expect(await (await host.ask('/chat/chat/stop', { body: { messageId: `${runId}:m` } })).json()).toEqual({
      runId,
      state: 'ended',
    });
    expect((await stream).slice(-2)).toEqual([{ type: 'abort' }, { type: 'finish', finishReason: 'interrupted' }]);
  });
});
