// A plain Node server that runs agents: POST /runs starts one, GET /runs/<id>/events streams what happens in it, and
// SIGTERM leaves the runs that are under way for the next boot.
//
// In a project that has installed pawl (Node runs no TypeScript below node_modules, so copy the folder first):
//
//   npm pkg set type=module
//   cp -r node_modules/pawl/docs/examples/server .
//   node server/server.ts
//   curl -d '{"prompt":"Count to 5.","runId":"first"}' -H 'content-type: application/json' http://127.0.0.1:8080/runs
//   curl http://127.0.0.1:8080/runs/first/events
//
// PORT=8080, STORE=.pawl/server.db, CALLERS=alice=<token>,bob=<token> (absent: one caller without a token)
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createExecutor, type Executor, type Model, type Run } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { agent, model } from './agent.ts';
import {
  type Callers,
  callerOf,
  callersFrom,
  checkSource,
  defaultLimits,
  type Limits,
  Places,
  Refusal,
  readJson,
  scopedId,
} from './walls.ts';

const MAX_PROMPT = 20_000;

interface Server {
  readonly executor: Executor;
  readonly callers: Callers;
  readonly limits: Limits;
  readonly runs: Places;
  readonly streams: Places;
}

/** One request of a caller who is known. */
interface Asked {
  readonly server: Server;
  readonly caller: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** The requests of the server, on any executor. */
export function handler(executor: Executor, { callers = callersFrom(''), limits = defaultLimits } = {}) {
  const runs = new Places(limits.runs, 'runs');
  const streams = new Places(limits.streams, 'streams');
  const server: Server = { executor, callers, limits, runs, streams };
  return (request: IncomingMessage, response: ServerResponse): void => {
    route(server, request, response).catch((error: unknown) => {
      if (response.headersSent) return response.destroy();
      const refusal = error instanceof Refusal ? error : new Refusal(500, 'FAILED', 'the server failed');
      // What is left of a body that was refused is not read.
      if (!request.complete) response.setHeader('connection', 'close');
      send(response, refusal.status, { error: { code: refusal.code, message: refusal.message } });
    });
  };
}

async function route(server: Server, request: IncomingMessage, response: ServerResponse): Promise<void> {
  checkSource(request);
  const caller = callerOf(request, server.callers);
  const asked: Asked = { server, caller, request, response };
  const [path = ''] = (request.url ?? '').split('?');
  const [, first, id, last, ...more] = path.split('/');
  if (first === 'runs' && more.length === 0) {
    if (request.method === 'POST' && id === undefined) return startRun(asked);
    if (request.method === 'GET' && id && last === 'events') return streamEvents(asked, id);
    if (request.method === 'GET' && id && last === undefined) return showRun(asked, id);
  }
  throw new Refusal(404, 'NOT_FOUND', 'try POST /runs, GET /runs/<id> or GET /runs/<id>/events');
}

/** A caller that sends the same request again gets the same run: nothing is started twice. */
async function startRun({ server, caller, request, response }: Asked): Promise<void> {
  const { prompt, runId: id = crypto.randomUUID(), ...more } = await readJson(request, server.limits);
  const [unknown] = Object.keys(more);
  if (unknown !== undefined) throw new Refusal(400, 'WRONG_BODY', 'the body has prompt and runId, and nothing else');
  if (typeof prompt !== 'string' || prompt.trim() === '' || prompt.length > MAX_PROMPT) {
    throw new Refusal(400, 'WRONG_PROMPT', `prompt must be a text of 1 to ${MAX_PROMPT} characters`);
  }
  const runId = scopedId(caller, id);
  // A run that is at work already has its place.
  const giveBack = server.executor.run$(runId) ? () => {} : server.runs.take(caller);
  const run = await server.executor.start(agent, { prompt, runId, callerId: caller }).catch((error: unknown) => {
    giveBack();
    throw error;
  });
  if (run.accepted === 'started' || run.accepted === 'resumed') void run.result.then(giveBack);
  else giveBack();
  if (run.accepted === 'refused') throw refusalOf(run);
  if (run.accepted !== 'ended') return send(response, 202, { runId: id, accepted: run.accepted });
  const { messages: _, ...result } = await run.result;
  send(response, 200, { ...result, runId: id, accepted: 'ended' });
}

/** Why a run was not begun, in the words of HTTP. */
function refusalOf({ error }: Run): Refusal {
  const { code = 'FAILED' } = error ?? {};
  if (code === 'RUN_ID_CONFLICT') return new Refusal(409, code, 'this runId is a run of another request');
  if (code === 'RUN_PARKED') return new Refusal(409, code, 'this run was set aside, and waits for a person');
  if (code === 'INVALID_RUN_ID') return new Refusal(400, code, 'this runId cannot be used');
  if (code === 'BUDGET_EXCEEDED') return new Refusal(429, code, 'your budget is used up');
  return new Refusal(503, code, 'this run cannot begin just now: send it again later');
}

async function showRun({ server: { executor }, caller, response }: Asked, id: string): Promise<void> {
  const runId = scopedId(caller, id);
  const run = executor.get(runId);
  if (!run) throw new Refusal(404, 'NOT_FOUND', 'no run of this id is known here');
  const summary = executor.run$(runId)?.get();
  if (summary) return send(response, 200, { status: 'live', ...summary, runId: id });
  const { messages: _, ...result } = await run.result;
  send(response, 200, { ...result, runId: id });
}

/** Server-sent events; the client's `Last-Event-ID` says where it was when the connection broke. */
async function streamEvents({ server, caller, response }: Asked, id: string): Promise<void> {
  const run = server.executor.get(scopedId(caller, id));
  if (!run?.actor) throw new Refusal(404, 'NOT_FOUND', 'no live run of this id');
  const giveBack = server.streams.take(caller);
  response.once('close', giveBack);
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

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(`${JSON.stringify(body)}\n`);
}

/** Boots: continues what the last process left. Listens on this machine only. */
export async function boot(fast: Model, options: { port: number; path: string; callers?: Callers; limits?: Limits }) {
  const executor = createExecutor({
    models: { fast },
    agents: [agent],
    checkpoints: sqliteStore({ path: options.path }),
    requireDurable: true,
  });
  const server = createServer({ requestTimeout: 10_000 }, handler(executor, options));
  server.maxConnections = 500;
  await new Promise<void>((resolve) => server.listen(options.port, '127.0.0.1', resolve));
  // A store that cannot be read just now must not end the server: what was left continues in a minute.
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
    callers: callersFrom(process.env.CALLERS ?? ''),
  });
  const address = server.address();
  console.log(`listening on http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`);
  // No new requests from the signal on; streams end with their runs.
  executor.shutdownOnSignals({ drainMs: 5_000, onSignal: () => void server.close() });
}
