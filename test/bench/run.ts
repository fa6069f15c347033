// npm run bench [-- --quick] [-- --json]: Pawl as it is built, against the floor, on this machine.
import { parseArgs } from 'node:util';
import { fleetRows } from './fleet.ts';
import { manyRunsRows } from './many-runs.ts';
import { memoryRows } from './memory.ts';
import { otherStoreRows } from './other-stores.ts';
import { type Broken, machine, type Part, print, type Report, type Row } from './report.ts';
import { restateRows } from './restate.ts';
import { startRows } from './start.ts';
import { stepRows } from './steps.ts';
import { streamRows } from './streams.ts';
import { studioRows } from './studio.ts';
import { webRows } from './web.ts';

const { values: flags } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, json: { type: 'boolean', default: false } },
});

const parts: readonly [string, (isQuick: boolean) => Promise<Part>][] = [
  ['durable steps', stepRows],
  ['streamed text', streamRows],
  ['files and PostgreSQL', otherStoreRows],
  ['many runs', manyRunsRows],
  ['memory', memoryRows],
  ['new processes', startRows],
  ['journal and readers', webRows],
  ['Restate', restateRows],
  ['Studio', studioRows],
  ['slices and fleets', fleetRows],
];

const rows: Row[] = [];
const broken: Broken[] = [];
for (const [name, measure] of parts) {
  if (!flags.json) console.error(`measuring ${name} …`);
  const part = await measure(flags.quick);
  rows.push(...part.rows);
  broken.push(...part.broken);
}
const report: Report = { machine: machine(), rows, broken };
if (flags.json) console.log(JSON.stringify(report, null, 2));
else print(report);
// A slow figure is a fact about a machine; a broken promise is a defect.
process.exitCode = broken.length > 0 ? 1 : 0;
