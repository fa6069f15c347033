import { globSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { type ClientError, type ClientOptions, createClient } from '../../src/client/index.ts';
import { testClock } from '../../src/testing/test-clock.ts';
import { type Answer, bodyOf, json, problem, quickClock, ScriptedServer } from './wire.ts';

const clientOf = (server: ScriptedServer, options: Partial<ClientOptions> = {}) =>
  createClient({ url: '/api/', fetch: server.fetch as typeof fetch, clock: quickClock(), ...options });
const away: Answer = () => Promise.reject(new TypeError('fetch failed'));
const nothing: Answer = () => new Response(null, { status: 204 });
const list = { items: [{ runId: 'r' }], next: 'n' };

describe('the calls of a client', () => {
  test.for([
    ['run.get', 'GET /api/runs/r', '', (c) => c.run('r').get()],
    ['run.cancel', 'POST /api/runs/r/cancel', '{"reason":"enough"}', (c) => c.run('r').cancel('enough')],
    ['run.steer', 'POST /api/runs/r/steer', '{"text":"left"}', (c) => c.run('r').steer('left')],
    [
      'run.send',
      'POST /api/runs/r/events',
      '{"event":{"type":"stop","by":"ada"},"id":"click-7"}',
      (c) => c.run('r').send({ type: 'stop', by: 'ada' }, { id: 'click-7' }),
    ],
    [
      'run.answer',
      'POST /api/runs/r/answers/w',
      '{"how":"answer","value":7}',
      (c) => c.run('r').answer('w', { how: 'answer', value: 7 }),
    ],
    [
      'run.approve',
      'POST /api/runs/r/answers/w%2F1',
      '{"note":"fine","how":"approve"}',
      (c) => c.run('r').approve('w/1', { note: 'fine' }),
    ],
    [
      'run.deny',
      'POST /api/runs/r/answers/w',
      '{"reason":"no","how":"deny"}',
      (c) => c.run('r').deny('w', { reason: 'no' }),
    ],
    [
      'thread.send',
      'POST /api/threads/t/messages',
      '{"text":"Hi","onBusy":"reject","id":"m"}',
      (c) => c.thread('t').send({ text: 'Hi', id: 'm', onBusy: 'reject' }),
    ],
    [
      'thread.messages',
      'GET /api/threads/t/messages?after=3&limit=10',
      '',
      (c) => c.thread('t').messages({ after: 3, limit: 10 }),
    ],
    ['thread.get', 'GET /api/threads/t', '', (c) => c.thread('t').get()],
    ['thread.cancel', 'POST /api/threads/t/cancel', '{}', (c) => c.thread('t').cancel()],
    ['thread.rewind', 'POST /api/threads/t/rewind', '{"messageId":"m"}', (c) => c.thread('t').rewind('m')],
    ['thread.fork', 'POST /api/threads/t/fork', '{"messageId":"m","newId":"u"}', (c) => c.thread('t').fork('m', 'u')],
    ['thread.delete', 'DELETE /api/threads/t', '', (c) => c.thread('t').delete()],
    [
      'waiting',
      'GET /api/waiting?runId=r&kind=approval&kind=question',
      '',
      (c) => c.waiting({ runId: 'r', kind: ['approval', 'question'] }),
    ],
    ['runs', 'GET /api/runs?state=you&q=a+%26b', '', (c) => c.runs({ state: 'you', q: 'a &b' })],
    ['start', 'POST /api/runs', '{"agent":"a","prompt":"Go"}', (c) => c.start({ agent: 'a', prompt: 'Go' })],
    ['chatTransport.stop', 'POST /api/chat/c/stop', '{"messageId":"m"}', (c) => c.chatTransport().stop('c', 'm')],
  ] satisfies [string, string, string, (client: ReturnType<typeof createClient>) => Promise<unknown>][])(
    '%s sends %s',
    async ([, path, body, call]) => {
      const server = new ScriptedServer(() => json(list));
      await call(clientOf(server));
      expect(server.paths).toEqual([path]);
      expect(server.bodies).toEqual([body]);
      // Writing needs a type that no form of a foreign page can send.
      expect(server.header('content-type')).toEqual([body === '' ? null : 'application/json']);
    },
  );

  test('give the answer of the server', async () => {
    const client = clientOf(new ScriptedServer(() => json(list)));
    expect(await client.runs()).toEqual(list);
    expect(await client.waiting()).toEqual(list);
    expect(await client.run('r').get()).toEqual(list);
    const sent = { runId: 'r', state: 'started' };
    expect(
      await clientOf(new ScriptedServer(() => json(sent, 202)))
        .thread('t')
        .send({ text: 'Hi' }),
    ).toEqual(sent);
    const state = (name: string) => clientOf(new ScriptedServer(() => json({ runId: 'r', state: name }))).run('r');
    expect([await state('sent').cancel(), await state('recorded').approve('w')]).toEqual(['sent', 'recorded']);
    expect(await clientOf(new ScriptedServer(nothing)).thread('t').delete()).toBeUndefined();
  });

  test('are sent again when the answer was lost, under one key or id, so that they count once (web 20)', async () => {
    let id = 0;
    const ids = () => `id-${++id}`;
    const server = new ScriptedServer(
      away,
      () => problem(502),
      away,
      () => json({ runId: 'r', accepted: 'started' }),
    );
    await clientOf(server, { ids }).start({ agent: 'a', prompt: 'Go' });
    expect(server.header('idempotency-key')).toEqual(['id-1', 'id-1', 'id-1', 'id-1']);
    const threads = new ScriptedServer(away, away, () => json({ runId: 'r', state: 'known' }));
    await clientOf(threads, { ids }).thread('t').send({ text: 'Hi' });
    expect(threads.bodies.map((body) => JSON.parse(body).id)).toEqual(['id-2', 'id-2', 'id-2']);
    const own = new ScriptedServer(() => json({}));
    await clientOf(own).start({ agent: 'a', prompt: 'Go' }, { idempotencyKey: 'mine' });
    expect(own.header('idempotency-key')).toEqual(['mine']);
  });

  test('make random keys of 128 bits where they are given none', async () => {
    const server = new ScriptedServer(() => json({}));
    await clientOf(server).start({ agent: 'a', prompt: 'Go' });
    await clientOf(server).start({ agent: 'a', prompt: 'Go' });
    const [first, second] = server.header('idempotency-key');
    expect(first).toMatch(/^[0-9a-f]{32}$/);
    expect(first).not.toBe(second);
  });

  test('give up after four tries, with the reason', async () => {
    const server = new ScriptedServer(away);
    const failure = clientOf(server).run('r').get();
    await expect(failure).rejects.toMatchObject({
      code: 'UNREACHABLE',
      status: 0,
      message: expect.stringContaining('fetch failed'),
    });
    expect(server.requests).toHaveLength(4);
  });

  test('are not sent again where that would do the same twice, unless the server refused to act: steer', async () => {
    const lost = new ScriptedServer(away, nothing);
    await expect(clientOf(lost).run('r').steer('left')).rejects.toMatchObject({ code: 'UNREACHABLE' });
    expect(lost.requests).toHaveLength(1);
    const refused = new ScriptedServer(() => problem(503), nothing);
    await clientOf(refused).run('r').steer('left');
    expect(refused.requests).toHaveLength(2);
  });

  test('do not wait for a server that asks for more time than a call may take', async () => {
    const server = new ScriptedServer(() => problem(429, 'THREAD_FULL', { 'retry-after': '60' }));
    const failure = clientOf(server).run('r').get();
    await expect(failure).rejects.toMatchObject({
      code: 'THREAD_FULL',
      status: 429,
      retryAfterMs: 60_000,
      retry: 'later',
    });
    expect(server.requests).toHaveLength(1);
  });

  test.for([
    [409, 'RUN_ID_CONFLICT', 'RUN_ID_CONFLICT'],
    [404, undefined, 'NOT_FOUND'],
    [418, undefined, 'HTTP_418'],
    [410, 'WAIT_GONE', 'WAIT_GONE'],
    [409, 'no code: \n', 'HTTP_409'],
  ] as const)(
    'fail with the code of the problem, or of the status: %i %j (web 22)',
    async ([status, code, expected]) => {
      const error: ClientError = await clientOf(new ScriptedServer(() => problem(status, code)))
        .run('r')
        .get()
        .then(
          () => expect.unreachable(),
          (thrown) => thrown,
        );
      expect(error).toMatchObject({ name: 'ClientError', code: expected, status, message: 'It failed: for a reason' });
    },
  );

  test('fail with what the status says when the body is no problem, is endless, or breaks', async () => {
    let cancelled = 0;
    const long = JSON.stringify({ title: 'x'.repeat(100_000), code: 'LONG' });
    const type = { 'content-type': 'application/problem+json' };
    const answers: Answer[] = [
      () => new Response('<html>', { status: 404, headers: { 'content-type': 'text/html' } }),
      () =>
        new Response(bodyOf(long, { pieceAt: () => 999, onCancel: () => cancelled++ }), { status: 404, headers: type }),
      () => new Response(bodyOf('{"code":"A"}', { cutAt: 3 }), { status: 404, headers: type }),
      () => new Response('[1]', { status: 404, headers: type }),
      () => new Response('null', { status: 404, headers: type }),
    ];
    for (const answer of answers) {
      const failure = clientOf(new ScriptedServer(answer)).run('r').get();
      await expect(failure).rejects.toMatchObject({
        code: 'NOT_FOUND',
        status: 404,
        message: 'The server answered with status 404',
      });
    }
    expect(cancelled).toBe(1);
  });

  test('hold no more of an answer than maxBytes, and close its connection', async () => {
    let cancelled = 0;
    const endless = () => new Response(bodyOf('x'.repeat(10_000), { pieceAt: () => 10, onCancel: () => cancelled++ }));
    const failure = clientOf(new ScriptedServer(endless), { maxBytes: 100 }).run('r').get();
    await expect(failure).rejects.toMatchObject({ code: 'TOO_LARGE' });
    expect(cancelled).toBe(1);
  });

  test.for([
    ['no JSON', () => new Response('{')],
    ['no list', () => json({ items: 1 })],
    ['nothing', nothing],
  ] as const)('fail with BAD_RESPONSE where a list is asked for and the answer is %s', async ([, answer]) => {
    const failure = clientOf(new ScriptedServer(answer)).runs();
    await expect(failure).rejects.toMatchObject({ code: 'BAD_RESPONSE', retry: 'never' });
  });

  test('end after timeoutMs, also when the body hangs', async () => {
    const hanging: Answer = () => new Response(bodyOf('{', { silent: true }));
    for (const answer of [hanging, () => new Promise<Response>(() => undefined)]) {
      const clock = testClock();
      const failure = clientOf(new ScriptedServer(answer), { clock, timeoutMs: 5_000 }).run('r').steer('left');
      const settled = expect(failure).rejects.toMatchObject({ code: 'TIMEOUT' });
      await clock.advance(5_000);
      await settled;
      expect(clock.pending).toBe(0);
    }
  });

  test('take a fetch that throws for one that failed, and look up the global one at each request', async () => {
    const throwing = () => {
      throw new TypeError('no network');
    };
    const failure = createClient({ url: '/api', fetch: throwing, clock: quickClock() }).run('r').steer('left');
    await expect(failure).rejects.toMatchObject({
      code: 'UNREACHABLE',
      message: expect.stringContaining('no network'),
    });
    const client = createClient({ url: '/api' });
    const { fetch } = globalThis;
    try {
      globalThis.fetch = (async () => json({ runId: 'patched' })) as typeof globalThis.fetch;
      expect(await client.run('r').get()).toEqual({ runId: 'patched' });
    } finally {
      globalThis.fetch = fetch;
    }
  });

  test('have each code of the client in the docs', () => {
    const root = new URL('../../', import.meta.url);
    const read = (path: string) => readFileSync(new URL(path, root), 'utf8');
    const sources = globSync('src/client/*.ts', { cwd: root }).map(read).join('\n');
    const codes = [...sources.matchAll(/(?:code: |40[134]: )'([A-Z_]+)'/g)].map(([, code]) => code);
    const section = read('docs/errors.md').split('## In clients')[1];
    expect(codes.length).toBeGreaterThan(6);
    expect(codes.filter((code) => !section?.includes(`\`${code}\``))).toEqual([]);
  });

  test('refuse an address that cannot be a prefix', () => {
    for (const url of ['/api?x', '/api#x', undefined as never]) expect(() => createClient({ url })).toThrow(TypeError);
  });
});
