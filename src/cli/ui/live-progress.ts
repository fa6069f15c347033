import type { Executor, RunEvent, RunResult, RunSummary } from '../../index.ts';
import { sayWaiting, type WaitingRun } from './describe-wait.ts';
import { oneLine } from './failure.ts';
import { count, duration, tokens } from './format.ts';
import { modelFailureIn } from './model-failure.ts';
import type { Output } from './output.ts';
import { sayUnknown, type UnknownCalls } from './unknown-calls.ts';

const REDRAW_MS = 100;
const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/** Shows the progress of the runs in one line of a terminal that is rewritten: state, step, tokens, time. */
export class LiveProgress {
  readonly #output: Output;
  readonly #summaries = new Map<string, () => RunSummary | undefined>();
  readonly #startedAt = performance.now();
  #timer: NodeJS.Timeout | undefined;
  #frame = 0;
  #isHeld = false;

  constructor(output: Output) {
    this.#output = output;
  }

  begun({ runId, isResumed, executor }: { runId: string; isResumed: boolean; executor: Executor }): void {
    const verb = isResumed ? 'resumed' : 'run';
    this.#output.say(this.#output.paint('dim', `${verb} ${oneLine(runId)}`));
    const atom = executor.run$(runId);
    this.#summaries.set(runId, () => atom?.get());
    this.#timer ??= setInterval(() => this.#draw(), REDRAW_MS);
    this.#draw();
  }

  onEvent(event: RunEvent): void {
    const failed = modelFailureIn(event);
    if (failed) this.#output.say(`${this.#output.paint('yellow', '■')} ${failed}`);
    if (event.type === 'step.done') this.#draw();
  }

  ended({ runId, status, iterations, usage }: RunResult): void {
    this.#summaries.delete(runId);
    if (this.#summaries.size === 0) this.#rest();
    const mark = status === 'ok' ? this.#output.paint('green', '✓') : this.#output.paint('yellow', '■');
    const facts = `${count(iterations, 'step')} · ${tokens(usage)} · ${this.#elapsed()}`;
    this.#output.say(`${mark} ${status} ${oneLine(runId)} · ${facts}`);
  }

  skipped(runId: string, reason: string): void {
    this.#output.say(`${this.#output.paint('yellow', '■')} skipped ${oneLine(runId)}: ${reason}`);
  }

  unknown(calls: UnknownCalls): void {
    sayUnknown(this.#output, calls);
  }

  waiting(run: WaitingRun): void {
    this.#summaries.delete(run.runId);
    if (this.#summaries.size === 0) this.#rest();
    sayWaiting(this.#output, run);
  }

  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
    if (isHeld) this.#output.show('');
  }

  #rest(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#output.show('');
  }

  #draw(): void {
    const runs = [...this.#summaries.values()].flatMap((read) => read() ?? []);
    const [first] = runs;
    if (!first || this.#isHeld) return;
    this.#frame = (this.#frame + 1) % frames.length;
    const text = runs.length === 1 ? one(first) : many(runs);
    this.#output.show(`${this.#output.paint('cyan', frames[this.#frame] ?? '')} ${text} · ${this.#elapsed()}`);
  }

  #elapsed(): string {
    return duration(performance.now() - this.#startedAt);
  }
}

function one({ agentName, state, iteration, usage }: RunSummary): string {
  const where = state.replace(/^running\./, '').replaceAll('-', ' ');
  return `${oneLine(agentName)} · ${where} · step ${iteration + 1} · ${tokens(usage)}`;
}

function many(runs: readonly RunSummary[]): string {
  const steps = runs.reduce((sum, { iteration }) => sum + iteration, 0);
  const spent = runs.reduce((sum, { usage }) => sum + usage.inputTokens + usage.outputTokens, 0);
  return `${count(runs.length, 'run')} · ${count(steps, 'step')} · ${count(spent, 'token')}`;
}
