import { existsSync, mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { ListedWait, RunCheckpoint } from '../../index.ts';
import { sqliteStore } from '../../store/sqlite/index.ts';
import type { CliCommand } from '../command.ts';
import { allWaits } from '../commands/waits/waiting-command.ts';
import { controlExecutor } from '../open/control-executor.ts';
import { openExistingStore } from '../open/open-store.ts';
import { findWaiting, pidOf } from '../open/stored-runs.ts';
import { codeFile, packagePath } from '../own-package.ts';
import { Interruption } from '../ui/ctrl-c.ts';
import { exitCodes, Failure } from '../ui/failure.ts';
import { type CallLine, historiesOf, readLines, recordedCalls, repeatedCalls, underWay } from './call-journal.ts';
import { PawlProcess, type ProgressLine } from './child-process.ts';
import { type DemoApproval, type DemoFacts, type Kill, Narrator } from './narrator.ts';

const RUN_ID = 'demo';
/** Long enough to watch, and to kill in the middle of a call. */
const PAUSE_MS = 250;
const POLL_MS = 5;

/** Runs `pawl demo`: a run is killed twice, waits for an approval without a process, and completes nevertheless. */
export const demoCommand: CliCommand = async ({ args, output }) => {
  new Interruption(output);
  const stage = setUp();
  const narrator = new Narrator(output, { isSilent: args.json, isVerbose: args.verbose });
  narrator.opens(stage);

  const run = ['run', stage.agent, stage.docs, '--run-id', RUN_ID];
  const halfway = await struck({ stage, narrator, number: 1, args: run, isMoment: isHalfway(stage) });
  const rest = await restAtApproval(stage, narrator);
  const approval = await approveWait(stage, narrator, rest);
  const resume = ['resume', RUN_ID];
  const publishing = await struck({ stage, narrator, number: 4, args: resume, isMoment: isPublished(stage) });
  const last = await finishRun(stage, narrator);
  const kills = [halfway, publishing];
  const pids = [halfway, rest, publishing, last].map(({ pid }) => pid);
  const recordings = [halfway, rest, publishing].map(({ record }) => recordedCalls(record));
  const histories = historiesOf(readLines(stage.journal), recordings);
  const once = new Set(kills.flatMap(({ record }) => onceCalls(record)));
  const repeated = repeatedCalls(histories, pids, once);
  const facts: DemoFacts = { stage, pids, kills, approval, histories, repeated, once, ...last.end };
  if (args.json) output.printJson(documentOf(facts), 2);
  else narrator.concludes(facts);
  return last.end.status === 'ok' && repeated.length === 0 ? exitCodes.ok : exitCodes.failed;
};

/** The calls of an open step that must not run twice. */
function onceCalls({ openStep }: RunCheckpoint): string[] {
  const calls = openStep?.calls.filter(({ effect, state }) => effect === 'once' && state === 'started') ?? [];
  return calls.map(({ callId }) => callId);
}

/** The files of a demo. */
interface Stage {
  readonly folder: string;
  readonly store: string;
  readonly journal: string;
  readonly report: string;
  readonly docs: string;
  readonly files: number;
  readonly agent: string;
  readonly options: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

function setUp(): Stage {
  const docs = packagePath('docs');
  const agent = fileURLToPath(codeFile('docs/examples/survey/agent'));
  if (!existsSync(docs) || !existsSync(agent)) {
    throw new Failure(`the documents of this package are missing (${docs}); install it again`);
  }
  const folder = mkdtempSync(join(tmpdir(), 'pawl-demo-'));
  const store = join(folder, 'runs.db');
  const output = join(folder, RUN_ID);
  return {
    folder,
    store,
    journal: join(output, 'calls.jsonl'),
    report: join(output, 'report.md'),
    docs,
    files: readdirSync(docs, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).length,
    agent,
    options: ['--store', store, '--json'],
    env: {
      PAWL_STATE_HOME: join(folder, 'state'),
      SURVEY_OUT: folder,
      SURVEY_PAUSE_MS: String(PAUSE_MS),
      SURVEY_APPROVAL: '1',
    },
  };
}

/** Whether it is time to kill, by the journal so far. */
type Moment = (lines: readonly CallLine[]) => boolean;

/** About half of the files have notes, and the next note is being written. */
function isHalfway({ files }: Stage): Moment {
  const isNote = ({ tool }: CallLine) => tool === 'add_note';
  return (lines) => {
    const notes = lines.filter(isNote).filter(({ event }) => event === 'finished').length;
    return notes >= files * 0.4 && underWay(lines).some(isNote);
  };
}

/** The report is written, but its call has not returned: its result is not recorded. */
function isPublished({ report }: Stage): Moment {
  return (lines) => underWay(lines).some(({ tool }) => tool === 'publish_report') && existsSync(report);
}

interface Strike {
  readonly stage: Stage;
  readonly narrator: Narrator;
  readonly number: number;
  readonly args: readonly string[];
  readonly isMoment: Moment;
}

/** A process that works on the run until it is killed during a call. */
async function struck({ stage, narrator, number, args, isMoment }: Strike): Promise<Kill> {
  const child = new PawlProcess([...args, ...stage.options], stage.env, (line) => narrator.hears(number, line));
  narrator.begins(number, child.pid);
  await awaitMoment(child, stage, isMoment);
  await child.kill();
  const cutOff = underWay(readLines(stage.journal)).filter(({ pid }) => pid === child.pid);
  const kill = { pid: child.pid, cutOff, record: await loadRecord(stage.store) };
  narrator.tellKill(number, kill);
  return kill;
}

/** Freezes the process at its moment. */
async function awaitMoment(child: PawlProcess, { journal }: Stage, isMoment: Moment): Promise<void> {
  for (;;) {
    if (isMoment(readLines(journal))) {
      // On a busy machine the call might return before the kill.
      child.freeze();
      await sleep(POLL_MS);
      if (isMoment(readLines(journal))) return;
      child.thaw();
    }
    if (child.isOver) {
      const complaint = await child.ended;
      throw broken(`a process ended before it could be killed: ${complaint}`);
    }
    await sleep(POLL_MS);
  }
}

async function loadRecord(path: string): Promise<RunCheckpoint> {
  const store = sqliteStore({ path });
  const record = await store.load(RUN_ID);
  await store.close();
  if (!record) throw broken(`the run left no record in ${path}`);
  return record;
}

interface Last {
  readonly pid: number;
  readonly end: { readonly status: string; readonly answer: string };
}

/** The process that completes the run. */
async function finishRun(stage: Stage, narrator: Narrator): Promise<Last> {
  const { pid, last, complaints } = await resumeKilled(stage, narrator, 5);
  if (last?.type !== 'run.ended') throw broken(`the last process did not finish the run: ${complaints}`);
  return { pid, end: { status: last.status ?? '', answer: last.output ?? '' } };
}

interface Resumed {
  readonly pid: number;
  readonly last: ProgressLine | undefined;
  readonly complaints: string;
}

/** A process that resumes the run, and ends by itself. */
async function resumeKilled(stage: Stage, narrator: Narrator, number: number): Promise<Resumed> {
  let last: ProgressLine | undefined;
  const child = new PawlProcess(['resume', RUN_ID, ...stage.options], stage.env, (line) => {
    narrator.hears(number, line);
    last = line;
  });
  narrator.begins(number, child.pid);
  const complaints = await child.ended;
  return { pid: child.pid, last, complaints };
}

/** An approval that a call waits for. */
type CallWait = Extract<ListedWait, { kind: 'approval' }> & { readonly tool: string; readonly callId: string };

interface Rest {
  readonly pid: number;
  readonly wait: CallWait;
  /** The record in the store after the end of the process. */
  readonly record: RunCheckpoint;
}

/** The process that ends because the run waits for an approval. */
async function restAtApproval(stage: Stage, narrator: Narrator): Promise<Rest> {
  const { pid, last, complaints } = await resumeKilled(stage, narrator, 2);
  if (last?.type !== 'run.waiting') throw broken(`the run does not wait for an approval: ${complaints}`);
  const { wait, owner } = await listOpenRuns(stage);
  if (!wait || !isOfCall(wait)) throw broken('the store does not list the approval that the run waits for');
  if (owner !== undefined) throw broken(`process ${owner} has the run that waits`);
  if (readLines(stage.journal).some(({ callId }) => callId === wait.callId)) {
    throw broken(`${wait.tool} began before its approval`);
  }
  narrator.rests(2, wait);
  return { pid, wait, record: await loadRecord(stage.store) };
}

function isOfCall(wait: ListedWait): wait is CallWait {
  return wait.kind === 'approval' && wait.tool !== undefined && wait.callId !== undefined;
}

/** What `pawl waiting` lists, read in this process, and the process that has the run. */
async function listOpenRuns({ store: path }: Stage) {
  const store = await openExistingStore(path);
  const { value: wait } = await allWaits(controlExecutor(store), RUN_ID).next();
  const owner = pidOf(await findWaiting(store, RUN_ID));
  await store.close();
  return { wait, owner };
}

/** The process that approves the call. It does not run the agent. */
async function approveWait(stage: Stage, narrator: Narrator, { pid, wait }: Rest): Promise<DemoApproval> {
  const { id, tool, callId, digest } = wait;
  let state: string | undefined;
  const args = ['approve', RUN_ID, id, '--digest', digest, '--by', 'demo', ...stage.options];
  const child = new PawlProcess(args, stage.env, ({ status }) => {
    state = status;
  });
  const complaints = await child.ended;
  if (state !== 'sent') throw broken(`the approval was not recorded: ${complaints}`);
  narrator.approves(3, child.pid);
  return { waitId: id, tool, callId, digest, askedBy: pid, approvedBy: child.pid };
}

function broken(message: string): Failure {
  return new Failure(message, { exitCode: exitCodes.failed });
}

/** What `pawl demo --json` prints. */
function documentOf({ stage, pids, kills, approval, histories, repeated, once, status, answer }: DemoFacts) {
  const calls = (pid: number) =>
    histories.flatMap(({ tool, file, callId, processes }) => {
      const finished = processes.get(pid);
      return finished === undefined ? [] : [{ tool, file, callId, finished }];
    });
  return {
    folder: stage.folder,
    store: stage.store,
    report: stage.report,
    runId: kills[0]?.record.meta.runId,
    status,
    answer,
    kills: kills.map(({ pid, cutOff, record }) => ({
      pid,
      signal: 'SIGKILL',
      steps: record.iteration,
      underWay: cutOff.map(({ tool, file, callId }) => ({ tool, file, callId })),
    })),
    approval,
    processes: pids.map((pid) => ({ pid, calls: calls(pid) })),
    recorded: histories.filter(({ recordedAt }) => recordedAt !== undefined).length,
    once: [...once],
    repeated: repeated.length,
  };
}
