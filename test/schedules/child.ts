/*
 * A process for the tests of schedules: `node child.ts <store> <log> <options>`. It looks after one schedule that ticks each second, and
 * notes each end of a run. `<store>` is the path of an SQLite file, or the address of a PostgreSQL server. The options are JSON: the
 * `schema` in that server, and at which write of a schedule the process dies, before or after it is stored.
 */
import { appendFileSync } from 'node:fs';
import { createExecutor, defineAgent } from 'pawl';
import { postgresStore } from 'pawl/stores/postgres';
import { sqliteStore } from 'pawl/stores/sqlite';
import { reply, scriptedModel } from 'pawl/testing';
import type { ScheduleStore } from '../../src/store/schedules/port.ts';

const [place = '', log = '', given = ''] = process.argv.slice(2);
const { schema, dies } = JSON.parse(given) as {
  readonly schema?: string;
  readonly dies?: { readonly at: number; readonly isStored: boolean };
};

async function openStore() {
  if (schema === undefined) return sqliteStore({ path: place });
  const { Pool } = (await import('pg')).default;
  return postgresStore({ pool: new Pool({ connectionString: place, max: 4 }), schema });
}

const store = await openStore();
const die = (): Promise<never> => {
  process.kill(process.pid, 'SIGKILL');
  return new Promise(() => {});
};
let writes = 0;
const note: ScheduleStore['note'] = async (row, run) => {
  writes += 1;
  if (dies?.at === writes && !dies.isStored) await die();
  const isNoted = await store.schedules.note(row, run);
  if (dies?.at === writes && dies.isStored) await die();
  return isNoted;
};

const watched = { ...store, schedules: { ...store.schedules, note } };
const agent = defineAgent({ id: 'ticker', instructions: 'Tick.' });
const executor = createExecutor({
  models: { fast: scriptedModel(Array.from({ length: 500 }, () => reply('done'))) },
  agents: [agent],
  store: watched,
  defaults: { leaseMs: 1_000, dueMs: 250 },
  logger: { warn: () => {} },
  schedules: [{ id: 'tick', every: '1s', overlap: 'allow', start: () => ({ agent, invocation: { prompt: 'Tick.' } }) }],
  onOutcome: ({ runId, status }) => appendFileSync(log, `${runId} ${status}\n`),
});
await executor.recover({ follow: true });
