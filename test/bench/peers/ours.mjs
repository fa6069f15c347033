// The loop on Pawl, or its floor: ours.mjs <folder> <steps> <pawl|floor>. Prints JSON.
import { join } from 'node:path';
import { Floor } from '../floor.ts';
import { bench, checkEnded } from '../workload.ts';
import { costOf } from './cost.mjs';

const [folder, count, side] = process.argv.slice(2);
const steps = Number(count);
if (side === 'floor') {
  const floor = new Floor(join(folder, 'floor.db'));
  const cost = await costOf(steps, async () => floor.run(steps, 1));
  const durable = 'a row with both messages in SQLite, synced to the disk; no model, no tool';
  process.stdout.write(JSON.stringify({ ...cost, durable }));
} else {
  const { run, close } = bench({ path: join(folder, 'pawl.db'), steps });
  const cost = await costOf(steps, async () => checkEnded(await run(), steps));
  await close();
  const durable = 'both messages and the head in SQLite, in one commit synced to the disk, before the next step acts';
  process.stdout.write(JSON.stringify({ ...cost, durable }));
}
