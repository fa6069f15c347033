// What a step costs without tracing, with tracing and no provider, and with one, by turns: tracing-worker.ts <rounds>.
import { memoryStore } from 'pawl';
import { measured } from './measure.ts';
import { tracings } from './tracings.ts';
import { bench, checkEnded } from './workload.ts';

/** CPU of a step in each round, ms. */
export interface TracingTurns {
  readonly none: readonly number[];
  readonly idle: readonly number[];
  readonly recording: readonly number[];
}

const RUNS = 10;
const STEPS = 200;
/** V8 has optimized what a step needs by then. */
const WARM_ROUNDS = 3;

const rounds = Number(process.argv[2]);
const turns = { none: [] as number[], idle: [] as number[], recording: [] as number[] };
const kinds = ['none', 'idle', 'recording'] as const;
for (let round = -WARM_ROUNDS; round < rounds; round++) {
  // There and back: what a machine loses or gains during a round, all kinds lose or gain.
  const costs = { none: 0, idle: 0, recording: 0 };
  for (const kind of [...kinds, ...kinds.toReversed()]) costs[kind] += (await stepOf(kind)) / 2;
  if (round >= 0) for (const kind of kinds) turns[kind].push(costs[kind]);
}
process.stdout.write(JSON.stringify(turns satisfies TracingTurns));
process.exit();

async function stepOf(kind: keyof TracingTurns): Promise<number> {
  const { run, close } = bench({ store: memoryStore(), steps: STEPS, tracing: tracings[kind]?.() });
  const { cpuMs } = await measured(async () => {
    for (let i = 0; i < RUNS; i++) checkEnded(await run(), STEPS);
    await close();
  });
  return cpuMs / (RUNS * STEPS);
}
