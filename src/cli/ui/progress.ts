import type { Executor, RunObserver, RunResult } from '../../index.ts';
import { sayWaiting, type WaitingRun } from './describe-wait.ts';
import { oneLine } from './failure.ts';
import { count, tally, tokens } from './format.ts';
import { LiveProgress } from './live-progress.ts';
import { modelFailureIn } from './model-failure.ts';
import type { Output } from './output.ts';
import { sayUnknown, type UnknownCalls } from './unknown-calls.ts';

/** A run that has started or resumed. */
export interface CommandRun {
  readonly runId: string;
  readonly agentId: string;
  readonly isResumed: boolean;
  readonly executor: Executor;
}

/** Shows the progress of runs. */
export interface CommandProgress extends Required<RunObserver> {
  begun(run: CommandRun): void;
  ended(result: RunResult): void;
  /** A run that was not continued. */
  skipped(runId: string, reason: string): void;
  /** Calls of a run that were under way when its process died: they are not repeated, and may have had their effect. */
  unknown(calls: UnknownCalls): void;
  /** A run waits, and its process ends. */
  waiting(run: WaitingRun): void;
  /** Shows nothing that changes, while a person is asked. */
  hold(isHeld: boolean): void;
}

/**
 * Returns the display of a command's runs: JSON lines, a live line on a terminal, or plain lines in a pipe.
 * @param store its path
 */
export function progressFor(
  output: Output,
  choice: { readonly json: boolean; readonly store: string },
): CommandProgress {
  if (choice.json) return jsonProgress(output, choice.store);
  return output.isLive ? new LiveProgress(output) : plainProgress(output);
}

function plainProgress(output: Output): CommandProgress {
  const begun = new Set<string>();
  // The command line did not start the runs of sub-agents: their steps are shown with their ids.
  const whose = (runId: string) => (begun.has(runId) ? '' : `${oneLine(runId)}: `);
  return {
    begun: ({ runId, isResumed }) => {
      begun.add(runId);
      output.say(`${isResumed ? 'resumed' : 'run'} ${oneLine(runId)}`);
    },
    onEvent: (event) => {
      const failed = modelFailureIn(event);
      if (failed) output.say(`${whose(event.runId)}${failed}`);
      if (event.type !== 'step.done') return;
      const { runId, step, tools, usage } = event;
      output.say(`${whose(runId)}step ${step}: ${tally(tools) || 'the answer'}; ${tokens(usage)} so far`);
    },
    ended: ({ runId, status, iterations, usage }) => output.say(summary({ runId, status, iterations, usage })),
    skipped: (runId, reason) => output.say(`skipped ${oneLine(runId)}: ${reason}`),
    unknown: (calls) => sayUnknown(output, calls),
    waiting: (run) => sayWaiting(output, run),
    hold: () => {},
  };
}

/** The result of a run, in one line. */
function summary(run: Pick<RunResult, 'runId' | 'status' | 'iterations' | 'usage'>): string {
  return `${run.status} ${oneLine(run.runId)}: ${count(run.iterations, 'step')}, ${tokens(run.usage)}`;
}

function jsonProgress(output: Output, store: string): CommandProgress {
  const print = (line: object) => output.printJson(line);
  return {
    begun: ({ runId, agentId, isResumed }) => print({ type: 'run.started', runId, agentId, store, resumed: isResumed }),
    onEvent: (event) => {
      if (event.type === 'model.fallback') {
        const { type, runId, step: iteration, from, to, error, status } = event;
        return print({ type, runId, iteration, from, to, error, status });
      }
      if (event.type === 'model.retry') {
        const { type, runId, step: iteration, model, attempt, delayMs, error, status } = event;
        return print({ type, runId, iteration, model, attempt, delayMs, error, status });
      }
      if (event.type !== 'step.done') return;
      const { type, runId, step: iteration, tools, usage } = event;
      print({ type, runId, iteration, tools, usage });
    },
    ended: ({ messages: _, ...result }) => print({ type: 'run.ended', ...result }),
    skipped: (runId, reason) => print({ type: 'run.skipped', runId, reason }),
    unknown: ({ runId, tools }) => print({ type: 'run.unknown', runId, tools }),
    waiting: ({ runId, waits, answers, resume }) =>
      print({ type: 'run.waiting', runId, waits, commands: [...answers, resume] }),
    hold: () => {},
  };
}
