import { topicOf } from '../../../run/identity.ts';
import type { Wait } from '../../../run/waits/wait.ts';
import { waitOf, waitsOf } from '../../../run/waits/wait-rules.ts';
import type { WaitStore } from '../../../store/port.ts';
import { backoffMs } from '../../../values/backoff.ts';
import { hasCode, readProperty } from '../../../values/error-data.ts';
import type { SentSignal } from '../../services/local-signals.ts';
import type { ActiveRun } from '../active-run.ts';

/** The pause before the store is asked again about an event; it doubles. */
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 30_000;

type EventWait = Extract<Wait, { kind: 'event' }>;

/**
 * The events that a run waits for, as those who deliver signals know them: the store of a run with a claim, or else this process.
 * A run does not rest before its store knows them all.
 */
export class ExpectedEvents {
  readonly #run: ActiveRun;
  /** The topics of the open waits, by wait. */
  readonly #open = new Map<string, string>();
  /** What the store has yet to learn: the topic of a wait, or null for one that is over. */
  readonly #unsaid = new Map<string, string | null>();
  /** Waits that a repeated `expect` may have added after their signal: they are withdrawn. */
  readonly #doubtful = new Set<string>();
  #saying: Promise<void> | undefined;
  #failures = 0;
  #timer: unknown;

  constructor(run: ActiveRun) {
    this.#run = run;
    run.onEnd(() => this.#end());
  }

  /** Compares the open waits of the run with those that are known, and reports the difference. */
  update(options: { readonly isAgain?: boolean } = {}): void {
    const waits = waitsOf(this.#run.progress ?? {}).filter((wait) => wait.kind === 'event');
    const ids = new Set(waits.map(({ id }) => id));
    for (const [waitId, topic] of this.#open) if (!ids.has(waitId)) this.#close(waitId, topic);
    for (const wait of waits) {
      if (options.isAgain) this.#doubtful.add(wait.id);
      if (!this.#open.has(wait.id)) this.#begin(wait);
    }
    if (this.#unsaid.size > 0) void this.tellStore();
  }

  /** The wait has its signal: the store has removed it. */
  onServed(waitId: string): void {
    if (!this.#doubtful.has(waitId) && !this.#unsaid.has(waitId)) this.#open.delete(waitId);
  }

  /** The wait is still open although a signal was delivered to it: it waits for another one. */
  again(waitId: string): void {
    const wait = this.#run.progress && waitOf(this.#run.progress, waitId);
    if (wait?.kind !== 'event') return;
    this.#doubtful.add(waitId);
    this.#begin(wait);
    void this.tellStore();
  }

  /** Reports what the store does not know yet. Never rejects. @returns whether it knows everything */
  async tellStore(): Promise<boolean> {
    this.#saying ??= this.#say().finally(() => {
      this.#saying = undefined;
    });
    await this.#saying;
    return this.#unsaid.size === 0;
  }

  get #topics(): WaitStore | undefined {
    return this.#run.claim && this.#run.services.config.store?.waits;
  }

  #begin(wait: EventWait): void {
    const topic = topicOf(wait.name, wait.key);
    this.#open.set(wait.id, topic);
    if (this.#topics) this.#unsaid.set(wait.id, topic);
    else this.#openHere(wait, topic);
  }

  #openHere({ id: waitId }: EventWait, topic: string): void {
    const { services, runId } = this.#run;
    services.signals.open({ runId, waitId, topic, take: (signal) => this.#takeHere(waitId, signal) });
  }

  /** Gives a signal of this process to the run. @returns whether it is used up */
  async #takeHere(waitId: string, { value, ...signal }: SentSignal): Promise<boolean> {
    const { waits, services } = this.#run;
    try {
      await waits.take({ waitId, answer: { how: 'signal', value, signal }, at: services.config.clock.now() });
      return true;
    } catch (error) {
      if (isClosed(error)) return false;
      // The value does not fit: the sender has used its signal, and the wait stays.
      this.again(waitId);
      return true;
    }
  }

  #close(waitId: string, topic: string): void {
    this.#open.delete(waitId);
    this.#doubtful.delete(waitId);
    const { services, runId } = this.#run;
    services.signals.close({ runId, waitId, topic });
    if (this.#topics) this.#unsaid.set(waitId, null);
  }

  async #say(): Promise<void> {
    const { services, life } = this.#run;
    let isNew = false;
    for (let next = first(this.#unsaid); next; next = first(this.#unsaid)) {
      const topics = this.#topics;
      const { claim } = this.#run;
      if (!topics || !claim || life.isOver || life.hasLeft) break;
      const [waitId, topic] = next;
      try {
        await topics.expect(claim, { waitId, topic });
        if (this.#unsaid.get(waitId) === topic) this.#unsaid.delete(waitId);
        this.#failures = 0;
        isNew ||= topic !== null;
      } catch (error) {
        this.#doubtful.add(waitId);
        this.#onFailure(error);
        break;
      }
    }
    // A kept signal is in the inbox now.
    if (isNew) void services.inbox.look();
  }

  #onFailure(error: unknown): void {
    const run = this.#run;
    const { clock, warn } = run.services.config;
    if (hasCode(error, 'LEASE_LOST')) {
      run.loseLease(error);
      return;
    }
    if (this.#failures === 0)
      warn('wait.register.failed', {
        runId: run.runId,
        error,
      });
    this.#failures += 1;
    clock.clearTimeout(this.#timer);
    const ms = backoffMs(this.#failures, { firstMs: FIRST_RETRY_MS, maxMs: LONGEST_RETRY_MS });
    this.#timer = clock.setTimeout(() => void this.tellStore(), ms);
  }

  #end(): void {
    const { services, runId } = this.#run;
    services.config.clock.clearTimeout(this.#timer);
    for (const [waitId, topic] of this.#open) services.signals.close({ runId, waitId, topic });
  }
}

/** Whether a signal came to a wait that is over: another run may have it. */
export function isClosed(error: unknown): boolean {
  return ['WAIT_GONE', 'ALREADY_ANSWERED'].includes(String(readProperty(error, 'code')));
}

function first<K, V>(map: ReadonlyMap<K, V>): readonly [K, V] | undefined {
  return map.entries().next().value;
}
