import type { InterruptedRun, ReadableRun } from '../../../record/interrupted.ts';
import type { CheckpointStore, Cursor, ListOptions } from '../../../store/port.ts';
import type { Config } from '../../host/config.ts';

/** How often the store is looked at, ms. */
const EVERY_MS = 60_000;
/** Most lines of one look at each list. The next look continues where this one stopped. */
const MAX_LOOKED = 1_000;

/**
 * Finds the runs that only a person moves: parked ones, and those that wait for a person for long. A process may die between what it
 * stores and its notice, so that each process looks, and gives the notices that it has not given.
 */
export class NoticeSweep {
  readonly #config: Config;
  /** Where each list continues. */
  readonly #after: { parked?: Cursor | undefined; waiting?: Cursor | undefined } = {};
  /** Monotonic ms. */
  #lookedAt: number | undefined;
  #isLooking = false;

  constructor(config: Config) {
    this.#config = config;
  }

  /** Looks, once in a minute at most. Never throws, and no caller waits for it. */
  look(): void {
    const { clock, store, notices } = this.#config;
    if (!store || !notices.isAny || this.#isLooking) return;
    const now = clock.monotonic();
    if (this.#lookedAt !== undefined && now - this.#lookedAt < EVERY_MS) return;
    this.#lookedAt = now;
    this.#isLooking = true;
    void this.#look(store).finally(() => {
      this.#isLooking = false;
    });
  }

  async #look(store: CheckpointStore): Promise<void> {
    try {
      for (const run of await this.#page(store, 'parked')) this.#noticeParked(run);
      for (const run of await this.#page(store, 'waiting')) this.#noticeWaiting(run);
    } catch (error) {
      this.#config.warn('notice.look.failed', { error });
    }
  }

  async #page(store: CheckpointStore, list: 'parked' | 'waiting'): Promise<readonly ReadableRun[]> {
    const after = this.#after[list];
    const options: ListOptions = { limit: MAX_LOOKED, ...(after ? { after } : {}) };
    const page = await store.listInterrupted(list === 'waiting' ? { ...options, status: 'waiting' } : options);
    const last = page.at(-1);
    const isLast = page.length < MAX_LOOKED || last?.updatedAt === undefined;
    this.#after[list] = isLast ? undefined : { updatedAt: last.updatedAt, runId: last.runId };
    return page.filter(isFree);
  }

  #noticeParked({ runId, meta, iteration, status, code, reason }: ReadableRun): void {
    if (status !== 'parked' || code === undefined || reason === undefined) return;
    this.#config.notices.tellFoundParked({ runId, agentId: meta.agentId, iteration }, { code, reason });
  }

  /** A run that rests records nothing: its record is as old as its wait. */
  #noticeWaiting({ runId, meta, updatedAt, waits = [] }: ReadableRun): void {
    const { clock, defaults, notices } = this.#config;
    if (clock.now() - updatedAt < defaults.notifyAfterMs) return;
    for (const { id, kind } of waits)
      if (kind === 'approval' || kind === 'question') {
        const about = { runId, agentId: meta.agentId, waitId: id, wait: kind, since: updatedAt };
        notices.giveOnce({ noticeId: `${runId}:waiting:${id}`, kind: 'waiting', ...about });
      }
  }
}

/** Whether a line is of a run that can be read, and that no process works on. */
function isFree(run: InterruptedRun): run is ReadableRun {
  return run.status !== 'quarantined' && run.owner === undefined;
}
