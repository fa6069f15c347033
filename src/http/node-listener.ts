import type { IncomingMessage, ServerResponse } from 'node:http';
import { isObject } from '../values/json.ts';
import { noteAddress } from './connection.ts';

/**
 * A handler of web requests, as `httpHandler` returns one. Deno, Bun and Hono give it what they know of the connection as a second
 * argument: `localOnly` reads the address there.
 */
export type WebHandler = (request: Request, connection?: unknown) => Promise<Response>;

/** The request of a Node server: an `IncomingMessage`, also one to which Express has added its own. */
export interface NodeRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly rawHeaders: readonly string[];
}

/** The answer of a Node server: a `ServerResponse`. */
export interface NodeResponse {
  statusCode: number;
  readonly destroyed: boolean;
}

/**
 * Makes a listener for `node:http` and Express from a handler of web requests. A client that leaves aborts the request; a
 * client that reads slowly slows the answer down; an answer that breaks breaks the connection. In Express it works below a
 * path too (give the handler that `basePath`), and behind `express.json()`.
 * @example createServer(toNodeListener(httpHandler(executor, options))).listen(3000)
 */
export function toNodeListener(handler: WebHandler): (request: NodeRequest, response: NodeResponse) => void {
  return (request, response) => {
    const outgoing = response as ServerResponse;
    serve(handler, request as IncomingMessage, outgoing).catch((error: unknown) => {
      outgoing.destroy(error instanceof Error ? error : undefined);
    });
  };
}

async function serve(handler: WebHandler, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const left = new AbortController();
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) left.abort(new Error('the client has left'));
  });
  // A socket that breaks closes the answer too; without a listener the error would end the process.
  outgoing.on('error', () => left.abort(new Error('the client has left')));
  incoming.on('error', () => {});
  const request = requestOf(incoming, left.signal);
  if (!request) return refuse(outgoing);
  noteAddress(request, incoming.socket.remoteAddress);
  const answer = await handler(request);
  if (left.signal.aborted) return discard(answer);
  await send(answer, { incoming, outgoing });
  cutLate(incoming);
}

/** Longest time for the rest of a body whose request has its answer, ms. */
const REFUSED_BODY_MS = 10_000;

/** A client that sends the body of a refused request slowly, or never, holds a connection. */
function cutLate(incoming: IncomingMessage): void {
  if (incoming.complete || incoming.destroyed) return;
  const timer = setTimeout(() => incoming.destroy(), REFUSED_BODY_MS);
  timer.unref();
  for (const event of ['end', 'close'] as const) incoming.once(event, () => clearTimeout(timer));
  // Node reads what comes until then, and throws it away.
  incoming.resume();
}

type Body = ConstructorParameters<typeof Response>[0];

/** What Express adds to a request. */
type ExpressMessage = IncomingMessage & { readonly originalUrl?: unknown; readonly body?: unknown };

const withoutBody: readonly string[] = ['GET', 'HEAD'];

/** Undefined for a request that no web request can be: a hostile host, a path of another form, a method such as TRACE. */
function requestOf(incoming: ExpressMessage, signal: AbortSignal): Request | undefined {
  const url = urlOf(incoming);
  if (!url) return undefined;
  const { method = 'GET' } = incoming;
  try {
    const headers = headersOf(incoming);
    if (withoutBody.includes(method)) return new Request(url, { method, headers, signal });
    const body = bodyOf(incoming);
    // A body that was parsed and written again has another length.
    if (typeof body === 'string' || body instanceof Uint8Array) headers.delete('content-length');
    return new Request(url, { method, headers, signal, body, duplex: 'half' } as RequestInit);
  } catch {
    return undefined;
  }
}

/** Letters, digits and the few others that a host may have: no user, no path. */
const isHost = (host: string) => host.length <= 512 && /^[A-Za-z0-9._:[\]-]+$/.test(host);

function urlOf(incoming: ExpressMessage): URL | undefined {
  const { headers, socket, originalUrl, url = '/' } = incoming;
  const path = typeof originalUrl === 'string' ? originalUrl : url;
  const scheme = 'encrypted' in socket && socket.encrypted === true ? 'https' : 'http';
  const host = headers.host ?? (headers[':authority'] as string | undefined) ?? 'localhost';
  if (!isHost(host)) return undefined;
  // The absolute form names the host itself, which must be the same one.
  const text = path.startsWith('/') ? `${scheme}://${host}${path}` : path;
  if (!URL.canParse(text)) return undefined;
  const parsed = new URL(text);
  const isWeb = parsed.protocol === 'http:' || parsed.protocol === 'https:';
  const isNamed = parsed.username === '' && parsed.password === '';
  return isWeb && isNamed && parsed.host === new URL(`${parsed.protocol}//${host}`).host ? parsed : undefined;
}

function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = [rawHeaders[i], rawHeaders[i + 1]];
    // Pseudo headers of HTTP/2.
    if (!name.startsWith(':')) headers.append(name, value);
  }
  return headers;
}

/** Middleware before this one may have read the body: then what it made of it is the body. */
function bodyOf(incoming: ExpressMessage): Body {
  const { body } = incoming;
  if (typeof body === 'string' || body instanceof Uint8Array) return body as Body;
  if (isObject(body) || Array.isArray(body)) return JSON.stringify(body);
  return streamOf(incoming);
}

/** Reads no further than its reader. A body that is not read to its end does not end the connection by itself. */
function streamOf(incoming: IncomingMessage): ReadableStream<Uint8Array> {
  const chunks = incoming.iterator({ destroyOnReturn: false }) as AsyncIterator<Uint8Array>;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: () => void incoming.pause(),
    },
    { highWaterMark: 0 },
  );
}

function refuse(outgoing: ServerResponse): void {
  const problem = { type: 'urn:pawl:BAD_REQUEST', title: 'The request is not valid', status: 400, code: 'BAD_REQUEST' };
  outgoing.writeHead(400, { 'content-type': 'application/problem+json', connection: 'close' });
  outgoing.end(`${JSON.stringify(problem)}\n`);
}

function discard({ body }: Response): void {
  body?.cancel().catch(() => {});
}

async function send(
  answer: Response,
  { incoming, outgoing }: { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse },
): Promise<void> {
  outgoing.statusCode = answer.status;
  for (const [name, value] of answer.headers) {
    // HTTP/2 has no `connection`.
    const isSent = name !== 'set-cookie' && !(name === 'connection' && incoming.httpVersionMajor > 1);
    if (isSent) outgoing.setHeader(name, value);
  }
  const cookies = answer.headers.getSetCookie();
  if (cookies.length > 0) outgoing.setHeader('set-cookie', cookies);
  if (!answer.body || incoming.method === 'HEAD') {
    discard(answer);
    outgoing.end();
    return;
  }
  // A stream may be silent for long: the reader must know at once that it is open.
  outgoing.flushHeaders();
  await pipe(answer.body, outgoing);
}

/** Waits for a slow client. @throws what breaks the stream: the caller breaks the connection */
async function pipe(body: ReadableStream<Uint8Array>, outgoing: ServerResponse): Promise<void> {
  const reader = body.getReader();
  const leave = () => void reader.cancel(new Error('the client has left')).catch(() => {});
  if (outgoing.destroyed) return leave();
  outgoing.once('close', leave);
  // An answer may break while its client takes nothing of it.
  reader.closed.catch(() => outgoing.destroy());
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (outgoing.destroyed) return;
      if (!outgoing.write(value)) await waitForDrain(outgoing);
    }
    outgoing.end();
  } finally {
    outgoing.off('close', leave);
  }
}

function waitForDrain(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const over = () => {
      outgoing.off('drain', over);
      outgoing.off('close', over);
      resolve();
    };
    outgoing.once('drain', over);
    outgoing.once('close', over);
    if (outgoing.destroyed) over();
  });
}
