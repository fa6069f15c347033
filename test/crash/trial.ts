import { type ChildProcess, spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import type { RunCheckpoint, RunResult } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { commandOf, type Runtime, runtimeEnvironment } from '../runtimes/runtimes.ts';
import type { FleetJob, Job } from './job.ts';
import { beginsIn, type Line, readLedger } from './ledger.ts';
import { lifeOf } from './life.ts';
import { torture } from './random.ts';

/** How one process of a trial ends before its run does. */
export type Stop =
  | {
      readonly signal: 'SIGKILL' | 'SIGTERM';
      readonly afterMs: number;
      /** After the process began with the run (the default), or after its first call began. */
      readonly from?: 'started' | 'working';
    }
  | { readonly failpoint: NonNullable<Job['failpoint']>; readonly runtime?: Runtime }
  /** A command that runs the process, and meddles with it. */
  | { readonly under: readonly string[] };

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
  readonly agent: Job['agent'];
  /** The store was away in the first process: more than one step may have been unsaved. */
  readonly isLate?: boolean;
  readonly deaths: readonly Death[];
  readonly result: RunResult | undefined;
  readonly ledger: readonly Line[];
  /** What was left in the store at the end. */
  readonly left: RunCheckpoint | null;
  readonly integrity: string;
  /** From the start of the run to its end, in the process that ended it, ms. */
  readonly tookMs: number;
  /** What `judge` found wrong in the folder. */
  readonly wrongs: readonly string[];
  /** What workers printed to stderr. */
  readonly complaints: string;
}

const worker = fileURLToPath(new URL('./worker.ts', import.meta.url));
const fleet = fileURLToPath(new URL('./fleet.ts', import.meta.url));
const MAX_PROCESSES = 12;

export type RunJob = Omit<Job, 'folder' | 'failpoint'>;

/** What is done with the folder that a run lives in, before and after. */
export interface Around {
  readonly prepare: (folder: string) => void;
  /** Says what is wrong with what the run has left. */
  readonly judge: (folder: string) => string[];
}

const nothingAround: Around = { prepare: () => {}, judge: () => [] };

/** Runs a run to its end in as many processes as that takes: one for each stop, and more until it has ended. */
export async function runTrial(job: RunJob, stops: readonly Stop[], around = nothingAround): Promise<Trial> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-crash-'));
  try {
    around.prepare(folder);
    const trial = await inFolder(folder, job, stops);
    return { ...trial, agent: job.agent, isLate: job.late !== undefined, wrongs: around.judge(folder) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function inFolder(
  folder: string,
  job: RunJob,
  stops: readonly Stop[],
): Promise<Omit<Trial, 'agent' | 'isLate' | 'wrongs'>> {
  const deaths: Death[] = [];
  let complaints = '';
  let tookMs = 0;
  for (let process = 0; process < MAX_PROCESSES && !hasResult(folder); process++) {
    const stop = stops[process];
    const { failpoint, runtime = job.runtime } = stop && 'failpoint' in stop ? stop : {};
    const late = process === 0 ? job.late : undefined;
    const isHere = process > 0 && stop === undefined && mayEndHere(job);
    const life = isHere
      ? await liveHere({ ...job, late: undefined, folder })
      : await liveAndDie({ ...job, late, folder, failpoint, runtime }, stop);
    complaints += life.complaints;
    tookMs = life.tookMs;
    if (!hasResult(folder) && stop) deaths.push(await death(folder, job.runId, stop));
  }
  const { record, integrity } = await lookInto(folder, job.runId);
  return { deaths, result: resultIn(folder), ledger: readLedger(folder), left: record, integrity, tookMs, complaints };
}

/**
 * By default the process that continues after the last kill is this one, which has compiled all that it needs. Each of them is a process
 * that is started for it under torture, where it takes another runtime, or where its store lies.
 */
const mayEndHere = ({ runtime, lies }: RunJob) => torture === 1 && runtime === undefined && !lies;

/** One at a time: the survey finds its folder in the environment of its process. */
let lastHere: Promise<unknown> = Promise.resolve();

async function liveHere(job: Job): Promise<{ tookMs: number; complaints: string }> {
  const earlier = lastHere;
  const { promise, resolve } = Promise.withResolvers<void>();
  lastHere = promise;
  await earlier;
  try {
    const began = performance.now();
    await lifeOf(job, () => {}).live();
    return { tookMs: performance.now() - began, complaints: '' };
  } finally {
    resolve();
  }
}

/** One worker from its start to its end, by itself or by ours. */
async function liveAndDie(job: Job, stop: Stop | undefined): Promise<{ tookMs: number; complaints: string }> {
  const child = startWorker(job, stop && 'under' in stop ? stop.under : []);
  let complaints = '';
  child.stderr?.on('data', (text) => {
    complaints += text;
  });
  const heard = { started: 0, working: 0, ended: 0 };
  child.stdout?.on('data', (text) => {
    for (const word of ['started', 'working', 'ended'] as const) {
      if (!String(text).includes(word)) continue;
      heard[word] = performance.now();
      const isMoment = stop && 'signal' in stop && (stop.from ?? 'started') === word;
      if (isMoment) setTimeout(() => child.kill(stop.signal), stop.afterMs);
    }
  });
  await new Promise((resolve) => child.once('close', resolve));
  return { tookMs: heard.ended - heard.started, complaints };
}

export const startWorker = (job: Job, under: readonly string[] = []) =>
  startProcess([...under, ...commandOf(job.runtime ?? 'Node'), worker], job);
export const startFleet = (job: FleetJob) => startProcess([...commandOf('Node'), fleet], job);

function startProcess([command = '', ...args]: readonly string[], job: Job | FleetJob): ChildProcess {
  return spawn(command, [...args, JSON.stringify(job)], { stdio: ['ignore', 'pipe', 'pipe'], env: runtimeEnvironment });
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
  const store = sqliteStore({ path });
  const record = await store.load(runId);
  await store.close();
  const db = new DatabaseSync(path);
  const integrity = String(db.prepare('PRAGMA integrity_check').get()?.integrity_check);
  db.close();
  return { record, integrity };
}

const hasResult = (folder: string) => existsSync(join(folder, 'result.json'));

/** Paths differ from trial to trial; in what is compared they are all the same. */
function resultIn(folder: string): RunResult | undefined {
  if (!hasResult(folder)) return undefined;
  return JSON.parse(readFileSync(join(folder, 'result.json'), 'utf8').replaceAll(folder, '<folder>'));
}

export interface Undisturbed {
  readonly result: RunResult;
  readonly tookMs: number;
}

/** What the run is like when nobody kills it, and how long it takes by then; the first processes fill a compile cache. */
export async function calibrated(job: RunJob, around?: Around): Promise<Undisturbed> {
  const trials: Trial[] = [];
  for (let i = 0; i < (torture > 1 ? 3 : 2); i++) trials.push(await runTrial(job, [], around));
  const { result, complaints } = trials.at(-1) as Trial;
  if (result?.status !== 'ok') throw new Error(`the undisturbed run failed: ${JSON.stringify(result)} ${complaints}`);
  return { result, tookMs: Math.min(...trials.map((trial) => trial.tookMs)) };
}

/** One kill or two: after a third start without progress a run would rightly be parked. */
export function killsFrom(random: () => number, tookMs: number): Stop[] {
  // A busy machine delays the beginning most: three of four kills count from the first call.
  const kill = (): Stop => ({
    signal: 'SIGKILL',
    afterMs: random() * 0.9 * tookMs,
    from: random() < 0.25 ? 'started' : 'working',
  });
  return random() < 0.6 ? [kill(), kill()] : [kill()];
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
