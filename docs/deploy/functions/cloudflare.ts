// A Worker of Cloudflare with a cron (`[triggers] crons = ["* * * * *"]`) and a database behind Hyperdrive. It needs `nodejs_compat`.
import type { Executor } from 'pawl';
import { sliceBelow } from './slice.ts';

/** A cron of each minute may take 15 min. The next one finds the runs of this one owned, and takes others. */
const LIMIT_MS = 15 * 60_000;

/** An executor for one invocation: connections of an earlier one cannot be used again. */
export interface OpenExecutor {
  readonly executor: Executor;
  /** Ends its pool, for example `() => pool.end()`. */
  close(): Promise<void>;
}

/** The Worker: `export default workerOf((env) => …)`, with `new Pool({ connectionString: env.HYPERDRIVE.connectionString })`. */
export function workerOf<Env>(open: (env: Env) => OpenExecutor, limitMs: number = LIMIT_MS) {
  const work = async (env: Env) => {
    const { executor, close } = open(env);
    try {
      await executor.drive('due', sliceBelow(limitMs));
    } finally {
      await executor.shutdown();
      await close();
    }
  };
  return {
    scheduled(_controller: unknown, env: Env, context: { waitUntil(work: Promise<unknown>): void }): void {
      context.waitUntil(work(env));
    },
  };
}
