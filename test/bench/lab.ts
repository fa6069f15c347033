import { join } from 'node:path';
import { type Agent, createExecutor, defineAgent, defineTool, type Executor, memoryStore } from 'pawl';
import { exportRuns, importRuns, type RecordedRun, readRun, replay } from 'pawl/lab';
import { sqliteStore } from 'pawl/stores/sqlite';
import { inFolder, measured, median } from './measure.ts';
import { onPostgres } from './other-stores.ts';
import type { Part, Row } from './report.ts';
import { amount } from './report.ts';
import { askingModel, type BenchStore, checkEnded, hangingAfter, RESULT } from './workload.ts';

/** Steps of a run as many have them: 20 calls and the answer. */
const USUAL = 20;
const LONG = 3_000;
/** Where the long run is forked. */
const CUT = 2_000;

/** What a retry, a fork, a replay and a file of runs cost, beside the run itself. */
export async function labRows(isQuick: boolean): Promise<Part> {
  const times = isQuick ? 2 : 5;
  const long = isQuick ? 1_000 : LONG;
  const stored = await inFolder(async (folder) => {
    const store = sqliteStore({ path: join(folder, 'pawl.db') });
    const rows = await storedRows({ store, where: 'SQLite', times, steps: long });
    await store.close();
    return rows;
  });
  const onServer = await onPostgres(async (kind) => {
    const { store, close } = kind.store('');
    const rows = await storedRows({ store, where: 'PostgreSQL', times, steps: long });
    await close();
    return rows;
  });
  return { rows: [...(await replayRows(times, long)), ...stored, ...(onServer ?? [])], broken: [] };
}

const lookup = defineTool({
  name: 'lookup',
  description: 'Looks a piece up.',
  input: { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] },
  effect: 'read',
  execute: async () => RESULT,
});
const agent: Agent = defineAgent({ id: 'bench', instructions: 'Collect.', tools: [lookup], maxSteps: 2 * LONG });
const request = { prompt: 'Collect the pieces.' };

function executorOn(store: BenchStore, model: ReturnType<typeof askingModel>): Executor {
  return createExecutor({
    models: { fast: model },
    agents: [agent],
    store,
    retention: { records: '1h' },
    logger: { warn: () => {} },
  });
}

/** Runs of the usual length beside their replays, and the replay of a long one. */
async function replayRows(times: number, steps: number): Promise<Row[]> {
  const executor = executorOn(memoryStore(), askingModel(USUAL));
  const ran: number[] = [];
  const replayed: number[] = [];
  const walls: number[] = [];
  for (let time = 0; time <= times; time++) {
    const runs: RecordedRun[] = [];
    const work = await measured(async () => {
      for (let i = 0; i < 100; i++)
        checkEnded(await executor.run(agent, { ...request, runId: `run-${time}-${i}` }), USUAL);
    });
    for (let i = 0; i < 100; i++) runs.push(await readRun(executor, `run-${time}-${i}`));
    const again = await measured(async () => {
      for (const run of runs) checkSame(await replay(run, { agent }));
    });
    // The first turn warms up.
    if (time === 0) continue;
    ran.push(work.cpuMs);
    replayed.push(again.cpuMs);
    walls.push(again.wallMs);
  }
  const other = executorOn(memoryStore(), askingModel(steps));
  checkEnded(await other.run(agent, { ...request, runId: 'long' }), steps);
  const long = await readRun(other, 'long');
  const longWalls: number[] = [];
  for (let time = 0; time < times; time++)
    longWalls.push((await measured(async () => checkSame(await replay(long, { agent })))).wallMs);
  return [
    {
      what: `CPU of a baseline of ${USUAL + 1} steps, beside the run in memory`,
      value: median(replayed) / median(ran),
      unit: 'x',
      note: `100 runs: ${amount(median(ran), 'ms')}, replayed ${amount(median(replayed), 'ms')}`,
    },
    seconds(`100 baselines of ${USUAL + 1} steps`, median(walls), 2),
    seconds(`one baseline of ${steps + 1} steps`, median(longWalls), 3),
  ];
}

const seconds = (what: string, ms: number, budget: number): Row => ({
  ...{ what, value: ms / 1_000, unit: 's', budget },
  note: `${amount(ms, 'ms')}`,
});

function checkSame({ same }: { readonly same: boolean }): void {
  if (!same) throw new Error('a replay of the bench is not the recorded run');
}

interface Stored {
  readonly store: BenchStore;
  readonly where: string;
  readonly times: number;
  readonly steps: number;
}

/** A fork and a retry of a long run, and its way to a file and back, beside one save of its record. */
async function storedRows({ store, where, times, steps }: Stored): Promise<Row[]> {
  const at = Math.round((steps * CUT) / LONG);
  const executor = executorOn(store, askingModel(steps));
  checkEnded(await executor.run(agent, { ...request, runId: 'long' }), steps);
  const record = await store.load('long', { ended: true });
  if (!record) throw new Error('the record of a benchmark is gone');
  const hanging = executorOn(store, hangingAfter(0));
  const [saves, forks, retries, cpus]: [number[], number[], number[], number[]] = [[], [], [], []];
  for (let time = 0; time < times; time++) {
    const { outcome: _, ...open } = record;
    const copy = {
      ...open,
      meta: { ...open.meta, runId: `copy-${time}` },
      messages: open.messages.slice(0, 2 * at + 1),
    };
    saves.push((await measured(() => store.save(copy))).wallMs);
    const forked = await timed(() => hanging.fork('long', { at, runId: `fork-${time}` }));
    forks.push(forked.ms);
    cpus.push(forked.cpuMs);
    await forked.value.cancel('enough');
    await forked.value.result;
    const retried = await timed(() => hanging.retry(`fork-${time}`));
    retries.push(retried.ms);
    await retried.value.cancel('enough');
    await retried.value.result;
  }
  const lines: string[] = [];
  const out = await measured(async () => {
    for await (const line of exportRuns(executor, ['long'])) lines.push(line);
  });
  const back = await measured(() => importRuns(createExecutor({ store: memoryStore() }), lines));
  await hanging.shutdown();
  await executor.shutdown();
  const save = median(saves);
  const beside = (what: string, ms: number): Row => ({
    what: `${what}, beside one save of so many messages, ${where}`,
    value: ms / save,
    unit: 'x',
    note: `${amount(ms, 'ms')}, the save ${amount(save, 'ms')}`,
  });
  return [
    beside(`a fork at step ${at} of ${steps}`, median(forks)),
    {
      ...{ what: `a fork at step ${at} of ${steps}, ${where}`, value: median(forks), unit: 'ms', budget: 100 },
      note: `median of ${times}; ${amount(median(cpus), 'ms')} of CPU`,
    },
    beside(`a retry of a run of ${at} steps`, median(retries)),
    beside(`an export of ${steps} steps`, out.wallMs),
    ...(where === 'SQLite' ? [beside(`an import of ${steps} steps into memory`, back.wallMs)] : []),
  ];
}

async function timed<T>(
  work: () => Promise<T>,
): Promise<{ readonly value: T; readonly ms: number; readonly cpuMs: number }> {
  let value: T | undefined;
  const { wallMs: ms, cpuMs } = await measured(async () => {
    value = await work();
  });
  return { value: value as T, ms, cpuMs };
}
