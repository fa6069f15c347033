import { type ChildProcess, spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import type { RunCheckpoint, RunResult } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import type { Job } from './job.ts';
import { beginsIn, type Line, readLedger } from './ledger.ts';

/** How one process of a trial ends before its run does. */
export type Stop =
  | { readonly signal: 'SIGKILL' | 'SIGTERM'; readonly afterMs: number }
  | { readonly failpoint: NonNullable<Job['failpoint']> };

/** What was there right after a process had died, the store read from a copy of its files. */
export interface Death {
  readonly stop: Stop;
  /** How many lines the ledger had. */
  readonly lines: number;
  readonly record: RunCheckpoint | null;
  readonly integrity: string;
  /** Whether some call had begun, and the run had not ended. */
  readonly isMidRun: boolean;
}

export interface Trial {
  readonly deaths: readonly Death[];
  readonly result: RunResult | undefined;
  readonly ledger: readonly Line[];
  /** What was left in the store at the end. */
  readonly left: RunCheckpoint | null;
  readonly integrity: string;
  /** From the start of the run to its end, in the process that ended it, ms. */
  readonly tookMs: number;
  /** What workers printed to stderr. */
  readonly complaints: string;
}

const worker = fileURLToPath(new URL('./worker.ts', import.meta.url));
const sources = new URL('./sources.ts', import.meta.url).href;
const cache = join(tmpdir(), 'pawl-crash-compile-cache');
const MAX_PROCESSES = 12;

/**
 * Runs a run to its end in as many processes as that takes: one for each stop, and more until it has ended.
 * @param prepare fills the folder that the run lives in
 */
export async function runTrial(
  job: Omit<Job, 'folder' | 'failpoint'>,
  stops: readonly Stop[],
  prepare: (folder: string) => void = () => {},
): Promise<Trial> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-crash-'));
  try {
    prepare(folder);
    return await inFolder(folder, job, stops);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function inFolder(
  folder: string,
  job: Omit<Job, 'folder' | 'failpoint'>,
  stops: readonly Stop[],
): Promise<Trial> {
  const deaths: Death[] = [];
  let complaints = '';
  let tookMs = 0;
  for (let process = 0; process < MAX_PROCESSES && !hasResult(folder); process++) {
    const stop = stops[process];
    const failpoint = stop && 'failpoint' in stop ? stop.failpoint : undefined;
    const life = await liveAndDie({ ...job, folder, failpoint }, stop);
    complaints += life.complaints;
    tookMs = life.tookMs;
    if (!hasResult(folder) && stop) deaths.push(await death(folder, job.runId, stop));
  }
  const { record, integrity } = await lookInto(folder, job.runId);
  return { deaths, result: resultIn(folder), ledger: readLedger(folder), left: record, integrity, tookMs, complaints };
}

/** One worker from its start to its end, by itself or by ours. */
async function liveAndDie(job: Job, stop: Stop | undefined): Promise<{ tookMs: number; complaints: string }> {
  const child = startWorker(job);
  let startedAt = 0;
  let endedAt = 0;
  let complaints = '';
  child.stderr?.on('data', (text) => {
    complaints += text;
  });
  child.stdout?.on('data', (text) => {
    if (String(text).includes('ended')) endedAt = performance.now();
    if (startedAt > 0) return;
    startedAt = performance.now();
    if (stop && 'signal' in stop) setTimeout(() => child.kill(stop.signal), stop.afterMs);
  });
  await new Promise((resolve) => child.once('close', resolve));
  return { tookMs: endedAt - startedAt, complaints };
}

export function startWorker(job: Job): ChildProcess {
  return spawn(process.execPath, ['--import', sources, worker, JSON.stringify(job)], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NODE_COMPILE_CACHE: cache, NODE_NO_WARNINGS: '1' },
  });
}

async function death(folder: string, runId: string, stop: Stop): Promise<Death> {
  const ledger = readLedger(folder);
  const found = await lookInto(folder, runId);
  return { stop, lines: ledger.length, ...found, isMidRun: beginsIn(ledger).length > 0 };
}

/** Looks at a copy, so that the next worker finds the files as the dead one left them, its log included. */
async function lookInto(folder: string, runId: string): Promise<{ record: RunCheckpoint | null; integrity: string }> {
  const copy = join(folder, 'copy');
  rmSync(copy, { recursive: true, force: true });
  mkdirSync(copy);
  for (const name of ['runs.db', 'runs.db-wal']) {
    if (existsSync(join(folder, name))) copyFileSync(join(folder, name), join(copy, name));
  }
  const path = join(copy, 'runs.db');
  if (!existsSync(path)) return { record: null, integrity: 'ok' };
  const db = new DatabaseSync(path);
  const integrity = String(db.prepare('PRAGMA integrity_check').get()?.integrity_check);
  db.close();
  const store = sqliteStore({ path });
  const record = await store.load(runId);
  await store.close();
  return { record, integrity };
}

const hasResult = (folder: string) => existsSync(join(folder, 'result.json'));

function resultIn(folder: string): RunResult | undefined {
  return hasResult(folder) ? JSON.parse(readFileSync(join(folder, 'result.json'), 'utf8')) : undefined;
}

export interface Undisturbed {
  readonly result: RunResult;
  readonly tookMs: number;
}

/** What the run is like when nobody kills it, and how long it takes by then; the first processes fill a compile cache. */
export async function calibrated(
  job: Omit<Job, 'folder' | 'failpoint'>,
  prepare?: (folder: string) => void,
): Promise<Undisturbed> {
  const trials: Trial[] = [];
  for (let i = 0; i < 3; i++) trials.push(await runTrial(job, [], prepare));
  const { result, complaints } = trials.at(-1) as Trial;
  if (result?.status !== 'ok') throw new Error(`the undisturbed run failed: ${JSON.stringify(result)} ${complaints}`);
  return { result, tookMs: Math.min(...trials.map((trial) => trial.tookMs)) };
}

/** At most two trials at a time: more would only make them wait for each other. */
export async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  while (busy >= 2) await new Promise<void>((resolve) => waiting.push(resolve));
  busy += 1;
  try {
    return await work();
  } finally {
    busy -= 1;
    waiting.shift()?.();
  }
}

let busy = 0;
const waiting: (() => void)[] = [];
