import type { CommandToSend } from '../commands.ts';
import type { Claim } from '../port.ts';
import {
  type ExpectWrite,
  emptyTopic,
  isEmptyTopic,
  isNewSignal,
  knownIn,
  type SignalWrite,
  type TopicValue,
  type TopicWait,
  unexpired,
  type WaitDriver,
  withDelivered,
  withKept,
  withoutWait,
  withWait,
} from '../topics.ts';

/** What topics need of the runs of a memory store. Each call takes effect at once. */
interface RunsOfTopics {
  /** Wall clock, ms. */
  now(): number;
  /** @throws {LEASE_LOST} if this is no longer the newest claim of its run */
  check(claim: Claim): void;
  /** Whether a command of this id waits for a run. */
  hasCommand(runId: string, id: string): boolean;
  /** Sends a command. @returns false if the run has no record @throws {UNDELIVERED} */
  deliver(command: CommandToSend): boolean;
}

/** The topics of a memory store. No other call comes between the parts of one, because none of them waits. */
export class MemoryTopics implements WaitDriver {
  readonly #runs: RunsOfTopics;
  readonly #topics = new Map<string, TopicValue>();
  /** The topics of the waits of each run. */
  readonly #waiting = new Map<string, Map<string, string>>();

  constructor(runs: RunsOfTopics) {
    this.#runs = runs;
  }

  async expect({ claim, waitId, topic, commandId, commandOf }: ExpectWrite): Promise<void> {
    this.#runs.check(claim);
    const { runId } = claim;
    const wait = { runId, waitId };
    const before = this.#waiting.get(runId)?.get(waitId);
    if (before !== undefined && before !== topic) this.#remove(before, wait);
    if (topic === null || this.#runs.hasCommand(runId, commandId)) return;
    let value = this.#topic(topic);
    for (const signal of value.kept) {
      const command = commandOf(signal);
      if (command && !this.#runs.deliver(command)) return;
      value = command
        ? withDelivered(value, signal, wait)
        : { ...value, kept: value.kept.filter((kept) => kept !== signal) };
      this.#put(topic, value);
      if (command) return this.#forget(wait);
    }
    this.#put(topic, withWait(value, wait));
    this.#waiting.set(runId, (this.#waiting.get(runId) ?? new Map()).set(waitId, topic));
  }

  async signal(signal: SignalWrite): Promise<string | undefined> {
    const { topic, commandFor } = signal;
    let value = this.#topic(topic);
    const known = knownIn(value, signal);
    if (!isNewSignal(signal, known)) return known?.to ?? undefined;
    for (const wait of value.waits) {
      const isThere = this.#runs.deliver(commandFor(wait));
      value = isThere ? withDelivered(value, signal, wait) : withoutWait(value, wait);
      this.#put(topic, value);
      this.#forget(wait);
      if (isThere) return wait.runId;
    }
    this.#put(topic, withKept(value, signal));
    return undefined;
  }

  /** The run is deleted: its waits are gone. */
  runGone(runId: string): void {
    for (const [waitId, topic] of this.#waiting.get(runId) ?? []) this.#remove(topic, { runId, waitId });
  }

  #remove(topic: string, wait: TopicWait): void {
    this.#put(topic, withoutWait(this.#topic(topic), wait));
    this.#forget(wait);
  }

  #forget({ runId, waitId }: TopicWait): void {
    const waits = this.#waiting.get(runId);
    waits?.delete(waitId);
    if (waits?.size === 0) this.#waiting.delete(runId);
  }

  #topic(topic: string): TopicValue {
    return unexpired(this.#topics.get(topic) ?? emptyTopic, this.#runs.now());
  }

  #put(topic: string, value: TopicValue): void {
    if (isEmptyTopic(value)) this.#topics.delete(topic);
    else this.#topics.set(topic, value);
  }
}
