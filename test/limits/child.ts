/*
 * A process for the tests of limits: `node child.ts <address> <log> <options>`. It begins runs of one request each, works on all that are
 * due, and notes each request, each take of turns and each end, with the time. The options are JSON: the schema in the PostgreSQL server, the
 * limit, and the ids of its runs.
 */
import { appendFileSync } from 'node:fs';
import { createExecutor, defineAgent, rateLimits } from 'pawl';
import { postgresStore } from 'pawl/stores/postgres';
import { reply, scriptedModel } from 'pawl/testing';
import pg from 'pg';

const [address = '', log = '', given = ''] = process.argv.slice(2);
const { schema, requestsPerMinute, runIds } = JSON.parse(given) as {
  readonly schema: string;
  readonly requestsPerMinute: number;
  readonly runIds: readonly string[];
};

const note = (what: string) => appendFileSync(log, `${Date.now()} ${what}\n`);
const store = postgresStore({ pool: new pg.Pool({ connectionString: address, max: 4 }), schema });
const takeTurns: typeof store.limits.takeTurns = (...take) => {
  note(`take ${take[0].length}`);
  return store.limits.takeTurns(...take);
};
const watched = { ...store, limits: { takeTurns } };
const model = scriptedModel(
  Array.from({ length: 20_000 }, () => () => {
    note('request');
    return reply('done');
  }),
);
const agent = defineAgent({ id: 'asker', instructions: 'Ask.' });
const executor = createExecutor({
  models: { fast: model },
  agents: [agent],
  store: watched,
  defaults: { leaseMs: 1_500, dueMs: 100, waitLingerMs: 50 },
  logger: { warn: () => {} },
  limits: rateLimits({ store: watched, rules: [{ by: 'model', requestsPerMinute }] }),
  onOutcome: ({ runId, status }) => note(`ended ${runId} ${status}`),
});
for (const runId of runIds) await executor.start(agent, { prompt: 'Ask.', runId });
await executor.recover({ follow: true });
