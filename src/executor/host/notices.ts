import type { Warn } from '../../log/log.ts';
import type { ParkedReason } from '../../run/fields.ts';
import type { Person } from '../../run/waits/wait.ts';
import type { Clock } from '../../values/clock.ts';
import { withDeadline } from '../../values/deadline.ts';
import { toErrorData } from '../../values/error-data.ts';
import { type Redaction, Redactor } from '../../values/redact.ts';
import { redactedEvent } from './redaction.ts';

/** What a host should know, because nothing but a person moves it. Further kinds may come: look at `kind`. */
export interface Notice {
  /** The run is set aside until `executor.control(runId).unpark()`, or `pawl unpark`. */
  readonly kind: 'parked';
  readonly runId: string;
  readonly agentId: string;
  /** Why, for code: see the table of parkings in docs/operations.md. */
  readonly code: string;
  /** Why, for people. */
  readonly reason: string;
  /** Who parked it, if a person did. */
  readonly by?: Person | undefined;
}

/** Gets notices: see `createExecutor({ notify })`. */
export type Notify = (notice: Notice) => void | Promise<void>;

/** Most notices that a host handles at a time. A store may come back with thousands of runs to park. */
const MAX_NOTICES = 100;

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
  #isFailing = false;

  constructor(notify: Notify | undefined, around: Surroundings) {
    this.#notify = notify;
    this.#around = around;
    this.#redactor = around.redact && new Redactor(around.redact, 'event');
  }

  /** Tells the host that this process has parked a run. Never throws. */
  parked(run: Pick<Notice, 'runId' | 'agentId'>, why: ParkedReason): void {
    const notify = this.#notify;
    if (!notify) return;
    if (this.#running.size >= MAX_NOTICES) {
      this.#failed(run, new Error(`${MAX_NOTICES} calls are running`));
      return;
    }
    const said = { type: 'run.parked', ...why } as const;
    const { type: _, ...shown } = this.#redactor ? redactedEvent(said, this.#redactor) : said;
    const telling = this.#tell(notify, { kind: 'parked', ...run, ...shown });
    this.#running.add(telling);
    void telling.then(() => this.#running.delete(telling));
  }

  /** Waits for the calls that run, each for at most `portMs`. Never rejects. */
  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #tell(notify: Notify, notice: Notice): Promise<void> {
    const { clock, ms } = this.#around;
    try {
      await withDeadline((async () => notify(notice))(), { ms, clock, what: 'notify' });
      this.#isFailing = false;
    } catch (error) {
      this.#failed(notice, error);
    }
  }

  /** One warning for a row of failures. */
  #failed({ runId }: Pick<Notice, 'runId'>, error: unknown): void {
    if (!this.#isFailing) this.#around.warn('notice.failed', { runId, error: toErrorData(error) });
    this.#isFailing = true;
  }
}
