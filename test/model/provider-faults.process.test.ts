import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { textOf, toolCallsOf } from '../../src/values/message.ts';
import {
  type Answer,
  ask,
  hastyClock,
  LAVISH,
  MINUTE,
  modelAt,
  providers,
  serverOf,
  wires,
  write,
} from './provider-server.ts';

describe.each(providers)('a real server that fails, with the provider package for %s', (provider) => {
  const { begin, text, args, end } = wires[provider];
  const whole: Answer = (response) =>
    response
      .writeHead(200, { 'content-type': 'text/event-stream' })
      .end([...begin, ...text('It is Ann.'), ...end].join(''));
  const cut =
    (...events: readonly string[]): Answer =>
    (response) => {
      write(response, ...begin, ...events);
      setTimeout(() => response.destroy(), 5);
    };
  const ended =
    (...events: readonly string[]): Answer =>
    (response) => {
      write(response, ...begin, ...events);
      response.end();
    };
  const refused =
    (status: number, headers: object = {}): Answer =>
    (response) =>
      response
        .writeHead(status, { 'content-type': 'application/json', ...headers })
        .end('{"type":"error","error":{"type":"x","message":"refused"}}');

  test('the whole reply is read (the server itself is sound)', async () => {
    await using server = await serverOf(whole);
    const { reply, retries } = await ask(modelAt(provider, server.url));
    expect(reply && textOf(reply.message)).toBe('It is Ann.');
    expect([retries, server.requests]).toEqual([[], 1]);
  });

  test.for([
    ['the connection is cut before the first byte', ((response: ServerResponse) => response.destroy()) as Answer],
    ['the connection is cut in the middle of a text', cut(...text('It'))],
    ['the connection is cut in the middle of tool arguments', cut(...args('{"id":"7'))],
    ['the connection is cut after tool arguments that look complete', cut(...args('{"id":"7"}'))],
    ['the connection is cut in the middle of an event', cut(...text('It'), (text('is').at(-1) as string).slice(0, -9))],
    ['the stream ends in the middle of a text', ended(...text('It'))],
    ['the stream ends in the middle of tool arguments', ended(...args('{"id":"7'))],
    ['the stream ends after tool arguments that look complete', ended(...args('{"id":"7"}'))],
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
      await using server = await serverOf(answer, whole);
      const { reply, retries } = await ask(modelAt(provider, server.url));
      expect(reply && textOf(reply.message)).toBe('It is Ann.');
      expect(reply && toolCallsOf(reply.message)).toEqual([]);
      expect([retries.length, server.requests]).toEqual([1, 2]);
      await using broken = await serverOf(answer);
      const { error, reply: none, failure } = await ask(modelAt(provider, broken.url));
      expect(none).toBeUndefined();
      expect(error).toMatchObject({ code: 'MODEL', message: expect.stringMatching(/\(after 5 attempts\)$/) });
      expect(failure).toEqual({ kind: 'passing' });
      expect(broken.requests).toBe(5);
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
    await using server = await serverOf(answer, whole);
    const { error, failure } = await ask(modelAt(provider, server.url));
    expect(error).toMatchObject({ code: 'MODEL', cause: { statusCode: Number(status) } });
    expect(failure).toEqual({ kind });
    expect(server.requests).toBe(1);
  });

  test('its name does not resolve: blocked, and not asked again (waiting 27)', async () => {
    const cause = Object.assign(new Error('getaddrinfo ENOTFOUND api.example'), { code: 'ENOTFOUND' });
    const fetch = () => Promise.reject(new TypeError('fetch failed', { cause }));
    const { failure, retries } = await ask(modelAt(provider, 'http://api.example', fetch));
    expect([failure, retries]).toEqual([{ kind: 'blocked' }, []]);
  });

  test('nobody listens: asked again, and then final (executor 8)', async () => {
    const server = await serverOf(whole);
    await server[Symbol.asyncDispose]();
    const { error, retries, failure } = await ask(modelAt(provider, server.url));
    expect(error).toMatchObject({ code: 'MODEL', message: expect.stringMatching(/ECONNREFUSED.*after 5 attempts/) });
    expect([failure, retries.length]).toEqual([{ kind: 'passing' }, 4]);
  });

  test('429 with retry-after, then success: the time asked for is waited (executor 8)', async () => {
    await using server = await serverOf(refused(429, { 'retry-after': '20' }), whole);
    const before = hastyClock.monotonic();
    const { reply, retries } = await ask(modelAt(provider, server.url));
    expect(retries).toMatchObject([
      { attempt: 2, delayMs: 20_000, error: { message: expect.stringMatching(/refused/) } },
    ]);
    expect(hastyClock.monotonic() - before).toBeGreaterThan(19_000);
    expect(reply && textOf(reply.message)).toBe('It is Ann.');
  });

  test('429 that asks for two minutes is not asked again here, and says how long (waiting 28, executor 8)', async () => {
    await using server = await serverOf(refused(429, { 'retry-after': '120' }), whole);
    const { error, failure } = await ask(modelAt(provider, server.url), { withinMs: 60_000 });
    expect(String(error)).toMatch(/asks for a wait of 120000 ms/);
    expect(failure).toEqual({ kind: 'passing', retryAfterMs: 120_000 });
    expect(server.requests).toBe(1);
  });
});

describe.each(providers)(
  'a real server that falls silent, with the provider package for %s (executor 7)',
  (provider) => {
    const { begin, text, args } = wires[provider];
    const limits = {
      first: { firstChunkMs: 120_000, chunkGapMs: LAVISH },
      gap: { firstChunkMs: LAVISH, chunkGapMs: 60_000 },
    };
    /** After these events, a byte a minute. */
    const drip =
      (...events: readonly string[]): Answer =>
      (response) => {
        write(response, ...events);
        const rest = text('this comes much too slowly').join('').repeat(9);
        let sent = 0;
        const timer = setInterval(() => response.write(rest[sent++]), MINUTE);
        response.on('close', () => clearInterval(timer));
      };

    test.for([
      ['before the head of its answer', () => {}, 'first'],
      [
        'before the first byte',
        (response: ServerResponse) => response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders(),
        'first',
      ],
      ['before the first content', (response: ServerResponse) => write(response, ...begin), 'first'],
      ['but for one byte a minute', drip(), 'first'],
      ['in the middle of a text', (response: ServerResponse) => write(response, ...begin, ...text('half')), 'gap'],
      [
        'in the middle of tool arguments',
        (response: ServerResponse) => write(response, ...begin, ...args('{"id":')),
        'gap',
      ],
      ['in the middle of a text, but for one byte a minute', drip(...begin, ...text('half')), 'gap'],
    ] as const)('%s: MODEL_STALLED in time, after retries, and the connection is let go', async ([, answer, limit]) => {
      await using server = await serverOf(answer as Answer);
      const { error, retries, failure } = await ask(modelAt(provider, server.url), limits[limit]);
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
