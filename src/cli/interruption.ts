import type { Executor } from '../index.ts';
import { exitCodes } from './failure.ts';
import type { Output } from './output.ts';

const signals = ['SIGINT', 'SIGTERM'] as const;
/** A terminal signals its whole foreground, and npm passes the signal on once more: that is still one Ctrl-C. */
const SAME_PRESS_MS = 100;

/** Ctrl-C and its relatives: once = leave the runs for later, in good order; twice = exit now. */
export class Interruption {
  readonly #output: Output;
  readonly #executors: Executor[] = [];
  #requestedAt: number | undefined;

  constructor(output: Output) {
    this.#output = output;
    for (const signal of signals) process.on(signal, this.#onSignal);
  }

  get isRequested(): boolean {
    return this.#requestedAt !== undefined;
  }

  /** Shuts this executor down too when the signal comes. */
  covers(executor: Executor): Executor {
    this.#executors.push(executor);
    if (this.isRequested) void executor.shutdown();
    return executor;
  }

  stop(): void {
    for (const signal of signals) process.off(signal, this.#onSignal);
  }

  readonly #onSignal = (): void => {
    const now = performance.now();
    if (this.#requestedAt !== undefined && now - this.#requestedAt < SAME_PRESS_MS) return;
    if (this.isRequested || this.#executors.length === 0) process.exit(exitCodes.interrupted);
    this.#requestedAt = now;
    this.#output.say('pawl: stopping once this is saved; again to exit now');
    for (const executor of this.#executors) void executor.shutdown();
  };
}
