import { type AuthorizeDetails, httpHandler } from 'pawl/http';
import { hang, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { StoreUnavailableError } from '../../src/values/errors.ts';
import { hostOf, settle, until } from '../fixtures/host.ts';
import { everyRoute, type SampleRequest } from './every-route.ts';
import { base, byToken, read, requestTo, webHost } from './web-host.ts';

const unknown = everyRoute({ runId: 'unknown', threadId: 'unknown' });
const posts = unknown.filter(({ route }) => route.method === 'POST');
const named = (sample: SampleRequest) => [sample.name, sample] as const;

/** What a foreign caller could learn: status, headers and body. */
async function seenBy(response: Response) {
  const { status, headers, body } = await read(response);
  return { status, headers: Object.fromEntries(headers), body };
}

/** What an `authorize` must not do. */
const faults: readonly (readonly [string, () => unknown])[] = [
  [
    'throws',
    () => {
      throw Object.assign(new Error('sk-123'), { code: 'RUN_PARKED' });
    },
  ],
  ['rejects', () => Promise.reject(new Error('Bearer sk-123', { cause: new Error('sk-123') }))],
  ['throws a text', () => Promise.reject('sk-123')],
  ['returns nothing', () => undefined],
  ['returns an empty callerId', () => ({ callerId: '' })],
  ['returns a callerId with half a character', () => ({ callerId: '\ud800' })],
  ['returns a callerId that is no text', () => ({ callerId: 7 })],
  ['returns a person that is none', () => ({ callerId: 'ada', by: 'ada' })],
  ['returns labels that are none', () => ({ callerId: 'ada', labels: { a: 1 } })],
  ['returns `all` that is no boolean', () => ({ callerId: 'ada', all: 'yes' })],
];

describe.for(unknown.map(named))('%s', ([, { route, path, body }]) => {
  const { method } = route;

  test('without a grant is 401, and does nothing (web 18, 39)', async () => {
    const host = webHost();
    const { status, body: problem, headers } = await host.ask(path, { as: '', method, body });
    expect([status, problem.code]).toEqual([401, 'UNAUTHORIZED']);
    expect(headers.get('content-type')).toBe('application/problem+json');
    expect(await host.executor.list()).toEqual([]);
  });

  test('from a page of another origin is 403, before any question to the host (web 21, 39)', async () => {
    const asked: string[] = [];
    const host = webHost({ http: { authorize: () => void asked.push('asked') as never } });
    for (const origin of [
      'https://evil.test',
      'null',
      'http://pawl.test.evil.test',
      'http://pawl.test@evil.test',
      'x',
    ]) {
      const { status, body: problem } = await host.ask(path, { method, body, headers: { origin } });
      expect([status, problem.code]).toEqual([403, 'FOREIGN_ORIGIN']);
    }
    expect(asked).toEqual([]);
  });

  test('with another host is 421 (web 21, 39)', async () => {
    const host = webHost({ http: { hosts: ['other.test', 'pawl.test:8080'] } });
    const { status, body: problem } = await host.ask(path, { method, body });
    expect([status, problem.code]).toEqual([421, 'WRONG_HOST']);
    const right = webHost({ http: { hosts: ['PAWL.test'] } });
    expect((await right.ask(path, { method, body, as: '' })).status).toBe(401);
    const twice = await right.ask(path, { method, body, as: '', headers: { host: 'evil.test' } });
    expect(twice.status).toBe(421);
  });

  test.for(faults)('is 500 if authorize %s, and shows nothing of it (web 18)', async ([, authorize]) => {
    const host = webHost({ http: { authorize: authorize as never } });
    const { status, body: problem } = await host.ask(path, { method, body });
    expect(problem).toEqual({ type: 'urn:pawl:INTERNAL', title: 'The server failed', status: 500, code: 'INTERNAL' });
    expect(status).toBe(500);
    expect(host.httpWarned).toHaveLength(1);
    expect(host.httpWarned[0]).toMatch(/authorize (failed|must return)|authorize: /);
    expect(host.httpWarned[0]).not.toContain('sk-123');
    expect(await host.executor.list()).toEqual([]);
  });

  test('is 500 if authorize does not answer (web 18)', async () => {
    const clock = testClock();
    const host = webHost({ http: { clock, authorize: () => new Promise(() => {}) } });
    const answer = host.ask(path, { method, body });
    await until(() => clock.pending > 0);
    await settle();
    await clock.advance(10_000);
    expect((await answer).status).toBe(500);
  });

  test('asks the host for the action and the ids of the table (web 18)', async () => {
    const asked: AuthorizeDetails[] = [];
    const host = webHost({
      http: {
        authorize: (_: Request, details: AuthorizeDetails) => {
          asked.push(details);
          // The agent is in the body, which is read after a first grant.
          return asked.length === 1 && path === '/runs' ? { callerId: 'ada' } : null;
        },
      },
    });
    await host.ask(path, { method, body });
    expect(asked).toHaveLength(path === '/runs' && method === 'POST' ? 2 : 1);
    const details = asked.at(-1) as AuthorizeDetails;
    expect('actions' in route ? route.actions : [route.action]).toContain(details.action);
    if (route.path.includes(':runId')) expect(details.runId).toBe('unknown');
    if (route.path.includes(':threadId')) expect(details.threadId).toBe('unknown');
    if (route.path === '/runs' && method === 'POST') expect(details.agentId).toBe('worker');
  });

  test('names itself in the method that it does not take (web 22)', async () => {
    const { status, body: problem, headers } = await webHost().ask(path, { method: 'PUT' });
    expect([status, problem.code]).toEqual([405, 'METHOD_NOT_ALLOWED']);
    expect(headers.get('allow')).toContain(method);
  });

  test('refuses an unknown parameter of the query (web 22)', async () => {
    const { status, body: problem } = await webHost().ask(`${path}?callerId=bob`, { method, body });
    expect([status, problem.code]).toEqual([400, 'BAD_REQUEST']);
  });

  if (route.path.includes(':threadId')) {
    test("of another caller's thread sees nothing of it: the answer is that of an unknown one (web 19, 39)", async () => {
      const host = webHost({ script: Array.from({ length: 4 }, () => hang()) });
      const foreign = host.executor.thread('unknown', { agent: host.agent, callerId: 'bob' });
      await foreign.send({ id: 'm1', text: 'Mine.' });
      const before = await foreign.turns();
      const seen = await seenBy(await host.open(path, { method, body }));
      const other = path.replace('unknown', 'nothing');
      const wanted = await seenBy(await host.open(other, { method, body }));
      // A message begins a thread of the caller's own.
      const named = 'state' in (seen.body as object) ? { runId: seen.body.runId } : {};
      expect(seen).toEqual({ ...wanted, body: { ...wanted.body, ...named } });
      expect(seen.status).toBe(method === 'POST' && path.endsWith('/messages') ? 202 : 404);
      if (route.query?.caller) {
        const asked = await seenBy(await host.open(`${path}?caller=bob`, { method, body }));
        expect(asked.status).toBe(404);
      }
      expect(await foreign.turns()).toEqual(before);
      expect(await host.executor.find(before[0]?.runId ?? '')).toMatchObject({ status: 'live' });
    });
  }

  if (route.path.includes(':runId')) {
    test("of another caller's run is 404, the same as of an unknown one; `all` lifts this (web 19, 39)", async () => {
      const host = webHost({ script: Array.from({ length: 4 }, () => hang()) });
      await host.start({ runId: 'foreign', callerId: 'bob' });
      const foreign = path.replace('unknown', 'foreign');
      const seen = await seenBy(await host.open(foreign, { method, body }));
      expect(seen).toEqual(await seenBy(await host.open(path, { method, body })));
      expect([seen.status, seen.body.code]).toEqual([404, 'NOT_FOUND']);
      expect(seen.body).not.toHaveProperty('detail');
      expect(host.executor.get('foreign')?.actor?.getSnapshot().status).toBe('active');
      const root = await host.open(foreign, { method, body, as: 'root:boss' });
      expect(root.status).not.toBe(404);
      await root.body?.cancel();
    });
  }
});

describe.for(posts.map(named))('%s', ([, { path, body }]) => {
  test('without a grant reads nothing of its body (web 18)', async () => {
    const host = webHost();
    const pulled: string[] = [];
    const stalled = new ReadableStream<Uint8Array>({ pull: () => void pulled.push('pulled') }, { highWaterMark: 0 });
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: stalled, duplex: 'half' };
    const answer = await host.handler(new Request(`${base}${path}`, init as RequestInit));
    expect([answer.status, pulled, stalled.locked]).toEqual([401, [], false]);
  });

  test.for(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'application/jsonx', ''])(
    'with the content type %j is 415 (web 21, 39)',
    async (type) => {
      const { status, body: problem } = await webHost().ask(path, { body, headers: { 'content-type': type } });
      expect([status, problem.code]).toEqual([415, 'WRONG_CONTENT_TYPE']);
    },
  );

  test('with a body that is too large is 413, by its declared length and by its real one (web 22, 39)', async () => {
    const host = webHost({ http: { maxBodyBytes: 64 } });
    const large = { prompt: 'x'.repeat(100) };
    const declared = await host.ask(path, { body: large });
    expect([declared.status, declared.body.code, declared.headers.get('connection')]).toEqual([
      413,
      'BODY_TOO_LARGE',
      'close',
    ]);
    const pieces = streamed(requestTo(path), [JSON.stringify(large).slice(0, 50), JSON.stringify(large).slice(50)]);
    expect((await host.handler(pieces)).status).toBe(413);
  });

  test('with a body that does not come is 408 (web 22, 39)', async () => {
    const clock = testClock();
    const host = webHost({ http: { clock, bodyMs: 500 } });
    const answer = host.handler(streamed(requestTo(path), ['{'], { ends: false }));
    await until(() => clock.pending > 0);
    await settle();
    await clock.advance(499);
    await clock.advance(1);
    const { status, body: problem, headers } = await read(await answer);
    expect([status, problem.code, headers.get('connection')]).toEqual([408, 'BODY_TIMEOUT', 'close']);
    expect(clock.pending).toBe(0);
  });

  test('with a body that is no JSON object is 400 (web 22)', async () => {
    for (const wrong of ['', '7', '[]', 'null', '{"a":1', '\ufeff{}x']) {
      const request = new Request(`${base}${path}`, { ...requestInit(), body: wrong });
      expect((await webHost().handler(request)).status).toBe(400);
    }
    const latin = new Request(`${base}${path}`, { ...requestInit(), body: new Uint8Array([0x7b, 0xff, 0x7d]) });
    expect((await webHost().handler(latin)).status).toBe(400);
  });
});

describe('httpHandler', () => {
  test('needs authorize and a journal, and knows all its options (web 18)', () => {
    const host = webHost();
    const agents = { worker: host.agent };
    expect(() => httpHandler(hostOf().executor, { agents, authorize: byToken })).toThrow('with a journal');
    expect(() => webHost({ http: { authorize: undefined as never } })).toThrow('needs authorize');
    expect(() => webHost({ http: { maxBodyByte: 1 } as never })).toThrow('did you mean maxBodyBytes?');
    expect(() => webHost({ http: { bodyMs: 0 } })).toThrow('bodyMs must be a number above 0');
    expect(() => webHost({ http: { basePath: 'api' } })).toThrow('basePath must begin with /');
    expect(() => webHost({ http: { origins: ['app.test'] } })).toThrow('https://app.example');
    expect(() => webHost({ http: { agents: [] as never } })).toThrow('agents must be an object');
    expect(host.handler).toBeTypeOf('function');
  });

  test('answers pages of its own host, also behind a proxy that ends TLS, and of the origins that are listed (web 21)', async () => {
    const host = webHost({ http: { origins: ['https://app.test'] } });
    for (const origin of [base, 'https://pawl.test', 'https://app.test'])
      expect((await host.ask('/runs', { headers: { origin } })).status).toBe(200);
    const { status, headers } = await host.ask('/runs', { headers: { origin: 'https://app.test:444' } });
    expect(status).toBe(403);
    expect([...headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
  });

  test('answers a page at an address of this computer for which the server writes `localhost`, as Next does (web 21)', async () => {
    const { handler } = webHost({ http: { authorize: () => ({ callerId: 'ada' }) } });
    const ask = async (host: string, origin: string) =>
      (await handler(new Request('http://localhost:3000/runs', { headers: { host, origin } }))).status;
    expect(await ask('127.0.0.1:3000', 'http://127.0.0.1:3000')).toBe(200);
    expect(await ask('[::1]:3000', 'http://[::1]:3000')).toBe(200);
    expect(await ask('127.0.0.1:3000', 'http://127.0.0.1:4000')).toBe(403);
    expect(await ask('evil.test:3000', 'http://evil.test:3000')).toBe(403);
    expect(await ask('127.0.0.1.evil.test:3000', 'http://127.0.0.1.evil.test:3000')).toBe(403);
  });

  test('shows nothing of an error that is not of Pawl, with any code (web 22)', async () => {
    const host = webHost();
    host.executor.list = () => Promise.reject(Object.assign(new Error('secret'), { code: 'RUN_PARKED' }));
    const { status, body } = await host.ask('/runs');
    expect([status, body.code]).toEqual([500, 'INTERNAL']);
    expect(JSON.stringify(body)).not.toContain('secret');
    expect(host.httpWarned[0]).toContain('secret');
  });

  test('shows no message of a store that does not answer (web 22)', async () => {
    const host = webHost();
    host.executor.list = () => Promise.reject(new StoreUnavailableError('postgres://u:secret@db'));
    const { status, body, headers } = await host.ask('/runs');
    expect([status, body, headers.get('retry-after')]).toEqual([
      503,
      {
        type: 'urn:pawl:STORE_UNAVAILABLE',
        title: 'The store does not answer',
        status: 503,
        code: 'STORE_UNAVAILABLE',
      },
      '5',
    ]);
  });

  test('lives with a logger that throws (web 22)', async () => {
    const logger = {
      warn: () => {
        throw new Error('no');
      },
    };
    const host = webHost({ http: { logger, authorize: () => ({ callerId: '' }) } });
    expect((await host.ask('/runs')).status).toBe(500);
  });

  test('has its routes below the base path, and nowhere else (web 17)', async () => {
    const host = webHost({ http: { basePath: '/api/pawl/' } });
    expect((await host.ask('/api/pawl/runs')).status).toBe(200);
    for (const path of ['/runs', '/api/pawlruns', '/api/pawl', '/api/pawl/', '/api/pawl/runs/', '/api/pawl//runs'])
      expect((await host.ask(path)).status).toBe(404);
  });

  test('refuses after the same time for an unknown run and for one whose record takes long to read (web 19, 39)', async () => {
    const clock = testClock();
    const host = webHost({ http: { clock } });
    const took = async (readMs: number) => {
      const answer = host.ask('/runs/r');
      host.executor.find = async () => {
        await new Promise<void>((resolve) => clock.setTimeout(resolve, readMs));
        return null;
      };
      const began = clock.monotonic();
      for (let done = false; !done; ) {
        await settle();
        await clock.advance(1);
        done = await Promise.race([answer.then(() => true), settle().then(() => false)]);
      }
      return clock.monotonic() - began;
    };
    expect(await took(1)).toBe(await took(40));
  });
});

function requestInit() {
  return { method: 'POST', headers: { authorization: 'Bearer ada', 'content-type': 'application/json' } };
}

/** The request with a body that comes in pieces. */
function streamed({ url }: Request, pieces: readonly string[], { ends = true } = {}): Request {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
      if (ends) controller.close();
    },
  });
  return new Request(url, { ...requestInit(), body, duplex: 'half' } as RequestInit);
}
