import { encodeMessage, type Message } from '../values/message.ts';
import type { OpenStep } from './open-step.ts';
import type { Progress } from './progress.ts';

/** Bytes of the messages that may wait for the next turn, steered ones and nudges together. */
export const MAX_WAITING_BYTES: number = 8 * 2 ** 20;

/** Messages may fill a record up to this share of `maxRecordBytes`; the rest is left for what the run does itself. */
const SHARE = 0.75;

const messageSizes = new WeakMap<Message, number>();
const stepSizes = new WeakMap<OpenStep, number>();
const extrasSizes = new WeakMap<object, number>();

/** Bytes of a message's JSON. */
export function bytesOf(message: Message): number {
  return cached(messageSizes, message, () => Buffer.byteLength(encodeMessage(message)));
}

/** How many bytes of messages may still be said to a run, so that they cannot make its record too large. */
export function roomToSay(progress: Progress, maxRecordBytes: number): number {
  const { undelivered, nudges } = progress;
  const waiting = [...undelivered, ...nudges].reduce((sum, message) => sum + bytesOf(message), 0);
  const inRecord = maxRecordBytes === Number.POSITIVE_INFINITY ? 0 : recordSize(progress) + waiting;
  return Math.max(0, Math.floor(Math.min(MAX_WAITING_BYTES - waiting, maxRecordBytes * SHARE - inRecord)));
}

/** About the bytes of a run's record, without the messages that wait. */
function recordSize({ transcript, openStep, inputs, images, earlier, completedPhases, meta }: Progress): number {
  const extras = cached(extrasSizes, images, () => jsonBytes([inputs.value, images.value, earlier.value]));
  const step = openStep ? cached(stepSizes, openStep, () => 2 * jsonBytes(openStep)) : 0;
  return transcript.size + extras + step + jsonBytes(completedPhases) + jsonBytes(meta);
}

const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

function cached<Key extends object>(sizes: WeakMap<Key, number>, key: Key, measure: () => number): number {
  const known = sizes.get(key);
  if (known !== undefined) return known;
  const size = measure();
  sizes.set(key, size);
  return size;
}
