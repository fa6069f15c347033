import { existsSync, mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { RunCheckpoint } from '../../index.ts';
import { sqliteStore } from '../../store/sqlite/index.ts';
import type { Command } from '../command.ts';
import { codeFile, packagePath } from '../own-package.ts';
import { Interruption } from '../ui/ctrl-c.ts';
import { exitCodes, Failure } from '../ui/failure.ts';
import { type CallLine, historiesOf, readLines, recordedCalls, repeatedCalls, underWay } from './call-journal.ts';
import { PawlProcess, type ProgressLine } from './child-process.ts';
import { type DemoFacts, type Kill, Narrator } from './narrator.ts';

const RUN_ID = 'demo';
/** Long enough to watch, and to kill in the middle of a call. */
const PAUSE_MS = 250;
const POLL_MS = 5;

/** Runs `pawl demo`: a run is killed twice and completes nevertheless. */
export const demoCommand: Command = async ({ args, output }) => {
  new Interruption(output);
  const stage = setUp();
  const narrator = new Narrator(output, { isSilent: args.json, isVerbose: args.verbose });
  narrator.opens(stage);

  const run = ['run', stage.agent, stage.docs, '--run-id', RUN_ID];
  const kills = [
    await struck({ stage, narrator, number: 1, args: run, isMoment: isHalfway(stage) }),
    await struck({ stage, narrator, number: 2, args: ['resume', RUN_ID], isMoment: isPublished(stage) }),
  ];
  const last = await finished(stage, narrator);
  const pids = [...kills.map(({ pid }) => pid), last.pid];
  const recordings = kills.map(({ record }) => recordedCalls(record));
  const histories = historiesOf(readLines(stage.journal), recordings);
  const once = new Set(kills.flatMap(({ record }) => onceCalls(record)));
  const repeated = repeatedCalls(histories, pids, once);
  const facts: DemoFacts = { stage, pids, kills, histories, repeated, once, ...last.end };
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
export interface Stage {
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
    env: { PAWL_STATE_HOME: join(folder, 'state'), SURVEY_OUT: folder, SURVEY_PAUSE_MS: String(PAUSE_MS) },
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
  await reached(child, stage, isMoment);
  await child.kill();
  const cutOff = underWay(readLines(stage.journal)).filter(({ pid }) => pid === child.pid);
  const kill = { pid: child.pid, cutOff, record: await loadRecord(stage.store) };
  narrator.killed(number, kill);
  return kill;
}

/** Freezes the process at its moment. */
async function reached(child: PawlProcess, { journal }: Stage, isMoment: Moment): Promise<void> {
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
      throw new Failure(`a process ended before it could be killed: ${complaint}`, { exitCode: exitCodes.failed });
    }
    await sleep(POLL_MS);
  }
}

async function loadRecord(path: string): Promise<RunCheckpoint> {
  const store = sqliteStore({ path });
  const record = await store.load(RUN_ID);
  await store.close();
  if (!record) throw new Failure(`the killed run left no record in ${path}`, { exitCode: exitCodes.failed });
  return record;
}

interface Last {
  readonly pid: number;
  readonly end: { readonly status: string; readonly answer: string };
}

/** The process that completes the run. */
async function finished(stage: Stage, narrator: Narrator): Promise<Last> {
  let last: ProgressLine | undefined;
  const child = new PawlProcess(['resume', RUN_ID, ...stage.options], stage.env, (line) => {
    narrator.hears(3, line);
    last = line;
  });
  narrator.begins(3, child.pid);
  const complaints = await child.ended;
  if (last?.type !== 'run.ended') {
    throw new Failure(`the last process did not finish the run: ${complaints}`, { exitCode: exitCodes.failed });
  }
  return { pid: child.pid, end: { status: last.status ?? '', answer: last.output ?? '' } };
}

/** What `pawl demo --json` prints. */
function documentOf({ stage, pids, kills, histories, repeated, once, status, answer }: DemoFacts) {
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
    processes: pids.map((pid) => ({ pid, calls: calls(pid) })),
    recorded: histories.filter(({ recordedAt }) => recordedAt !== undefined).length,
    once: [...once],
    repeated: repeated.length,
  };
}
