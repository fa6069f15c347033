import { defineTool, memoryStore, type Tool } from 'pawl';
import { callTool, reply, stallAfter } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { type ClientOptions, createClient, type JournalEvent } from '../../src/client/index.ts';
import { type RunState, unknownRun, withEvent } from '../../src/react/run-state.ts';
import { randomFrom } from '../crash/random.ts';
import { eventually } from '../fixtures/eventually.ts';
import { type ChatHost, type ChatHostOptions, chatHost, mailTool } from '../http/chat/chat-host.ts';
import { PlainChat } from './plain-chat.ts';
import { quickClock } from './wire.ts';

const base = 'http://pawl.test';
const lookTool = defineTool({
  name: 'look',
  description: 'Looks.',
  effect: 'read',
  input: { type: 'object' },
  execute: () => 'two',
}) as unknown as Tool;
const answer = 'There are two of them, an \u00f6 and a \u{1F980}.';
const story: ChatHostOptions = {
  tools: [lookTool, mailTool()],
  script: [callTool('look', { at: 'x' }, 'k'), reply(answer)],
};

interface Network {
  readonly fetch: typeof fetch;
  connections: number;
}

/** The way to a handler. @param cutAt the bytes after which a stream breaks, for each connection; undefined = never */
function networkTo(host: () => Pick<ChatHost, 'handler'>, cutAt: (connection: number) => number | undefined): Network {
  const network: Network = {
    connections: 0,
    fetch: async (input, init) => {
      const response = await host().handler(new Request(`${base}${String(input)}`, init));
      const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
      network.connections += isStream ? 1 : 0;
      const cut = isStream ? cutAt(network.connections) : undefined;
      return cut === undefined || !response.body ? response : new Response(cutBody(response.body, cut), response);
    },
  };
  return network;
}

function cutBody(body: ReadableStream<Uint8Array>, cutAt: number): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let left = cutAt;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        if (value.length < left) {
          left -= value.length;
          return controller.enqueue(value);
        }
        controller.enqueue(value.slice(0, left));
        await reader.cancel();
        controller.error(new TypeError('terminated'));
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

const clientTo = ({ fetch }: Network, options: Partial<ClientOptions> = {}) =>
  createClient({ url: '', fetch, headers: { authorization: 'Bearer ada' }, clock: quickClock(), ...options });

/** What a page shows of a run, but for what is not of the run. */
async function shown(events: AsyncIterable<JournalEvent>): Promise<{ state: RunState; types: string[] }> {
  let state = unknownRun;
  const types: string[] = [];
  for await (const event of events) {
    state = withEvent(state, event);
    types.push(event.type);
  }
  return { state, types };
}

/** Of a call whose arguments came in pieces and of one that came whole, a page shows the same but for this text. */
const withoutPieces = (state: RunState) =>
  JSON.parse(JSON.stringify(state, (key, value) => (key === 'inputText' ? undefined : value)));

describe('a client of the real handler', () => {
  test('shows the same run, however often its stream breaks (web 33)', async () => {
    const host = chatHost(story);
    const whole = clientTo(
      networkTo(
        () => host,
        () => undefined,
      ),
    );
    const { runId } = await whole.start({ agent: 'worker', prompt: 'How many?' });
    const live = await shown(whole.run(runId).events());
    expect(live.types.at(-1)).toBe('run.ended');
    expect(live.state).toMatchObject({ status: 'ended', result: { status: 'ok', output: answer }, waits: [] });
    expect(live.state.steps.map(({ isDone, parts }) => [isDone, parts.map(({ type }) => type)])).toEqual([
      [true, ['call']],
      [true, ['text']],
    ]);
    for (let seed = 1; seed <= 40; seed += 1) {
      const random = randomFrom(seed);
      const network = networkTo(
        () => host,
        (connection) => (connection > 12 ? undefined : 20 + Math.floor(random() * 900)),
      );
      const cut = await shown(clientTo(network).run(runId).events());
      expect(withoutPieces(cut.state), `seed ${seed}`).toEqual(withoutPieces(live.state));
      expect(cut.types.filter((type) => type === 'run.ended')).toHaveLength(1);
    }
  });

  test('shows a run while it works, over breaks in the middle of its text (web 33)', async () => {
    for (let seed = 1; seed <= 10; seed += 1) {
      const host = chatHost(story);
      const random = randomFrom(seed);
      const network = networkTo(
        () => host,
        (connection) => (connection > 20 ? undefined : 20 + Math.floor(random() * 400)),
      );
      const client = clientTo(network);
      const { runId } = await client.start({ agent: 'worker', prompt: 'How many?' });
      const { state } = await shown(client.run(runId).events());
      expect(state.steps.at(-1)?.parts, `seed ${seed}`).toEqual([{ type: 'text', block: 0, text: answer }]);
      expect(network.connections).toBeGreaterThan(1);
    }
  });

  test('has no events for one who has the end, and says of an unknown run that there is none (web 23)', async () => {
    const host = chatHost(story);
    const client = clientTo(
      networkTo(
        () => host,
        () => undefined,
      ),
    );
    const { runId } = await client.start({ agent: 'worker', prompt: 'How many?' });
    let cursor = '';
    for await (const event of client.run(runId).events()) cursor = event.cursor;
    const rest: JournalEvent[] = [];
    for await (const event of client.run(runId).events({ after: cursor })) rest.push(event);
    expect(rest).toEqual([]);
    await expect(shown(client.run('other').events())).rejects.toMatchObject({ code: 'NOT_FOUND', status: 404 });
    await expect(shown(client.run(runId).events({ after: 'no cursor' }))).rejects.toMatchObject({
      code: 'BAD_REQUEST',
    });
    await expect(
      clientTo(
        networkTo(
          () => host,
          () => undefined,
        ),
        { headers: {} },
      ).runs(),
    ).rejects.toMatchObject({
      code: 'UNAUTHORIZED',
    });
  });

  test('starts once under one key, looks at its runs, and sees how they ended (web 20)', async () => {
    const host = chatHost(story);
    const client = clientTo(
      networkTo(
        () => host,
        () => undefined,
      ),
    );
    const run = { agent: 'worker', prompt: 'How many?' };
    const first = await client.start(run, { idempotencyKey: 'one' });
    await shown(client.run(first.runId).events());
    expect(first.accepted).toBe('started');
    expect(await client.start(run, { idempotencyKey: 'one' })).toMatchObject({
      runId: first.runId,
      accepted: 'ended',
      result: { status: 'ok', output: answer },
    });
    await expect(client.start({ ...run, prompt: 'Other' }, { idempotencyKey: 'one' })).rejects.toMatchObject({
      code: 'RUN_ID_CONFLICT',
      status: 409,
    });
    expect(await client.run(first.runId).get()).toMatchObject({
      runId: first.runId,
      state: 'ok',
      result: { output: answer },
    });
    expect(await client.run(first.runId).cancel()).toBe('ended');
    await expect(client.run(first.runId).steer('left')).rejects.toMatchObject({ code: 'UNDELIVERED' });
  });

  test('lists what waits, and approves it; the stream goes through to the end (web 17)', async () => {
    const host = chatHost({ ...story, script: [callTool('mail', { to: 'ada' }, 'k'), reply('Sent.')] });
    const client = clientTo(
      networkTo(
        () => host,
        () => undefined,
      ),
    );
    const { runId } = await client.start({ agent: 'worker', prompt: 'Send it.' });
    let state = unknownRun;
    let asked = 0;
    for await (const event of client.run(runId).events()) {
      state = withEvent(state, event);
      const [wait] = state.waits;
      // A run that rested opens its wait again when the answer wakes it.
      if (event.type !== 'wait.opened' || !wait || asked++ > 0) continue;
      const { items } = await client.waiting({ runId, kind: ['approval', 'question'] });
      expect(items).toMatchObject([{ runId, id: wait.id, kind: 'approval', tool: 'mail', input: { to: 'ada' } }]);
      await expect(client.run(runId).approve('other')).rejects.toMatchObject({ code: 'WAIT_GONE', status: 410 });
      expect(['sent', 'recorded']).toContain(await client.run(runId).approve(wait.id, { note: 'fine' }));
    }
    expect(state).toMatchObject({ status: 'ended', result: { output: 'Sent.' }, waits: [] });
    expect(await client.waiting()).toEqual({ items: [] });
  });

  test('talks in a thread: a message counts once under its id, and the thread is read, rewound and deleted (web 10)', async () => {
    const host = chatHost({ ...story, script: [reply('One.'), reply('Two.'), reply('Two again.')] });
    const client = clientTo(
      networkTo(
        () => host,
        () => undefined,
      ),
    );
    const thread = client.thread('t');
    await expect(thread.get()).rejects.toMatchObject({ code: 'NOT_FOUND' });
    const say = async (id: string, text: string) => {
      const sent = await thread.send({ text, id });
      await shown(client.run(sent.runId).events());
      return sent;
    };
    const first = await say('m1', 'Hi');
    expect(await thread.send({ text: 'Hi', id: 'm1' })).toMatchObject({ runId: first.runId, state: 'known' });
    await expect(thread.send({ text: 'Other', id: 'm1' })).rejects.toMatchObject({ code: 'THREAD_MESSAGE_CONFLICT' });
    await say('m2', 'And?');
    const { items, next } = await thread.messages({ limit: 3 });
    expect(items.map(({ id, message }) => [id, message.role])).toEqual([
      ['m1', 'user'],
      [expect.any(String), 'assistant'],
      ['m2', 'user'],
    ]);
    expect(next).toBeDefined();
    expect((await thread.messages({ after: items.at(-1)?.index ?? 0 })).items).toHaveLength(1);
    await thread.rewind('m1');
    expect(await thread.get()).toMatchObject({ id: 't', turns: [{ messageId: 'm1', state: 'ended' }] });
    await thread.fork('m1', 'u');
    expect((await client.thread('u').messages()).items).toHaveLength(2);
    await thread.delete();
    await expect(thread.get()).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  test('gives useChat the messages of an uncut answer, wherever the stream of /chat breaks (web 33)', async () => {
    const said = async (cutAt: (connection: number) => number | undefined) => {
      const host = chatHost(story);
      const network = networkTo(() => host, cutAt);
      const page = new PlainChat(clientTo(network).chatTransport());
      await page.sendMessage({ text: 'How many?' });
      const { status, error } = page;
      const [question, reply] = JSON.parse(JSON.stringify(page.messages));
      // The id of the run is of this host.
      return { status, error, question, reply: { ...reply, id: '' }, calls: host.model.calls.length, network };
    };
    const { network: _, ...uncut } = await said(() => undefined);
    expect(uncut).toMatchObject({ status: 'ready', error: undefined, calls: 2 });
    expect(JSON.stringify(uncut.reply.parts)).toContain(answer);
    for (let seed = 1; seed <= 40; seed += 1) {
      const random = randomFrom(seed);
      const { network, ...cut } = await said((connection) =>
        connection > 10 ? undefined : 20 + Math.floor(random() * 1_500),
      );
      const known = { ...cut.reply, metadata: undefined };
      expect({ ...cut, reply: known }, `seed ${seed}`).toEqual({
        ...uncut,
        reply: { ...uncut.reply, metadata: undefined },
      });
      expect(network.connections).toBeGreaterThan(0);
    }
  });

  test('continues by itself at another server when the first one leaves in the middle of a text (web 33)', async () => {
    const store = memoryStore();
    const first = chatHost({ ...story, store, script: [callTool('look', {}, 'k'), stallAfter('There are ')] });
    const second = chatHost({ ...story, store, script: [reply(answer)] });
    let current: ChatHost = first;
    const page = new PlainChat(
      clientTo(
        networkTo(
          () => current,
          () => undefined,
        ),
      ).chatTransport(),
    );
    const sending = page.sendMessage({ text: 'How many?' });
    await eventually(() => expect(JSON.stringify(page.messages)).toContain('There are'));
    current = second;
    await first.executor.shutdown();
    await second.executor.recover();
    await sending;
    expect(page.error).toBeUndefined();
    expect(page.status).toBe('ready');
    expect(page.messages[1]?.parts.filter(({ type }) => !type.startsWith('data-'))).toMatchObject([
      { type: 'step-start' },
      { type: 'tool-look', state: 'output-available', output: 'two' },
      { type: 'step-start' },
      { type: 'text', text: answer },
    ]);
    expect([first.model.calls.length, second.model.calls.length]).toEqual([2, 1]);
  });

  test('takes an approval to another server, which sends the mail once and continues the message (web 30)', async () => {
    const store = memoryStore();
    const mails: string[] = [];
    const tools = (name: string) => [mailTool(() => mails.push(name))];
    const first = chatHost({ store, tools: tools('first'), script: [callTool('mail', { to: 'ada' }, 'k')] });
    const second = chatHost({ store, tools: tools('second'), script: [reply('Sent.')] });
    let current: ChatHost = first;
    const page = new PlainChat(
      clientTo(
        networkTo(
          () => current,
          () => undefined,
        ),
      ).chatTransport(),
    );
    const parts = () => page.messages.at(-1)?.parts.filter(({ type }) => !type.startsWith('data-')) ?? [];
    await page.sendMessage({ text: 'Send it.' });
    expect(parts().at(-1)).toMatchObject({ type: 'tool-mail', state: 'approval-requested' });
    const { approval } = parts().at(-1) as unknown as { readonly approval: { readonly id: string } };
    current = second;
    await first.executor.shutdown();
    await second.executor.recover();
    await page.addToolApprovalResponse({ id: approval.id, approved: true });
    await page.sendMessage();
    expect(page.error).toBeUndefined();
    expect(page.messages).toHaveLength(2);
    expect(parts()).toMatchObject([
      { type: 'step-start' },
      { type: 'tool-mail', state: 'output-available' },
      { type: 'step-start' },
      { type: 'text', text: 'Sent.' },
    ]);
    expect(mails).toEqual(['second']);
  });
});
