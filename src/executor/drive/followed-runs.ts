import { type RunOutcome, type RunResult, withoutId } from '../../run/result.ts';
import type { CheckpointStore } from '../../store/port.ts';
import { type Backoff, backoffMs } from '../../values/backoff.ts';
import { type ErrorData, toErrorData } from '../../values/error-data.ts';
import { RunNotFoundError, ShutdownError } from '../../values/errors.ts';
import { noUsage } from '../../values/usage.ts';
import type { ActiveRun, ExecutorServices } from '../run/active-run.ts';
import { endOfFeed } from '../services/event-feeds.ts';

/** The pauses between two looks at one run. */
const pause: Backoff = { firstMs: 100, factor: 1.5, maxMs: 10_000 };
/** Most runs that one tick looks at, and the shortest time between two ticks, ms: thousands of runs cost no more. */
const MAX_LOOKS = 25;
const TICK_MS = 100;

/** A run whose end is awaited. */
interface Followed {
  readonly runId: string;
  readonly end: PromiseWithResolvers<RunResult>;
  /** The next look, monotonic ms; infinite while the run is live here. */
  dueAt: number;
  looks: number;
}

/**
 * The ends of runs that any process may work on. One timer looks for all of them in the store, each with growing pauses; a run that
 * is live in this executor is followed without. It keeps the process alive while an end is awaited.
 */
export class FollowedRuns {
  readonly #services: ExecutorServices;
  /** The longest without a look come first. */
  readonly #followed = new Map<string, Followed>();
  #timer: unknown;
  #armedFor = Number.POSITIVE_INFINITY;
  #isLooking = false;
  #isFailing = false;
  #isOver = false;

  constructor(services: ExecutorServices) {
    this.#services = services;
    services.registry.onLeave = (run) => this.#forget(run);
  }

  /** Resolves when the run has ended, in any process; or `interrupted` at the shutdown of this executor. Never rejects. */
  follow(runId: string): Promise<RunResult> {
    if (this.#isOver) return Promise.resolve(unknownEnd(runId, shutDown()));
    const known = this.#followed.get(runId);
    if (known) return known.end.promise;
    const followed = { runId, end: Promise.withResolvers<RunResult>(), dueAt: this.#now(), looks: 0 };
    this.#followed.set(runId, followed);
    this.#armBy(followed.dueAt);
    return followed.end.promise;
  }

  /** Looks at a run soon: it may have ended. */
  look(runId: string): void {
    const followed = this.#followed.get(runId);
    if (followed) this.#lookSoon(followed);
  }

  /** Ends the looks at the store. Runs that are live here may still end. */
  end(): void {
    this.#isOver = true;
    this.#services.config.clock.clearTimeout(this.#timer);
    for (const followed of this.#followed.values())
      if (!this.#services.registry.live(followed.runId))
        this.#resolve(followed, unknownEnd(followed.runId, shutDown()));
  }

  /** Ends all: also the runs that a shutdown could not leave in time. */
  close(): void {
    for (const followed of this.#followed.values()) this.#resolve(followed, unknownEnd(followed.runId, shutDown()));
  }

  /** A run is live here no more. */
  #forget(run: ActiveRun): void {
    const followed = this.#followed.get(run.runId);
    if (!followed) return;
    void run.life.ended.promise.then((result) => {
      const isEnd = run.life.hasBegun && result.status !== 'interrupted' && result.status !== 'waiting';
      if (isEnd) this.#resolve(followed, result);
      else if (this.#isOver) this.#resolve(followed, unknownEnd(run.runId, shutDown()));
      else this.#lookSoon(followed);
    });
  }

  #lookSoon(followed: Followed): void {
    followed.dueAt = this.#now();
    followed.looks = 0;
    this.#armBy(followed.dueAt);
  }

  #now(): number {
    return this.#services.config.clock.monotonic();
  }

  /** Sets the one timer for the next look of all. */
  #arm(): void {
    let dueAt = Number.POSITIVE_INFINITY;
    for (const followed of this.#followed.values()) dueAt = Math.min(dueAt, followed.dueAt);
    const { clock } = this.#services.config;
    clock.clearTimeout(this.#timer);
    this.#armedFor = Number.POSITIVE_INFINITY;
    this.#armBy(dueAt);
  }

  /** Makes the one timer come no later than this: thousands of runs that are followed at once are not looked through for each. */
  #armBy(dueAt: number): void {
    if (this.#isOver || this.#isLooking || dueAt >= this.#armedFor) return;
    const { clock } = this.#services.config;
    clock.clearTimeout(this.#timer);
    this.#armedFor = dueAt;
    this.#timer = clock.setTimeout(() => void this.#tick(), Math.max(0, dueAt - this.#now()));
  }

  /** Looks at the runs that are due. Never rejects. */
  async #tick(): Promise<void> {
    const { clock } = this.#services.config;
    this.#armedFor = Number.POSITIVE_INFINITY;
    this.#isLooking = true;
    const now = this.#now();
    const due = [...this.#followed.values()].filter(({ dueAt }) => dueAt <= now).slice(0, MAX_LOOKS);
    await Promise.all(due.map((followed) => this.#lookAt(followed)));
    if (due.length === MAX_LOOKS) await new Promise<void>((resolve) => clock.setTimeout(resolve, TICK_MS));
    this.#isLooking = false;
    this.#arm();
  }

  async #lookAt(followed: Followed): Promise<void> {
    const { runId } = followed;
    const { registry, config } = this.#services;
    // The next tick begins with the others.
    this.#followed.delete(runId);
    this.#followed.set(runId, followed);
    followed.looks += 1;
    followed.dueAt = registry.live(runId)
      ? Number.POSITIVE_INFINITY
      : this.#now() + backoffMs(followed.looks, pause, config.random);
    if (followed.dueAt === Number.POSITIVE_INFINITY) return;
    try {
      const result = await endIn(config.store as CheckpointStore, runId);
      this.#isFailing = false;
      if (result && !registry.live(runId)) this.#resolve(followed, result);
    } catch (error) {
      if (!this.#isFailing) config.warn('admission.follow.failed', { runId, error });
      this.#isFailing = true;
    }
  }

  #resolve(followed: Followed, result: RunResult): void {
    if (this.#followed.get(followed.runId) === followed) this.#followed.delete(followed.runId);
    if (this.#followed.size === 0) this.#arm();
    followed.end.resolve(result);
  }
}

/** How a run ended; undefined: it has a record, and has not ended. */
async function endIn(store: CheckpointStore, runId: string): Promise<RunResult | undefined> {
  if (await store.load(runId, { messages: false })) return undefined;
  const outcome = await endOfFeed(store, runId);
  if (outcome) return { ...withoutId(outcome as RunOutcome), messages: [] };
  const gone = new RunNotFoundError(`run ${runId} has ended, and its store keeps no outcome of it`);
  return unknownEnd(runId, toErrorData(gone));
}

const shutDown = () => toErrorData(new ShutdownError('the executor that follows the run is shut down; the run is not'));

/** The result of a run whose end is not known here. */
function unknownEnd(runId: string, error: ErrorData): RunResult {
  const nothing = { output: '', usage: noUsage, iterations: 0, phases: [], undelivered: [], messages: [] };
  return { runId, status: 'interrupted', error, ...nothing, durable: true, saveErrors: 0 };
}
