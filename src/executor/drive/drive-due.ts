import type { DueStore } from '../../store/due-port.ts';
import { dueStoreOf, takeDue } from '../lifecycle/due/take-due.ts';
import { startTaken, type TakenEnd } from '../lifecycle/due/taken-run.ts';
import { agentFor } from '../lifecycle/stored/recover-one-run.ts';
import type { ExecutorServices } from '../run/active-run.ts';
import type { TakenClaim } from '../services/due/taken-claim.ts';
import type { Driven } from './driven.ts';
import type { DriveLimits } from './options.ts';

/** How many times a store is asked again at once that has due runs and gives none. */
const MAX_EMPTY = 3;
/** How many due runs are read to see whether this process has more to do. */
const PAGE = 20;

/**
 * Works on due runs one after another, until its budget is over or none is due. A run that this process cannot continue is given
 * back, and is due again after a pause.
 * @throws the store's error @throws {NOT_DURABLE} @throws {UNSUPPORTED} for a store in which no runs rest
 */
export async function driveDue(services: ExecutorServices, limits: DriveLimits): Promise<Driven> {
  const driven = await new DueDrive(services, limits).run();
  // The process may end with this call.
  await services.deliveries.look();
  return driven;
}

class DueDrive {
  readonly #services: ExecutorServices;
  readonly #limits: DriveLimits;
  readonly #due: DueStore;
  /** When the budget is over, monotonic ms. */
  readonly #until: number;
  /** Runs that were left although there was time. */
  readonly #left = new Set<string>();
  #empty = 0;
  #runs = 0;
  #boundaries = 0;

  constructor(services: ExecutorServices, limits: DriveLimits) {
    this.#services = services;
    this.#limits = limits;
    this.#due = dueStoreOf(services, "drive('due')");
    this.#until = services.config.clock.monotonic() + limits.budgetMs;
  }

  async run(): Promise<Driven> {
    while (!this.#isStopped()) {
      // The first run may be worked on with any budget.
      if (this.#runs > 0 && this.#leftMs() <= 0) return this.#rest();
      const { claims, nextMs } = await takeDue(this.#services, this.#due, { limit: 1 });
      const [claim] = claims;
      if (!claim && nextMs !== 0) return this.#answer(nextMs);
      if (!claim && ++this.#empty > MAX_EMPTY) break;
      if (!claim) continue;
      // Its store or its host stopped it a moment ago: the next call tries again.
      if (this.#isStopped() || this.#left.has(claim.run.runId)) {
        await claim.giveBack(0);
        break;
      }
      if ((await this.#workOn(claim)) === 'left') this.#left.add(claim.run.runId);
    }
    return this.#driven({ state: 'more' });
  }

  async #workOn(claim: TakenClaim): Promise<TakenEnd> {
    const { maxAttempts } = this.#services.config.defaults;
    const { graceMs, signal } = this.#limits;
    const slice = { budgetMs: this.#leftMs(), graceMs };
    const { run, over } = await startTaken(this.#services, claim, { maxAttempts, slice });
    const end = () => run?.slice?.end();
    signal?.addEventListener('abort', end, { once: true });
    if (signal?.aborted) end();
    try {
      return await over;
    } finally {
      signal?.removeEventListener('abort', end);
      if (run?.life.hasBegun) this.#runs += 1;
      this.#boundaries += run?.actor.getSnapshot().context.persisted ?? 0;
    }
  }

  #isStopped(): boolean {
    return this.#services.isShutDown || this.#limits.signal?.aborted === true;
  }

  #leftMs(): number {
    return Math.max(0, this.#until - this.#services.config.clock.monotonic());
  }

  /** The budget is over: are other runs due? */
  async #rest(): Promise<Driven> {
    const { runs, now, nextAt } = await this.#due.list({ limit: PAGE });
    const { stuck, paused } = this.#services;
    const isMore = runs.some(
      (run) => stuck.isReady(run) && paused.mayTake(run.meta.agentId) && agentFor(this.#services, run.meta.agentId),
    );
    return isMore ? this.#driven({ state: 'more' }) : this.#answer(nextAt === undefined ? undefined : nextAt - now);
  }

  /** None is due. @param nextMs in which time the next one is */
  #answer(nextMs: number | undefined): Driven {
    // Runs of agents that are left alone are due as well, and this process does not see them.
    const pausedMs = this.#services.paused.nextMs;
    const ms = Math.min(nextMs ?? Number.POSITIVE_INFINITY, pausedMs ?? Number.POSITIVE_INFINITY);
    if (ms === Number.POSITIVE_INFINITY) return this.#driven({ state: 'ended' });
    const code = ms === pausedMs ? { code: 'SETUP' } : {};
    return this.#driven({ state: 'waiting', ...code, wakeAt: this.#services.config.clock.now() + ms });
  }

  #driven(answer: Pick<Driven, 'state' | 'code' | 'wakeAt'>): Driven {
    return { ...answer, boundaries: this.#boundaries, runs: this.#runs };
  }
}
