// A plain Node server that runs agents: POST /runs starts one, GET /runs/<id>/events streams what happens in it, and
// SIGTERM leaves the runs that are under way for the next boot.
//
//   node docs/examples/server/server.ts            (PORT=8080, STORE=.pawl/server.db)
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createExecutor, type Executor, type Model } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { agent, model } from './agent.ts';

const MAX_BODY = 64 * 1024;

/** The requests of the server, on any executor. */
export function handler(executor: Executor) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    route(executor, request, response).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else
        send(response, error instanceof BadRequest ? 400 : 500, {
          error: error instanceof Error ? error.message : 'failed',
        });
    });
  };
}

async function route(executor: Executor, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname } = new URL(request.url ?? '/', 'http://localhost');
  const [, first, id, last] = pathname.split('/').map(decodeURIComponent);
  if (request.method === 'POST' && pathname === '/runs') return startRun(executor, request, response);
  if (request.method === 'GET' && first === 'runs' && id && last === 'events')
    return streamEvents(executor, id, response);
  if (request.method === 'GET' && first === 'runs' && id && !last) return showRun(executor, id, response);
  send(response, 404, { error: 'try POST /runs, GET /runs/<id> or GET /runs/<id>/events' });
}

class BadRequest extends Error {}

/** A client that sends the same `runId` again gets the same run: nothing is started twice. */
async function startRun(executor: Executor, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { prompt, runId } = await readJson(request);
  if (typeof prompt !== 'string' || prompt.trim() === '') throw new BadRequest('prompt must be a text');
  if (runId !== undefined && typeof runId !== 'string') throw new BadRequest('runId must be a text');
  const run = await executor.start(agent, { prompt, ...(runId ? { runId } : {}) });
  send(response, 202, { runId: run.runId });
}

async function showRun(executor: Executor, id: string, response: ServerResponse): Promise<void> {
  const run = executor.get(id);
  if (!run) return send(response, 404, { error: 'no run of this id is known here' });
  if (executor.run$(id)) return send(response, 200, { runId: id, status: 'live', ...executor.run$(id)?.get() });
  const { messages: _, ...result } = await run.result;
  send(response, 200, result);
}

/** Server-sent events; the client's `Last-Event-ID` says where it was when the connection broke. */
async function streamEvents(executor: Executor, id: string, response: ServerResponse): Promise<void> {
  const run = executor.get(id);
  if (!run?.actor) return send(response, 404, { error: 'no live run of this id' });
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  const after = Number(response.req.headers['last-event-id'] ?? 0) || 0;
  const events = run.events({ after });
  response.once('close', () => void events.return?.());
  for await (const event of events) {
    const isFree = response.write(`id: ${event.seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    if (!isFree) await new Promise((resolve) => response.once('drain', resolve).once('close', resolve));
  }
  response.end();
}

async function readJson(request: IncomingMessage): Promise<Record<string, unknown>> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) {
    text += chunk;
    if (text.length > MAX_BODY) throw new BadRequest('the body is too large');
  }
  try {
    return Object(JSON.parse(text));
  } catch {
    throw new BadRequest('the body must be JSON');
  }
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`);
}

/** Boots: what the last process left goes on. Listens on this machine only. */
export async function boot(fast: Model, { port, path }: { port: number; path: string }) {
  const executor = createExecutor({
    models: { fast },
    agents: [agent],
    checkpoints: sqliteStore({ path }),
    requireDurable: true,
  });
  const server = createServer(handler(executor));
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  // A store that cannot be read just now must not end the server: what was left goes on in a minute.
  const recover = () => executor.recover().catch((error: unknown) => console.error('recover', error));
  void recover();
  const sweep = setInterval(recover, 60_000).unref();
  server.once('close', () => clearInterval(sweep));
  return { executor, server };
}

if (import.meta.main) {
  const { executor, server } = await boot(model, {
    port: Number(process.env.PORT ?? 8080),
    path: process.env.STORE ?? '.pawl/server.db',
  });
  const address = server.address();
  console.log(`listening on http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`);
  // No new requests from the signal on; streams end with their runs.
  executor.shutdownOnSignals({ drainMs: 5_000, onSignal: () => void server.close() });
}
