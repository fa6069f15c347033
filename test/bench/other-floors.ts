import pg from 'pg';
import { callMessage, resultMessage } from './workload.ts';

/** What no runtime on this kind of store can go below: what a step adds made durable, and nothing else. */
export interface StepFloor {
  /** @param commits 2 = the call is recorded before it runs, as an effect that must not happen twice needs it */
  run(steps: number, commits: 1 | 2): Promise<void>;
  close(): Promise<void>;
}

/** A row in a transaction of its own, through one client. What the server computes counts for neither side. */
export async function postgresFloor(url: string, table: string): Promise<StepFloor> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`CREATE TABLE ${table} (id bigserial PRIMARY KEY, delta text NOT NULL)`);
  const insert = { name: 'insert', text: `INSERT INTO ${table} (delta) VALUES ($1)` };
  return {
    run: async (steps, commits) => {
      for (const delta of deltas(steps, commits)) await client.query({ ...insert, values: [delta] });
    },
    close: () => client.end(),
  };
}

function* deltas(steps: number, commits: 1 | 2): Generator<string> {
  for (let step = 0; step < steps; step++) {
    const call = callMessage(step);
    if (commits === 2) yield JSON.stringify(call);
    yield JSON.stringify([call, resultMessage(step)]);
  }
}
