import type { RunCheckpoint } from '../../index.ts';
import { count, tally } from '../figures.ts';
import type { Output } from '../output.ts';
import { type CallHistory, type CallLine, recordedCalls } from './call-lines.ts';
import type { ProgressLine } from './child-process.ts';

/** What a demo has shown. */
export interface DemoFacts {
  readonly stage: { readonly folder: string; readonly store: string; readonly report: string };
  readonly pids: readonly [number, number];
  /** Calls that the kill cut off. */
  readonly cutOff: readonly CallLine[];
  /** What was stored when the first process was dead. */
  readonly record: RunCheckpoint;
  readonly histories: readonly CallHistory[];
  readonly repeated: readonly CallHistory[];
  readonly status: string;
  readonly answer: string;
}

/** Tells what happens, while it happens; in silence when the result is for a machine. */
export class Narrator {
  readonly #output: Output;
  readonly #isSilent: boolean;

  constructor(output: Output, isSilent: boolean) {
    this.#output = output;
    this.#isSilent = isSilent;
  }

  opens({ docs, files, folder }: { docs: string; files: number; folder: string }): void {
    this.#say(`The example agent surveys ${count(files, 'file')} in ${docs}.`);
    this.#say('Its planner is a small program, not a language model; the tools, the record and the kill are real.');
    this.#say(`Everything it writes is in ${folder}`);
  }

  begins(process: 1 | 2, pid: number): void {
    const what = process === 1 ? 'begins the run' : 'resumes it';
    this.#say(`\n${this.#bold(`Process ${process}`)} (pid ${pid}) ${what}`);
  }

  hears(process: 1 | 2, line: ProgressLine): void {
    if (line.type === 'step.done')
      this.#say(`  process ${process}  step ${line.iteration}: ${tally(line.tools ?? [])}`);
    if (line.type === 'run.ended') this.#say(`  process ${process}  ended: ${line.status}`);
  }

  killed({ pid, cutOff, record }: { pid: number; cutOff: readonly CallLine[]; record: RunCheckpoint }): void {
    const calls = cutOff.map(({ tool, file }) => `${tool} ${file}`).join(', ');
    this.#say(this.#output.paint('red', `  SIGKILL to process 1 (pid ${pid}) in the middle of: ${calls}`));
    const recorded = recordedCalls(record).size;
    this.#say(`  In the store: ${count(record.iteration, 'step')} with ${count(recorded, 'recorded call')},`);
    const ledger = record.openStep?.calls.map(({ name, state }) => `${name} ${state}`) ?? [];
    this.#say(`  and the open step: ${tally(ledger)}`);
  }

  concludes(facts: DemoFacts): void {
    const { histories, pids, repeated, answer, stage } = facts;
    this.#say(`\n${this.#bold('What ran where')}`);
    const width = Math.max(...histories.map(({ tool, file }) => `${tool} ${file}`.length));
    this.#say(`  ${'call'.padEnd(width)}  ${pids.map((pid) => `pid ${pid}`.padEnd(12)).join('')}`);
    for (const each of histories) this.#say(`  ${this.#row(each, pids, width)}`);
    this.#say(`\n${answer}\n`);
    this.#output.print([...verdict(facts), `Report: ${stage.report}`].join('\n'));
    if (repeated.length > 0) this.#say(this.#output.paint('red', `Ran again: ${repeated.map(nameOf).join(', ')}`));
  }

  #row(each: CallHistory, pids: readonly number[], width: number): string {
    const cells = pids.map((pid) => {
      const hasFinished = each.processes.get(pid);
      if (hasFinished === undefined) return '-'.padEnd(12);
      return hasFinished
        ? this.#output.paint('green', 'done'.padEnd(12))
        : this.#output.paint('red', 'cut off'.padEnd(12));
    });
    return `${nameOf(each).padEnd(width)}  ${cells.join('')}`.trimEnd();
  }

  #bold(text: string): string {
    return this.#output.paint('bold', text);
  }

  #say(text: string): void {
    if (!this.#isSilent) this.#output.say(text);
  }
}

function nameOf({ tool, file }: CallHistory): string {
  return `${tool} ${file}`.trimEnd();
}

function verdict({ histories, repeated }: DemoFacts): string[] {
  const recorded = histories.filter(({ isRecorded }) => isRecorded).length;
  const again = histories.filter(({ begun }) => begun > 1).length;
  return [
    `${count(histories.length, 'call')}, ${recorded} of them recorded before the kill.`,
    `Recorded calls that ran again: ${repeated.length}.`,
    `Calls that the kill cut off, and that ran again because repeating them is harmless: ${again - repeated.length}.`,
  ];
}

/** For `--json`. */
export function documentOf({ stage, pids, cutOff, record, histories, repeated, status, answer }: DemoFacts) {
  const calls = (pid: number) =>
    histories.flatMap(({ tool, file, callId, processes }) => {
      const finished = processes.get(pid);
      return finished === undefined ? [] : [{ tool, file, callId, finished }];
    });
  return {
    folder: stage.folder,
    store: stage.store,
    report: stage.report,
    runId: record.meta.runId,
    status,
    answer,
    killed: {
      pid: pids[0],
      signal: 'SIGKILL',
      steps: record.iteration,
      underWay: cutOff.map(({ tool, file, callId }) => ({ tool, file, callId })),
    },
    processes: pids.map((pid) => ({ pid, calls: calls(pid) })),
    recorded: histories.filter(({ isRecorded }) => isRecorded).length,
    repeated: repeated.length,
  };
}
