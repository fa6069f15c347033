import type { Claim } from '../../store/port.ts';
import type { Clock } from '../../values/clock.ts';

/** A moment between two effects of a process, or in the middle of one. */
export interface CrashPoint {
  readonly when: 'before' | 'after' | 'during';
  /** `store.<method>`, `tool <name>`, `model call` or `onOutcome`. */
  readonly what: string;
  /** The number of this kind of boundary in the life of the process; the first is 1. */
  readonly nth: number;
}

/** Returns the name of a crash point: when, what, and which occurrence. */
export function nameOfStop({ when, what, nth }: CrashPoint): string {
  return `${when} ${what} ${nth}`;
}

/** How a process ends before its run: by a crash, or by a shutdown. */
type Ending = 'crash' | 'shutdown';

/** Called at each boundary. `index` counts all boundaries of the life, from 0. */
export type StopAt = (point: CrashPoint, index: number) => Ending | undefined;

/** A write that a dead process had sent: what happens when it arrives nevertheless. */
export interface LateWrite {
  readonly what: string;
  readonly runId: string;
  send(): Promise<unknown>;
}

const never = () => new Promise<never>(() => {});

/**
 * The life of one simulated process, which dies at its crash point. After its death none of its calls has an effect or an
 * answer: callers wait without end, and its remaining work is ignored.
 */
export class Life {
  readonly #stopAt: StopAt | undefined;
  readonly #counts = new Map<string, number>();
  readonly #timers = new Map<unknown, Clock>();
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #died = Promise.withResolvers<void>();
  readonly #leaving = Promise.withResolvers<void>();
  /** The boundaries that it reached, in order. */
  readonly points: CrashPoint[] = [];
  /** The claims that it held. */
  readonly claims: Map<string, Claim> = new Map();
  /** The write before which it died. */
  late: LateWrite | undefined;
  /** Where it died; undefined = it did not die. */
  diedAt: CrashPoint | undefined;
  #isOver = false;

  constructor(stopAt?: StopAt) {
    this.#stopAt = stopAt;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Resolves when it dies at a boundary. */
  get died(): Promise<void> {
    return this.#died.promise;
  }

  /** Resolves when it is asked to shut down. */
  get leaving(): Promise<void> {
    return this.#leaving.promise;
  }

  /** Reaches a boundary: never returns if the process dies there. */
  pass(when: CrashPoint['when'], what: string, late?: LateWrite): Promise<never> | undefined {
    if (this.#isOver) return never();
    const kind = `${when} ${what}`;
    const nth = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, nth);
    const point = { when, what, nth };
    const ending = this.#stopAt?.(point, this.points.length);
    this.points.push(point);
    if (ending === 'shutdown') this.#leaving.resolve();
    if (ending !== 'crash') return undefined;
    this.late = late;
    this.diedAt = point;
    this.end();
    this.#died.resolve();
    return never();
  }

  /** Makes a call to the outside; its answer is lost if the process died meanwhile. */
  async reach<T>(work: () => T | PromiseLike<T>): Promise<T> {
    if (this.#isOver) return never();
    try {
      const answer = await work();
      return this.#isOver ? await never() : answer;
    } catch (error) {
      if (this.#isOver) return never();
      throw error;
    }
  }

  /** A call that was sent before the death still arrives: see `settled`. */
  track(work: Promise<unknown>): void {
    const quiet = work.catch(() => {});
    this.#underWay.add(quiet);
    void quiet.then(() => this.#underWay.delete(quiet));
  }

  /** Resolves when all sent calls have arrived. */
  async settle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  /** Stops it, dead or done: its timers no longer fire. */
  end(): void {
    this.#isOver = true;
    for (const [timer, clock] of this.#timers) clock.clearTimeout(timer);
    this.#timers.clear();
  }

  /** A clock whose timers die with the process. */
  clock(base: Clock): Clock {
    return {
      now: () => base.now(),
      monotonic: () => base.monotonic(),
      setTimeout: (callback, ms) => {
        if (this.#isOver) return undefined;
        const timer = base.setTimeout(() => {
          this.#timers.delete(timer);
          if (!this.#isOver) callback();
        }, ms);
        this.#timers.set(timer, base);
        return timer;
      },
      clearTimeout: (timer) => {
        this.#timers.delete(timer);
        base.clearTimeout(timer);
      },
    };
  }
}
