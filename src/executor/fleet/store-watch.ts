import { type RunCounts, type RunStats, statsIn } from '../../store/counting/port.ts';
import type { CheckpointStore } from '../../store/port.ts';
import { withDeadline } from '../../values/deadline.ts';
import { NotDurableError, UnsupportedError } from '../../values/errors.ts';
import type { Config } from '../host/config.ts';

/**
 * Counts the runs of an executor's store.
 * @throws {NOT_DURABLE} without a store @throws {UNSUPPORTED} for one that cannot count; the store's own error if it does not answer
 */
export async function statsOf({ store }: Pick<Config, 'store'>): Promise<RunStats> {
  if (!store) throw new NotDurableError('executor.stats needs a store (createExecutor({ store }))');
  if (!store.due) throw new UnsupportedError('this store cannot count its runs: it has no group due');
  return statsIn(await store.due.countRuns());
}

/** What is known of the store. `slow`: its last answer has not come yet, or came late. */
interface StoreState {
  readonly state: 'ok' | 'slow' | 'away' | 'none';
  /** For how long no read has succeeded, ms; 0 = the last one did. */
  readonly awayMs: number;
  /** Whether it has answered once. */
  readonly hasAnswered: boolean;
  /** When the last read ended, wall clock, ms; absent = none has. */
  readonly checkedAt?: number;
  /** Of the last read that succeeded; absent if the store cannot count, or has not answered. */
  readonly stats?: RunStats;
}

/** After this time a caller gets what is known by then, ms. */
const ANSWER_MS = 900;
/** After this time a read has failed, ms. */
const READ_MS = 4_000;
/** Loaded from a store that cannot count. No run has this id: ids of hosts have no control characters. */
const NO_RUN = 'pawl\u0001health';

/** Reads the store of an executor for all that ask how it is: they share a read. */
export class StoreWatch {
  readonly #config: Pick<Config, 'store' | 'clock'>;
  #reading: Promise<void> | undefined;
  #beganAt = Number.NEGATIVE_INFINITY;
  #answeredAt: number | undefined;
  /** Since when reads have failed, or the one under way has not answered, monotonic ms. */
  #awaySince: number | undefined;
  #isSlow = false;
  #checkedAt: number | undefined;
  #stats: RunStats | undefined;

  constructor(config: Pick<Config, 'store' | 'clock'>) {
    this.#config = config;
  }

  /** Returns what is known of the store within a second, after a read if the last one began longer ago. Never rejects. */
  async look(maxAgeMs: number): Promise<StoreState> {
    const { store, clock } = this.#config;
    if (!store) return { state: 'none', awayMs: 0, hasAnswered: true, checkedAt: clock.now() };
    if (!this.#reading && clock.monotonic() - this.#beganAt >= maxAgeMs) this.#begin(store);
    const reading = this.#reading ?? Promise.resolve();
    await withDeadline(reading, { ms: ANSWER_MS, clock, what: 'store' }).catch(() => {});
    return this.#state();
  }

  #state(): StoreState {
    const now = this.#config.clock.monotonic();
    const isLate = this.#reading !== undefined && now - this.#beganAt >= ANSWER_MS;
    const since = this.#awaySince ?? (isLate ? this.#beganAt : undefined);
    return {
      state: this.#awaySince === undefined ? (isLate || this.#isSlow ? 'slow' : 'ok') : 'away',
      awayMs: since === undefined ? 0 : now - since,
      hasAnswered: this.#answeredAt !== undefined,
      ...(this.#checkedAt === undefined ? {} : { checkedAt: this.#checkedAt }),
      ...(this.#stats ? { stats: this.#stats } : {}),
    };
  }

  #begin(store: CheckpointStore): void {
    const { clock } = this.#config;
    const beganAt = clock.monotonic();
    this.#beganAt = beganAt;
    const read = withDeadline(readOf(store), { ms: READ_MS, clock, what: 'store' });
    this.#reading = read
      .then(
        (counts) => {
          this.#answeredAt = clock.monotonic();
          this.#isSlow = this.#answeredAt - beganAt >= ANSWER_MS;
          this.#awaySince = undefined;
          this.#stats = counts && statsIn(counts);
        },
        () => {
          this.#awaySince ??= beganAt;
          this.#stats = undefined;
        },
      )
      .finally(() => {
        this.#checkedAt = clock.now();
        this.#reading = undefined;
      });
  }
}

/** One read that needs no scan of a table. */
async function readOf(store: CheckpointStore): Promise<RunCounts | undefined> {
  if (store.due) return store.due.countRuns();
  await store.load(NO_RUN);
  return undefined;
}
