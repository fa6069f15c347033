// `localOnly` in servers that do not come through `toNodeListener`.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Hono } from 'hono';
import { localOnly, type WebHandler } from 'pawl/http';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { webHost } from './web-host.ts';

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
  vi.restoreAllMocks();
});

const handlerOf = (more: { readonly basePath?: string } = {}) =>
  webHost({ http: { authorize: localOnly({ callerId: 'me' }), ...more } }).handler as WebHandler;
/** As docs/frameworks.md has it. */
const honoApp = (handler: WebHandler) => new Hono().all('/api/*', (context) => handler(context.req.raw, context.env));

/** A server that makes its own `Request` of a message, as the adapters of Hono and Next do. */
async function serverOf(fetchOf: (request: Request, incoming: IncomingMessage) => Response | Promise<Response>) {
  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const headers = new Headers(incoming.headers as Record<string, string>);
    const response = await fetchOf(
      new Request(`http://${incoming.headers.host}${incoming.url}`, { headers }),
      incoming,
    );
    outgoing.writeHead(response.status);
    outgoing.end(await response.text());
  };
  const server = createServer((incoming, outgoing) => void answer(incoming, outgoing));
  closing.push(() => void server.close().closeAllConnections());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return (headers: Record<string, string> = {}) =>
    fetch(`http://localhost:${port}/runs`, { headers }).then(({ status }) => status);
}

describe('localOnly', () => {
  test('asks a request that may be older than itself to come again, as a server that is starting (edges 32)', async () => {
    // As in a new process: no request of a server was seen.
    vi.resetModules();
    const [{ createExecutor, memoryStore }, http] = await Promise.all([import('pawl'), import('pawl/http')]);
    await using executor = createExecutor({ store: memoryStore(), journal: true });
    const handler = http.httpHandler(executor, { agents: {}, authorize: http.localOnly({ callerId: 'me' }) });
    const early = await handler(new Request('http://localhost/runs'));
    expect([early.status, early.headers.get('retry-after')]).toEqual([503, '1']);
    expect(await early.json()).toMatchObject({ code: 'STARTING' });
    expect(await (await serverOf((request) => handler(request)))()).toBe(200);
    vi.spyOn(console, 'warn').mockReturnValue();
    expect((await handler(new Request('http://localhost/runs'))).status).toBe(401);
  });

  test('grants this machine in Hono, by the raw request and mounted (edges 32)', async () => {
    const raw = handlerOf();
    const app = new Hono().all('*', async (c) => raw(c.req.raw));
    expect(await (await serverOf((request) => app.fetch(request)))()).toBe(200);
    const mounted = new Hono().mount('/', handlerOf());
    expect(await (await serverOf((request, incoming) => mounted.fetch(request, { incoming })))()).toBe(200);
  });

  test.for<[string, unknown, number]>([
    ['of Bun', { requestIP: () => ({ address: '127.0.0.1', family: 'IPv4', port: 1 }) }, 200],
    ['of Bun, to another machine', { requestIP: () => ({ address: '10.0.0.7', family: 'IPv4', port: 1 }) }, 401],
    ['of Deno', { remoteAddr: { transport: 'tcp', hostname: '127.0.0.1', port: 1 } }, 200],
  ])('reads the address from the environment of Hono on a server %s (edges 32)', async ([, env, status]) => {
    vi.spyOn(console, 'warn').mockReturnValue();
    expect(
      (await honoApp(handlerOf({ basePath: '/api' })).request('http://localhost/api/runs', {}, env as object)).status,
    ).toBe(status);
  });

  test('grants what Next passes on with the headers that it adds, and refuses what came through a proxy (edges 32)', async () => {
    const handler = handlerOf();
    const ask = await serverOf((request) => handler(request, { params: {} }));
    vi.spyOn(console, 'warn').mockReturnValue();
    const own = {
      'x-forwarded-for': '::ffff:127.0.0.1',
      'x-forwarded-host': 'localhost:3000',
      'x-forwarded-proto': 'http',
    };
    expect(await ask(own)).toBe(200);
    expect(await ask({ ...own, 'x-forwarded-for': '8.8.8.8' })).toBe(401);
    expect(await ask({ ...own, 'x-forwarded-for': '127.0.0.1, 8.8.8.8' })).toBe(401);
    expect(await ask({ ...own, 'x-forwarded-host': 'app.example' })).toBe(401);
    expect(await ask({ 'x-forwarded-host': 'localhost' })).toBe(401);
    expect(await ask({ ...own, via: '1.1 proxy' })).toBe(401);
  });

  const request = () => new Request('http://localhost/runs');
  test.for<[string, unknown, number]>([
    ['the info of Deno', { remoteAddr: { transport: 'tcp', hostname: '127.0.0.1', port: 1 } }, 200],
    ['the info of Deno, of another machine', { remoteAddr: { hostname: '10.0.0.7' } }, 401],
    ['the server of Bun', { requestIP: () => ({ address: '::1', family: 'IPv6', port: 1 }) }, 200],
    ['the server of Bun, of a request that it does not know', { requestIP: () => null }, 401],
    ['the environment of Hono on Node', { incoming: { socket: { remoteAddress: '::ffff:127.0.0.1' } } }, 200],
    ['the parameters of a route', { params: Promise.resolve({}) }, 401],
    [
      'a value that throws',
      {
        get remoteAddr() {
          throw new Error('no');
        },
      },
      401,
    ],
  ])('reads the address of %s (edges 32)', async ([, connection, status]) => {
    vi.spyOn(console, 'warn').mockReturnValue();
    expect((await handlerOf()(request(), connection)).status).toBe(status);
  });

  test('says once what to pass where no server says the address (edges 32)', async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue();
    const handler = handlerOf();
    for (let i = 0; i < 2; i++) expect((await handler(request())).status).toBe(401);
    expect(warn.mock.calls).toEqual([
      [expect.stringMatching(/handler\(request, connection\), or localOnly\(\{ callerId, address/), expect.anything()],
    ]);
  });
});
