import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { callModel, type ModelRequest } from '../../../src/model/call.ts';
import { failureOf } from '../../../src/model/failure.ts';
import type { Model } from '../../../src/model/port.ts';
import { type Retry, withRetries } from '../../../src/model/retry.ts';
import { type Clock, systemClock } from '../../../src/values/clock.ts';
import { enterMessage, textOf, toolCallsOf } from '../../../src/values/message.ts';
import { type Answer, eventsUntil, modelAt, refuses, replies, serveProvider, stopsAfter } from './provider-server.ts';

const providers = ['anthropic', 'compatible'] as const;

/** The real time, 1,000 times as fast: a minute's silence on a real socket takes 60 ms. */
const hastyClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now() * 1_000,
  setTimeout: (callback, ms) => setTimeout(callback, ms / 1_000),
  clearTimeout: (timer) => systemClock.clearTimeout(timer),
};
/** So long is a minute of the hasty clock. */
const MINUTE = 60;
/** The real time that a busy machine may need to answer, as the hasty clock sees it. */
const LAVISH = 50_000_000;

/** Asks as a run does, with retries; the time for them is lavish, so that a busy machine makes all of them. */
async function ask(
  model: Model,
  { withinMs = LAVISH, ...extra }: Partial<ModelRequest> & { readonly withinMs?: number } = {},
) {
  const retries: Retry[] = [];
  const request: ModelRequest = {
    system: 'Be brief.',
    messages: [enterMessage({ role: 'user', content: [{ type: 'text', text: 'look up 7' }] })],
    tools: [
      { type: 'function', name: 'lookup', inputSchema: { type: 'object', properties: { id: { type: 'string' } } } },
    ],
    signal: new AbortController().signal,
    clock: hastyClock,
    firstChunkMs: LAVISH,
    chunkGapMs: LAVISH,
    ...extra,
  };
  const { signal, clock } = request;
  const onRetry = (retry: Retry) => retries.push(retry);
  const options = { signal, clock, random: () => 0, onRetry, withinMs };
  const outcome = await withRetries(() => callModel(model, request), options).then(
    (reply) => ({ reply }),
    (error: unknown) => ({ error, failure: failureOf(error, clock) }),
  );
  return { reply: undefined, error: undefined, failure: undefined, ...outcome, retries };
}

describe.each(providers)('a real server that fails, with the provider package for %s', (provider) => {
  const serve = (...answers: readonly Answer[]) => serveProvider(provider, answers);
  const whole = replies({ text: 'It is Ann.', end: 'stop' });
  const refused = (status: number, headers: Readonly<Record<string, string>> = {}) =>
    refuses({ status, message: 'refused' }, headers);
  const args = (input: string) => ({ call: { id: 'c', name: 'lookup', input } });
  /** The connection breaks within an event. */
  const isTorn: Answer = ({ response, format }) => {
    const text = eventsUntil(format, { text: 'It' }).join('').slice(0, -9);
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(text, () => response.destroy());
  };

  test('the whole reply is read (the server itself is sound)', async () => {
    await using server = await serve(whole);
    const { reply, retries } = await ask(server.model);
    expect(reply && textOf(reply.message)).toBe('It is Ann.');
    expect([retries, server.bodies.length]).toEqual([[], 1]);
  });

  test.for([
    ['the connection is cut before the first byte', (({ response }) => response.destroy()) as Answer],
    ['the connection is cut in the middle of a text', stopsAfter({ text: 'It' }, 'cut')],
    ['the connection is cut in the middle of tool arguments', stopsAfter(args('{"id":"7'), 'cut')],
    ['the connection is cut after tool arguments that look complete', stopsAfter(args('{"id":"7"}'), 'cut')],
    ['the connection is cut in the middle of an event', isTorn],
    ['the stream ends in the middle of a text', stopsAfter({ text: 'It' }, 'ended')],
    ['the stream ends in the middle of tool arguments', stopsAfter(args('{"id":"7'), 'ended')],
    ['the stream ends after tool arguments that look complete', stopsAfter(args('{"id":"7"}'), 'ended')],
    ['it answers 429', refused(429)],
    ['it answers 503', refused(503)],
    ['it answers 529', refused(529)],
    ['it answers 408', refused(408)],
    ['it answers 409', refused(409)],
    ['it answers 425', refused(425)],
    ['it answers 500', refused(500)],
  ] as const)(
    '%s: asked again, five times; it may pass, and no call is made of it (waiting 27, 28, executor 7, 8)',
    async ([, answer]) => {
      await using server = await serve(answer, whole);
      const { reply, retries } = await ask(server.model);
      expect(reply && textOf(reply.message)).toBe('It is Ann.');
      expect(reply && toolCallsOf(reply.message)).toEqual([]);
      expect([retries.length, server.bodies.length]).toEqual([1, 2]);
      await using broken = await serve(answer);
      const { error, reply: none, failure } = await ask(broken.model);
      expect(none).toBeUndefined();
      expect(error).toMatchObject({ code: 'MODEL', message: expect.stringMatching(/\(after 5 attempts\)$/) });
      expect(failure).toEqual({ kind: 'passing' });
      expect(broken.bodies.length).toBe(5);
    },
  );

  test.for([
    ['400', 'final', refused(400)],
    ['401', 'blocked', refused(401)],
    ['402', 'blocked', refused(402)],
    ['403', 'blocked', refused(403)],
    ['404', 'blocked', refused(404)],
    ['413', 'final', refused(413)],
    ['422', 'final', refused(422)],
  ] as const)('it answers %s: %s, and not asked again (waiting 27, executor 8)', async ([status, kind, answer]) => {
    await using server = await serve(answer, whole);
    const { error, failure } = await ask(server.model);
    expect(error).toMatchObject({ code: 'MODEL', cause: { statusCode: Number(status) } });
    expect(failure).toEqual({ kind });
    expect(server.bodies.length).toBe(1);
  });

  test('its name does not resolve: blocked, and not asked again (waiting 27)', async () => {
    const cause = Object.assign(new Error('getaddrinfo ENOTFOUND api.example'), { code: 'ENOTFOUND' });
    const fetch = () => Promise.reject(new TypeError('fetch failed', { cause }));
    const { failure, retries } = await ask(modelAt(provider, 'http://api.example', { fetch }));
    expect([failure, retries]).toEqual([{ kind: 'blocked' }, []]);
  });

  test('no server listens: asked again, and then final (executor 8)', async () => {
    const server = await serve(whole);
    await server[Symbol.asyncDispose]();
    const { error, retries, failure } = await ask(server.model);
    expect(error).toMatchObject({ code: 'MODEL', message: expect.stringMatching(/ECONNREFUSED.*after 5 attempts/) });
    expect([failure, retries.length]).toEqual([{ kind: 'passing' }, 4]);
  });

  test('429 with retry-after, then success: the time asked for is waited (executor 8)', async () => {
    await using server = await serve(refused(429, { 'retry-after': '20' }), whole);
    const before = hastyClock.monotonic();
    const { reply, retries } = await ask(server.model);
    expect(retries).toMatchObject([
      { attempt: 2, delayMs: 20_000, error: { message: expect.stringMatching(/refused/) } },
    ]);
    expect(hastyClock.monotonic() - before).toBeGreaterThan(19_000);
    expect(reply && textOf(reply.message)).toBe('It is Ann.');
  });

  test('429 that asks for two minutes is not asked again here, and says how long (waiting 28, executor 8)', async () => {
    await using server = await serve(refused(429, { 'retry-after': '120' }), whole);
    const { error, failure } = await ask(server.model, { withinMs: 60_000 });
    expect(String(error)).toMatch(/asks for a wait of 120000 ms/);
    expect(failure).toEqual({ kind: 'passing', retryAfterMs: 120_000 });
    expect(server.bodies.length).toBe(1);
  });
});

describe.each(providers)(
  'a real server that falls silent, with the provider package for %s (executor 7)',
  (provider) => {
    const limits = {
      first: { firstChunkMs: 120_000, chunkGapMs: LAVISH },
      gap: { firstChunkMs: LAVISH, chunkGapMs: 60_000 },
    };
    /** After these words, a byte a minute. */
    const drip =
      (said?: { text: string }): Answer =>
      ({ response, format }) => {
        const begun = said ? eventsUntil(format, said).join('') : '';
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write(begun);
        const rest = (eventsUntil(format, { text: 'this comes much too slowly' }).at(-1) as string).repeat(9);
        let sent = 0;
        const timer = setInterval(() => response.write(rest[sent++]), MINUTE);
        response.on('close', () => clearInterval(timer));
      };
    const half = { text: 'half' };

    test.for([
      ['before the head of its answer', () => {}, 'first'],
      [
        'before the first byte',
        ({ response }: { response: ServerResponse }) =>
          response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders(),
        'first',
      ],
      ['before the first content', stopsAfter({}, 'silent'), 'first'],
      ['but for one byte a minute', drip(), 'first'],
      ['in the middle of a text', stopsAfter(half, 'silent'), 'gap'],
      [
        'in the middle of tool arguments',
        stopsAfter({ call: { id: 'c', name: 'lookup', input: '{"id":' } }, 'silent'),
        'gap',
      ],
      ['in the middle of a text, but for one byte a minute', drip(half), 'gap'],
    ] as const)('%s: MODEL_STALLED in time, after retries, and the connection is closed', async ([, answer, limit]) => {
      await using server = await serveProvider(provider, [answer as Answer]);
      const { error, retries, failure } = await ask(server.model, limits[limit]);
      const name = limit === 'first' ? '120000 ms (firstChunkMs)' : '60000 ms (chunkGapMs)';
      expect(error).toMatchObject({
        code: 'MODEL_STALLED',
        message: `the model sent nothing for ${name} (after 5 attempts)`,
      });
      expect(failure).toEqual({ kind: 'passing' });
      // Five attempts; on a busy machine one may be over before the server saw it.
      expect(retries.map((retry) => retry.error.code)).toEqual(Array(4).fill('MODEL_STALLED'));
      await server.isLeft();
    });
  },
);
