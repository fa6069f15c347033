// One handler below a path of five kinds of servers. Bun, Deno and workerd are not here: their cases are skipped by name.
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import express, { type Request as ExpressRequest, type Response as ExpressResponse, type NextFunction } from 'express';
import { Hono } from 'hono';
import { toNodeListener } from 'pawl/http';
import { callTool, reply } from 'pawl/testing';
import { afterEach, describe, expect, test } from 'vitest';
import { toolOf } from '../fixtures/host.ts';
import { webHost } from './web-host.ts';

type Fetch = (path: string, init?: RequestInit) => Promise<Response>;
type Handler = (request: Request) => Promise<Response>;
/** A server with a handler mounted below `/api/pawl`. */
type Mount = (handler: Handler) => Fetch | Promise<Fetch>;

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const served = async (listener: RequestListener): Promise<Fetch> => {
  const server = createServer(listener);
  closing.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return (path, init) => fetch(`http://127.0.0.1:${port}${path}`, init);
};

/** A middleware that gathers an answer to compress it, as many do, but for one that says `no-transform`. */
function gathering(_: ExpressRequest, response: ExpressResponse, next: NextFunction): void {
  const write = response.write.bind(response);
  const end = response.end.bind(response);
  const chunks: Buffer[] = [];
  const isLeft = () => String(response.getHeader('cache-control')).includes('no-transform');
  response.write = ((chunk: Uint8Array) => {
    if (isLeft()) return write(chunk);
    chunks.push(Buffer.from(chunk));
    return true;
  }) as typeof response.write;
  response.end = ((chunk?: Uint8Array) => {
    if (isLeft()) return chunk === undefined ? end() : end(chunk);
    if (chunk) chunks.push(Buffer.from(chunk));
    return end(Buffer.concat(chunks));
  }) as typeof response.end;
  next();
}

const mounts: readonly (readonly [string, Mount])[] = [
  ['node:http', (handler) => served(toNodeListener(handler))],
  [
    'Express 5 below a path',
    (handler) => served(express().use('/api/pawl', toNodeListener(handler)) as unknown as RequestListener),
  ],
  [
    'Express 5 behind express.json()',
    (handler) =>
      served(express().use(express.json()).use('/api/pawl', toNodeListener(handler)) as unknown as RequestListener),
  ],
  [
    'Express 5 behind a middleware that gathers answers',
    (handler) =>
      served(express().use(gathering).use('/api/pawl', toNodeListener(handler)) as unknown as RequestListener),
  ],
  [
    'Hono, by `all`',
    (handler) => {
      const app = new Hono().all('/api/pawl/*', (context) => handler(context.req.raw));
      return async (path, init) => app.request(`http://pawl.test${path}`, init);
    },
  ],
  [
    "the signature of Next's routes",
    (handler) => {
      const route = { GET: handler, POST: handler, DELETE: handler } as Record<
        string,
        (request: Request, context: { params: Promise<object> }) => Promise<Response>
      >;
      return (path, init) => {
        const request = new Request(`http://pawl.test${path}`, init);
        return route[request.method]?.(request, { params: Promise.resolve({}) }) as Promise<Response>;
      };
    },
  ],
];

const headers = { authorization: 'Bearer ada', 'content-type': 'application/json' };

describe.for(mounts)('the handler in %s', ([, mount]) => {
  test('starts a run, streams it, refuses what it must, and has its own paths (web 40)', async () => {
    const gate = Promise.withResolvers<string>();
    const wait = toolOf('wait', 'read', () => gate.promise);
    const script = [callTool('wait', {}), reply('done'), reply('more')];
    const host = webHost({ script, tools: [wait], http: { basePath: '/api/pawl' } });
    const ask = await mount(host.handler);
    const body = JSON.stringify({ agent: 'worker', prompt: 'Größe' });
    const started = await ask('/api/pawl/runs', { method: 'POST', headers, body });
    expect(started.status).toBe(202);
    const { runId } = (await started.json()) as { runId: string };
    expect(started.headers.get('location')).toBe(`/api/pawl/runs/${runId}`);
    expect(await (await ask(`/api/pawl/runs/${runId}`, { headers })).json()).toMatchObject({ prompt: 'Größe' });

    const stream = await ask(`/api/pawl/runs/${runId}/events`, { headers });
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
    // Nothing between holds it back: it is read while the run waits for the gate.
    expect((await reader?.read())?.value).toContain('retry: 1000');
    gate.resolve('fine');
    let text = '';
    for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) text += piece.value;
    expect(text).toContain('"type":"run.ended"');

    expect((await ask('/api/pawl/runs', { method: 'POST', headers, body: '{' })).status).toBe(400);
    expect((await ask('/api/pawl/runs', { headers: { authorization: '' } })).status).toBe(401);
    const plain = { ...headers, 'content-type': 'text/plain' };
    expect((await ask('/api/pawl/runs', { method: 'POST', headers: plain, body })).status).toBe(415);
    expect((await ask('/api/pawl/nothing', { headers })).status).toBe(404);
    expect((await ask(`/api/pawl/runs/${encodeURIComponent('a/b')}`, { headers })).status).toBe(404);
  });
});

describe('the handler in other runtimes', () => {
  test.todo('Bun: its server takes a function from Request to Response; there is no Bun here (web 40)');
  test.todo('Deno: its server takes a function from Request to Response; there is no Deno here (web 40)');
  test.todo('workerd: a worker exports such a function as `fetch`; there is no workerd here (web 40)');
});
