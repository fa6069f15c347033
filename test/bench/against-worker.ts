// Three builds of Pawl in one process, by turns: against-worker.ts <JSON of a Comparison>. Prints Turns as JSON.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { inFolder, measured } from './measure.ts';
import { bench, checkEnded, type Parts } from './workload.ts';

/** The files of a build that its users import. */
export interface Build {
  readonly pawl: string;
  readonly sqlite: string;
}

interface Comparison {
  readonly store: 'memory' | 'sqlite';
  readonly rounds: number;
  /** This build, a copy of it, and an older one. */
  readonly builds: readonly [now: Build, again: Build, before: Build];
}

/** What a step of each build cost in each round, ms. */
export interface Turns {
  readonly now: readonly number[];
  readonly again: readonly number[];
  readonly before: readonly number[];
}

const RUNS = 5;
const STEPS = 200;
/** V8 has optimized what a step needs by then. */
const WARM_ROUNDS = 3;

const { store, rounds, builds } = JSON.parse(process.argv[2] ?? '') as Comparison;
const [now, again, before] = await Promise.all(builds.map(partsOf));
if (!now || !again || !before) throw new Error('three builds are compared');
const turns = { now: [] as number[], again: [] as number[], before: [] as number[] };
for (let round = -WARM_ROUNDS; round < rounds; round++) {
  // There and back: what a machine loses or gains during a round, all builds lose or gain.
  const there = [await stepOf(now), await stepOf(before), await stepOf(again)] as const;
  const back = [await stepOf(again), await stepOf(before), await stepOf(now)] as const;
  if (round < 0) continue;
  turns.now.push(there[0] + back[2]);
  turns.before.push(there[1] + back[1]);
  turns.again.push(there[2] + back[0]);
}
process.stdout.write(JSON.stringify(turns satisfies Turns));

async function partsOf({ pawl, sqlite }: Build): Promise<Parts> {
  return { ...(await import(pathToFileURL(pawl).href)), ...(await import(pathToFileURL(sqlite).href)) };
}

/** CPU of a step of new runs on a new store, ms. */
function stepOf(parts: Parts): Promise<number> {
  return inFolder(async (folder) => {
    const own = store === 'memory' ? { store: parts.memoryStore() } : { path: join(folder, 'pawl.db') };
    const { run, close } = bench({ ...own, steps: STEPS, parts });
    const { cpuMs } = await measured(async () => {
      for (let i = 0; i < RUNS; i++) checkEnded(await run(), STEPS);
      await close();
    });
    return cpuMs / (RUNS * STEPS);
  });
}
