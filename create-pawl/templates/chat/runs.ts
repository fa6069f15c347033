// The executor of this process. Next loads this file more than once: the first copy makes it, the others take that one.
import { createExecutor } from 'pawl';
import { httpHandler, localOnly } from 'pawl/http';
import { sqliteStore } from 'pawl/stores/sqlite';
import desk, { models } from './agent.ts';

function open() {
  const executor = createExecutor({
    agents: [desk],
    models,
    store: sqliteStore({ path: process.env.RUNS_DB ?? 'runs.db' }),
    journal: true, // a page follows its run from any process
  });
  // Only pages of this computer. For others, look at a session or a token here: https and a login are yours.
  const authorize = localOnly({ callerId: 'you' });
  const handler = httpHandler(executor, { agents: { desk }, authorize, basePath: '/api' });
  return { executor, handler };
}

const kept = globalThis as { desk?: ReturnType<typeof open> };
kept.desk ??= open();
export const { executor, handler } = kept.desk;
