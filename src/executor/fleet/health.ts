import type { RunStats } from '../../store/counting/port.ts';
import type { Clock } from '../../values/clock.ts';
import type { WatchedExecutor } from '../host/tracing.ts';
import type { ExecutorServices } from '../run/active-run.ts';
import type { Fleet } from './fleet.ts';
import { StoreWatch, statsOf } from './store-watch.ts';

/** Why a process is not live, or not ready. */
export type HealthReason = 'STARTING' | 'STORE_AWAY' | 'STORE_FULL' | 'DRAINING' | 'LOOP_BLOCKED' | 'NOT_POLLING';

/** How an executor is. It has no id, no name and no text of a run. */
export interface Health {
  /** False only for what a restart of the process mends. */
  readonly live: boolean;
  /** Whether it should get work. */
  readonly ready: boolean;
  readonly reasons: readonly HealthReason[];
  /** `slow`: it answers late. `none`: the executor has no store. */
  readonly store: 'ok' | 'slow' | 'away' | 'none';
  /** When the store was last asked, wall clock, ms; absent = it has not answered yet. */
  readonly checkedAt?: number;
  /** Whether the executor shuts down, or has done so. */
  readonly draining: boolean;
  /** Counts of the store, for all processes; absent if it cannot count, or does not answer. */
  readonly runs?: Pick<RunStats, 'live' | 'due' | 'dueAgeMs' | 'parked'>;
}

/** The store is asked once in this time, however many ask, ms. */
const FRESH_MS = 2_000;
/** A store that is away for longer makes a process unready, ms. */
const AWAY_MS = 10_000;
/** For how long a save that the store refused for want of room makes a process unready, ms. It is tried again each 10 s. */
const FULL_MS = 30_000;
/** How long the event loop may stand still, ms. */
const BLOCKED_MS = 30_000;
/** How often it is measured, ms. */
const SAMPLE_MS = 1_000;

/** For how long a gauge shows what the store has answered, ms. */
const GAUGE_MS = 5_000;

/** Returns the methods that say how an executor is. Its tracing can read the store and the places of its workers from now on. */
export function watchOver(services: ExecutorServices, fleet: Fleet): Watched {
  const { config } = services;
  const watch = new StoreWatch(config);
  const watched: WatchedExecutor = {
    agentIds: [...config.agents.keys()],
    onWarning: (listener) => config.lines.listen(listener),
    async store() {
      if (!config.store || services.isShutDown) return undefined;
      const { state, stats } = await watch.look(GAUGE_MS);
      return { isUp: state !== 'away', ...(stats ? { stats } : {}) };
    },
    places: () => fleet.places,
    warn: config.warn,
  };
  // Again with each question: a provider that was registered late is found also where no run works.
  const show = () => config.tracing?.watch(watched);
  show();
  const isDraining = () => services.isShutDown;
  // A full store answers all reads.
  const isFull = () => config.clock.monotonic() - services.fullAt < FULL_MS;
  const check = new HealthCheck({ watch, clock: config.clock, isDraining, isFull, isStuck: () => fleet.isStuck });
  const health = () => {
    show();
    return check.look();
  };
  return { stats: () => statsOf(config), health };
}

/** See `Executor`. */
interface Watched {
  stats(): Promise<RunStats>;
  health(): Promise<Health>;
}

interface Parts {
  readonly watch: StoreWatch;
  readonly clock: Clock;
  readonly isDraining: () => boolean;
  /** Whether the store has refused a save for want of room lately. */
  readonly isFull: () => boolean;
  /** Whether a worker with free places has not asked for runs for too long. */
  readonly isStuck: () => boolean;
}

/** Says how an executor is. It measures the event loop from the first question on. */
class HealthCheck {
  readonly #parts: Parts;
  /** When the next sample is due, monotonic ms; undefined = it was not asked yet. */
  #sampleAt: number | undefined;
  /** How late the last sample was, ms. */
  #lateMs = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Answers within a second. Never rejects. */
  async look(): Promise<Health> {
    const { watch, clock, isDraining, isFull, isStuck } = this.#parts;
    if (this.#sampleAt === undefined) this.#sample();
    // A probe that waited while the loop stood still may come before the sample.
    const lateMs = Math.max(this.#lateMs, clock.monotonic() - (this.#sampleAt ?? 0));
    const { state, awayMs, hasAnswered, checkedAt, stats } = await watch.look(FRESH_MS);
    const draining = isDraining();
    const dead: HealthReason[] = [];
    if (lateMs >= BLOCKED_MS) dead.push('LOOP_BLOCKED');
    if (isStuck()) dead.push('NOT_POLLING');
    const unready: HealthReason[] = [];
    if (!hasAnswered) unready.push('STARTING');
    if (awayMs > AWAY_MS) unready.push('STORE_AWAY');
    if (isFull()) unready.push('STORE_FULL');
    if (draining) unready.push('DRAINING');
    const { live: liveRuns, due, dueAgeMs, parked } = stats ?? {};
    const runs = { live: liveRuns, due, dueAgeMs, parked } as NonNullable<Health['runs']>;
    return {
      live: dead.length === 0,
      ready: dead.length + unready.length === 0,
      reasons: [...dead, ...unready],
      store: state,
      ...(checkedAt === undefined ? {} : { checkedAt }),
      draining,
      ...(stats ? { runs } : {}),
    };
  }

  #sample(): void {
    const { clock, isDraining } = this.#parts;
    if (this.#sampleAt !== undefined) this.#lateMs = clock.monotonic() - this.#sampleAt;
    this.#sampleAt = clock.monotonic() + SAMPLE_MS;
    const timer = clock.setTimeout(() => {
      if (isDraining()) this.#sampleAt = Number.POSITIVE_INFINITY;
      else this.#sample();
    }, SAMPLE_MS);
    // The timers of a test clock are not Node timers.
    (timer as Partial<NodeJS.Timeout> | undefined)?.unref?.();
  }
}
