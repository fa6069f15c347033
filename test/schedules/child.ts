/*
 * A process for the tests of schedules: `node child.ts <store> <log> <until>`. It looks after one schedule that ticks each second, and
 * notes each run that it works on. `<store>` is the path of an SQLite file, or the connection of a PostgreSQL server.
 */
import { appendFileSync } from 'node:fs';
import { createExecutor, defineAgent } from '../../src/index.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { reply, scriptedModel } from '../../src/testing/index.ts';

const [place = '', log = '', schema = ''] = process.argv.slice(2);

async function openStore() {
  if (schema === '') return sqliteStore({ path: place });
  const { Pool } = (await import('pg')).default;
  return postgresStore({ pool: new Pool({ connectionString: place, max: 4 }) as never, schema });
}

const agent = defineAgent({ id: 'ticker', instructions: 'Tick.' });
const model = scriptedModel(Array.from({ length: 500 }, () => reply('done')));
const executor = createExecutor({
  models: { fast: model },
  agents: [agent],
  store: await openStore(),
  defaults: { leaseMs: 2_000, dueMs: 200 },
  logger: { warn: () => {} },
  schedules: [
    {
      id: 'tick',
      every: '1s',
      overlap: 'allow',
      start: () => ({ agent, invocation: { prompt: 'Tick.' } }),
    },
  ],
  onOutcome: ({ runId, status }) => appendFileSync(log, `${runId} ${status}\n`),
});
await executor.recover({ follow: true });
