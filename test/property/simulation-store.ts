import type { CheckpointStore, RunCheckpoint } from 'pawl';
import type { RunDelta } from 'pawl/stores/kit';
import type { TestClock } from 'pawl/testing';
import { isOwning } from '../../src/store/capabilities.ts';
import { wrapStore } from '../../src/store/read-only.ts';
import { StoreUnavailableError } from '../../src/values/errors.ts';
import type { FaultKind, Misfortune } from './simulation-plans.ts';

/** More than a port waits. */
const LATE_MS = 45_000;
const writing = ['save', 'append', 'delete', 'outcomes.keep', 'claim', 'renew', 'release'];

/** Milliseconds that one call after the other takes. */
export type Pace = readonly number[];

export function waiting(clock: TestClock): (ms: number) => Promise<void> {
  return async (ms) => {
    if (ms > 0) await new Promise<void>((resolve) => clock.setTimeout(resolve, ms));
  };
}

/** The same function, that takes its time. */
export function paced<A extends unknown[], R>(
  pace: Pace,
  wait: (ms: number) => Promise<void>,
  work: (...args: A) => PromiseLike<R>,
): (...args: A) => Promise<R> {
  let calls = 0;
  return async (...args) => {
    await wait(pace[calls++ % pace.length] ?? 0);
    return work(...args);
  };
}

/** How often each kind of fault was met. */
export type Fired = { [kind: string]: number };

export function fire(fired: Fired, kind: string): void {
  fired[kind] = (fired[kind] ?? 0) + 1;
}

interface Call {
  readonly name: string;
  /** It brings the end of a phase. */
  readonly isPhaseEnd: boolean;
  /** It must not be overtaken by a later one. */
  readonly isLatest: boolean;
}

/**
 * Nothing tells a whole record that comes late from one that is new, nor, where nobody owns a run, its end from that of an
 * earlier start: a store must not let a later write overtake these (docs/stores.md).
 */
function isLastWord(store: CheckpointStore, name: string): boolean {
  return name === 'save' || (name === 'delete' && !isOwning(store));
}

function isPhaseEnd(name: string, written: unknown): boolean {
  if (name !== 'save' && name !== 'append') return false;
  const { completedPhases, openPhase, outcome } =
    name === 'save' ? (written as RunCheckpoint) : (written as RunDelta).head;
  return completedPhases.length > 0 && !openPhase && !outcome;
}

/** What the store's calls meet over all processes of one history. */
export class Trouble {
  readonly #misfortune: Misfortune;
  readonly #clock: TestClock;
  readonly #fired: Fired;
  readonly #wait: (ms: number) => Promise<void>;
  readonly #hung = new Set<PromiseWithResolvers<never>>();
  #calls = 0;
  #outageUntil = Number.NEGATIVE_INFINITY;
  #phaseEnds = 0;
  #refusals = 0;

  constructor(misfortune: Misfortune, clock: TestClock, fired: Fired) {
    this.#misfortune = misfortune;
    this.#clock = clock;
    this.#fired = fired;
    this.#wait = waiting(clock);
  }

  /** A store as a process reaches it. */
  wrap(store: CheckpointStore): CheckpointStore {
    return wrapStore(store, (name, work) => {
      // Looks by a timer: the numbers of the misfortunes are those of the calls of runs.
      if (name === 'deliveries.take') return work;
      return (...args) => {
        const call = { name, isLatest: isLastWord(store, name), isPhaseEnd: isPhaseEnd(name, args[0]) };
        return this.#meet(call, async () => work(...args));
      };
    });
  }

  /** Of a process that is over: what it still waits for is answered, and nobody hears it. */
  release(): void {
    for (const { reject } of this.#hung) reject(new StoreUnavailableError('simulated: the process is over'));
    this.#hung.clear();
  }

  async #meet(call: Call, work: () => Promise<unknown>): Promise<unknown> {
    const at = this.#calls++;
    const { faults, outage, latency } = this.#misfortune;
    const ms = latency[at % latency.length] ?? 0;
    if (ms > 0) fire(this.#fired, 'latency');
    await this.#wait(ms);
    if (outage?.call === at) this.#outageUntil = this.#clock.monotonic() + outage.ms;
    if (this.#clock.monotonic() < this.#outageUntil) this.#refuse('outage');
    if (this.#isRefusedAtPhaseEnd(call)) this.#refuse('phase end');
    const fault = faults.find((each) => each.call === at)?.kind;
    if (fault === 'refused') this.#refuse('refused');
    if (fault === 'slow') {
      fire(this.#fired, 'slow');
      await this.#wait(2_000);
    }
    if (fault === 'lost' || fault === 'unanswered' || fault === 'late') return this.#hang(fault, call, work);
    const answer = await work();
    if (fault === 'unclear') this.#refuse('unclear');
    return answer;
  }

  #isRefusedAtPhaseEnd({ name, isPhaseEnd }: Call): boolean {
    const { phaseEnd } = this.#misfortune;
    if (isPhaseEnd && ++this.#phaseEnds === phaseEnd?.nth) this.#refusals = phaseEnd.writes;
    if (this.#refusals === 0 || (name !== 'save' && name !== 'append')) return false;
    this.#refusals -= 1;
    return true;
  }

  /** Until nobody waits for the answer any more, or for ever. */
  async #hang(fault: FaultKind, { name, isLatest }: Call, work: () => Promise<unknown>): Promise<unknown> {
    fire(this.#fired, fault);
    if (writing.includes(name)) fire(this.#fired, `hanging ${name}`);
    const isAtOnce = fault === 'unanswered' || (fault === 'late' && isLatest);
    const answer = isAtOnce ? await work() : undefined;
    if (fault === 'late') {
      await this.#wait(LATE_MS);
      return isAtOnce ? answer : work();
    }
    const hung = Promise.withResolvers<never>();
    this.#hung.add(hung);
    return hung.promise;
  }

  #refuse(kind: string): never {
    fire(this.#fired, kind);
    throw new StoreUnavailableError(`simulated: ${kind}`);
  }
}
