import type { Executor } from '../../index.ts';
import { exitCodes } from './failure.ts';
import type { Output } from './output.ts';

/** A terminal signals all processes in its foreground, and npm sends the signal again: that is still one Ctrl-C. */
const SAME_PRESS_MS = 100;
const signals = ['SIGINT', 'SIGTERM'] as const;
/** What a shell expects of a program that a signal has ended: 128 + n. */
const endedBy = { SIGINT: exitCodes.interrupted, SIGTERM: 143 } as const;

type SignalName = (typeof signals)[number];

/** Handles Ctrl-C and other signals of a command: the first saves the runs and stops, the second exits now. */
export class Interruption {
  readonly #output: Output;
  readonly #listening: Disposable[] = [];
  #signal: string | undefined;

  constructor(output: Output) {
    this.#output = output;
    for (const signal of signals) process.on(signal, this.#withoutRuns);
  }

  get isRequested(): boolean {
    return this.#signal !== undefined;
  }

  /** The exit code where something was left: after a SIGTERM a supervisor starts the command again, Ctrl-C is a person's. */
  get exitCode(): number {
    return this.#signal === 'SIGTERM' ? exitCodes.waiting : exitCodes.interrupted;
  }

  /** Shuts this executor down at the signal. The command then says how to continue, and ends. */
  covers(executor: Executor): Executor {
    this.#listening.push(executor.shutdownOnSignals({ exit: false, onSignal: (signal) => this.#request(signal) }));
    if (this.isRequested) void executor.shutdown();
    return executor;
  }

  /** Aborts this controller at the signal. */
  aborts(controller: AbortController): void {
    let firstAt = 0;
    const onSignal = (signal: SignalName) => {
      if (!this.isRequested) {
        firstAt = performance.now();
        this.#request(signal);
        controller.abort();
      } else if (performance.now() - firstAt >= SAME_PRESS_MS) {
        process.exit(endedBy[signal]);
      }
    };
    for (const signal of signals) process.on(signal, onSignal);
    const stop = () => {
      for (const signal of signals) process.off(signal, onSignal);
    };
    this.#listening.push({ [Symbol.dispose]: stop });
  }

  stop(): void {
    for (const signal of signals) process.off(signal, this.#withoutRuns);
    for (const each of this.#listening) each[Symbol.dispose]();
  }

  /** There is nothing to save: exit listeners, such as the demo's for its child, do the rest. */
  readonly #withoutRuns = (signal: SignalName): void => {
    if (this.#listening.length === 0) process.exit(endedBy[signal]);
  };

  #request(signal: string): void {
    if (this.isRequested) return;
    this.#signal = signal;
    this.#output.say('pawl: stopping once this is saved; again to exit now');
  }
}
