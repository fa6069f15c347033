import { sha256 } from '../values/digest.ts';
import { CheckpointCorruptError, UndeliveredError } from '../values/errors.ts';
import { isAmount, jsonText } from '../values/json.ts';
import { kindOf } from '../values/known-options.ts';
import { type CommandToSend, encodeCommand } from './commands.ts';
import { parseStored } from './encoding/encode.ts';
import type { Encryption } from './encoding/encryption.ts';
import type { Claim, Signal } from './port.ts';

/** Most signals that are kept for one topic. */
const MAX_KEPT_SIGNALS = 1_000;

/** A wait of a run for a topic. */
export interface TopicWait {
  readonly runId: string;
  readonly waitId: string;
}

/** A signal as it is stored. */
export interface StoredSignal {
  /** A hash of topic and id. */
  readonly key: string;
  /** With a codec it is encrypted. */
  readonly text: string;
  /** Wall clock, ms. */
  readonly untilMs: number;
}

/** A signal on its way to its topic. */
export interface SignalWrite extends StoredSignal {
  readonly topic: string;
  /** The run that gives it back. */
  readonly from?: string | undefined;
  /** The command that delivers it to a wait. */
  commandFor(wait: TopicWait): CommandToSend;
}

/** A wait on its way to its topic. */
export interface ExpectWrite {
  readonly claim: Claim;
  readonly waitId: string;
  /** Null: the wait is withdrawn. */
  readonly topic: string | null;
  /** The id of the command that delivers a signal to this wait: one that waits in its inbox was delivered before. */
  readonly commandId: string;
  /** The command that delivers a kept signal to this wait; undefined for a damaged one, which counts as never sent. */
  commandOf(signal: Pick<StoredSignal, 'text'>): CommandToSend | undefined;
}

/**
 * The topics of a store. Each method is atomic: all others that concern the same topic take effect before or after it. A
 * delivery is decided like `sendCommand`, in the same commit as the change of the topic where the storage can do that.
 */
export interface WaitDriver {
  /** Checks the claim; then removes the wait, delivers the oldest kept signal to it, or adds it. @throws {LEASE_LOST} */
  expect(write: ExpectWrite): Promise<void>;
  /** See `routed`. @returns the run that got it @throws {UNDELIVERED} */
  signal(write: SignalWrite): Promise<string | undefined>;
}

/** What a topic knows of a signal that came before: the run that got it; null = it is kept. */
export type KnownSignal = { readonly to: string | null };

/** Returns whether a signal is new to its topic. One that its receiver gives back counts as new. */
export function isNewSignal({ from }: Pick<SignalWrite, 'from'>, known: KnownSignal | undefined): boolean {
  return known === undefined || (from !== undefined && known.to === from);
}

/** Refuses a signal if its topic keeps too many. @param count how many it keeps @throws {UNDELIVERED} */
export function checkRoom(count: number): void {
  if (count < MAX_KEPT_SIGNALS) return;
  throw new UndeliveredError(`${MAX_KEPT_SIGNALS} signals of this topic are kept for a run: this one was not taken`);
}

const TOPIC = /^[0-9a-f]{64}$/;

/** Returns a topic unchanged. @throws {TypeError} for a value that is not a topic */
function checkTopic(topic: unknown): string {
  if (typeof topic === 'string' && TOPIC.test(topic)) return topic;
  throw new TypeError(`a topic is 64 hexadecimal digits, not ${typeof topic === 'string' ? 'others' : kindOf(topic)}`);
}

/** Longest text of a signal, in characters: a command must be able to carry it. */
const MAX_SIGNAL_CHARS = 1_000_000;

/** Returns the id of the command that delivers a signal to a wait: a wait gets one signal. */
const deliveryId = (waitId: string): string => `signal-${sha256(waitId)}`;

/**
 * Makes what a driver stores of a signal.
 * @param now when a signal was sent that does not say so, wall clock, ms
 * @throws {TypeError} @throws {UNDELIVERED} @throws {NOT_JSON}
 */
export function signalWrite(signal: Signal, encryption: Encryption, now: number): SignalWrite {
  const { id, value, untilMs, from, sentAt = now } = signal;
  const topic = checkTopic(signal.topic);
  if (typeof id !== 'string' || id === '') throw new TypeError('a signal needs an id, a text that is not empty');
  for (const [name, time] of Object.entries({ untilMs, sentAt }))
    if (!isAmount(time)) throw new TypeError(`${name} must be a time in ms, not ${String(time)}`);
  const content = jsonText({ id, topic, untilMs, sentAt, value }, 'signal');
  if (content.length > MAX_SIGNAL_CHARS) {
    throw new UndeliveredError(
      `a signal may have up to ${MAX_SIGNAL_CHARS} characters, and this one has ${content.length}`,
    );
  }
  return {
    key: sha256(JSON.stringify([topic, id])),
    topic,
    untilMs,
    from,
    text: encryption.seal(content, topic, 'signal'),
    // An inbox has the time of what is delivered at once.
    commandFor: (wait) => deliveryOf({ ...signalOf(content), sentAt: undefined }, wait, encryption),
  };
}

/** Makes what a driver stores of a wait. */
export function expectWrite(
  claim: Claim,
  { waitId, topic }: { readonly waitId: string; readonly topic: string | null },
  encryption: Encryption,
): ExpectWrite {
  if (typeof waitId !== 'string' || waitId === '') throw new TypeError('a wait needs an id, a text that is not empty');
  const checked = topic === null ? null : checkTopic(topic);
  const wait = { runId: claim.runId, waitId };
  return {
    claim,
    waitId,
    topic: checked,
    commandId: deliveryId(waitId),
    commandOf: ({ text }) => {
      try {
        return deliveryOf(signalOf(encryption.open(text, checked ?? '', 'signal')), wait, encryption);
      } catch (error) {
        if (error instanceof CheckpointCorruptError) return undefined;
        throw error;
      }
    },
  };
}

type Sent = Omit<Signal, 'from'>;

const signalOf = (content: string): Sent => parseStored(content, 'signal') as Sent;

function deliveryOf({ value, ...signal }: Sent, { runId, waitId }: TopicWait, encryption: Encryption): CommandToSend {
  const id = deliveryId(waitId);
  const command = { id, kind: 'answer', waitId, answer: { how: 'signal', value, signal } } as const;
  return { runId, id, kind: command.kind, text: encryption.seal(encodeCommand(command), runId, 'command') };
}

/** All that is known of a topic, for drivers that keep it as one value. */
export interface TopicValue {
  /** The oldest first, as `kept`. */
  readonly waits: readonly TopicWait[];
  readonly kept: readonly StoredSignal[];
  readonly delivered: readonly DeliveredSignal[];
}

export interface DeliveredSignal extends Pick<StoredSignal, 'key' | 'untilMs'> {
  readonly to: string;
}

/** Most delivered signals of a topic that such a driver remembers: the oldest is forgotten for a further one. */
const MAX_DELIVERED = 10_000;

/** A topic without waits and signals. */
export const emptyTopic: TopicValue = { waits: [], kept: [], delivered: [] };

/** Returns a topic without expired signals. @param now wall clock, ms */
export function unexpired({ waits, kept, delivered }: TopicValue, now: number): TopicValue {
  const isCurrent = ({ untilMs }: Pick<StoredSignal, 'untilMs'>) => untilMs > now;
  return { waits, kept: kept.filter(isCurrent), delivered: delivered.filter(isCurrent) };
}

/** Returns what a topic knows of a signal: kept, delivered, or nothing. */
export function knownIn({ kept, delivered }: TopicValue, { key }: Pick<StoredSignal, 'key'>): KnownSignal | undefined {
  if (kept.some((signal) => signal.key === key)) return { to: null };
  return delivered.find((signal) => signal.key === key);
}

/** Returns a topic after the delivery of a signal to a wait. */
export function withDelivered(topic: TopicValue, { key, untilMs }: StoredSignal, wait: TopicWait): TopicValue {
  const others = topic.delivered.filter((signal) => signal.key !== key);
  return {
    waits: withoutWait(topic, wait).waits,
    kept: topic.kept.filter((signal) => signal.key !== key),
    delivered: [...others, { key, untilMs, to: wait.runId }].slice(-MAX_DELIVERED),
  };
}

/** Returns a topic that keeps one more signal. @throws {UNDELIVERED} if there is no room for it */
export function withKept(topic: TopicValue, { key, text, untilMs }: StoredSignal): TopicValue {
  checkRoom(topic.kept.length);
  const delivered = topic.delivered.filter((signal) => signal.key !== key);
  return { ...topic, delivered, kept: [...topic.kept, { key, text, untilMs }] };
}

/** Returns a topic with one more wait, unless it has that wait already. */
export function withWait(topic: TopicValue, { runId, waitId }: TopicWait): TopicValue {
  if (topic.waits.some((wait) => isSameWait(wait, { runId, waitId }))) return topic;
  return { ...topic, waits: [...topic.waits, { runId, waitId }] };
}

/** Returns a topic without a wait. */
export function withoutWait(topic: TopicValue, gone: TopicWait): TopicValue {
  return { ...topic, waits: topic.waits.filter((wait) => !isSameWait(wait, gone)) };
}

/** Returns whether a topic keeps nothing, so that it can be removed. */
export function isEmptyTopic({ waits, kept, delivered }: TopicValue): boolean {
  return waits.length + kept.length + delivered.length === 0;
}

const isSameWait = (a: TopicWait, b: TopicWait) => a.runId === b.runId && a.waitId === b.waitId;
