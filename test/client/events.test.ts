import { describe, expect, test } from 'vitest';
import {
  ClientError,
  type ClientOptions,
  type ConnectionState,
  createClient,
  type JournalEvent,
} from '../../src/client/index.ts';
import type { RunEventBody } from '../../src/run/events/body.ts';
import { testClock } from '../../src/testing/test-clock.ts';
import { randomFrom } from '../crash/random.ts';
import { type Answer, type Cutting, eventStream, Journal, problem, quickClock, ScriptedServer, until } from './wire.ts';

const delta = (text: string, offset: number): RunEventBody => ({
  type: 'model.delta',
  step: 1,
  block: 0,
  offset,
  kind: 'text',
  text,
});
const ended: RunEventBody = { type: 'run.ended', status: 'ok', output: 'Hello' };
const story: readonly RunEventBody[] = [
  { type: 'run.started' },
  delta('Héllo \u{1F980}', 0),
  delta('!\n\r\n', 8),
  ended,
];

const streamOf =
  (journal: Journal, cutting?: Cutting): Answer =>
  ({ headers }) =>
    eventStream(journal.from(headers.get('last-event-id')), cutting);

function clientOf(server: ScriptedServer, options: Partial<ClientOptions> = {}) {
  return createClient({
    url: '/api',
    fetch: server.fetch as typeof fetch,
    clock: quickClock(),
    random: () => 1,
    ...options,
  });
}

async function read(events: AsyncIterable<JournalEvent>, all: JournalEvent[] = []): Promise<JournalEvent[]> {
  for await (const event of events) all.push(event);
  return all;
}

const failureOf = async (work: Promise<unknown>): Promise<ClientError> => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ClientError);
  return error as ClientError;
};

describe('run(id).events()', () => {
  test('gives each event once, in order, with its cursor, wherever the connection breaks: each byte is tried (web 33)', async () => {
    const journal = new Journal('r', story);
    const bytes = new TextEncoder().encode(journal.from(null)).length;
    for (let cutAt = 0; cutAt <= bytes; cutAt += 1) {
      const random = randomFrom(cutAt);
      const pieceAt = () => 1 + Math.floor(random() * 9);
      const server = new ScriptedServer(streamOf(journal, { cutAt, pieceAt }), streamOf(journal, { pieceAt }));
      expect(await read(clientOf(server).run('r').events()), `cut at ${cutAt}`).toEqual(journal.read);
    }
  });

  test('gives each event once over a hundred breaks, clean or not (web 33)', async () => {
    const journal = new Journal('r', [...Array.from({ length: 200 }, (_, i) => delta('x', i)), ended]);
    const random = randomFrom(7);
    const cuts = Array.from({ length: 100 }, () =>
      streamOf(journal, { cutAt: Math.floor(random() * 1_000), cleanly: random() < 0.5, pieceAt: () => 50 }),
    );
    const server = new ScriptedServer(...cuts, streamOf(journal));
    expect(await read(clientOf(server).run('r').events())).toEqual(journal.read);
    expect(server.requests.length).toBeGreaterThan(50);
  });

  test('asks behind the last event that it has, and for all without one (web 33)', async () => {
    const journal = new Journal('r', story);
    const second = journal.from(null).indexOf('id: c3');
    const server = new ScriptedServer(streamOf(journal, { cutAt: second }), streamOf(journal));
    await read(clientOf(server).run('r').events());
    expect(server.paths).toEqual(['GET /api/runs/r/events', 'GET /api/runs/r/events']);
    expect(server.header('last-event-id')).toEqual([null, 'c2']);
    expect(server.header('accept')).toEqual(['text/event-stream', 'text/event-stream']);
  });

  test('begins behind the cursor of its caller, and has no events for one who has the end: 204 (web 23)', async () => {
    const journal = new Journal('r', story);
    const server = new ScriptedServer(streamOf(journal), () => new Response(null, { status: 204 }));
    const run = clientOf(server).run('r');
    expect(await read(run.events({ after: 'c2' }))).toEqual(journal.read.slice(2));
    expect(await read(run.events({ after: 'c4' }))).toEqual([]);
  });

  test('encodes hostile ids in the address, and refuses those that no address can hold', () => {
    const server = new ScriptedServer();
    const client = clientOf(server);
    for (const id of ['', '.', '..', '\ud800']) expect(() => client.run(id), id).toThrow(TypeError);
    expect(() => client.run('a').answer('..', { how: 'wake' })).toThrow('".."');
  });

  test.for([
    ['a/../b?x#y %2e', '/api/runs/a%2F..%2Fb%3Fx%23y%20%252e/events'],
    ['\u{1F980}', '/api/runs/%F0%9F%A6%80/events'],
  ])('asks for the run %s under an address of its own', async ([id = '', path]) => {
    const server = new ScriptedServer(streamOf(new Journal('r', story)));
    await read(clientOf(server).run(id).events());
    expect(server.paths).toEqual([`GET ${path}`]);
  });

  test.for([
    [401, 'UNAUTHORIZED'],
    [403, 'FORBIDDEN'],
    [404, 'NOT_FOUND'],
    [410, 'JOURNAL_GONE'],
    [400, 'HTTP_400'],
    [500, 'HTTP_500'],
  ] as const)('ends with an error that a new connection does not cure: %i (web 33)', async ([status, code]) => {
    const server = new ScriptedServer(() => problem(status, status === 410 ? code : undefined));
    const error = await failureOf(read(clientOf(server).run('r').events()));
    expect(error).toMatchObject({ code, status, retry: 'never', message: 'It failed: for a reason' });
    expect(server.requests).toHaveLength(1);
  });

  test.for([429, 503])('waits as long as the server asks: %i with retry-after (web 33)', async (status) => {
    const journal = new Journal('r', story);
    const clock = quickClock(100_000);
    const server = new ScriptedServer(
      () => problem(status, undefined, { 'retry-after': '17' }),
      () => problem(status, undefined, { 'retry-after': new Date(80_000).toUTCString() }),
      streamOf(journal),
    );
    const client = clientOf(server, { clock, silenceMs: 200_000 });
    expect(await read(client.run('r').events())).toEqual(journal.read);
    // The second answer names a time of the wall clock, which shows 17 s then.
    expect(clock.pauses).toEqual([17_000, 63_000]);
  });

  test('waits longer after each failure, up to 30 s, half of it by chance, and begins from the first wait when bytes came (web 33)', async () => {
    const journal = new Journal('r', story);
    const away = () => Promise.reject(new TypeError('fetch failed'));
    const server = new ScriptedServer(
      ...[away, away, away, away, away, away, away],
      streamOf(journal, { cutAt: journal.from(null).indexOf('id: c2') }),
      () => problem(502),
      streamOf(journal),
    );
    for (const [random, factor] of [
      [1, 1],
      [0, 0.5],
    ] as const) {
      const clock = quickClock(50_000);
      server.requests.length = 0;
      await read(
        clientOf(server, { clock, silenceMs: 60_000, random: () => random })
          .run('r')
          .events(),
      );
      const full = [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 1_000, 2_000];
      expect(clock.pauses).toEqual(full.map((ms) => ms * factor));
    }
  });

  test('takes the first wait from the stream, within bounds', async () => {
    for (const [asked, waited] of [
      [250, 250],
      [0, 100],
      [999_999_999, 30_000],
    ]) {
      const clock = quickClock(50_000);
      const journal = new Journal('r', story);
      const first = () => eventStream(`retry: ${asked}\n\n`);
      const server = new ScriptedServer(first, streamOf(journal));
      await read(clientOf(server, { clock, silenceMs: 60_000 }).run('r').events());
      expect(clock.pauses).toEqual([waited]);
    }
  });

  test('opens a connection again on which nothing came for three heartbeats, and not one with comments (web 33)', async () => {
    const clock = testClock();
    const journal = new Journal('r', story.slice(0, 2));
    let beat: (() => void) | undefined;
    let cancelled = 0;
    const silent: Answer = () => {
      const text = new TextEncoder().encode(journal.from(null));
      return new Response(
        new ReadableStream<Uint8Array>({
          start(controller) {
            controller.enqueue(text);
            beat = () => controller.enqueue(new TextEncoder().encode(': \n\n'));
          },
          cancel: () => void cancelled++,
        }),
        { headers: { 'content-type': 'text/event-stream' } },
      );
    };
    const server = new ScriptedServer(silent, streamOf(journal));
    const events = clientOf(server, { clock }).run('r').events();
    const first = [await events.next(), await events.next()].map(({ value }) => value);
    const reading = read(events);
    await clock.advance(25_000);
    beat?.();
    await clock.advance(29_999);
    expect(server.requests).toHaveLength(1);
    await clock.advance(1);
    expect(cancelled).toBe(1);
    journal.add(ended);
    await until(() => clock.pending === 1);
    await clock.advance(1_000);
    expect([...first, ...(await reading)]).toEqual(journal.read);
    expect(server.header('last-event-id')).toEqual([null, 'c2']);
  });

  test('asks again a server that takes the request and sends no headers (web 33)', async () => {
    const clock = testClock();
    const journal = new Journal('r', story);
    const signals: AbortSignal[] = [];
    const hang: Answer = (request) => {
      signals.push(request.signal);
      return new Promise(() => undefined);
    };
    const server = new ScriptedServer(hang, streamOf(journal));
    const reading = read(clientOf(server, { clock }).run('r').events());
    await until(() => signals.length === 1);
    await clock.advance(30_000);
    await until(() => clock.pending === 1);
    await clock.advance(1_000);
    expect(await reading).toEqual(journal.read);
    expect(signals[0]?.aborted).toBe(true);
  });

  test('gives up with UNREACHABLE when no server has answered for giveUpMs, and not before', async () => {
    const journal = new Journal('r', story);
    const away = () => Promise.reject(new TypeError('fetch failed'));
    const server = new ScriptedServer(streamOf(journal, { cutAt: 40 }), away);
    const clock = quickClock(50_000);
    const client = clientOf(server, { clock, silenceMs: 60_000, giveUpMs: 10_000 });
    const error = await failureOf(read(client.run('r').events()));
    expect(error).toMatchObject({ code: 'UNREACHABLE', status: 0, retry: 'later' });
    expect(clock.pauses).toEqual([1_000, 2_000, 4_000, 8_000]);
  });

  test('has memory for one event: an endless one ends the stream, whose connection is closed (web 33)', async () => {
    let cancelled = 0;
    const server = new ScriptedServer(() =>
      eventStream(`data: ${'x'.repeat(100_000)}`, { pieceAt: () => 100, onCancel: () => cancelled++ }),
    );
    const error = await failureOf(read(clientOf(server, { maxBytes: 1_000 }).run('r').events()));
    expect(error.code).toBe('TOO_LARGE');
    expect(cancelled).toBe(1);
  });

  test.for([
    ['no event stream', () => new Response('<html>', { headers: { 'content-type': 'text/html' } })],
    ['data that is no JSON', () => eventStream('id: 1\ndata: {\n\n')],
    ['data that is no event', () => eventStream('id: 1\ndata: null\n\n')],
    [
      'an event without a cursor',
      () => eventStream('data: {"type":"run.started"}\n\nid: 2\ndata: {"type":"run.ended"}\n\n'),
    ],
    ['an id that no header can hold', () => eventStream('id: \u00e9\ndata: {"type":"run.started"}\n\n')],
  ] as const)('ends with BAD_RESPONSE for %s', async ([, answer]) => {
    const error = await failureOf(read(clientOf(new ScriptedServer(answer)).run('r').events()));
    expect(error.code).toBe('BAD_RESPONSE');
  });

  test('calls the host for new headers before each connection, and ends with the error of that call', async () => {
    const journal = new Journal('r', story);
    let calls = 0;
    const server = new ScriptedServer(streamOf(journal, { cutAt: 60 }), streamOf(journal));
    const headers = async () => ({ authorization: `Bearer ${++calls}` });
    await read(clientOf(server, { headers }).run('r').events());
    expect(server.header('authorization')).toEqual(['Bearer 1', 'Bearer 2']);
    const throwing = () => {
      throw new RangeError('no token');
    };
    await expect(read(clientOf(server, { headers: throwing }).run('r').events())).rejects.toThrow(RangeError);
  });

  test('ends without an error when its signal is aborted: before, while it connects, reads or waits, and closes its connection', async () => {
    const journal = new Journal('r', story.slice(0, 2));
    let cancelled = 0;
    const silent = streamOf(journal, { silent: true, onCancel: () => cancelled++ });
    const hang: Answer = () => new Promise(() => undefined);
    const away: Answer = () => Promise.reject(new TypeError('fetch failed'));
    for (const [answer, count, last] of [
      [silent, 2, 'open'],
      [hang, 0, 'connecting'],
      [away, 0, 'waiting'],
    ] as const) {
      const abort = new AbortController();
      const clock = testClock();
      const server = new ScriptedServer(answer);
      const states: ConnectionState[] = [];
      const onConnection = (state: ConnectionState) => void states.push(state);
      const events: JournalEvent[] = [];
      const reading = read(clientOf(server, { clock }).run('r').events({ signal: abort.signal, onConnection }), events);
      await until(() => server.requests.length === 1 && states.at(-1) === last && events.length === count);
      abort.abort();
      expect(await reading).toHaveLength(count);
      expect(clock.pending).toBe(0);
    }
    expect(cancelled).toBe(1);
    const server = new ScriptedServer(silent);
    expect(await read(clientOf(server).run('r').events({ signal: AbortSignal.abort() }))).toEqual([]);
    expect(server.requests).toEqual([]);
  });

  test('ends when its reader leaves, also while it waits for an event (web 33)', async () => {
    const journal = new Journal('r', story.slice(0, 1));
    let cancelled = 0;
    const clock = testClock();
    const server = new ScriptedServer(streamOf(journal, { silent: true, onCancel: () => cancelled++ }));
    const events = clientOf(server, { clock }).run('r').events();
    await events.next();
    const waiting = events.next();
    expect(await events.return?.()).toEqual({ done: true, value: undefined });
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect([cancelled, clock.pending]).toEqual([1, 0]);
  });

  test('tells when the connection opens, breaks and opens again, also to a watcher that throws', async () => {
    const journal = new Journal('r', story);
    const states: [ConnectionState, string | undefined][] = [];
    const server = new ScriptedServer(streamOf(journal, { cutAt: 60 }), () => problem(503), streamOf(journal));
    const onConnection = (state: ConnectionState, error?: ClientError) => {
      states.push([state, error?.code]);
      throw new Error('of the watcher');
    };
    expect(await read(clientOf(server).run('r').events({ onConnection }))).toEqual(journal.read);
    expect(states).toEqual([
      ['connecting', undefined],
      ['open', undefined],
      ['waiting', 'UNREACHABLE'],
      ['connecting', 'UNREACHABLE'],
      ['waiting', 'HTTP_503'],
      ['connecting', 'HTTP_503'],
      ['open', undefined],
    ]);
  });
});
