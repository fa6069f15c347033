// One process of a host, to be killed: node -C pawl-source worker.ts '<job as JSON>'
import type { Job } from './job.ts';
import { lifeOf } from './life.ts';

const life = lifeOf(JSON.parse(process.argv[2] ?? '') as Job);
process.on('SIGTERM', async () => {
  await life.leave();
  process.exit(0);
});
process.stdout.write('started\n');
process.stdout.write(`ended ${await life.live()}\n`);
