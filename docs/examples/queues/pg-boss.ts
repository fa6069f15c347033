// Runs on pg-boss (12.30): a job names a run, and working on it is one slice. Give `onDue` to createExecutor, then call `work`.
import type { Executor } from 'pawl';
import type { PgBoss, WorkOptions } from 'pg-boss';

export interface PgBossOptions {
  readonly boss: PgBoss;
  readonly queue?: string;
  readonly budgetMs?: number;
  readonly graceMs?: number;
}

/** Makes the queues of the runs. The boss is started. */
export async function runsOnPgBoss({ boss, queue = 'pawl', budgetMs = 60_000, graceMs = 30_000 }: PgBossOptions) {
  const leaving = new AbortController();
  const limits = { budgetMs, graceMs, signal: leaving.signal };
  const due = `${queue}-due`;
  const expireInSeconds = Math.ceil((budgetMs + graceMs) / 1_000) + 60;
  // Pawl counts the starts of a run, and parks it: pg-boss must never give up a job. `short`: one job of a run waits.
  const retries = { retryLimit: 2 ** 31 - 1, retryDelay: 1, retryBackoff: true, retryDelayMax: 60 };
  const options = { policy: 'short', ...retries, expireInSeconds, deleteAfterSeconds: 60, notify: true };
  for (const name of [queue, due]) await boss.createQueue(name, options);

  const job = (runId: string, at: number) => ({ singletonKey: runId, startAfter: new Date(at) });
  /** A job of this run that waits for a later time starts earlier. */
  const onDue = async (runId: string, at: number): Promise<void> => {
    await boss.upsert(queue, { runId }, job(runId, at));
  };
  const drive = async (executor: Executor, runId: string): Promise<void> => {
    const { state, wakeAt } = await executor.drive(runId, limits);
    if (state === 'more') await onDue(runId, Date.now());
    // This leaves a job that starts earlier. A run without a time waits for a person: the answer calls onDue.
    else if (state !== 'ended' && wakeAt !== undefined) await boss.send(queue, { runId }, job(runId, wakeAt));
  };
  return {
    onDue,
    /** Takes jobs. The job of each minute finds the runs whose own job was lost. */
    work: async (executor: Executor, options: WorkOptions = {}): Promise<void> => {
      await boss.work<{ runId: string }>(queue, { ...options, batchSize: 1 }, async (jobs) => {
        for (const { data } of jobs) await drive(executor, data.runId);
      });
      await boss.work(due, async () => {
        if ((await executor.drive('due', limits)).state === 'more') await boss.send(due);
      });
      await boss.schedule(due, '* * * * *');
    },
    /** Ends the slices of this process: calls under way have `graceMs`. Then stop the boss. */
    leave: async (): Promise<void> => {
      leaving.abort();
      await Promise.all([queue, due].map((name) => boss.offWork(name, { wait: true })));
    },
  };
}
