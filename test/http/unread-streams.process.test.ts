import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, get, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { agUiHandler } from 'pawl/ag-ui';
import { createClient, type JournalEvent } from 'pawl/client';
import { toNodeListener, type WebHandler } from 'pawl/http';
import { studioHandler } from 'pawl/studio';
import { callTool, hang, reply, testClock } from 'pawl/testing';
import { afterEach, expect, test } from 'vitest';
import { torture } from '../crash/random.ts';
import { gate, toolOf, until } from '../fixtures/host.ts';
import { byToken, webHost } from './web-host.ts';

/** A thousand with PAWL_TORTURE. */
/** More take longer to fill than the 10 s after which a stream that is not read is cut. */
const STREAMS = Math.min(100 * torture, 300);
/** So many steps are more than a socket takes that is not read, and more than a host keeps for all readers of a run. */
const STEPS = 30;
const STEP_CHARS = 50_000;
/** What the server may hold for a stream that is not read: one event as value, text and bytes, and a few buffers of 16 KiB. */
const STREAM_BYTES = 6 * STEP_CHARS + 64 * 1_024;

const folder = mkdtempSync(join(tmpdir(), 'pawl-unread-'));
const clients: Socket[] = [];
const leaving: (() => void)[] = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.destroy();
  for (const leave of leaving.splice(0)) leave();
  rmSync(folder, { recursive: true, force: true });
});

/** Sends a request to a socket, and reads no answer. */
function ask(path: string, text: string): void {
  const client = connect(path).pause();
  client.on('error', () => {});
  client.write(text);
  clients.push(client);
}

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Bytes that are in use once nothing is left to collect. */
async function memory(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test(
  `${STREAMS} streams that no client reads hold a few buffers each, while their run works on (web 36)`,
  async () => {
    const { pass, open: release } = gate<string>();
    let steps = 0;
    const step = toolOf('step', 'read', () => (++steps === STEPS ? pass() : `${steps} `.padEnd(STEP_CHARS, 'x')));
    const host = webHost({
      script: [...Array.from({ length: 2 * STEPS }, (_, i) => callTool('step', { i })), hang()],
      tools: [step],
      agent: { maxSteps: 3 * STEPS },
      http: { maxStreams: STREAMS, heartbeatMs: 20 },
    });
    await host.start({ runId: 'r', callerId: 'ada' });
    await until(() => steps === STEPS);

    const sockets: Socket[] = [];
    const server = createServer(toNodeListener(host.handler)).on('connection', (socket: Socket) =>
      sockets.push(socket),
    );
    const path = join(folder, 'socket');
    await once(server.listen({ path, backlog: STREAMS }), 'listening');
    const before = await memory();
    for (let i = 0; i < STREAMS; i++) ask(path, asked('GET /runs/r/events', 'ada'));
    const waiting = () => sockets.map((socket) => socket.writableLength);
    const isFull = () => sockets.length === STREAMS && waiting().every((bytes) => bytes > 0);
    // Each reads its own pages: a thousand of them take a while.
    while (!isFull()) await new Promise((resolve) => setTimeout(resolve, 20));
    // And none reads on.
    for (let [same, last] = [0, '']; same < 5; await new Promise((resolve) => setTimeout(resolve, 20))) {
      same = `${waiting()}` === last ? same + 1 : 0;
      last = `${waiting()}`;
    }
    const [filled, opened] = [waiting(), await memory()];
    expect((opened - before) / STREAMS).toBeLessThan(STREAM_BYTES);

    release('done');
    await until(() => steps === 2 * STEPS);
    await new Promise((resolve) => setTimeout(resolve, 100));
    // Neither the events of the second half nor the comments of 100 ms wait in a buffer.
    expect(waiting()).toEqual(filled);
    const grown = (await memory()) - opened;
    // The record and the journal in the memory store have grown, once for all streams.
    expect(grown).toBeLessThan(20 * STEPS * STEP_CHARS);
    if (torture > 1)
      console.log(`${Math.round((opened - before) / STREAMS)} bytes a stream, ${grown} bytes for 30 more steps`);

    for (const client of clients.splice(0)) client.destroy();
    server.close();
    await until(() => sockets.every(({ destroyed }) => destroyed));
    expect(host.httpWarned).toEqual([]);
  },
  60_000 + 12_000 * torture,
);

/** As many as a caller may have. */
const OF_A_CALLER = 64;
const LARGE = 8_000_000;

/** A conversation whose run has a result of 8 MB and works on, or ends. */
async function largeHost({ isOver = false, results = 1 } = {}) {
  const clock = testClock();
  let steps = 0;
  const host = webHost({
    script: [...Array.from({ length: results }, (_, i) => callTool('large', { i })), isOver ? reply('done') : hang()],
    tools: [toolOf('large', 'read', () => `${++steps} `.padEnd(LARGE, 'x'))],
    http: { clock },
  });
  const thread = host.executor.thread('t', { agent: host.agent, callerId: 'ada' });
  const { runId } = await thread.send({ id: 'm', parts: [{ type: 'text', text: 'Go.' }] });
  await until(() => host.model.calls.length === results + 1);
  if (isOver) await until(async () => (await host.executor.find(runId))?.status === 'ended');
  return { ...host, clock, runId };
}

type LargeHost = Awaited<ReturnType<typeof largeHost>>;

/** @param at a port of this machine, or the path of a socket: that takes no megabytes before its client reads */
async function serve(handler: WebHandler, at: 0 | string) {
  const sockets: Socket[] = [];
  const server = createServer(toNodeListener(handler)).on('connection', (socket: Socket) => sockets.push(socket));
  leaving.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = at === 0 ? { port: 0, host: '127.0.0.1' } : { path: at, backlog: OF_A_CALLER };
  await once(server.listen(address), 'listening');
  return { sockets, port: at === 0 ? (server.address() as AddressInfo).port : 0 };
}

const asked = (head: string, as: string, body = '') =>
  `${head} HTTP/1.1\r\nhost: pawl.test\r\nauthorization: Bearer ${as}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;

/** `fetch` over a local socket. TCP may take any event whole: the system lets its buffers grow to tens of megabytes. */
async function fetchFrom(path: string, { url, method, headers, signal }: Request): Promise<Response> {
  const { pathname, search } = new URL(url);
  const client = get({
    socketPath: path,
    path: pathname + search,
    method,
    headers: Object.fromEntries(headers),
    signal,
  });
  client.on('error', () => {});
  const [answer] = (await once(client, 'response')) as [IncomingMessage];
  return new Response(Readable.toWeb(answer) as ReadableStream<Uint8Array>, {
    status: answer.statusCode ?? 500,
    headers: { 'content-type': answer.headers['content-type'] ?? '' },
  });
}

const post = { threadId: 't', runId: 'p', messages: [], tools: [], context: [], state: {}, forwardedProps: {} };

const kinds: readonly (readonly [
  string,
  (host: LargeHost) => { readonly handler: WebHandler; readonly text: string },
])[] = [
  ['of events', ({ handler, runId }) => ({ handler, text: asked(`GET /runs/${runId}/events`, 'ada') })],
  ['of useChat', ({ handler }) => ({ handler, text: asked('GET /chat/t/stream', 'ada') })],
  [
    'of AG-UI',
    ({ executor, agent, clock }) => ({
      handler: agUiHandler(executor, { agents: { worker: agent }, authorize: byToken, clock }),
      text: asked('POST /', 'ada', JSON.stringify(post)),
    }),
  ],
  [
    'of Studio',
    ({ executor, clock, runId }) => ({
      handler: studioHandler(executor, { authorize: byToken, clock }),
      text: asked(`GET /watch?run=${encodeURIComponent(runId)}&all=1`, 'root:ada'),
    }),
  ],
];

/** What is the same for 20 looks. */
async function settled<T>(look: () => T): Promise<T> {
  for (let [same, last] = [0, '']; same < 20; await new Promise((resolve) => setTimeout(resolve, 20))) {
    const now = JSON.stringify(look());
    same = now === last ? same + 1 : 0;
    last = now;
  }
  return look();
}

test.for(kinds)(
  '64 unread streams %s cost less than 1 MiB each beside an event of 8 MB, and nothing once they are cut (edges 26)',
  async ([kind, on]) => {
    const host = await largeHost();
    const { handler, text } = on(host);
    const path = join(mkdtempSync(join(tmpdir(), 'pawl-unread-')), 'socket');
    leaving.push(() => rmSync(dirname(path), { recursive: true, force: true }));
    const { sockets } = await serve(handler, path);
    const before = await memory();
    for (let i = 0; i < OF_A_CALLER; i++) ask(path, text);
    await until(() => sockets.length === OF_A_CALLER && sockets.every(({ bytesWritten }) => bytesWritten > 0));
    // What a tab of Studio gets of an event is short.
    const isLarge = kind !== 'of Studio';
    const full = () => sockets.filter(({ writableLength }) => writableLength > 0).length;
    if (isLarge) await until(() => full() === 2);
    const waiting = await settled(() => sockets.map(({ writableLength }) => writableLength));
    expect(((await memory()) - before) / OF_A_CALLER).toBeLessThan(2 ** 20);
    // A piece, and the lines of HTTP around it.
    expect(Math.max(...waiting)).toBeLessThan(2 ** 16 + 100);
    expect(waiting.filter((bytes) => bytes > 0)).toHaveLength(isLarge ? 2 : 0);
    // An event leaves memory, and makes room for the next one, before its stream is cut.
    for (let round = 1; kind === 'of events' && round <= 3; round++) {
      await host.clock.advance(1_000);
      await until(() => full() === 2 * round + 2);
    }
    for (let round = 1; isLarge && kind !== 'of events' && round <= 3; round++) {
      await host.clock.advance(10_000);
      await until(() => sockets.filter(({ destroyed }) => destroyed).length === 2 * round);
      await until(() => full() === 2);
    }
    for (const client of clients.splice(0)) client.destroy();
    await until(() => sockets.every(({ destroyed }) => destroyed));
    expect(((await memory()) - before) / OF_A_CALLER).toBeLessThan(2 ** 16);
  },
);

test('an unread stream of events costs less than 1 MiB by itself, 1 s after it has got a part of 8 MB (edges 26)', async () => {
  const host = await largeHost();
  const path = join(mkdtempSync(join(tmpdir(), 'pawl-unread-')), 'socket');
  leaving.push(() => rmSync(dirname(path), { recursive: true, force: true }));
  const { sockets } = await serve(host.handler, path);
  const before = await memory();
  ask(path, asked(`GET /runs/${host.runId}/events`, 'ada'));
  await until(() => sockets.some(({ writableLength }) => writableLength > 0));
  await settled(() => sockets.map(({ writableLength }) => writableLength));
  expect((await memory()) - before).toBeGreaterThan(LARGE);
  await host.clock.advance(1_000);
  await until(async () => (await memory()) - before < 2 ** 20);
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([false]);
});

test('an open stream of AG-UI keeps nothing of the conversation that it has sent: of 8 MB less than 1 MiB (edges 26)', async () => {
  const host = await largeHost();
  const [, on] = kinds.find(([kind]) => kind === 'of AG-UI') ?? [];
  const { handler = host.handler, text = '' } = on?.(host) ?? {};
  const { port } = await serve(handler, 0);
  const before = await memory();
  let read = 0;
  const client = connect(port, '127.0.0.1').on('data', (bytes) => {
    read += bytes.length;
  });
  clients.push(client);
  client.write(text);
  await until(() => read > LARGE);
  await settled(() => read);
  await until(async () => (await memory()) - before < 2 ** 20);
  expect(client.destroyed).toBe(false);
});

test('a client that took nothing for 10 s has each event once: it was cut, and continued behind its last event (edges 26)', async () => {
  const host = await largeHost({ isOver: true, results: 3 });
  const path = join(mkdtempSync(join(tmpdir(), 'pawl-unread-')), 'socket');
  leaving.push(() => rmSync(dirname(path), { recursive: true, force: true }));
  const { sockets } = await serve(host.handler, path);
  const client = createClient({
    url: 'http://pawl.test',
    headers: { authorization: 'Bearer ada' },
    fetch: (url, init) => fetchFrom(path, new Request(url, init)),
  });
  const events: JournalEvent[] = [];
  for await (const event of client.run(host.runId).events()) {
    events.push(event);
    if (event.type !== 'tool.done') continue;
    // The next event is larger than all buffers on its way.
    await settled(() => sockets.map(({ writableLength, bytesWritten }) => [writableLength, bytesWritten]));
    await host.clock.advance(10_000);
  }
  expect(sockets.length).toBeGreaterThan(1);
  const all: JournalEvent[] = [];
  for await (const event of host.executor.events(host.runId)) all.push(event);
  expect(events.map(({ cursor }) => cursor)).toEqual(all.map(({ cursor }) => cursor));
  expect(events.filter(({ type }) => type === 'tool.done')).toHaveLength(3);
});
