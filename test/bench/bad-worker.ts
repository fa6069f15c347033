import { createExecutor, memoryStore } from 'pawl';
import { fleetAgent, pausingModel } from './fleet-work.ts';
import { median } from './measure.ts';
import type { Row } from './report.ts';

const RUNS = 40;
const STEPS = 2;
const MODEL_MS = 50;

/** How much longer a fleet takes beside a worker that was deployed without its model: two workers, with and without it, by turns. */
export async function badWorkerRow(times: number): Promise<Row> {
  const extras: number[] = [];
  let ended = 0;
  for (let i = 0; i < times; i++) {
    const alone = await fleetSeconds(false);
    const beside = await fleetSeconds(true);
    extras.push(beside.seconds - alone.seconds);
    ended += beside.endedBadly;
  }
  const note = `${RUNS} runs of ${STEPS} steps, by one worker and by it beside the other, ${times} times by turns; ${ended} runs ended by it`;
  return { what: 'a fleet beside a badly deployed worker', value: median(extras), unit: 's', budget: 20, note };
}

/** Two workers on one store take up what was admitted; the bad one has no model for the tier of the agent. */
async function fleetSeconds(hasBad: boolean): Promise<{ readonly seconds: number; readonly endedBadly: number }> {
  const store = memoryStore();
  const common = { agents: [fleetAgent], store, logger: { warn: () => {} } };
  const bad = createExecutor({ ...common, models: () => undefined as never });
  const good = createExecutor({ ...common, models: { fast: pausingModel(STEPS, MODEL_MS) } });
  for (let i = 0; i < RUNS; i++) await good.start(fleetAgent, { runId: `r${i}`, prompt: 'Go.' }, { drive: 'later' });
  const startedAt = performance.now();
  // The bad one looks first.
  const badWorker = hasBad ? bad.work({ concurrency: 4 }) : undefined;
  while (badWorker && badWorker.stats().taken === 0) await pause();
  good.work({ concurrency: 4 });
  const outcomes = () => Promise.all(Array.from({ length: RUNS }, (_, i) => store.outcomes.find(`r${i}`)));
  let found = await outcomes();
  for (; found.includes(null); found = await outcomes()) await pause();
  const seconds = (performance.now() - startedAt) / 1_000;
  await Promise.all([bad.shutdown(), good.shutdown()]);
  return { seconds, endedBadly: found.filter((outcome) => outcome?.status !== 'ok').length };
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 10));
