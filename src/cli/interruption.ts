import type { Executor } from '../index.ts';
import { exitCodes } from './failure.ts';
import type { Output } from './output.ts';

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Ctrl-C and its relatives: once = leave the runs for later, in good order; twice = exit now. */
export class Interruption {
  readonly #output: Output;
  readonly #executors: Executor[] = [];
  #isRequested = false;

  constructor(output: Output) {
    this.#output = output;
    for (const signal of signals) process.on(signal, this.#onSignal);
  }

  get isRequested(): boolean {
    return this.#isRequested;
  }

  /** Shuts this executor down too when the signal comes. */
  covers(executor: Executor): Executor {
    this.#executors.push(executor);
    if (this.#isRequested) void executor.shutdown();
    return executor;
  }

  stop(): void {
    for (const signal of signals) process.off(signal, this.#onSignal);
  }

  readonly #onSignal = (): void => {
    if (this.#isRequested || this.#executors.length === 0) process.exit(exitCodes.interrupted);
    this.#isRequested = true;
    this.#output.say('pawl: stopping once this is saved; again to exit now');
    for (const executor of this.#executors) void executor.shutdown();
  };
}
