import { type Agent, createExecutor, type Executor } from 'pawl';
import { postgresStore } from 'pawl/stores/postgres';
import pg from 'pg';
import { Failpoints, failingModel, failingStore } from './failpoints.ts';
import { heldModel } from './held-model.ts';
import type { Job } from './job.ts';
import { finish, noting } from './kept-promises.ts';
import { twelveTools } from './twelve-tools.ts';

/** One run, begun or gone on with; or, with `runs`, a boot that starts that many, and at a later one recovers them. */
export interface PostgresJob extends Job {
  readonly url: string;
  readonly schema: string;
  readonly runs?: number;
  readonly isFirstBoot?: boolean;
}

/** A host on PostgreSQL, in any process. */
export interface PostgresLife {
  readonly executor: Executor;
  readonly agent: Agent;
  /** Runs the run of a trial to its end, writes its result down, and says how it ended. */
  live(): Promise<string>;
  close(): Promise<void>;
}

/** @param say is called when the first call has begun; default: the parent */
export function postgresLifeOf(job: PostgresJob, say?: (line: string) => void): PostgresLife {
  const { folder, runId, url, schema } = job;
  const points = new Failpoints(job.failpoint, say);
  const pool = new pg.Pool({ connectionString: url, max: 6, application_name: schema });
  const storage = failingStore(postgresStore({ pool, schema }), points);
  const { agent, model } = twelveTools(folder, points);
  const executor = createExecutor({
    models: { fast: failingModel(job.isFirstBoot ? heldModel(model) : model, points) },
    agents: [agent],
    store: noting(storage, job),
    defaults: job.leaseMs === undefined ? {} : { leaseMs: job.leaseMs },
  });
  return {
    executor,
    agent,
    live: async () => {
      const result = await executor.run(agent, { runId, prompt: 'Begin.' });
      const code = result.error?.code;
      if (result.status !== 'interrupted' && code !== 'RUN_OWNED_ELSEWHERE') finish(folder, result);
      return code ?? result.status;
    },
    close: async () => {
      await storage.close();
      await pool.end();
    },
  };
}
