// A loop of an agent on DBOS: dbos.mjs <folder> <steps> <url of PostgreSQL>. Prints JSON.
import { DBOS } from '@dbos-inc/dbos-sdk';
import pg from 'pg';
import { callMessage, resultMessage } from '../workload.ts';
import { costOf } from './cost.mjs';

const [, count, systemDatabaseUrl] = process.argv.slice(2);
const steps = Number(count);
DBOS.setConfig({ name: 'bench', systemDatabaseUrl, runAdminServer: false, logLevel: 'error' });
const loop = DBOS.registerWorkflow(
  async () => {
    const messages = [];
    for (let step = 0; step < steps; step++) {
      messages.push(await DBOS.runStep(async () => callMessage(step), { name: 'model' }));
      messages.push(await DBOS.runStep(async () => resultMessage(step), { name: 'tool' }));
    }
    return messages.length;
  },
  { name: 'loop' },
);
await DBOS.launch();
const cost = await costOf(steps, async () => {
  const length = await loop();
  if (length !== 2 * steps) throw new Error(`${length} messages`);
});
const client = new pg.Client({ connectionString: systemDatabaseUrl });
await client.connect();
const { rows } = await client.query(
  "SELECT current_setting('fsync') = 'on' AND current_setting('synchronous_commit') = 'on' AS synced",
);
await client.end();
const synced = rows[0].synced ? 'synced to the disk' : 'not synced to the disk';
const durable = `a row in PostgreSQL after the model and one after the tool, each before the next step; ${synced}`;
process.stdout.write(JSON.stringify({ ...cost, durable }), () => process.exit());
