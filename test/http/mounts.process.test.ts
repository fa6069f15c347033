// One handler below a path of many kinds of servers. Where an engine is not installed its case is skipped by name.
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import express, { type Request as ExpressRequest, type Response as ExpressResponse, type NextFunction } from 'express';
import { Hono } from 'hono';
import { toNodeListener } from 'pawl/http';
import { callTool, reply } from 'pawl/testing';
import { afterEach, describe, test } from 'vitest';
import { inEngine, whyNo } from '../engines/engines.ts';
import { toolOf } from '../fixtures/host.ts';
import { startServer } from '../runtimes/runtimes.ts';
import { startWorkerd } from '../runtimes/workerd.ts';
import { checkMounted, type Fetch, mountedTitle } from './mounted.ts';
import { webHost } from './web-host.ts';

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

describe.for(mounts)('the handler in %s', ([, mount]) => {
  test(mountedTitle, async () => {
    const gate = Promise.withResolvers<string>();
    const wait = toolOf('wait', 'read', () => gate.promise);
    const script = [callTool('wait', {}), reply('done'), reply('more')];
    const host = webHost({ script, tools: [wait], http: { basePath: '/api/pawl' } });
    await checkMounted(await mount(host.handler), () => gate.resolve('fine'));
  });
});

describe('the handler in other runtimes', () => {
  const servers = [
    ['bun', 'Bun.serve', () => startServer('Bun')],
    ['deno', 'Deno.serve', () => startServer('Deno')],
    ['workerd', 'a Durable Object of workerd', () => startWorkerd('./durable-worker.ts', { durable: true })],
  ] as const;

  test.for(servers.map((server) => [inEngine(server[0], `${server[1]} ${mountedTitle}`), ...server] as const))(
    '%s',
    { timeout: 180_000 },
    async ([, engine, , start], { skip }) => {
      const reason = whyNo(engine);
      if (reason) return skip(reason);
      const { ask, stop } = await start();
      closing.push(stop);
      await checkMounted(ask, () => ask('/open'));
    },
  );
});
