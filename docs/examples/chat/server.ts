// A chat on one SQLite file: `node build.ts` once, then `node server.ts`. End it with kill -9 as often as you like.
//
// PORT=8080, CHAT=<folder> for another place than .pawl/chat
import { mkdirSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createExecutor } from 'pawl';
import { httpHandler, localOnly, toNodeListener } from 'pawl/http';
import { sqliteStore } from 'pawl/stores/sqlite';
import { mailAgent } from './agent.ts';
import { pretendModel } from './model.ts';

const folder = process.env.CHAT ?? '.pawl/chat';
mkdirSync(folder, { recursive: true });

const agent = mailAgent(`${folder}/outbox.jsonl`);
const executor = createExecutor({
  models: { fast: pretendModel() }, // a model of the AI SDK in its place
  agents: [agent],
  store: sqliteStore({ path: `${folder}/chat.db` }),
  requireDurable: true,
  journal: true,
});

const api = httpHandler(executor, {
  basePath: '/api',
  agents: { mails: agent },
  // All who use this machine. With users of your own: (request) => ({ callerId: userOf(request) }), or null.
  authorize: localOnly({ callerId: 'you' }),
});

const listener = toNodeListener(api);
const files = new Map([
  ['/', { type: 'text/html', path: new URL('page/index.html', import.meta.url) }],
  ['/style.css', { type: 'text/css', path: new URL('page/style.css', import.meta.url) }],
  ['/page.js', { type: 'text/javascript', path: `${folder}/page.js` }],
]);

function sendFile(request: IncomingMessage, response: ServerResponse): void {
  const file = files.get((request.url ?? '/').split('?')[0] ?? '/');
  if (!file) return void response.writeHead(404).end();
  response.setHeader('content-type', `${file.type}; charset=utf-8`);
  response.setHeader('content-security-policy', "default-src 'self'; frame-ancestors 'none'; base-uri 'none'");
  response.setHeader('cache-control', 'no-cache');
  response.end(readFileSync(file.path));
}

const server = createServer((request, response) => {
  if (request.url?.startsWith('/api/')) listener(request, response);
  else sendFile(request, response);
});

// Takes up what the process before this one left, and from then on what becomes due.
await executor.recover();
server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => {
  const address = server.address();
  console.log(`listening on http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`);
});
executor.shutdownOnSignals({ drainMs: 5_000, onSignal: () => void server.close() });
