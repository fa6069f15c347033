import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createExecutor, type Model } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { hang, reply, scriptedModel } from 'pawl/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { boot } from '../../docs/examples/server/server.ts';
import { callersFrom, defaultLimits } from '../../docs/examples/server/walls.ts';
import { until } from '../fixtures/host.ts';

let folder: string;
const closing: (() => Promise<unknown>)[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-walls-'));
});
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  rmSync(folder, { recursive: true, force: true });
});

const tokens = { alice: 'a-token-of-alice-1', bob: 'a-token-of-bob-123' };
const answering = () => scriptedModel(Array.from({ length: 100 }, () => reply('done')));
const hanging = () => scriptedModel(Array.from({ length: 100 }, () => hang()));

interface Asking {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

async function served(model: Model = answering(), { callers = '', limits = {} } = {}) {
  const { executor, server } = await boot(model, {
    port: 0,
    path: join(folder, 'runs.db'),
    callers: callersFrom(callers),
    limits: { ...defaultLimits, ...limits },
  });
  const { port } = server.address() as AddressInfo;
  const stop = async () => {
    server.closeAllConnections();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
    await executor.shutdown();
  };
  closing.push(stop);
  const open = async ({ method = 'GET', path = '/', headers = {}, body }: Asking): Promise<IncomingMessage> => {
    const request = httpRequest({ host: '127.0.0.1', port, method, path, headers });
    request.end(body);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return response;
  };
  const ask = async (asking: Asking) => {
    const response = await open(asking);
    let text = '';
    for await (const chunk of response.setEncoding('utf8')) text += chunk;
    return { status: response.statusCode, body: JSON.parse(text) };
  };
  const post = (body: unknown, headers: Readonly<Record<string, string>> = {}) =>
    ask({
      method: 'POST',
      path: '/runs',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
    });
  return { executor, port, stop, open, ask, post };
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const codes = ({ status, body }: { status: number | undefined; body: { error?: { code: string } } }) =>
  `${status} ${body.error?.code ?? ''}`.trim();

describe('the example server', () => {
  test('answers only for its own names: a page that has a name of its own for this address gets 421', async () => {
    const { port, post } = await served();
    for (const host of ['evil.example', `evil.example:${port}`, 'localhost', 'localhost:1']) {
      expect(codes(await post({ prompt: 'x' }, { host }))).toBe('421 WRONG_HOST');
    }
    for (const name of ['localhost', '127.0.0.1', '[::1]']) {
      expect((await post({ prompt: 'x' }, { host: `${name}:${port}` })).status).toBe(202);
    }
  });

  test('refuses pages of other origins with 403, and takes its own', async () => {
    const { port, post, ask } = await served();
    for (const origin of ['https://evil.example', 'null', `http://evil.example:${port}`, 'http://localhost:1']) {
      expect(codes(await post({ prompt: 'x' }, { origin }))).toBe('403 WRONG_ORIGIN');
      expect(codes(await ask({ path: '/runs/x', headers: { origin } }))).toBe('403 WRONG_ORIGIN');
    }
    expect((await post({ prompt: 'x' }, { origin: `http://localhost:${port}` })).status).toBe(202);
  });

  test('takes only application/json: what a form of another site can send gets 415', async () => {
    const { post } = await served();
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'text/json', '']) {
      expect(codes(await post({ prompt: 'x' }, { 'content-type': type }))).toBe('415 WRONG_TYPE');
    }
    expect((await post({ prompt: 'x' }, { 'content-type': 'Application/JSON; charset=utf-8' })).status).toBe(202);
  });

  test('reads no more of a body than its cap, whether its length is told or not, and says 413', async () => {
    const { post, port, executor } = await served();
    expect(codes(await post({ prompt: 'x'.repeat(70_000) }))).toBe('413 TOO_LARGE');
    const socket = connect(port, '127.0.0.1');
    let answer = '';
    socket.on('data', (data) => {
      answer += data;
    });
    socket.on('error', () => {});
    socket.write(
      `POST /runs HTTP/1.1\r\nhost: localhost:${port}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
    );
    // It never ends its body.
    for (let i = 0; i < 8; i++) socket.write(`2800\r\n${'x'.repeat(0x2800)}\r\n`);
    await until(() => answer.includes('TOO_LARGE'), 'the answer', 1_000_000);
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    socket.destroy();
    expect(executor.runs.get()).toEqual([]);
  });

  test.for([
    ['that is no JSON', 'not json', '400 WRONG_BODY'],
    ['that is a list', '[]', '400 WRONG_BODY'],
    ['that is null', 'null', '400 WRONG_BODY'],
    ['that is a text', '"text"', '400 WRONG_BODY'],
    ['that is no UTF-8', Buffer.from([0x22, 0xff, 0x22]), '400 WRONG_BODY'],
    ['with an unknown key', { prompt: 'x', inputs: {} }, '400 WRONG_BODY'],
    ['without a prompt', {}, '400 WRONG_PROMPT'],
    ['with a blank prompt', { prompt: ' ' }, '400 WRONG_PROMPT'],
    ['with a prompt that is no text', { prompt: 7 }, '400 WRONG_PROMPT'],
    ['with a prompt of 20,001 characters', { prompt: 'x'.repeat(20_001) }, '400 WRONG_PROMPT'],
    ['with a run id that is no text', { prompt: 'x', runId: 7 }, '400 INVALID_RUN_ID'],
    ['with an empty run id', { prompt: 'x', runId: '' }, '400 INVALID_RUN_ID'],
    ['with a run id that has a slash', { prompt: 'x', runId: '../x' }, '400 INVALID_RUN_ID'],
    ['with a run id that is spelt like that of a child', { prompt: 'x', runId: '~child' }, '400 INVALID_RUN_ID'],
    ['with a run id of 201 characters', { prompt: 'x', runId: 'x'.repeat(201) }, '400 INVALID_RUN_ID'],
  ] as const)('answers 400 to a body %s, and starts nothing', async ([, body, answer]) => {
    const { post, executor } = await served();
    expect(codes(await post(body))).toBe(answer);
    expect(executor.runs.get()).toEqual([]);
  });

  test('answers strange paths with 400 or 404, and goes on', async () => {
    const { ask, post } = await served();
    const paths = ['/runs/%E0%A4%A', '/runs/a%2Fb', '//', '/runs/x/events/y', '/runs//events', '/elsewhere', '*'];
    for (const path of paths) expect((await ask({ path })).status).toBeOneOf([400, 404]);
    expect((await ask({ method: 'DELETE', path: '/runs/x' })).status).toBe(404);
    expect((await post({ prompt: 'x' })).status).toBe(202);
  });

  test('asks each caller for its token, and refuses an unknown one with 401', async () => {
    const callers = `alice=${tokens.alice},bob=${tokens.bob}`;
    const { post, ask } = await served(answering(), { callers });
    const wrong = [{}, bearer('x'), bearer(''), { authorization: tokens.alice }, { authorization: 'Bearer' }];
    for (const headers of wrong) {
      expect(codes(await post({ prompt: 'x' }, headers))).toBe('401 UNKNOWN_CALLER');
      expect(codes(await ask({ path: '/runs/x', headers }))).toBe('401 UNKNOWN_CALLER');
    }
    expect((await post({ prompt: 'x' }, bearer(tokens.bob))).status).toBe(202);
    for (const text of ['alice', 'alice=short', 'a/b=0123456789abcdef', '=0123456789abcdef']) {
      expect(() => callersFrom(text)).toThrow(TypeError);
    }
  });

  test('keeps the ids of callers apart: the same id is another run for each, and another’s run is 404', async () => {
    const callers = `alice=${tokens.alice},bob=${tokens.bob}`;
    const { post, ask, executor } = await served(hanging(), { callers });
    const [alice, bob] = [bearer(tokens.alice), bearer(tokens.bob)];
    expect(await post({ prompt: 'of alice', runId: 'x' }, alice)).toMatchObject({ status: 202, body: { runId: 'x' } });
    expect(codes(await ask({ path: '/runs/x', headers: bob }))).toBe('404 NOT_FOUND');
    expect(codes(await ask({ path: '/runs/x/events', headers: bob }))).toBe('404 NOT_FOUND');
    for (const path of ['/runs/alice%2Fx', '/runs/alice/x', '/runs/..%2Falice%2Fx']) {
      expect((await ask({ path, headers: bob })).status).toBeOneOf([400, 404]);
    }
    expect(await post({ prompt: 'of bob', runId: 'x' }, bob)).toMatchObject({ body: { accepted: 'started' } });
    const runs = executor.runs.get().map(({ runId }) => runId);
    expect(runs.toSorted()).toEqual(['alice/x', 'bob/x']);
    expect((await ask({ path: '/runs/x', headers: alice })).body).toMatchObject({ status: 'live', runId: 'x' });
  });

  test('lets each caller have so many runs at once, says 429 to one more, and takes the next when one has ended', async () => {
    const callers = `alice=${tokens.alice},bob=${tokens.bob}`;
    const { post, executor } = await served(hanging(), { callers, limits: { runs: 2 } });
    const [alice, bob] = [bearer(tokens.alice), bearer(tokens.bob)];
    const first = ['a', 'b', 'c', 'd'].map((runId) => post({ prompt: 'x', runId }, alice));
    const answers = (await Promise.all(first)).map(codes).toSorted();
    expect(answers).toEqual(['202', '202', '429 TOO_MANY', '429 TOO_MANY']);
    expect((await post({ prompt: 'x', runId: 'a' }, bob)).status).toBe(202);
    const [own] = executor.runs.get().filter(({ runId }) => runId.startsWith('alice/'));
    const again = await post({ prompt: 'x', runId: own?.runId.slice('alice/'.length) }, alice);
    expect(again).toMatchObject({ status: 202, body: { accepted: 'joined' } });
    await executor.control(String(own?.runId)).cancel();
    expect((await post({ prompt: 'x', runId: 'e' }, alice)).status).toBe(202);
    expect(codes(await post({ prompt: 'x', runId: 'f' }, alice))).toBe('429 TOO_MANY');
  });

  test('lets each caller have so many streams at once, and takes the next when one is closed', async () => {
    const { post, open, ask } = await served(hanging(), { limits: { streams: 1 } });
    await post({ prompt: 'x', runId: 'x' });
    const stream = await open({ path: '/runs/x/events' });
    expect(stream.statusCode).toBe(200);
    expect(codes(await ask({ path: '/runs/x/events' }))).toBe('429 TOO_MANY');
    stream.destroy();
    await until(async () => {
      const next = await open({ path: '/runs/x/events' });
      next.destroy();
      return next.statusCode === 200;
    }, 'a place');
  });

  test('answers the same request again with 202 while its run is live, and with 200 and the answer when it has ended', async () => {
    const { post, ask, executor } = await served();
    const body = { prompt: 'x', runId: 'x' };
    expect(await post(body)).toEqual({ status: 202, body: { runId: 'x', accepted: 'started' } });
    await executor.get('local/x')?.result;
    const again = await post(body);
    expect(again).toMatchObject({ status: 200, body: { runId: 'x', accepted: 'ended', status: 'ok', output: 'done' } });
    expect((await ask({ path: '/runs/x' })).body).toMatchObject({ runId: 'x', output: 'done' });
    const live = await served(hanging());
    expect(await live.post({ prompt: 'y', runId: 'y' })).toMatchObject({ status: 202, body: { accepted: 'started' } });
    expect(await live.post({ prompt: 'y', runId: 'y' })).toMatchObject({ status: 202, body: { accepted: 'joined' } });
  });

  test('answers another request under the same id with 409, live and ended, and tells nothing of the first', async () => {
    const { post, executor } = await served();
    const refused = async (send: typeof post, runId: string) => {
      const { status, body } = await send({ prompt: 'Another.', runId });
      expect([status, body.error.code]).toEqual([409, 'RUN_ID_CONFLICT']);
      expect(JSON.stringify(body)).not.toMatch(/done|The secret/);
    };
    await post({ prompt: 'The secret.', runId: 'x' });
    await executor.get('local/x')?.result;
    await refused(post, 'x');
    const live = await served(hanging());
    await live.post({ prompt: 'The secret.', runId: 'y' });
    await refused(live.post, 'y');
  });

  test('answers 409 for a run that was parked, and goes on with one that was only left', async () => {
    const first = await served(hanging());
    for (const runId of ['parked', 'left']) await first.post({ prompt: 'x', runId });
    await first.stop();
    const store = sqliteStore({ path: join(folder, 'runs.db') });
    const person = createExecutor({ models: { fast: hanging() }, checkpoints: store });
    await person.park('local/parked', 'not today');
    await person.shutdown();
    await store.close();
    const second = await served(hanging());
    const parked = await second.post({ prompt: 'x', runId: 'parked' });
    expect([parked.status, parked.body.error.code]).toEqual([409, 'RUN_PARKED']);
    const left = await second.post({ prompt: 'x', runId: 'left' });
    expect(left.status).toBe(202);
    expect(left.body.accepted).toBeOneOf(['resumed', 'joined']);
  });
});
