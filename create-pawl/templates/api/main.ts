import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { createExecutor } from 'pawl';
import { healthHandler, httpHandler, localOnly } from 'pawl/http';
import { sqliteStore } from 'pawl/stores/sqlite';
import { studioHandler } from 'pawl/studio';
import desk, { models } from './agent.ts';

const executor = createExecutor({
  agents: [desk],
  models,
  store: sqliteStore({ path: process.env.RUNS_DB ?? 'runs.db' }),
  journal: true, // readers of events may come later, and from another process
});
executor.shutdownOnSignals();
await executor.recover(); // continues what the last process left

// Only programs of this computer. For others, look at a session or a token here: https and a login are yours.
const authorize = localOnly({ callerId: 'you' });
const api = httpHandler(executor, { agents: { desk }, authorize, basePath: '/api' });
const studio = studioHandler(executor, { authorize, write: true, basePath: '/studio' });
const health = healthHandler(executor);

const app = new Hono()
  .get('/', (context) =>
    context.text('POST /api/runs { "agent": "desk", "prompt": "Refund order 7." }, and open /studio/\n'),
  )
  .all('/api/*', (context) => api(context.req.raw))
  .all('/studio/*', (context) => studio(context.req.raw))
  .get('/healthz', (context) => health(context.req.raw))
  .get('/readyz', (context) => health(context.req.raw));
const port = Number(process.env.PORT ?? 3000);
serve({ fetch: app.fetch, port, hostname: '127.0.0.1' }, (address) => console.log(`http://127.0.0.1:${address.port}/`));
