import { type ChildProcess, spawn } from 'node:child_process';
import { cpus } from 'node:os';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { createExecutor, memoryStore } from 'pawl';
import { postgresStore } from 'pawl/stores/postgres';
import { reply, scriptedModel, testClock } from 'pawl/testing';
import pg from 'pg';
import { PostgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { passOnErrors } from '../fixtures/processes.ts';
import { badWorkerRow } from './bad-worker.ts';
import { dueListRows } from './due-list.ts';
import { fleetAgent } from './fleet-work.ts';
import { measured, median } from './measure.ts';
import type { Part, Row } from './report.ts';
import { askingModel } from './workload.ts';

const worker = fileURLToPath(new URL('./fleet-worker.ts', import.meta.url));
const STEPS = 20;

/** What a run costs in slices, and what many processes on one PostgreSQL do. */
export async function fleetRows(isQuick: boolean): Promise<Part> {
  const rows = [await slicesRow(isQuick ? 3 : 7), await badWorkerRow(isQuick ? 1 : 7)];
  if (whyNoPostgres) {
    console.error(`PostgreSQL is not measured: ${whyNoPostgres}`);
    rows.push(...(await dueListRows(undefined)));
  } else rows.push(...(await onServer(isQuick)));
  return { rows, broken: [] };
}

/** The same run of 600 steps, whole and in slices of 5 s of the test clock, by turns. */
async function slicesRow(times: number): Promise<Row> {
  const extras: number[] = [];
  let slices = 0;
  for (let i = 0; i < times; i++) {
    const whole = await measured(() => longRun(Number.POSITIVE_INFINITY));
    const sliced = await measured(async () => {
      slices = await longRun(5_000);
    });
    extras.push((sliced.cpuMs - whole.cpuMs) / slices);
  }
  const note = `more CPU than without slices: ${slices} slices of 5 s, 600 steps, a transcript of up to 1.5 MB`;
  return { what: 'a slice', value: median(extras), unit: 'ms', budget: 15, note };
}

/** @returns how many slices the run took */
async function longRun(budgetMs: number): Promise<number> {
  const clock = testClock(1_700_000_000_000);
  const asked = askingModel(600);
  const model = {
    ...asked,
    doStream: async (options: Parameters<typeof asked.doStream>[0]) => {
      await new Promise<void>((resolve) => clock.setTimeout(resolve, 1_000));
      return asked.doStream(options);
    },
  };
  const executor = createExecutor({
    ...{ models: { fast: model }, agents: [fleetAgent], store: memoryStore({ clock }), clock },
    defaults: { maxRuntimeMs: 1e9 },
  });
  await executor.start(fleetAgent, { runId: 'r', prompt: 'Collect the pieces.' }, { drive: 'later' });
  for (let slices = 1; ; slices++) {
    let isOver = false;
    const driving = executor.drive('r', { budgetMs }).finally(() => {
      isOver = true;
    });
    while (!isOver) await clock.advance(1_000);
    if ((await driving).state === 'ended') return slices;
  }
}

async function onServer(isQuick: boolean): Promise<Row[]> {
  const server = new PostgresServer([]);
  try {
    await server.create();
    const runs = isQuick ? 60 : 200;
    return [
      ...(await processRows(server, { runs, modelMs: 5, counts: [2, 4, 8] })),
      ...(await processRows(server, { runs, modelMs: 100, counts: [2] })),
      await idleRow(server),
      ...(await dueListRows(server)),
    ];
  } finally {
    await server.destroy();
  }
}

interface Fleet {
  readonly stepsPerSecond: number;
  readonly commitsPerStep: number;
  /** Of all processors, also for the server and everything else on the machine; 0 to 1. */
  readonly busy: number;
}

interface FleetWork {
  readonly runs: number;
  /** How long a model call takes. */
  readonly modelMs: number;
}

/** The same runs by one process and by more. Short model calls show what the machine can do, long ones what places add. */
async function processRows(
  server: PostgresServer,
  { counts, ...work }: FleetWork & { readonly counts: readonly number[] },
): Promise<Row[]> {
  const { runs, modelMs } = work;
  const one = await fleetOf(1, { server, ...work });
  const rows: Row[] = [];
  for (const count of counts) {
    const many = await fleetOf(count, { server, ...work });
    const rates = [many, one].map(({ stepsPerSecond }) => stepsPerSecond.toFixed(0)).join(' to ');
    const shares = [many, one].map(({ busy }) => `${(100 * busy).toFixed(0)} %`).join(' to ');
    const note = `${rates} steps/s, ${runs} runs of ${STEPS} steps; processors ${shares} busy, server included`;
    const value = many.stepsPerSecond / one.stepsPerSecond;
    // Short model calls keep all cores busy: more processes add nothing then, and must not take much either.
    rows.push({
      what: `${count} processes to one, model calls of ${modelMs} ms`,
      value,
      unit: 'x',
      budget: modelMs > 5 ? 1.7 : 1,
      isFloor: true,
      note,
    });
    if (modelMs > 5) continue;
    const what = `commits a step, ${count} processes`;
    rows.push({
      what,
      value: many.commitsPerStep,
      unit: 'x',
      budget: 0.5,
      note: 'transactions that write, by their ids',
    });
  }
  return rows;
}

async function fleetOf(
  count: number,
  { server, runs, modelMs }: FleetWork & { readonly server: PostgresServer },
): Promise<Fleet> {
  const schema = server.freshSchema();
  await admit(server, schema, runs);
  const processes = Array.from({ length: count }, () => spawnWorker(server.url, schema, modelMs));
  const lines = processes.map((process) => linesOf(process));
  await Promise.all(lines.map(({ ready }) => ready));
  const before = await commitsOf(server);
  const startedAt = performance.now();
  const timesBefore = processorTimes();
  for (const { stdin } of processes) stdin?.write('go\n');
  while (lines.reduce((sum, { ended }) => sum + ended(), 0) < runs)
    await new Promise((resolve) => setTimeout(resolve, 10));
  const seconds = (performance.now() - startedAt) / 1_000;
  const busy = busyBetween(timesBefore, processorTimes());
  for (const { stdin } of processes) stdin?.end('end\n');
  await Promise.all(processes.map((process) => new Promise((resolve) => process.once('exit', resolve))));
  // The second look has an id as well.
  const commits = (await commitsOf(server)) - before - 1;
  return { stepsPerSecond: (runs * STEPS) / seconds, commitsPerStep: commits / (runs * STEPS), busy };
}

interface Times {
  readonly idle: number;
  readonly all: number;
}

/** Of all processors since the machine began, ms. */
function processorTimes(): Times {
  const times = cpus().map((each) => each.times);
  const all = times.flatMap((each) => Object.values(each)).reduce((sum, ms) => sum + ms, 0);
  return { idle: times.reduce((sum, { idle }) => sum + idle, 0), all };
}

function busyBetween(before: Times, after: Times): number {
  return 1 - (after.idle - before.idle) / Math.max(1, after.all - before.all);
}

async function admit(server: PostgresServer, schema: string, runs: number): Promise<void> {
  const pool = server.pool();
  const store = postgresStore({ pool, schema });
  const executor = createExecutor({
    models: { fast: scriptedModel([reply('no')]) },
    agents: [fleetAgent],
    store,
  });
  for (let i = 0; i < runs; i++) {
    const run = { runId: `run-${i}`, prompt: 'Collect the pieces.' };
    const { accepted, error } = await executor.start(fleetAgent, run, { drive: 'later' });
    if (accepted !== 'started') throw new Error(`a run was not admitted: ${accepted} ${error?.message}`);
  }
  await executor.shutdown();
  await store.close();
}

function spawnWorker(url: string, schema: string, modelMs: number): ChildProcess {
  return passOnErrors(
    spawn(process.execPath, [worker, url, schema, String(STEPS), String(modelMs)], { stdio: 'pipe' }),
  );
}

function linesOf(process: ChildProcess) {
  let count = 0;
  const ready = Promise.withResolvers<void>();
  process.once('exit', (code) => code && ready.reject(new Error(`a worker exited with ${code}`)));
  createInterface({ input: process.stdout as NodeJS.ReadableStream }).on('line', (line) => {
    if (line === 'ready') ready.resolve();
    else if (line.startsWith('ok ')) count += 1;
    else throw new Error(`a worker said: ${line}`);
  });
  return { ready: ready.promise, ended: () => count };
}

/** How many transactions have written so far: only those get an id, and are a commit in the log of the server. */
async function commitsOf({ url }: PostgresServer): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query('SELECT pg_current_xact_id()::text AS id');
  await client.end();
  return Number(rows[0]?.id);
}

/** What a worker does that has nothing to do. */
async function idleRow(server: PostgresServer): Promise<Row> {
  const pool = server.pool();
  const store = postgresStore({ pool, schema: server.freshSchema() });
  const executor = createExecutor({ models: { fast: scriptedModel([]) }, agents: [fleetAgent], store });
  const worker = executor.work({ dueMs: 10 });
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  const before = worker.stats().polls;
  const cost = await measured(() => new Promise((resolve) => setTimeout(resolve, 5_000)));
  const polls = worker.stats().polls - before;
  await executor.shutdown();
  await store.close();
  const note = `${polls} polls in 5 s; a worker polls once a second`;
  return { what: 'CPU of a poll of an idle worker', value: cost.cpuMs / polls, unit: 'ms', budget: 2, note };
}
