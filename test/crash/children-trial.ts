import { spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import type { RunCheckpoint, RunResult } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { packageFlags } from '../toolchain/programs.ts';
import type { AskedRun } from './children-agents.ts';
import { type ChildrenJob, treeLife } from './children-life.ts';
import { readJsonLines } from './json-lines.ts';
import { beginsIn, readLedger } from './ledger.ts';
import { untimed } from './promises.ts';
import { torture } from './random.ts';
import type { Stop } from './trial.ts';

interface Turn {
  readonly pid: number;
  readonly prompt: string;
  readonly turn: number;
}

/** What was there when a process had died, read from a copy of the store's files. */
interface Death {
  readonly pid: number;
  readonly records: readonly RunCheckpoint[];
  /** What the runs were asked that had ended. */
  readonly ended: readonly string[];
  readonly integrity: string;
  /** How much had been asked of models and of tools by then. */
  readonly turns: number;
  readonly calls: number;
}

export interface ChildrenTrial {
  readonly result: RunResult | undefined;
  readonly deaths: readonly Death[];
  readonly tookMs: number;
  readonly broken: readonly string[];
}

const MAX_PROCESSES = 12;
const worker = fileURLToPath(new URL('./children-worker.ts', import.meta.url));
const env = {
  ...process.env,
  NODE_NO_WARNINGS: '1',
};

/** Runs the tree to its end: one process dies by each stop, and as many follow as it takes. */
export async function runTree(stops: readonly Stop[], undisturbed?: RunResult): Promise<ChildrenTrial> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-children-'));
  try {
    const deaths: Death[] = [];
    let complaints = '';
    let tookMs = 0;
    for (let i = 0; i < MAX_PROCESSES && !existsSync(join(folder, 'result.json')); i++) {
      // By default the process that continues after the last kill is this one, which has compiled all that it needs.
      const isHere = torture === 1 && i > 0 && stops[i] === undefined;
      const life = await (isHere ? liveHere(folder) : liveAndDie(folder, stops[i]));
      complaints += life.complaints;
      tookMs = life.tookMs;
      if (!existsSync(join(folder, 'result.json'))) deaths.push(await look(folder, life.pid));
    }
    const path = join(folder, 'result.json');
    const result = existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as RunResult) : undefined;
    const broken = result ? await judge(folder, { deaths, result, undisturbed }) : [`it never ended: ${complaints}`];
    return { result, deaths, tookMs, broken };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function liveHere(folder: string) {
  const began = performance.now();
  await treeLife({ folder }, () => {});
  return { pid: process.pid, complaints: '', tookMs: performance.now() - began };
}

async function liveAndDie(folder: string, stop: Stop | undefined) {
  const job: ChildrenJob = { folder, ...(stop && 'failpoint' in stop ? { failpoint: stop.failpoint } : {}) };
  const child = spawn(process.execPath, [...packageFlags, worker, JSON.stringify(job)], { env });
  let complaints = '';
  child.stderr.on('data', (text) => {
    complaints += text;
  });
  const heard = { started: 0, working: 0, ended: 0 };
  child.stdout.on('data', (text) => {
    for (const word of ['started', 'working', 'ended'] as const) {
      if (!String(text).includes(word)) continue;
      heard[word] = performance.now();
      const isMoment = stop && 'signal' in stop && (stop.from ?? 'started') === word;
      if (isMoment) setTimeout(() => child.kill(stop.signal), stop.afterMs);
    }
  });
  await new Promise((resolve) => child.once('close', resolve));
  return { pid: child.pid ?? 0, complaints, tookMs: heard.ended - heard.started };
}

const turnsIn = (folder: string) => readJsonLines<Turn>(join(folder, 'turns.jsonl'));

/** Looks at a copy, so that the next process finds the files as the dead one left them. */
async function look(folder: string, pid: number): Promise<Death> {
  const copy = join(folder, 'copy');
  rmSync(copy, { recursive: true, force: true });
  mkdirSync(copy);
  for (const name of ['runs.db', 'runs.db-wal']) {
    if (existsSync(join(folder, name))) copyFileSync(join(folder, name), join(copy, name));
  }
  const path = join(copy, 'runs.db');
  const asked = { pid, turns: turnsIn(folder).length, calls: readLedger(folder).length };
  if (!existsSync(path)) return { ...asked, records: [], ended: [], integrity: 'ok' };
  const db = new DatabaseSync(path);
  const [runIds, endedIds] = [storedIn(db, 'runs'), storedIn(db, 'outcomes')];
  const store = sqliteStore({ path });
  const found = await Promise.all(runIds.map((runId) => store.load(runId)));
  await store.close();
  const integrity = String(db.prepare('PRAGMA integrity_check').get()?.integrity_check);
  db.close();
  const records = found.filter((record) => record !== null);
  const prompts = new Map(askedRuns(folder).map(({ prompt, runId }) => [runId, prompt]));
  const outcomes = endedIds.map((runId) => prompts.get(runId) ?? runId);
  const ended = [...outcomes, ...records.flatMap(({ outcome, meta }) => (outcome ? [meta.prompt] : []))];
  return { ...asked, records, ended, integrity };
}

const askedRuns = (folder: string): AskedRun[] => [
  { prompt: 'all', runId: 'run-1' },
  ...readJsonLines<AskedRun>(join(folder, 'runs.jsonl')),
];

/** The ids of the runs in a table. A process that died early has left no tables. */
function storedIn(db: DatabaseSync, table: 'runs' | 'outcomes'): string[] {
  if (!db.prepare('SELECT 1 FROM sqlite_master WHERE name = ?').get(table)) return [];
  return db
    .prepare(`SELECT run_id FROM ${table}`)
    .all()
    .map((row) => String(row.run_id));
}

interface Judged {
  readonly deaths: readonly Death[];
  readonly result: RunResult;
  readonly undisturbed: RunResult | undefined;
}

async function judge(folder: string, { deaths, result, undisturbed = result }: Judged): Promise<string[]> {
  const [turns, ledger] = [turnsIn(folder), readLedger(folder)];
  const broken = [...judgeResult(result, undisturbed)];
  for (const [i, death] of deaths.entries()) {
    const name = `death ${i + 1}`;
    if (death.integrity !== 'ok') broken.push(`the database is damaged after ${name}: ${death.integrity}`);
    const recorded = new Set(death.records.flatMap(recordedTurns));
    for (const { prompt, turn } of turns.slice(death.turns)) {
      if (recorded.has(`${prompt} ${turn}`))
        broken.push(`a recorded turn was asked for again after ${name}: ${prompt} ${turn}`);
      if (death.ended.includes(prompt)) broken.push(`a run that had ended was run again after ${name}: ${prompt}`);
    }
    const recordedCalls = new Set(death.records.flatMap(answeredCalls));
    for (const { runId, callId } of beginsIn(ledger.slice(death.calls))) {
      const call = `${runId}:${callId}`;
      if (recordedCalls.has(call)) broken.push(`a recorded call ran again after ${name}: ${call}`);
    }
  }
  for (const [key, lines] of Map.groupBy(beginsIn(ledger), (line) => line.key)) {
    if (lines[0]?.effect === 'once' && lines.length > 1) broken.push(`a once call began ${lines.length} times: ${key}`);
    const attempts = lines.map(({ attempt }) => attempt);
    if (lines[0]?.effect === 'idempotent' && attempts.some((attempt, i) => attempt <= (attempts[i - 1] ?? 0))) {
      broken.push(`attempts were counted wrongly: ${key} ${attempts}`);
    }
  }
  for (const [prompt, asked] of Map.groupBy(askedRuns(folder), (asked) => asked.prompt)) {
    const runIds = new Set(asked.map(({ runId }) => runId));
    if (runIds.size > 1) broken.push(`a child was begun beside that of the tree: ${prompt} ${[...runIds]}`);
  }
  const left = (await look(folder, 0)).records.map(({ meta }) => meta.runId);
  if (left.length > 0) broken.push(`records are left: ${left}`);
  return broken;
}

/** Of an answer that is given again the messages are not. */
function judgeResult({ messages, ...result }: RunResult, { messages: expected, ...whole }: RunResult): string[] {
  const isSame =
    isDeepStrictEqual(result, whole) &&
    (messages.length === 0 || isDeepStrictEqual(untimed(messages), untimed(expected)));
  return isSame ? [] : [`the result differs: ${JSON.stringify({ ...result, messages })}`];
}

function recordedTurns({ meta, iteration, openStep }: RunCheckpoint): string[] {
  return Array.from({ length: iteration + (openStep ? 1 : 0) }, (_, turn) => `${meta.prompt} ${turn}`);
}

function answeredCalls({ meta, messages, openStep }: RunCheckpoint): string[] {
  const inOpenStep = openStep?.calls.filter(({ state }) => state === 'done').map(({ callId }) => callId) ?? [];
  const answered = messages.flatMap((message) =>
    message.role === 'tool'
      ? message.content.flatMap((part) => (part.type === 'tool-result' ? [part.toolCallId] : []))
      : [],
  );
  return [...answered, ...inOpenStep].map((callId) => `${meta.runId}:${callId}`);
}
