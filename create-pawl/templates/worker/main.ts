// npm run submit [order]: stores a run, and ends. A worker takes it up: npm start, as many as you like.

import { createExecutor } from 'pawl';
import { postgresStore } from 'pawl/stores/postgres';
import pg from 'pg';
import desk, { models } from './agent.ts';

const order = process.argv[2] ?? '7';
const pool = new pg.Pool({ connectionString: process.env.PAWL_STORE, max: 4 });
const executor = createExecutor({ agents: [desk], models, store: postgresStore({ pool }) });
// The order names the run: a repeated request finds the first one.
const run = await executor.start(
  desk,
  { runId: `refund-${order}`, prompt: `Refund order ${order}.` },
  { drive: 'later' },
);
console.log(`${run.runId}: ${run.accepted}`);
await executor.shutdown();
await pool.end();
