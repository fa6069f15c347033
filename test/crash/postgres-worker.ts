// One process of a host on PostgreSQL, to be killed: node -C pawl-source postgres-worker.ts '<job as JSON>'
import { type PostgresJob, postgresLifeOf } from './postgres-life.ts';

const job = JSON.parse(process.argv[2] ?? '') as PostgresJob;
const { runs = 0 } = job;
const { executor, agent, live, close } = postgresLifeOf(job);

process.stdout.write('started\n');
if (runs === 0) process.stdout.write(`ended ${await live()}\n`);
else if (job.isFirstBoot) await start();
else await recover();
await close();

async function start(): Promise<void> {
  const ids = Array.from({ length: runs }, (_, i) => `run-${i}`);
  await Promise.all(ids.map((id) => executor.start(agent, { runId: id, prompt: 'Begin.' })));
  process.stdout.write('all begun\n');
}

async function recover(): Promise<void> {
  const { resumed } = await executor.recover();
  const results = await Promise.all(resumed.map((run) => executor.get(run.runId)?.result));
  process.stdout.write(
    `ended ${results.every((result) => result?.status === 'ok') ? 'ok' : JSON.stringify(results)}\n`,
  );
}
