import type { Wait } from '../../../run/waits/wait.ts';
import { earliest, waitOf, waitsOf } from '../../../run/waits/wait-rules.ts';
import { systemClock } from '../../../values/clock.ts';
import { StoreUnavailableError } from '../../../values/errors.ts';
import { yieldToEventLoop } from '../../../values/event-loop.ts';
import type { ActiveRun } from '../active-run.ts';
import type { Entered } from '../run-state.ts';

/** Returns whether a run takes answers: it works, or waits, and nothing has stopped it. */
export function isTaking({ life, isActive, actor }: ActiveRun): boolean {
  return !life.isOver && isActive && actor.getSnapshot().context.cause === undefined;
}

/** Clocks of hosts may not take longer timers: `setTimeout` of Node ends at 24.8 days. */
const LONGEST_TIMER_MS = 3_600_000;

/** What comes to a run from outside, on its way into the machine. */
interface Arrival {
  /** When it was sent, wall clock, ms. */
  readonly at: number;
  readonly entered: Promise<unknown>;
  readonly taken: Promise<unknown>;
}

interface Around {
  /** Tells the store which events the run waits for. @returns whether it knows them all */
  readonly tellStore: () => Promise<boolean>;
  /** Ends a wait whose time is over. @returns when that is recorded; never rejects */
  readonly expire: (wait: Wait) => Promise<void>;
  readonly isWaiting: () => boolean;
}

/**
 * The waits of a live run that end by themselves. What was sent before a wait was due is taken before it ends, and what was sent later
 * after it, also if no process was there in between: the order is that of the times, and not that of the reading.
 */
export class DueWaits {
  readonly #run: ActiveRun;
  readonly #around: Around;
  readonly #arrivals: Arrival[] = [];
  /** The ends that are on their way into the record, by wait. */
  readonly #ending = new Map<string, Promise<void>>();
  #timer: unknown;
  /** The timer has fired, and its waits are being ended: each end changes the waits, and none needs a timer of its own. */
  #isOnTime = false;

  constructor(run: ActiveRun, around: Around) {
    this.#run = run;
    this.#around = around;
  }

  /** Arms the timer for the next wait that ends by itself. It also keeps the process alive for a run that cannot rest. */
  arm(): void {
    if (this.#isOnTime) return;
    const wakeAt = this.#run.progress?.waiting?.wakeAt;
    if (wakeAt !== undefined) this.#armIn(wakeAt - this.#run.services.config.clock.now());
    else this.#armIn(this.#around.isWaiting() ? LONGEST_TIMER_MS : undefined);
  }

  #armIn(ms: number | undefined): void {
    const { clock } = this.#run.services.config;
    this.stop();
    if (ms === undefined || this.#run.life.isOver) return;
    this.#timer = clock.setTimeout(() => void this.#onTime(), Math.min(LONGEST_TIMER_MS, Math.max(0, ms)));
  }

  async #onTime(): Promise<void> {
    this.#isOnTime = true;
    const hasRead = await this.#endBefore(Number.POSITIVE_INFINITY).finally(() => {
      this.#isOnTime = false;
    });
    // A run that must stop expires nothing: the next process does.
    if (!isTaking(this.#run)) return;
    if (hasRead) this.arm();
    else this.#armIn(this.#run.services.config.defaults.controlMs);
  }

  stop(): void {
    this.#run.services.config.clock.clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /**
   * Takes what was sent at a time: after the waits that were due before. A workflow takes all in the order of their times; an agent only
   * what concerns one wait.
   * @param enter gives it to the machine; `recorded` is when the machine has taken it
   * @throws {STORE_UNAVAILABLE} if the inbox cannot be read, which may hold something that was sent before
   */
  async inOrder<T>(at: number, enter: () => Promise<Entered<T>>, waitId?: string): Promise<T> {
    const before = this.#arrivals.findLast((arrival) => arrival.at <= at);
    const entered = this.#afterDue(at, waitId).then(async () => {
      // Its check may take longer than that of what came later.
      if (this.#run.progress?.workflow) await before?.entered.catch(() => {});
      return enter();
    });
    const taken = entered.then(({ recorded }) => recorded);
    const arrival = { at, entered, taken };
    this.#arrivals.push(arrival);
    try {
      return await taken;
    } finally {
      this.#arrivals.splice(this.#arrivals.indexOf(arrival), 1);
    }
  }

  async #afterDue(at: number, waitId: string | undefined): Promise<void> {
    await this.#run.life.accepted.promise;
    const isBehind = () => {
      const { progress } = this.#run;
      const own = () => progress && waitOf(progress, waitId ?? '')?.dueAt;
      const dueAt = progress?.workflow ? progress.waiting?.wakeAt : own();
      return dueAt !== undefined && dueAt < at;
    };
    if (!isBehind() || (await this.#endBefore(at)) || !isBehind()) return;
    throw new StoreUnavailableError('it is unknown whether an answer came in time');
  }

  /**
   * Ends the waits whose time is over, and was over before that time: the earliest first, each after what was sent before it was due. A store
   * that does not know which event the run waits for keeps its signal elsewhere: it gets to know the event first.
   * @returns false if the inbox could not be read: nothing has ended
   */
  async #endBefore(time: number): Promise<boolean> {
    const { config, inbox } = this.#run.services;
    const isDue = ({ dueAt }: Wait) => dueAt !== undefined && dueAt <= config.clock.now() && dueAt < time;
    const due = () => waitsOf(this.#run.progress ?? {}).filter(isDue);
    if (due().length === 0 || !isTaking(this.#run)) return true;
    if (!(await this.#around.tellStore()) || !(await inbox.look())) return false;
    const ids = new Set(due().map(({ id }) => id));
    for (;;) {
      const open = due().filter(({ id }) => ids.has(id));
      const first = earliest(open.map(({ dueAt }) => dueAt));
      if (first === undefined) return true;
      const before = this.#arrivals.filter(({ at }) => at <= first);
      if (before.length > 0) {
        // Each check of an answer is bounded in time.
        await Promise.allSettled(before.map(({ taken }) => taken));
        continue;
      }
      const next = earliest(this.#arrivals.map(({ at }) => at)) ?? Number.POSITIVE_INFINITY;
      const ending = open.filter(({ dueAt = 0 }) => dueAt < next);
      for (const { id } of ending) ids.delete(id);
      await this.#endAll(ending);
    }
  }

  async #endAll(waits: readonly Wait[]): Promise<void> {
    const ended: Promise<void>[] = [];
    for (const wait of waits) {
      // Thousands of calls of one message expire at the same time: the lease must be renewed meanwhile.
      const turn = this.#run.services.config.clock === systemClock ? yieldToEventLoop() : undefined;
      if (turn) await turn;
      ended.push(this.#end(wait));
    }
    await Promise.all(ended);
  }

  #end(wait: Wait): Promise<void> {
    const before = this.#ending.get(wait.id);
    if (before) return before;
    const ending = this.#around.expire(wait).finally(() => this.#ending.delete(wait.id));
    this.#ending.set(wait.id, ending);
    return ending;
  }
}
