import type { UIMessage } from 'ai';
import { describe, expect, test } from 'vitest';
import { type ClientOptions, createClient, type PawlChatTransport } from '../../src/client/index.ts';
import { testClock } from '../../src/testing/test-clock.ts';
import { randomFrom } from '../crash/random.ts';
import { PlainChat } from './plain-chat.ts';
import { type Answer, type Cutting, eventStream, problem, quickClock, ScriptedServer, until } from './wire.ts';

type Chunk = { readonly type: string; readonly [field: string]: unknown };
/** Chunks that come from one event of the journal, and the id on the last of them. */
interface Group {
  readonly chunks: readonly Chunk[];
  readonly id?: string;
}

const text = (id: string, delta: string): Chunk => ({ type: 'text-delta', id, delta });
/** An answer of two steps with a tool call, as `/chat` of pawl/http sends it. */
const answer: readonly Group[] = [
  { chunks: [{ type: 'start', messageId: 'r:m' }] },
  { chunks: [{ type: 'start-step' }, { type: 'text-start', id: '1.0' }, text('1.0', 'Let me ')], id: 'r/1' },
  { chunks: [text('1.0', 'l\u00f6\u00f6k \u{1F980}.')], id: 'r/1' },
  {
    chunks: [
      { type: 'text-end', id: '1.0' },
      { type: 'tool-input-start', toolCallId: 'k', toolName: 'look' },
      { type: 'tool-input-delta', toolCallId: 'k', inputTextDelta: '{"at":' },
    ],
    id: 'r/1',
  },
  { chunks: [{ type: 'tool-input-delta', toolCallId: 'k', inputTextDelta: '"x"}' }], id: 'r/1' },
  { chunks: [{ type: 'tool-input-available', toolCallId: 'k', toolName: 'look', input: { at: 'x' } }], id: 'r/1' },
  {
    chunks: [{ type: 'tool-output-available', toolCallId: 'k', output: { found: 2 } }, { type: 'finish-step' }],
    id: 'r/1',
  },
  { chunks: [{ type: 'start-step' }, { type: 'reasoning-start', id: '2.0' }], id: 'r/2' },
  { chunks: [{ type: 'reasoning-delta', id: '2.0', delta: 'Hm.' }], id: 'r/2' },
  {
    chunks: [{ type: 'reasoning-end', id: '2.0' }, { type: 'text-start', id: '2.1' }, text('2.1', 'Two.')],
    id: 'r/2',
  },
  {
    chunks: [
      { type: 'text-end', id: '2.1' },
      { type: 'finish-step' },
      { type: 'finish', finishReason: 'stop', messageMetadata: { usage: 3 } },
    ],
    id: 'r/end',
  },
];

const framesOf = (groups: readonly Group[]): string =>
  `: \n\n${groups
    .flatMap(({ chunks, id }) =>
      chunks.map((chunk, i) => {
        const line = id !== undefined && i === chunks.length - 1 ? `id: ${id}\n` : '';
        return `${line}data: ${JSON.stringify(chunk)}\n\n`;
      }),
    )
    .join('')}data: [DONE]\n\n`;

/** The bytes of the answer before some words of it. */
const bytesBefore = (words: string): number => {
  const frames = framesOf(answer);
  return new TextEncoder().encode(frames.slice(0, frames.indexOf(words))).length;
};

/** The stream behind an id: the current step begins again, and nothing says `start`. */
function restOf(id: string | null): string | undefined {
  if (id === null) return framesOf(answer);
  if (id === 'r/end') return undefined;
  const first = answer.findIndex((group) => group.id === id);
  const [current, ...rest] = answer.slice(first);
  const again = [{ type: 'reset-step' }, ...(current?.chunks.slice(1) ?? [])];
  return framesOf([{ chunks: again, id }, ...rest]);
}

const chat =
  (cutting?: Cutting): Answer =>
  ({ headers }) => {
    const rest = restOf(headers.get('last-event-id'));
    return rest === undefined ? new Response(null, { status: 204 }) : eventStream(rest, cutting);
  };

const transportOf = (server: ScriptedServer, options: Partial<ClientOptions> = {}): PawlChatTransport =>
  createClient({
    url: '/api',
    fetch: server.fetch as typeof fetch,
    clock: quickClock(100_000),
    silenceMs: 200_000,
    ...options,
  }).chatTransport();

async function said(server: ScriptedServer, options?: Partial<ClientOptions>): Promise<PlainChat> {
  const page = new PlainChat(transportOf(server, options));
  await page.sendMessage({ text: 'Where?' });
  return page;
}

const state = ({ messages, status, error, finished }: PlainChat) => ({
  messages,
  status,
  error,
  ends: finished.map(({ isError, isAbort }) => ({ isError, isAbort })),
});

describe('chatTransport()', () => {
  test('gives useChat the messages of an uncut answer, wherever the connection breaks: each byte is tried (web 33)', async () => {
    const uncut = state(await said(new ScriptedServer(chat())));
    expect(uncut).toMatchObject({ status: 'ready', error: undefined, ends: [{ isError: false }] });
    expect(uncut.messages[1]).toMatchObject({ id: 'r:m', metadata: { usage: 3 } });
    expect(uncut.messages[1]?.parts).toHaveLength(6);
    const bytes = new TextEncoder().encode(framesOf(answer)).length;
    for (let cutAt = 0; cutAt <= bytes; cutAt += 1) {
      const random = randomFrom(cutAt);
      const pieceAt = () => 1 + Math.floor(random() * 40);
      const server = new ScriptedServer(chat({ cutAt, pieceAt, cleanly: cutAt % 2 === 0 }), chat({ pieceAt }));
      expect(state(await said(server)), `cut at ${cutAt}`).toEqual(uncut);
    }
  });

  test('gives the messages of an uncut answer over many breaks and servers that are away (web 33)', async () => {
    const uncut = state(await said(new ScriptedServer(chat())));
    for (let seed = 1; seed <= 50; seed += 1) {
      const random = randomFrom(seed);
      const script = Array.from({ length: 12 }, (): Answer => {
        if (random() < 0.2) return () => Promise.reject(new TypeError('fetch failed'));
        if (random() < 0.2) return () => problem(random() < 0.5 ? 502 : 503);
        return chat({ cutAt: Math.floor(random() * 900), pieceAt: () => 30 });
      });
      expect(state(await said(new ScriptedServer(...script, chat()))), `seed ${seed}`).toEqual(uncut);
    }
  });

  test('shows parts of the answer as they come, not at its end', async () => {
    const cutAt = bytesBefore('data: {"type":"text-end"');
    const clock = testClock();
    const server = new ScriptedServer(chat({ cutAt, silent: true }));
    const page = new PlainChat(transportOf(server, { clock }));
    const sending = page.sendMessage({ text: 'Where?' });
    const textOf = () => JSON.stringify(page.messages[1]?.parts.at(-1)) ?? '';
    await until(() => textOf().includes('Let me l\u00f6\u00f6k \u{1F980}.'));
    expect(page.status).toBe('streaming');
    await page.stop();
    await sending;
  });

  test('posts the message again, under the same key, until an id has come, and continues behind the id from then on (web 33)', async () => {
    const server = new ScriptedServer(
      () => Promise.reject(new TypeError('fetch failed')),
      chat({ cutAt: bytesBefore('data: {"type":"start-step"') }),
      chat({ cutAt: bytesBefore('data: {"type":"tool-input-available"') }),
      chat(),
    );
    await said(server);
    expect(server.paths).toEqual([...Array(3).fill('POST /api/chat'), 'GET /api/chat/c/stream']);
    expect(server.header('last-event-id')).toEqual([null, null, null, 'r/1']);
    expect(new Set(server.bodies.slice(0, 3)).size).toBe(1);
    const keys = server.header('idempotency-key');
    expect(keys[0]).toMatch(/^[0-9a-f]{32}$/);
    expect(keys).toEqual([keys[0], keys[0], keys[0], null]);
  });

  test('posts only what the server may not know: from the last answer on, or from the message that is changed', async () => {
    const message = (role: 'user' | 'assistant', id: string): UIMessage => ({
      id,
      role,
      parts: [{ type: 'text', text: id }],
    });
    const before = [
      message('user', 'u1'),
      message('assistant', 'a1'),
      message('user', 'u2'),
      message('assistant', 'a2'),
    ];
    const posted = async (act: (page: PlainChat) => Promise<void>) => {
      const server = new ScriptedServer(chat());
      await act(new PlainChat(transportOf(server), before));
      const { messages, ...rest } = JSON.parse(server.bodies[0] ?? '');
      return { ...rest, messages: messages.map(({ id }: UIMessage) => id) };
    };
    expect(await posted((page) => page.sendMessage({ text: 'u3' }))).toEqual({
      id: 'c',
      trigger: 'submit-message',
      messages: ['a2', 'made-1'],
    });
    expect(await posted((page) => page.sendMessage({ text: 'other', messageId: 'u2' }))).toEqual({
      id: 'c',
      trigger: 'submit-message',
      messageId: 'u2',
      messages: ['a1', 'u2'],
    });
    expect(await posted((page) => page.regenerate({ messageId: 'a2' }))).toEqual({
      id: 'c',
      trigger: 'regenerate-message',
      messageId: 'a2',
      messages: ['a1', 'u2'],
    });
  });

  test('adds headers and fields of the host and of one request', async () => {
    const server = new ScriptedServer(chat());
    const client = createClient({ url: '/api', fetch: server.fetch as typeof fetch, headers: { 'x-all': '1' } });
    const transport = client.chatTransport({ path: '/talk', body: () => ({ agent: 'a' }) });
    const page = new PlainChat(transport);
    await page.sendMessage({ text: 'Hi' }, { headers: { 'x-one': '2' }, body: { more: true } });
    expect(server.paths).toEqual(['POST /api/talk']);
    expect([...server.header('x-all'), ...server.header('x-one')]).toEqual(['1', '2']);
    expect(JSON.parse(server.bodies[0] ?? '')).toMatchObject({ agent: 'a', more: true, id: 'c' });
  });

  test('shows a page that is opened again the whole answer, over breaks, and nothing where none is live: 204 (web 31)', async () => {
    const uncut = (await said(new ScriptedServer(chat()))).messages;
    const half = bytesBefore('data: {"type":"reasoning-delta"');
    const server = new ScriptedServer(chat({ cutAt: half }), chat());
    const page = new PlainChat(transportOf(server), uncut.slice(0, 1));
    await page.resumeStream();
    expect(page.messages).toEqual(uncut);
    expect(server.paths).toEqual(Array(2).fill('GET /api/chat/c/stream'));
    expect(server.header('last-event-id')).toEqual([null, 'r/2']);
    const none = new PlainChat(transportOf(new ScriptedServer(() => new Response(null, { status: 204 }))), uncut);
    await none.resumeStream();
    expect(state(none)).toEqual({ messages: uncut, status: 'ready', error: undefined, ends: [] });
  });

  test('replaces a part of an answer that the page already shows, when it is replayed from its beginning (web 31)', async () => {
    const uncut = (await said(new ScriptedServer(chat()))).messages;
    const stale = structuredClone(uncut);
    stale[1]?.parts.splice(2);
    const page = new PlainChat(transportOf(new ScriptedServer(chat())), stale);
    await page.resumeStream();
    expect(page.messages).toEqual(uncut);
  });

  test('gives an error, never a quiet end, when the rest of an answer is not kept any more', async () => {
    const cut = () => chat({ cutAt: bytesBefore('data: {"type":"text-end"') });
    for (const gone of [() => new Response(null, { status: 204 }), () => problem(410, 'JOURNAL_GONE')]) {
      const page = await said(new ScriptedServer(cut(), gone));
      expect(page.status).toBe('error');
      expect(page.error).toMatchObject({ code: 'JOURNAL_GONE' });
    }
  });

  test('gives an error when the server begins again what it should continue: parts would stand there twice', async () => {
    const cut = chat({ cutAt: bytesBefore('data: {"type":"text-end"') });
    const page = await said(new ScriptedServer(cut, () => eventStream(framesOf(answer))));
    expect(page.error).toMatchObject({ code: 'BAD_RESPONSE' });
  });

  test.for([
    ['a refusal', () => problem(409, 'THREAD_MESSAGE_CONFLICT'), 'THREAD_MESSAGE_CONFLICT'],
    ['no event stream', () => new Response('hello'), 'BAD_RESPONSE'],
    ['no answer at all', () => new Response(null, { status: 204 }), 'BAD_RESPONSE'],
    ['a chunk that is none', () => eventStream('id: 1\ndata: 7\n\n'), 'BAD_RESPONSE'],
  ] as const)('shows %s as an error', async ([, refuse, code]) => {
    const server = new ScriptedServer(refuse);
    const page = await said(server);
    expect(page.error).toMatchObject({ code });
    expect(server.requests).toHaveLength(1);
  });

  test('shows an error when no server takes the message for a minute, and waits without end for an answer that has begun (web 33)', async () => {
    const away: Answer = () => Promise.reject(new TypeError('fetch failed'));
    const page = await said(new ScriptedServer(away));
    expect(page.error).toMatchObject({
      code: 'UNREACHABLE',
      message: expect.stringMatching(/No server has answered for \d{5} ms/),
    });
    const cut = chat({ cutAt: bytesBefore('data: {"type":"text-end"') });
    const later = await said(new ScriptedServer(cut, ...Array(200).fill(away), chat()));
    expect(later.status).toBe('ready');
    expect(later.messages[1]?.parts).toHaveLength(6);
  });

  test('ends an answer that is stopped, in each state of its connection, and closes it; the run is cancelled by stop(id)', async () => {
    let cancelled = 0;
    const cutAt = bytesBefore('data: {"type":"text-end"');
    const silent = chat({ cutAt, silent: true, onCancel: () => void cancelled++ });
    for (const [script, parts] of [
      [[silent], 2],
      [[chat({ cutAt }), () => Promise.reject(new TypeError('fetch failed'))], 2],
      [[() => new Promise<Response>(() => undefined)], 0],
    ] satisfies [Answer[], number][]) {
      const clock = testClock();
      const server = new ScriptedServer(...script);
      const page = new PlainChat(transportOf(server, { clock }));
      const sending = page.sendMessage({ text: 'Where?' });
      const textOf = () => JSON.stringify(page.messages[1]?.parts[1]) ?? '';
      await until(() => server.requests.length === 1 && (parts === 0 || textOf().includes('k \u{1F980}.')));
      await page.stop();
      await sending;
      expect(state(page)).toMatchObject({ status: 'ready', error: undefined, ends: [{ isAbort: true }] });
      expect(page.messages[1]?.parts.length ?? 0).toBe(parts);
      expect(clock.pending).toBe(0);
    }
    expect(cancelled).toBe(1);
  });

  test('continues the message that holds an approval, and ends where a person is asked (web 29, 30)', async () => {
    const asked = framesOf([
      { chunks: [{ type: 'start', messageId: 'r:m' }] },
      {
        chunks: [
          { type: 'start-step' },
          { type: 'tool-input-available', toolCallId: 'k', toolName: 'send', input: {} },
          { type: 'tool-approval-request', approvalId: 'w', toolCallId: 'k' },
        ],
        id: 'r/1',
      },
      { chunks: [{ type: 'finish', finishReason: 'tool-calls' }], id: 'r/1' },
    ]);
    const continued = framesOf([
      { chunks: [{ type: 'start', messageId: 'r:m' }] },
      { chunks: [{ type: 'tool-approval-response', approvalId: 'w', approved: true }], id: 'r/1' },
      {
        chunks: [{ type: 'tool-output-available', toolCallId: 'k', output: 'sent' }, { type: 'finish-step' }],
        id: 'r/1',
      },
      { chunks: [{ type: 'finish', finishReason: 'stop' }], id: 'r/end' },
    ]);
    const server = new ScriptedServer(
      () => eventStream(asked),
      () => eventStream(continued),
    );
    const page = await said(server);
    expect(page.messages[1]?.parts[1]).toMatchObject({ state: 'approval-requested' });
    await page.addToolApprovalResponse({ id: 'w', approved: true });
    await page.sendMessage();
    expect(page.messages).toHaveLength(2);
    expect(page.messages[1]?.parts).toMatchObject([
      { type: 'step-start' },
      { state: 'output-available', output: 'sent' },
    ]);
    expect(JSON.parse(server.bodies[1] ?? '').messages).toMatchObject([{ id: 'r:m', role: 'assistant' }]);
  });
});
