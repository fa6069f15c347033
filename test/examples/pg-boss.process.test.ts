import { postgresStore } from 'pawl/stores/postgres';
import { PgBoss } from 'pg-boss';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runsOnPgBoss } from '../../docs/examples/queues/pg-boss.ts';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { ended, QueuedRuns, uncutMessages } from './queued-runs.ts';

const server = postgresServer(['fsync=off']);
const runIds = Array.from({ length: 3 }, (_, i) => `run-${i}`);
const limits = { budgetMs: 30, graceMs: 1_000 };
const bosses: PgBoss[] = [];

async function startBoss(): Promise<PgBoss> {
  const boss = new PgBoss({ connectionString: server.url, schema: 'boss', max: 4, useListenNotify: true });
  boss.on('error', () => {});
  await boss.start();
  bosses.push(boss);
  return boss;
}

describe.skipIf(whyNoPostgres)('pg-boss', { timeout: 180_000 }, () => {
  beforeAll(() => startBoss(), 180_000);
  afterAll(() => Promise.all(bosses.map((boss) => boss.stop({ graceful: false }))));

  /** Two hosts on a database. @param meddle does something to the queue when the runs have begun */
  async function throughBoss(queue: string, meddle: (boss: PgBoss) => Promise<unknown>) {
    const [boss] = bosses as [PgBoss];
    const pool = server.pool({ max: 8 });
    const store = postgresStore({ pool, schema: server.freshSchema() });
    const runs = new QueuedRuns(store);
    const recipes = await Promise.all(
      [boss, await startBoss()].map((each) => runsOnPgBoss({ boss: each, queue, ...limits })),
    );
    const hosts = recipes.map((recipe) => ({ recipe, ...runs.host({ onDue: recipe.onDue }) }));
    const [{ executor, agent }] = hosts as [(typeof hosts)[number]];
    for (const runId of runIds) await executor.start(agent, { runId, prompt: 'Begin.' }, { drive: 'later' });
    await meddle(boss);
    for (const { recipe, executor } of hosts)
      await recipe.work(executor, { pollingIntervalSeconds: 0.5, localConcurrency: 3 });
    await ended(executor, runIds);
    await Promise.all(hosts.map(({ recipe }) => recipe.leave()));
    const uncut = await uncutMessages(store);
    for (const runId of runIds) expect(await executor.messages(runId), runId).toEqual(uncut);
    expect(runs.repeated()).toEqual([]);
    await Promise.all(hosts.map(({ executor }) => executor.shutdown()));
    return boss;
  }

  test('works on runs in slices, each a job; one job of a run waits at a time (engine 33)', async () => {
    const boss = await throughBoss('plain', async (each) => {
      for (const runId of runIds)
        await each.upsert('plain', { runId }, { singletonKey: runId, startAfter: new Date() });
      expect(await each.findJobs('plain')).toHaveLength(runIds.length);
    });
    const jobs = await boss.findJobs<{ runId: string }>('plain');
    expect(jobs.length).toBeGreaterThan(2 * runIds.length);
    expect(jobs.filter(({ state }) => state !== 'completed')).toEqual([]);
  });

  test('that delivers jobs twice, in another order or never: the same result (engine 33, 34)', async () => {
    const [never, ...others] = runIds.toReversed();
    await throughBoss('troubled', async (boss) => {
      await boss.deleteAllJobs('troubled');
      const twice = [...others, ...others].map((runId, i) => ({ data: { runId }, singletonKey: `${runId} ${i}` }));
      await boss.insert('troubled', twice);
      // The job that comes each minute: it finds the run whose job was lost.
      expect(await boss.send('troubled-due'), never).not.toBeNull();
    });
  });
});
