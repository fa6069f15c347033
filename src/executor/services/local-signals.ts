import { UndeliveredError } from '../../values/errors.ts';
import type { JsonValue } from '../../values/json.ts';

/** A signal to the runs that wait for its topic. */
export interface SentSignal {
  readonly topic: string;
  readonly id: string;
  readonly value: JsonValue;
  /** Wall clock, ms. */
  readonly untilMs: number;
}

/** A wait of a live run that no store knows. */
interface LocalWait {
  readonly runId: string;
  readonly waitId: string;
  readonly topic: string;
  /** @returns whether the run took it; false = the wait has closed */
  take(signal: SentSignal): Promise<boolean>;
}

/** Most signals of one topic that one process keeps in memory. */
const MAX_KEPT_HERE = 1_000;
/** Most signals that one process keeps in memory, and most delivered ones whose ids it remembers. */
const MAX_SIGNALS = 10_000;

/**
 * The topics of the live runs whose waits no store knows: runs without a record, and runs in a store without `signal`. They end
 * with the process.
 */
export class LocalSignals {
  readonly #now: () => number;
  /** By topic; the oldest first. */
  readonly #waits = new Map<string, readonly LocalWait[]>();
  /** By topic; the oldest first. */
  readonly #kept = new Map<string, readonly SentSignal[]>();
  #count = 0;
  /** The runs that got signals, by topic and id; the oldest first. */
  readonly #delivered = new Map<string, { readonly to: string; readonly untilMs: number }>();

  /** @param now wall clock, ms */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Adds a wait, which gets the oldest kept signal of its topic. */
  open(wait: LocalWait): void {
    const { topic } = wait;
    const waits = this.#waits.get(topic) ?? [];
    if (waits.some(({ waitId, runId }) => waitId === wait.waitId && runId === wait.runId)) return;
    this.#waits.set(topic, [...waits, wait]);
    const [oldest, ...rest] = this.#keptIn(topic);
    if (!oldest) return;
    this.#keepOnly(topic, rest);
    void this.#deliver(oldest).then((to) => {
      if (to === undefined) this.#keepOnly(topic, [oldest, ...this.#keptIn(topic)]);
    });
  }

  /** Removes a wait that is over. */
  close({ runId, waitId, topic }: Omit<LocalWait, 'take'>): void {
    const left = (this.#waits.get(topic) ?? []).filter((wait) => wait.waitId !== waitId || wait.runId !== runId);
    if (left.length > 0) this.#waits.set(topic, left);
    else this.#waits.delete(topic);
  }

  /** Delivers a signal to the oldest wait of its topic. @returns undefined if there is none, and it never was delivered */
  async send(signal: SentSignal): Promise<{ readonly to?: string } | undefined> {
    const before = this.#delivered.get(keyOf(signal));
    if (before && before.untilMs > this.#now()) return { to: before.to };
    if (this.#keptIn(signal.topic).some(({ id }) => id === signal.id)) return {};
    const to = await this.#deliver(signal);
    return to === undefined ? undefined : { to };
  }

  /** Keeps a signal for the next wait of its topic. @throws {UNDELIVERED} if too many are kept */
  keep(signal: SentSignal): void {
    // Signals that no run ever waited for must not fill the memory for good.
    if (this.#count >= MAX_SIGNALS) for (const topic of [...this.#kept.keys()]) this.#keptIn(topic);
    const kept = this.#keptIn(signal.topic);
    if (kept.length >= MAX_KEPT_HERE || this.#count >= MAX_SIGNALS)
      throw new UndeliveredError(
        `${this.#count} signals are kept in this process, ${kept.length} of them for this event: this one was not taken`,
      );
    this.#keepOnly(signal.topic, [...kept, signal]);
  }

  async #deliver(signal: SentSignal): Promise<string | undefined> {
    const key = keyOf(signal);
    for (let wait = this.#oldest(signal); wait; wait = this.#oldest(signal)) {
      // Both before the first await: no other signal gets this wait, and no other wait this signal.
      this.close(wait);
      this.#remember(key, { to: wait.runId, untilMs: signal.untilMs });
      if (await wait.take(signal)) return wait.runId;
      this.#delivered.delete(key);
    }
    return undefined;
  }

  #oldest({ topic }: SentSignal): LocalWait | undefined {
    return this.#waits.get(topic)?.[0];
  }

  #remember(key: string, to: { readonly to: string; readonly untilMs: number }): void {
    this.#delivered.set(key, to);
    const oldest = this.#delivered.keys().next().value;
    if (this.#delivered.size > MAX_SIGNALS && oldest !== undefined) this.#delivered.delete(oldest);
  }

  #keptIn(topic: string): readonly SentSignal[] {
    const kept = this.#kept.get(topic) ?? [];
    const now = this.#now();
    if (kept.every(({ untilMs }) => untilMs > now)) return kept;
    const current = kept.filter(({ untilMs }) => untilMs > now);
    this.#keepOnly(topic, current);
    return current;
  }

  #keepOnly(topic: string, signals: readonly SentSignal[]): void {
    this.#count += signals.length - (this.#kept.get(topic)?.length ?? 0);
    if (signals.length > 0) this.#kept.set(topic, signals);
    else this.#kept.delete(topic);
  }
}

function keyOf({ topic, id }: SentSignal): string {
  return `${topic}\n${id}`;
}
