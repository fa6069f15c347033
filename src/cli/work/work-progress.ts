import type { RunEvent, RunObserver } from '../../index.ts';
import { oneLine } from '../ui/failure.ts';
import { count, duration } from '../ui/format.ts';
import type { Output } from '../ui/output.ts';

type ObservedRun = Parameters<NonNullable<RunObserver['onEvent']>>[1];

/** Says which runs a worker takes and how it leaves them: a line for each, or JSON lines. */
export class WorkProgress implements RunObserver {
  readonly #output: Output;
  readonly #isJson: boolean;
  #ended = 0;
  /** How many runs are still to be left; undefined: it does not drain. */
  #toLeave: number | undefined;

  constructor(output: Output, isJson: boolean) {
    this.#output = output;
    this.#isJson = isJson;
  }

  began(facts: { readonly agentId: string; readonly store: string; readonly concurrency: number }): void {
    const { agentId, store, concurrency } = facts;
    this.#tell(
      { type: 'work.started', ...facts },
      `works on runs of ${oneLine(agentId)} in ${store}, ${concurrency} at once`,
    );
  }

  onEvent(event: RunEvent, { origin }: ObservedRun): void {
    // Runs of sub-agents are parts of others.
    if (origin === 'child') return;
    const { type, runId } = event;
    const name = oneLine(runId);
    if (type === 'run.started' || type === 'run.resumed') this.#tell({ type, runId }, `run ${name}`);
    else if (type === 'step.done' && this.#isJson) {
      const { step: iteration, tools, usage } = event;
      this.#output.printJson({ type, runId, iteration, tools, usage });
    } else if (type === 'run.waiting') {
      const { waits, wakeAt } = event;
      this.#tell({ type, runId, waits, ...(wakeAt === undefined ? {} : { wakeAt }) }, `waits ${name}`);
    } else if (type === 'run.parked') {
      const { code, reason } = event;
      this.#over({ type, runId, code, reason }, `parked ${name}: ${oneLine(reason)} (${oneLine(code)})`);
    } else if (type === 'run.ended') this.#end(event, name);
  }

  /** The signal has come. */
  draining(live: number, drainMs: number): void {
    this.#toLeave = live;
    this.#tell({ type: 'work.draining', live, drainMs }, `draining: ${this.#left()}, ${duration(drainMs)} at most`);
  }

  over(taken: number, live: number): void {
    const ended = this.#ended;
    const rest = live === 0 ? '' : `; ${count(live, 'run')} could not be left in time`;
    this.#tell({ type: 'work.ended', taken, ended, live }, `took ${count(taken, 'run')}, ended ${ended}${rest}`);
  }

  #end({ type, runId, status, output, error }: Extract<RunEvent, { type: 'run.ended' }>, name: string): void {
    const isLeft = status === 'interrupted' || status === 'waiting';
    if (!isLeft) this.#ended += 1;
    const why = error && !isLeft ? `: ${oneLine(error.message)} (${error.code})` : '';
    this.#over(
      { type, runId, status, output, ...(error ? { error } : {}) },
      `${isLeft ? 'left' : status} ${name}${why}`,
    );
  }

  /** This worker has nothing more to do with a run. */
  #over(line: object, text: string): void {
    if (this.#toLeave !== undefined) this.#toLeave = Math.max(0, this.#toLeave - 1);
    this.#tell(line, this.#toLeave === undefined ? text : `${text}; ${this.#left()}`);
  }

  #left(): string {
    return `${count(this.#toLeave ?? 0, 'run')} to leave`;
  }

  #tell(line: object, text: string): void {
    if (this.#isJson) this.#output.printJson(line);
    else this.#output.say(text);
  }
}
