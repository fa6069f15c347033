import type { RunCheckpoint } from '../../index.ts';
import { NPX_PAWL } from '../../values/texts/command-name.ts';
import { count, tally } from '../ui/format.ts';
import type { Output } from '../ui/output.ts';
import { quoted } from '../ui/shell-words.ts';
import { type CallHistory, type CallLine, recordedCalls } from './call-journal.ts';
import type { ProgressLine } from './child-process.ts';

/** A process that was killed at work. */
export interface Kill {
  readonly pid: number;
  /** Its calls that the kill interrupted. */
  readonly cutOff: readonly CallLine[];
  /** The record in the store after the kill. */
  readonly record: RunCheckpoint;
}

/** A call that waited for an approval while no process had its run. */
export interface DemoApproval {
  readonly waitId: string;
  readonly tool: string;
  readonly callId: string;
  readonly digest: string;
  /** The process that ended because the run waits. */
  readonly askedBy: number;
  /** The process that approved the call. */
  readonly approvedBy: number;
}

/** The results of a demo. */
export interface DemoFacts {
  readonly stage: { readonly folder: string; readonly store: string; readonly report: string };
  /** Of the processes that had the run, in order. */
  readonly pids: readonly number[];
  readonly kills: readonly Kill[];
  readonly approval: DemoApproval;
  readonly histories: readonly CallHistory[];
  readonly repeated: readonly CallHistory[];
  /** Ids of the `once` calls that a kill interrupted. */
  readonly once: ReadonlySet<string>;
  readonly status: string;
  readonly answer: string;
}

const NAMES = ['starts the run', 'resumes it', 'approves it', 'resumes it', 'resumes it again'];

/** Prints what happens in the demo: about twelve lines, or with --verbose each step and each call. */
export class Narrator {
  readonly #output: Output;
  readonly #isSilent: boolean;
  readonly #isVerbose: boolean;
  /** What the next process shares a line with. */
  #before = '';

  constructor(output: Output, { isSilent, isVerbose }: { readonly isSilent: boolean; readonly isVerbose: boolean }) {
    this.#output = output;
    this.#isSilent = isSilent;
    this.#isVerbose = isVerbose;
  }

  opens({ docs, files, folder }: { docs: string; files: number; folder: string }): void {
    const more = this.#isVerbose ? 'The kills are real.' : 'Each step: --verbose';
    this.#say(`An agent surveys ${count(files, 'file')}; its model is a small program. ${more}`);
    this.#detail(`It surveys ${docs}, and everything it writes is in ${folder}`);
  }

  begins(process: number, pid: number): void {
    const name = this.#output.paint('bold', `${this.#before ? 'process' : 'Process'} ${process}`);
    this.#say(`${this.#before}${name} (pid ${pid}) ${NAMES[process - 1]}`);
    this.#before = '';
  }

  rests(process: number, { id, tool, prompt }: { id: string; tool: string; prompt?: string }): void {
    if (!this.#isSilent) this.#output.show('');
    this.#say(
      this.#output.paint('yellow', `  ${tool} waits for a person; process ${process} is gone, no other has the run`),
    );
    this.#detail(`  process ${process}  asked: ${prompt ?? ''} (wait ${id.slice(0, 12)})`);
  }

  approves(process: number, pid: number): void {
    this.#before = `${this.#output.paint('bold', `Process ${process}`)} (pid ${pid}) ${NAMES[process - 1]}; `;
  }

  hears(process: number, line: ProgressLine): void {
    if (line.type === 'step.done') {
      const step = `step ${line.iteration}: ${tally(line.tools ?? []) || 'the answer'}`;
      this.#detail(`  process ${process}  ${step}`);
      if (!this.#isSilent) this.#output.show(`  ${step}`);
    }
    if (line.type === 'run.ended') this.#detail(`  process ${process}  ended: ${line.status}`);
  }

  tellKill(process: number, { cutOff, record }: Kill): void {
    if (!this.#isSilent) this.#output.show('');
    const calls = record.openStep?.calls ?? [];
    const effects = new Map(calls.map(({ name, effect }) => [name, effect]));
    const names = cutOff.map(({ tool }) => tool);
    const cut = [...new Set(names)].map((name) => {
      const effect = effects.get(name);
      return tally(names.filter((each) => each === name)) + (effect === undefined ? '' : ` (${effect})`);
    });
    const recorded = recordedCalls(record).size;
    this.#say(this.#output.paint('red', `  SIGKILL during ${cut.join(', ')}; ${recorded} recorded`));
    this.#detail(`  process ${process}  cut off: ${cutOff.map(nameOf).join(', ')}`);
    this.#detail(`  In the store: ${count(record.iteration, 'step')}, and the open step: ${tally(calls.map(stateOf))}`);
  }

  concludes(facts: DemoFacts): void {
    const { histories, pids, repeated, answer, stage, once, status } = facts;
    if (!this.#isSilent) this.#output.show('');
    for (const { tool, begun } of histories.filter(({ callId }) => once.has(callId)))
      this.#say(`  ${tool} (once) ${begun === 1 ? 'is not repeated: its model gets "outcome unknown"' : 'RAN AGAIN'}`);
    if (this.#isVerbose) this.#tellTable(histories, pids);
    this.#detail(answer);
    const again = histories.filter(({ begun, callId }) => begun > 1 && !once.has(callId)).length - repeated.length;
    const whole = count(histories.length, 'call');
    this.#output.print(`The run ended ${status}: ${whole}; ${again} were cut off and ran again, as they may.`);
    this.#output.print(
      `Recorded calls that ran again: ${repeated.length}. Once calls that ran twice: ${twice(facts)}.`,
    );
    this.#output.print(`Report: ${stage.report}`);
    this.#say(`Look at it: ${studioCommand(stage.store)}`);
    if (repeated.length > 0) this.#say(this.#output.paint('red', `Ran again: ${repeated.map(nameOf).join(', ')}`));
  }

  #tellTable(histories: readonly CallHistory[], pids: readonly number[]): void {
    const width = Math.max(...histories.map((each) => nameOf(each).length));
    this.#say(`  ${'call'.padEnd(width)}  ${pids.map((pid) => `pid ${pid}`.padEnd(12)).join('')}`);
    for (const each of histories) this.#say(`  ${this.#row(each, pids, width)}`);
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

  #detail(text: string): void {
    if (this.#isVerbose) this.#say(text);
  }

  #say(text: string): void {
    if (!this.#isSilent) this.#output.say(text);
  }
}

/** The shell that `npm run demo` and `npx` come back to has no `pawl` on its path. */
function studioCommand(store: string): string {
  const program = process.env.npm_command === undefined ? 'pawl' : NPX_PAWL;
  return `${program} studio --store ${quoted(store)}`;
}

function twice({ histories, once }: DemoFacts): number {
  return histories.filter(({ callId, begun }) => once.has(callId) && begun > 1).length;
}

function stateOf({ name, state }: { readonly name: string; readonly state: string }): string {
  return `${name} ${state}`;
}

function nameOf({ tool, file }: { readonly tool: string; readonly file: string }): string {
  return `${tool} ${file}`.trimEnd();
}
