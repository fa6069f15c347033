import type { Warn } from '../../log/log.ts';
import type { ParkedReason } from '../../run/fields.ts';
import type { Person } from '../../run/waits/wait.ts';
import type { Clock } from '../../values/clock.ts';
import { withDeadline } from '../../values/deadline.ts';
import { type Redaction, Redactor } from '../../values/redact.ts';
import { redactedEvent } from './redaction.ts';

/** What a host should know, because only a person moves it. Further kinds may come: look at `kind`. */
export type Notice = {
  /** The same for each notice of one fact, in all processes: a fact may be noticed more than once. */
  readonly noticeId: string;
  readonly runId: string;
} & (
  | {
      /** The run is set aside until `executor.control(runId).unpark()`, or `pawl unpark`. */
      readonly kind: 'parked';
      readonly agentId: string;
      /** Why, for code: see the table of parkings in docs/when-stuck.md. */
      readonly code: string;
      /** Why, for people. */
      readonly reason: string;
      /** Who parked it, if a person did. */
      readonly by?: Person | undefined;
    }
  | {
      /** A call of a `once` tool got no answer, or was cut off: it may or may not have taken effect. */
      readonly kind: 'unknown-outcome';
      readonly agentId: string;
      readonly callId: string;
      readonly tool: string;
    }
  | {
      /** `onOutcome` did not accept the end of the run. It is delivered again. */
      readonly kind: 'undelivered';
      readonly outcomeId: string;
    }
  | {
      /** The run has waited for a person for longer than `defaults.notifyAfterMs`. */
      readonly kind: 'waiting';
      readonly agentId: string;
      readonly waitId: string;
      readonly wait: 'approval' | 'question';
      /** When the run last recorded something, wall clock, ms. */
      readonly since: number;
    }
);

/** Gets notices: see `createExecutor({ notify })`. */
export type Notify = (notice: Notice) => void | Promise<void>;

/** Most notices that a host handles at a time. A store may come back with thousands of runs to park. */
const MAX_NOTICES = 100;
/** Most notices that are known to have been given, so that no look at the store gives them again. */
const MAX_GIVEN = 10_000;

/** A parked run. The steps that it has recorded tell two parkings apart. */
interface ParkedRun {
  readonly runId: string;
  readonly agentId: string;
  readonly iteration: number;
}

interface Surroundings {
  readonly clock: Clock;
  readonly warn: Warn;
  /** The longest time that one call may take, ms. */
  readonly ms: number;
  readonly redact: Redaction | undefined;
}

/** Calls the host's `notify`. No caller waits for it, and its failures change nothing: the store has what it reports. */
export class Notices {
  readonly #notify: Notify | undefined;
  readonly #around: Surroundings;
  readonly #redactor: Redactor | undefined;
  readonly #running = new Set<Promise<void>>();
  readonly #given = new Set<string>();
  #isFailing = false;

  constructor(notify: Notify | undefined, around: Surroundings) {
    this.#notify = notify;
    this.#around = around;
    this.#redactor = around.redact && new Redactor(around.redact, 'event');
  }

  /** Whether any function gets notices. */
  get isAny(): boolean {
    return this.#notify !== undefined;
  }

  /** Says that a run is parked. Never throws. */
  tellParked(run: ParkedRun, why: ParkedReason): void {
    if (this.#notify) this.give(this.#ofParked(run, why));
  }

  /** Says that a run was found parked, unless this process has said it. Never throws. */
  tellFoundParked(run: ParkedRun, why: ParkedReason): void {
    if (this.#notify) this.giveOnce(this.#ofParked(run, why));
  }

  #ofParked({ runId, agentId, iteration }: ParkedRun, why: ParkedReason): Notice {
    const said = { type: 'run.parked', ...why } as const;
    const { type: _, ...shown } = this.#redactor ? redactedEvent(said, this.#redactor) : said;
    return { noticeId: `${runId}:parked:${why.code}:${iteration}`, kind: 'parked', runId, agentId, ...shown };
  }

  /** Gives a notice. Never throws. */
  give(notice: Notice): void {
    const notify = this.#notify;
    if (!notify) return;
    if (this.#running.size >= MAX_NOTICES) {
      this.#onFailure(notice, new Error(`${MAX_NOTICES} calls are running`));
      return;
    }
    this.#remember(notice.noticeId);
    const telling = this.#tell(notify, notice);
    this.#running.add(telling);
    void telling.then(() => this.#running.delete(telling));
  }

  /** Gives a notice unless this process has given it. Never throws. */
  giveOnce(notice: Notice): void {
    if (!this.#given.has(notice.noticeId)) this.give(notice);
  }

  /** Waits for the calls that run, each for at most `portMs`. Never rejects. */
  async settle(): Promise<void> {
    await Promise.all(this.#running);
  }

  #remember(noticeId: string): void {
    this.#given.add(noticeId);
    const [oldest] = this.#given;
    if (this.#given.size > MAX_GIVEN && oldest !== undefined) this.#given.delete(oldest);
  }

  async #tell(notify: Notify, notice: Notice): Promise<void> {
    const { clock, ms } = this.#around;
    try {
      await withDeadline((async () => notify(notice))(), { ms, clock, what: 'notify' });
      this.#isFailing = false;
    } catch (error) {
      this.#onFailure(notice, error);
    }
  }

  /** One warning for a row of failures. The next look at the store gives the notice again. */
  #onFailure({ runId, noticeId }: Notice, error: unknown): void {
    this.#given.delete(noticeId);
    if (!this.#isFailing) this.#around.warn('notice.failed', { runId, error });
    this.#isFailing = true;
  }
}
