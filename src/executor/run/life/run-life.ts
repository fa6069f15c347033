import type { Resolution } from '../../../../machines/context.ts';
import type { RunOutput, RunResult } from '../../../run/result.ts';
import type { ErrorData } from '../../../values/error-data.ts';

/**
 * The life of a run in one process, as a chart. `resolving`: its record is being read. `at-work`: this process has the run, and
 * announces its end. `leaving`: the store is being asked to take it, for it only waits. `left`: the store has it. `closing`: its
 * newest state, or its end, is being stored. `answered`: it ended before, or another start has it. `admitted`: it is stored, and
 * due. `refused`: it could not begin here. `lost`: another process has it. `over`: its result is known.
 */
export type LifePhase =
  | 'resolving'
  | 'at-work'
  | 'leaving'
  | 'left'
  | 'closing'
  | 'answered'
  | 'admitted'
  | 'refused'
  | 'lost'
  | 'over';

/** The allowed changes. `over` follows each other phase: a machine may break, and a host may stop it, at any time. */
export const allowedChanges: { readonly [From in LifePhase]: readonly LifePhase[] } = {
  // A start that finds the run at rest asks the store to take it back at once.
  resolving: ['at-work', 'leaving', 'answered', 'admitted', 'refused', 'lost', 'over'],
  'at-work': ['leaving', 'closing', 'lost', 'over'],
  // The store did not take it: it is where it was.
  leaving: ['resolving', 'at-work', 'left', 'lost', 'over'],
  left: ['over'],
  closing: ['lost', 'over'],
  answered: ['over'],
  admitted: ['over'],
  // The host's own record of it is ended.
  refused: ['closing', 'over'],
  lost: ['over'],
  over: [],
};

/** Returns whether the life of a run may go from one phase to another. */
export function mayFollow(from: LifePhase, to: LifePhase): boolean {
  return allowedChanges[from].includes(to);
}

const nothingResolved: Promise<undefined> = Promise.resolve(undefined);

/**
 * A promise that is resolved from outside. It is made when the first caller waits: most runs have no more than one promise under
 * way that anything waits for, and hosts keep thousands of runs.
 */
class Deferred<T> {
  #promise: Promise<T> | undefined;
  #resolve: ((value: T) => void) | undefined;

  /** Resolves with the value of `resolve`. */
  get promise(): Promise<T> {
    this.#promise ??= new Promise<T>((resolve) => {
      this.#resolve = resolve;
    });
    return this.#promise;
  }

  /** Only the first call counts. */
  resolve(value: T): void {
    if (this.#resolve) this.#resolve(value);
    else this.#promise ??= Promise.resolve(value);
    this.#resolve = undefined;
  }
}

/**
 * The life of a run in this process: its phase, what its start came to, and the promises that others wait for. A change that the
 * chart does not have changes nothing: what comes late finds the run where it is.
 */
export class RunLife {
  /** Resolves when the run is accepted, refused or answered. */
  readonly accepted: Deferred<void> = new Deferred();
  /** Resolves when this process has recorded new progress of the run, or the run is over. */
  readonly progressed: Deferred<void> = new Deferred();
  readonly ended: Deferred<RunResult> = new Deferred();
  #phase: LifePhase = 'resolving';
  /** The phase in which it ended, or that it left for the store. */
  #before: LifePhase = 'resolving';
  /** This process had the run. */
  #wasAtWork = false;
  #start: Resolution['kind'] | undefined;
  #admitted: 'started' | 'resumed' | undefined;
  #refusal: ErrorData | undefined;
  #resolving: Promise<Resolution | undefined> = nothingResolved;
  #leaving: Promise<boolean> | undefined;
  #settling: Promise<RunOutput> | undefined;
  #settledAtLast: Promise<void> | undefined;

  get phase(): LifePhase {
    return this.#phase;
  }

  /** Changes the phase. @returns whether the chart has the change */
  #move(to: LifePhase): boolean {
    if (!mayFollow(this.#phase, to)) return false;
    this.#before = this.#phase;
    this.#phase = to;
    return true;
  }

  /** Notes that the record is being read. @param resolving never rejects */
  beginResolving(resolving: Promise<Resolution>): void {
    this.#resolving = resolving;
  }

  /**
   * Resolves when `resolving` is over, even if the actor was stopped meanwhile; with what was resolved, until the machine has it.
   */
  get resolving(): Promise<Resolution | undefined> {
    return this.#resolving;
  }

  /** This process has the run, and announces its end. */
  beginWork(): void {
    if (this.#move('at-work')) this.#wasAtWork = true;
  }

  /** The start only stored the run. @param how whether it is new, or has a record */
  admit(how: 'started' | 'resumed'): void {
    if (this.#move('admitted')) this.#admitted = how;
  }

  get admitted(): 'started' | 'resumed' | undefined {
    return this.#admitted;
  }

  endResolving(resolution: Resolution): void {
    this.#start = resolution.kind;
    if (resolution.kind !== 'accepted') this.#move(resolution.kind);
    if (resolution.kind === 'refused') this.#refusal = resolution.error;
  }

  /** The machine has what was resolved: the progress at the start is needed no more. */
  accept(): void {
    this.accepted.resolve();
    this.#resolving = nothingResolved;
  }

  /** The start was accepted, and this process has worked on the run since. It stays true at the end. */
  get hasBegun(): boolean {
    return this.#start === 'accepted';
  }

  /** The start was answered with an earlier result, or by the store. */
  get isAnswered(): boolean {
    return this.#start === 'answered';
  }

  get isRefused(): boolean {
    return this.#start === 'refused';
  }

  /** Why the run did not begin. */
  get refusal(): ErrorData | undefined {
    return this.#refusal;
  }

  /** This process works on the run, and its start is known. */
  get isAtWork(): boolean {
    return this.hasBegun && !this.hasLeft && !this.isOver;
  }

  /** A boundary may be stored. While it closes, nothing older than its newest state may follow. */
  get mayWrite(): boolean {
    return this.#wasAtWork && (this.#phase === 'at-work' || this.#phase === 'leaving');
  }

  /** This process may announce the end: not before the run was accepted, not after it was taken over. */
  get mayAnnounce(): boolean {
    return this.mayWrite || (this.#wasAtWork && this.#phase === 'closing');
  }

  /** Another owner has the run. */
  lose(): void {
    this.#move('lost');
  }

  get isLost(): boolean {
    return this.#phase === 'lost';
  }

  /** The store is asked to take the run. @param asking resolves to whether it did @returns the same */
  async leave(asking: Promise<boolean>): Promise<boolean> {
    if (!this.#move('leaving')) return asking;
    const back = this.#before;
    this.#leaving = asking;
    try {
      const hasLeft = await asking;
      if (hasLeft) this.giveAway();
      return hasLeft;
    } finally {
      this.#leaving = undefined;
      if (this.#phase === 'leaving') this.#move(back);
    }
  }

  /** The store has the run: this process writes nothing more. */
  giveAway(): void {
    this.#move('left');
  }

  /** Resolves to whether the store took the run; undefined: it is not being asked. */
  get leaving(): Promise<boolean> | undefined {
    return this.#leaving;
  }

  get hasLeft(): boolean {
    return this.#phase === 'left' || (this.#phase === 'over' && this.#before === 'left');
  }

  /** The start found the run resting, and nothing had changed: it rests again. */
  get isResting(): boolean {
    return this.hasLeft && !this.#wasAtWork;
  }

  /** The newest state is being written, past all boundaries. */
  close(): void {
    this.#move('closing');
  }

  /** Notes that the end is being stored. @param settling continues if the actor is stopped meanwhile */
  beginSettling(settling: Promise<RunOutput>): void {
    this.#settling = settling;
  }

  /** The end, once it is being stored. */
  get settling(): Promise<RunOutput> | undefined {
    return this.#settling;
  }

  /** Notes work of the end that may continue past the time for finalising. */
  keepSettling(last: Promise<void>): void {
    this.#settledAtLast = last.catch(() => {});
  }

  /** Resolves when no work of the end is running any more; may never resolve. */
  get settledAtLast(): Promise<void> | undefined {
    return this.#settledAtLast;
  }

  /** Ends the life. @returns false if it had ended before */
  end(error: ErrorData | undefined): boolean {
    if (!this.#move('over')) return false;
    if (this.#refusal || this.#start === undefined) this.#refusal = error;
    return true;
  }

  get isOver(): boolean {
    return this.#phase === 'over';
  }
}
