import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadCheckpoint, type ModelResponse } from 'pawl/fan-out';
import { readJsonLines } from '../crash/json-lines.ts';
import { packageFlags } from '../toolchain/programs.ts';

/** What a worker is told. `naive`: it breaks a promise on purpose, so that a judge who does not see it is known to be blind. */
export interface KillJob {
  readonly folder: string;
  readonly path: string;
  readonly naive?: 'forgetful' | 'in-place' | undefined;
}

/** SIGKILL, so many ms after the process began, or after it first asked a model. */
export interface Kill {
  readonly from: 'started' | 'working';
  readonly afterMs: number;
}

export interface KillResult {
  readonly interrupted: boolean;
  readonly responses: readonly ModelResponse[];
}

export interface KillTrial {
  readonly result: KillResult | undefined;
  readonly kills: number;
  /** Kills at which some model had been asked and some was not done. */
  readonly midKills: number;
  readonly reads: number;
  readonly tookMs: number;
  /** What went against a promise. */
  readonly wrongs: readonly string[];
}

type Line =
  | { readonly event: 'asked'; readonly modelId: string; readonly turn: number; readonly pid: number }
  | { readonly event: 'published'; readonly title: string; readonly key: string };

const worker = fileURLToPath(new URL('./kill-worker.ts', import.meta.url));
const MAX_PROCESSES = 40;

/** Asks the four models in as many processes as it takes: one for each kill, and one that may end. */
export async function killTrial(kills: readonly Kill[], naive?: KillJob['naive']): Promise<KillTrial> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-fan-out-'));
  try {
    mkdirSync(join(folder, 'tree'));
    for (const name of ['a', 'b', 'c']) writeFileSync(join(folder, 'tree', `${name}.txt`), `${name}\n`.repeat(50));
    return await inFolder({ folder, path: join(folder, 'tree', '.pawl', 'ask.json'), naive }, kills);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function inFolder(job: KillJob, kills: readonly Kill[]): Promise<KillTrial> {
  const { folder, path } = job;
  const resultPath = join(folder, 'result.json');
  const reader = new Reader(path);
  const deaths: { readonly lines: number; readonly done: ReadonlySet<string> }[] = [];
  let tookMs = 0;
  for (let n = 0; n < MAX_PROCESSES && !existsSync(resultPath); n++) {
    const life = await live(job, kills[n]);
    tookMs = life.tookMs;
    if (existsSync(resultPath)) break;
    deaths.push({ lines: ledgerIn(folder).length, done: await doneIn(path) });
    if (life.complaint) {
      reader.wrongs.push(life.complaint);
      break;
    }
  }
  await reader.stop();
  const lines = ledgerIn(folder);
  const isMid = ({ lines, done }: (typeof deaths)[number]) => lines > 0 && done.size < 4;
  return {
    result: existsSync(resultPath) ? JSON.parse(readFileSync(resultPath, 'utf8')) : undefined,
    kills: deaths.length,
    midKills: deaths.filter(isMid).length,
    reads: reader.reads,
    tookMs,
    wrongs: [
      ...reader.wrongs,
      ...deaths.flatMap((death) => askedAfter(death, lines)),
      ...repeated(lines, deaths.length),
    ],
  };
}

/** One worker, from its start to its end or to our kill. */
async function live(job: KillJob, kill: Kill | undefined) {
  const args = [...packageFlags, worker, JSON.stringify(job)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let complaint = '';
  child.stderr.on('data', (text) => {
    complaint += text;
  });
  const heard = { started: 0, working: 0, ended: 0 };
  child.stdout.on('data', (text) => {
    for (const word of ['started', 'working', 'ended'] as const) {
      if (heard[word] > 0 || !String(text).includes(word)) continue;
      heard[word] = performance.now();
      if (kill?.from === word) setTimeout(() => child.kill('SIGKILL'), kill.afterMs);
    }
  });
  await new Promise((resolve) => child.once('close', resolve));
  return { tookMs: heard.ended - heard.working, complaint };
}

/** Reads the file over and over: whoever looks at it at any time must see a whole one. */
class Reader {
  readonly wrongs: string[] = [];
  reads = 0;
  #isOver = false;
  readonly #reading: Promise<void>;

  constructor(path: string) {
    this.#reading = this.#read(path);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#reading;
  }

  async #read(path: string): Promise<void> {
    while (!this.#isOver) {
      try {
        const found = await loadCheckpoint(path);
        if (found) this.#look(found.responses.map(({ modelId }) => modelId).join());
      } catch (error) {
        this.wrongs.push(`a reader saw: ${(error as Error).message.slice(0, 200)}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }

  #look(ids: string): void {
    this.reads += 1;
    const inOrder = ['quick', 'reader', 'writer', 'publisher'].filter((id) => ids.split(',').includes(id)).join();
    if (ids !== inOrder) this.wrongs.push(`the responses stand as ${ids}`);
  }
}

/** A process that died after the end left its answers: the next one returns them. */
async function doneIn(path: string): Promise<ReadonlySet<string>> {
  const load = (file: string) => loadCheckpoint(file).catch(() => null);
  const found = existsSync(path) ? await load(path) : await load(join(dirname(path), 'answers.json'));
  return new Set(found?.responses.filter(({ completed }) => completed).map(({ modelId }) => modelId));
}

/** A model that was completed when a process died must not have been asked by any later one. */
function askedAfter({ lines, done }: { lines: number; done: ReadonlySet<string> }, ledger: readonly Line[]): string[] {
  return ledger
    .slice(lines)
    .flatMap((line) => (line.event === 'asked' && done.has(line.modelId) ? [`${line.modelId} was asked again`] : []));
}

/** A turn is asked for again at most once a kill, and only the last one that there was; nothing is published under two keys. */
function repeated(ledger: readonly Line[], kills: number): string[] {
  const wrongs: string[] = [];
  const last = new Map<string, number>();
  for (const line of ledger) {
    if (line.event !== 'asked') continue;
    const before = last.get(line.modelId) ?? 0;
    if (line.turn < before - 1) wrongs.push(`${line.modelId} went back from turn ${before} to turn ${line.turn}`);
    last.set(line.modelId, line.turn);
  }
  const published = ledger.filter((line) => line.event === 'published');
  for (const title of new Set(published.map((line) => line.title))) {
    const keys = published.filter((line) => line.title === title).map((line) => line.key);
    if (new Set(keys).size > 1) wrongs.push(`${title} was published under ${new Set(keys).size} keys`);
    if (keys.length > kills + 1) wrongs.push(`${title} was published ${keys.length} times after ${kills} kills`);
  }
  return wrongs;
}

function ledgerIn(folder: string): Line[] {
  return readJsonLines(join(folder, 'ledger.jsonl'));
}
