import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { RunResult } from 'pawl';
import { type PostgresStore, postgresStore } from 'pawl/stores/postgres';
import type pg from 'pg';
import type { PostgresServer } from '../fixtures/postgres-server.ts';
import { commandOf, type Runtime, runtimeEnvironment } from '../runtimes/runtimes.ts';
import { beginsIn, readLedger } from './ledger.ts';
import { type PostgresJob, postgresLifeOf } from './postgres-life.ts';
import { torture } from './random.ts';
import type { Death, Stop, Trial } from './trial.ts';

const worker = fileURLToPath(new URL('./postgres-worker.ts', import.meta.url));
const MAX_PROCESSES = 8;

export interface Place {
  readonly folder: string;
  readonly job: Omit<PostgresJob, 'failpoint'>;
  readonly pool: pg.Pool;
  readonly store: PostgresStore;
  close(): Promise<void>;
}

/** A folder and a schema for one run. */
export function newPlace(server: PostgresServer, runId = 'run-1'): Place {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-crash-'));
  const schema = server.freshSchema();
  const pool = server.pool({ max: 2 });
  const store = postgresStore({ pool, schema });
  const close = async () => {
    await store.close();
    await pool.end();
    rmSync(folder, { recursive: true, force: true });
  };
  return { folder, pool, store, close, job: { folder, runId, agent: 'twelve-tools', url: server.url, schema } };
}

export function startWorker(job: PostgresJob): ChildProcess {
  const [command = '', ...args] = [...commandOf(job.runtime ?? 'Node'), worker, JSON.stringify(job)];
  return spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: runtimeEnvironment });
}

/** All that a process says until it has ended. @param onWord called with each piece of it */
export async function ended(child: ChildProcess, onWord: (text: string) => void = () => {}): Promise<string> {
  let text = '';
  const hear = (piece: unknown) => {
    text += piece;
    onWord(String(piece));
  };
  child.stdout?.on('data', hear);
  child.stderr?.on('data', hear);
  await new Promise((resolve) => child.once('close', resolve));
  return text;
}

/** Runs a run to its end in as many processes as that takes: one for each stop, and more until it has ended. */
export async function runPostgresTrial(
  server: PostgresServer,
  stops: readonly Stop[],
  runtime: Runtime = 'Node',
): Promise<Trial> {
  const place = newPlace(server);
  const { folder, store } = place;
  const job = { ...place.job, runtime };
  try {
    const deaths: Death[] = [];
    let complaints = '';
    for (let life = 0; life < MAX_PROCESSES && !hasResult(folder); life++) {
      const stop = stops[life];
      // By default the process that continues after the last kill is this one, which has compiled all that it needs.
      const isHere = torture === 1 && life > 0 && stop === undefined && runtime === 'Node';
      complaints += await (isHere ? liveHere(job) : liveAndDie(job, stop));
      if (!hasResult(folder) && stop) deaths.push(await death(place, stop));
    }
    const left = await store.load(job.runId);
    const result = resultIn(folder);
    const rest = { integrity: 'ok', tookMs: 0, wrongs: [], complaints };
    return { agent: job.agent, deaths, result, ledger: readLedger(folder), left, ...rest };
  } finally {
    await place.close();
  }
}

async function liveHere(job: PostgresJob): Promise<string> {
  const life = postgresLifeOf(job, () => {});
  const ended = await life.live();
  await life.close();
  return ended;
}

async function liveAndDie(job: PostgresJob, stop: Stop | undefined): Promise<string> {
  const failpoint = stop && 'failpoint' in stop ? stop.failpoint : undefined;
  const child = startWorker({ ...job, failpoint });
  let isStopping = false;
  return ended(child, (text) => {
    if (!stop || !('signal' in stop) || isStopping || !text.includes(stop.from ?? 'started')) return;
    isStopping = true;
    setTimeout(() => child.kill(stop.signal), stop.afterMs);
  });
}

async function death({ folder, job, store, pool }: Place, stop: Stop): Promise<Death> {
  const ledger = readLedger(folder);
  // The server may still be at the last statement of a process that is dead already, or about to read it.
  const left = 'SELECT FROM pg_stat_activity WHERE application_name = $1';
  while ((await pool.query(left, [job.schema])).rowCount !== 0) await sleep(5);
  const record = await store.load(job.runId);
  return { stop, lines: ledger.length, record, integrity: 'ok', isMidRun: beginsIn(ledger).length > 0 };
}

const hasResult = (folder: string) => existsSync(join(folder, 'result.json'));

/** Paths differ from trial to trial; in what is compared they are all the same. */
function resultIn(folder: string): RunResult | undefined {
  if (!hasResult(folder)) return undefined;
  return JSON.parse(readFileSync(join(folder, 'result.json'), 'utf8').replaceAll(folder, '<folder>'));
}
