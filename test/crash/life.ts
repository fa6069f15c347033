import { join } from 'node:path';
import { createExecutor } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { naiveStore } from '../fixtures/naive-store.ts';
import { Failpoints, failingModel, failingStore, refusingStore } from './failpoints.ts';
import type { Job } from './job.ts';
import { finish, noting } from './kept-promises.ts';
import { pipeline } from './pipeline-agent.ts';
import { survey } from './survey-agent.ts';
import { twelveTools } from './twelve-tools.ts';

/** One host with the run of a trial, in any process. */
export interface Life {
  /** Runs the run to its end, writes its result down, and says how it ended. */
  live(): Promise<string>;
  /** Leaves the run to the next host. */
  leave(): Promise<void>;
}

const agents = { survey, pipeline, 'twelve-tools': twelveTools } as const;

/** Opens the store of a trial, and makes a host for its run. @param say is called when the first call has begun; default: the parent */
export function lifeOf(job: Job, say?: (line: string) => void): Life {
  const { folder, runId } = job;
  const points = new Failpoints(job.failpoint, say);
  const storage = sqliteStore({ path: join(folder, 'runs.db') });
  const { agent, model, prompt } = { prompt: 'Begin.', ...agents[job.agent](folder, points) };
  const store = job.lies
    ? naiveStore(storage, { lies: job.lies })
    : failingStore(refusingStore(storage, job.late), points);
  const executor = createExecutor({
    models: { fast: failingModel(model, points) },
    agents: [agent],
    store: noting(store, job),
    defaults: job.leaseMs === undefined ? {} : { leaseMs: job.leaseMs },
  });
  return {
    live: async () => {
      const result = await executor.run(agent, { runId, prompt });
      const code = result.error?.code;
      if (result.status !== 'interrupted' && code !== 'RUN_OWNED_ELSEWHERE') finish(folder, result);
      // The naive store has writes under way that no process knows of; it is not closed, as after a kill.
      if (!job.lies) await storage.close();
      return code ?? result.status;
    },
    leave: async () => {
      await executor.shutdown();
      await storage.close();
    },
  };
}
