import type { RunEmitted } from '../../../machines/context.ts';
import { isPerson, type SteeredBy, steeredMessage, tooLongToSay } from '../../run/command.ts';
import { MAX_UNDELIVERED } from '../../run/progress.ts';
import type { Person } from '../../run/waits/wait.ts';
import type { EnteredEvent } from '../../run/workflow/state.ts';
import { UndeliveredError } from '../../values/errors.ts';
import { checkKeys } from '../../values/known-options.ts';
import type { ActiveRun } from './active-run.ts';

/** The state of a steered message: stored, or kept in memory (without a store, or while it fails). */
export type Steered = 'durable' | 'queued';

/** Where a message comes from. */
interface SteeredFrom extends SteeredBy {
  /** The id of the command that carried it. */
  readonly command?: string | undefined;
  readonly taken?: (() => void) | undefined;
}

/** The options of `steer`. */
interface SteerOptions {
  readonly children?: boolean;
  readonly by?: Person;
}

/** Checks the options of `steer`. @throws {TypeError} */
export function checkedSteering(options: SteerOptions): SteerOptions {
  checkKeys(options, { children: true, by: true }, { of: 'steer' });
  if (options.by !== undefined && !isPerson(options.by)) throw new TypeError('steer: `by` must be { id, name? }');
  return options;
}

type Refusal = Extract<RunEmitted, { type: 'steer.refused' }>;

interface Waiting {
  readonly text: string;
  /** It came through the store, and is removed there only when the record has it. */
  readonly isCommand: boolean;
  readonly settle: PromiseWithResolvers<Steered>;
  readonly taken: (() => void) | undefined;
  boundary?: number;
}

/** Delivers messages of the host to a run. Each is acknowledged once it is stored. */
export class Steering {
  readonly #run: ActiveRun;
  /** Made with the first message: most runs are never steered. */
  #waiting: Map<string, Waiting> | undefined;
  #count = 0;

  constructor(run: ActiveRun) {
    this.#run = run;
  }

  /**
   * Sends a message to the run.
   * @param from.taken is called when the run has accepted it
   * @throws {UNDELIVERED} if the run is over
   */
  send(text: string, { command, messageId, by, taken }: SteeredFrom = {}): Promise<Steered> {
    if (typeof text !== 'string' || text.trim() === '') {
      return Promise.reject(new TypeError('steer needs a message: a string that is not empty'));
    }
    const tooLong = tooLongToSay(text);
    if (tooLong) return Promise.reject(tooLong);
    if (this.#run.life.hasLeft && command === undefined) return this.#run.waits.forwardSteering(text, by);
    if (this.#run.life.isOver || !this.#run.isActive) return Promise.reject(this.#tooLate());
    this.#count += 1;
    const receipt = String(this.#count);
    const settle = Promise.withResolvers<Steered>();
    if (!this.#waiting) this.#run.onEnd(() => this.#refuseAll());
    this.#waiting ??= new Map();
    this.#waiting.set(receipt, { text, settle, taken, isCommand: command !== undefined });
    const message = steeredMessage(text, { messageId, by });
    this.#run.send({ type: 'run.steer', message, receipt, ...(command === undefined ? {} : { command }) });
    return settle.promise;
  }

  /** The run's machine has accepted the message. */
  onQueued(receipt: string, boundary: number): void {
    const waiting = this.#waiting?.get(receipt);
    this.#run.publish({ type: 'steer.queued' });
    if (!waiting) return;
    waiting.taken?.();
    waiting.boundary = boundary;
    if (!this.#run.isDurable) this.#settle(receipt, waiting, 'queued');
  }

  /** The run has no room for the message. @param refusal without `left` too many messages wait already */
  onRefused({ receipt, bytes, left }: Refusal): void {
    const waiting = this.#waiting?.get(receipt);
    this.#waiting?.delete(receipt);
    const { runId } = this.#run;
    const why =
      left === undefined
        ? `run ${runId} has ${MAX_UNDELIVERED} messages waiting: this one was not taken`
        : `run ${runId} has room for ${left} more bytes of messages, and this one has ${bytes}: it was not taken`;
    waiting?.settle.reject(new UndeliveredError(why));
  }

  onPersisted(boundary: number): void {
    for (const [receipt, waiting] of this.#waiting ?? []) {
      if (waiting.boundary !== undefined && waiting.boundary <= boundary) this.#settle(receipt, waiting, 'durable');
    }
  }

  /** The store did not save it; it stays in memory, and is part of the next save that succeeds. */
  onFailure(): void {
    for (const [receipt, waiting] of this.#waiting ?? []) {
      if (waiting.boundary !== undefined && !waiting.isCommand) this.#settle(receipt, waiting, 'queued');
    }
  }

  #settle(receipt: string, waiting: Waiting, answer: Steered): void {
    this.#waiting?.delete(receipt);
    // A run that ended before it was resumed is only delivered: the message was recorded, and no model ever reads it.
    if (this.#run.progress?.outcome) waiting.settle.reject(this.#tooLate());
    else waiting.settle.resolve(answer);
  }

  #refuseAll(): void {
    const { hasLeft } = this.#run.life;
    for (const { text, settle, isCommand } of this.#waiting?.values() ?? []) {
      // The store took the run before its machine got the message.
      if (hasLeft && !isCommand) settle.resolve(this.#run.waits.forwardSteering(text));
      else settle.reject(this.#tooLate());
    }
    this.#waiting?.clear();
  }

  #tooLate(): UndeliveredError {
    return new UndeliveredError(`run ${this.#run.runId} is over: the message was not delivered`);
  }
}

type Entered = 'durable' | 'queued';

/** Machine events on their way into the workflow of a live run, each acknowledged once it is stored. */
export class MachineEvents {
  readonly #run: ActiveRun;
  /** Made with the first event: most runs get none. */
  #waiting: Map<string, PromiseWithResolvers<Entered> & { hasEntered?: true }> | undefined;

  constructor(run: ActiveRun) {
    this.#run = run;
  }

  /**
   * Sends an event to the machine.
   * @returns when the record has it (`durable`), or, without a record, the machine @throws {UNDELIVERED} if the run is over, or leaves
   */
  send(entered: EnteredEvent): Promise<Entered> {
    const { id } = entered;
    const known = this.#waiting?.get(id);
    if (known) return known.promise;
    if (this.#run.life.isOver || !this.#run.isActive) return Promise.reject(this.#tooLate());
    if (!this.#waiting) this.#run.onEnd(() => this.#refuseAll());
    this.#waiting ??= new Map();
    const settle = Promise.withResolvers<Entered>();
    this.#waiting.set(id, settle);
    this.#run.send({ type: 'workflow.event', entered });
    return settle.promise;
  }

  /** The machine has the event. */
  onEntered({ id, boundary }: Extract<RunEmitted, { type: 'event.entered' }>): void {
    const waiting = this.#waiting?.get(id);
    if (waiting) waiting.hasEntered = true;
    const take = (how: Entered) => {
      this.#waiting?.get(id)?.resolve(how);
      this.#waiting?.delete(id);
    };
    if (this.#run.isDurable) this.#run.checkpointing.whenPersisted(boundary, () => take('durable'));
    else take('queued');
  }

  /** An event that ended the run is stored with its end. */
  #refuseAll(): void {
    const { life, endFacts } = this.#run;
    const isEnd = !life.hasLeft && endFacts.left === undefined && endFacts.isDelivered;
    for (const { hasEntered, resolve, reject } of this.#waiting?.values() ?? []) {
      if (hasEntered && isEnd) resolve('durable');
      else reject(this.#tooLate());
    }
    this.#waiting?.clear();
  }

  #tooLate(): UndeliveredError {
    return new UndeliveredError(`run ${this.#run.runId} is over, or leaves this process: the event was not delivered`);
  }
}
