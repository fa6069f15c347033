import { existsSync, mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { RunCheckpoint } from '../../index.ts';
import { sqliteStore } from '../../store/sqlite.ts';
import type { Command } from '../command.ts';
import { exitCodes, Failure } from '../failure.ts';
import { Interruption } from '../interruption.ts';
import { codeFile, packagePath } from '../own-package.ts';
import { type CallLine, historiesOf, readLines, recordedCalls, repeatedCalls, underWay } from './call-lines.ts';
import { PawlProcess, type ProgressLine } from './child-process.ts';
import { type DemoFacts, documentOf, Narrator } from './narrator.ts';

const RUN_ID = 'demo';
/** Long enough to be watched, and to be struck in the middle of a call. */
const PAUSE_MS = 250;
const POLL_MS = 5;

/** `pawl demo`: a run is killed and goes on, before your eyes. */
export const demoCommand: Command = async ({ args, output }) => {
  new Interruption(output);
  const stage = setUp();
  const narrator = new Narrator(output, args.json);
  narrator.opens(stage);

  const first = new PawlProcess(
    ['run', stage.agent, stage.docs, '--run-id', RUN_ID, ...stage.options],
    stage.env,
    (line) => narrator.hears(1, line),
  );
  narrator.begins(1, first.pid);
  await moment(first, stage);
  await first.kill();
  const cutOff = underWay(readLines(stage.journal));
  const record = await loadRecord(stage.store);
  narrator.killed({ pid: first.pid, cutOff, record });

  const second = await resumed(stage, narrator);
  const histories = historiesOf(readLines(stage.journal), recordedCalls(record));
  const repeated = repeatedCalls(histories);
  const facts: DemoFacts = { stage, pids: [first.pid, second.pid], cutOff, record, histories, repeated, ...second.end };
  if (args.json) output.printJson(documentOf(facts), 2);
  else narrator.concludes(facts);
  return second.end.status === 'ok' && repeated.length === 0 ? exitCodes.ok : exitCodes.failed;
};

/** Where the demo plays. */
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

/** Waits until about half of the files have their notes, and the next note is being written; holds the process there. */
async function moment(child: PawlProcess, { journal, files }: Stage): Promise<void> {
  const isNote = ({ tool }: CallLine) => tool === 'add_note';
  for (;;) {
    const lines = readLines(journal);
    const notes = lines.filter(isNote).filter(({ event }) => event === 'finished').length;
    if (notes >= files * 0.4 && underWay(lines).some(isNote)) {
      // On a busy machine the note might be finished before the kill comes.
      child.freeze();
      await sleep(POLL_MS);
      if (underWay(readLines(journal)).some(isNote)) return;
      child.thaw();
    }
    if (child.isOver) {
      const complaint = await child.ended;
      throw new Failure(`the first process ended before it could be killed: ${complaint}`, {
        exitCode: exitCodes.failed,
      });
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

interface Second {
  readonly pid: number;
  readonly end: { readonly status: string; readonly answer: string };
}

async function resumed(stage: Stage, narrator: Narrator): Promise<Second> {
  let last: ProgressLine | undefined;
  const second = new PawlProcess(['resume', RUN_ID, ...stage.options], stage.env, (line) => {
    narrator.hears(2, line);
    last = line;
  });
  narrator.begins(2, second.pid);
  const complaints = await second.ended;
  if (last?.type !== 'run.ended') {
    throw new Failure(`the second process did not finish the run: ${complaints}`, { exitCode: exitCodes.failed });
  }
  return { pid: second.pid, end: { status: last.status ?? '', answer: last.output ?? '' } };
}
