import { ShutdownError } from '../../values/errors.ts';
import { checkKeys } from '../../values/known-options.ts';
import type { Places } from '../host/tracing.ts';
import type { ExecutorServices } from '../run/active-run.ts';
import { type WorkOptions, workLimitsOf } from './options.ts';
import { FleetWorker, type WorkerStats } from './worker.ts';

/** One process of a fleet. */
export interface Worker {
  /**
   * Takes nothing more, and ends its slices: model calls and `read` calls that are under way have three quarters of the time. The
   * runs continue in other processes.
   * @param options.drainMs longest time that may take; default 10,000 ms
   * @returns when all its runs are left
   */
  drain(options?: { readonly drainMs?: number }): Promise<void>;
  /** What the worker does just now. */
  stats(): WorkerStats;
}

/** The workers of one executor. */
export class Fleet {
  readonly #services: ExecutorServices;
  readonly #workers = new Set<FleetWorker>();

  constructor(services: ExecutorServices) {
    this.#services = services;
  }

  /** Begins a worker. @throws {TypeError} @throws {NOT_DURABLE} @throws {UNSUPPORTED} @throws {ERR_SHUTDOWN} */
  work(options: WorkOptions): Worker {
    const limits = workLimitsOf(options);
    if (options.perKey !== undefined && this.#services.config.fairBy === undefined)
      throw new TypeError('work: perKey needs the label that has the key: createExecutor({ fairBy })');
    if (this.#services.isShutDown) throw new ShutdownError('this executor is shut down');
    const worker = new FleetWorker(this.#services, limits);
    this.#workers.add(worker);
    const { sweep, config } = this.#services;
    const wake = () => worker.look();
    const leave = sweep.handOver(wake);
    this.#services.deliveries.begin();
    const endSchedules = this.#services.scheduler?.begin();
    config.hints.wakes.add(wake);
    const drain = (drainMs: number) => {
      leave();
      endSchedules?.();
      config.hints.wakes.delete(wake);
      return worker.drain(drainMs).finally(() => this.#workers.delete(worker));
    };
    const abort = () => void drain(limits.graceMs);
    limits.signal?.addEventListener('abort', abort, { once: true });
    if (limits.signal?.aborted) abort();
    else worker.begin();
    return {
      drain: (given = {}) => {
        checkKeys(given, { drainMs: true }, { of: 'drain' });
        return drain(given.drainMs ?? 10_000);
      },
      stats: () => worker.stats(),
    };
  }

  /** Whether one of the workers does not ask for runs any more. */
  get isStuck(): boolean {
    return [...this.#workers].some((worker) => worker.isStuck);
  }

  /** The places of all workers; undefined = there is no worker. */
  get places(): Places | undefined {
    const places = [...this.#workers].map((worker) => worker.places);
    const sumOf = (which: keyof Places) => places.reduce((sum, each) => sum + each[which], 0);
    return places.length > 0 ? { free: sumOf('free'), busy: sumOf('busy') } : undefined;
  }

  /** Drains all workers. */
  async drain(drainMs: number): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.drain(drainMs)));
  }
}
