import type { Warn } from '../../log/log.ts';
import type { CheckpointStore } from '../../store/port.ts';
import type { Clock } from '../../values/clock.ts';
import { withDeadline } from '../../values/deadline.ts';

/** Reports that a run is due at a time: see `createExecutor({ onDue })`. */
export type OnDue = (runId: string, at: number) => void | Promise<void>;

interface Surroundings {
  readonly clock: Clock;
  readonly warn: Warn;
  /** The longest time that one call may take, ms. */
  readonly ms: number;
}

/**
 * Calls the host's `onDue` after each commit of this process that makes a run due earlier. No caller waits for it, and its
 * failures change nothing: a run whose hint is lost stays in the list of due runs.
 */
export class DueHints {
  readonly #onDue: OnDue | undefined;
  readonly #around: Surroundings;
  readonly #running = new Set<Promise<void>>();
  /** Wake the workers of this executor: a run is due now. */
  readonly wakes: Set<() => void> = new Set();
  #isFailing = false;

  constructor(onDue: OnDue | undefined, around: Surroundings) {
    this.#onDue = onDue;
    this.#around = around;
  }

  /** Reports that a run is due. Never throws. @param at wall clock, ms; default: now */
  tell(runId: string, at: number = this.#around.clock.now()): void {
    if (at <= this.#around.clock.now()) for (const wake of this.wakes) wake();
    const onDue = this.#onDue;
    if (!onDue) return;
    const telling = this.#tell(async () => onDue(runId, at), runId);
    this.#running.add(telling);
    void telling.then(() => this.#running.delete(telling));
  }

  /** Waits for the calls that run, each for at most `portMs`. Never rejects. */
  async settle(): Promise<void> {
    await Promise.all(this.#running);
  }

  /** Wraps a store: a command, a signal or a message of a thread makes the run due that gets it. */
  listening<S extends CheckpointStore>(store: S): S {
    if (!this.#onDue) return store;
    return { ...store, ...this.#sending(store), ...this.#signaling(store), ...this.#admitting(store) };
  }

  #sending({ commands }: CheckpointStore) {
    if (!commands) return {};
    const send: typeof commands.send = async (runId, command) => {
      await commands.send(runId, command);
      this.tell(runId);
    };
    return { commands: { ...commands, send } };
  }

  #signaling({ waits }: CheckpointStore) {
    if (!waits) return {};
    const signal: typeof waits.signal = async (given) => {
      const answer = await waits.signal(given);
      if (answer.to !== undefined) this.tell(answer.to);
      return answer;
    };
    return { waits: { ...waits, signal } };
  }

  /** A message that begins a turn starts its run by itself. */
  #admitting(store: CheckpointStore) {
    const { threads } = store;
    if (!threads) return {};
    const admit: typeof threads.admit = async (turn) => {
      const admission = await threads.admit(turn);
      if (admission.state === 'steered') this.tell(admission.runId);
      return admission;
    };
    return { threads: { ...threads, admit } };
  }

  async #tell(call: () => Promise<void>, runId: string): Promise<void> {
    const { clock, warn, ms } = this.#around;
    try {
      await withDeadline(call(), { ms, clock, what: 'onDue' });
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) warn('due.hint.failed', { runId, error });
      this.#isFailing = true;
    }
  }
}
