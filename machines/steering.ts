import { change } from '../src/run/change.ts';
import type { OpenStep } from '../src/run/open-step.ts';
import { allMessagesOf, MAX_UNDELIVERED, type Progress } from '../src/run/progress.ts';
import { encodeMessage, type Message } from '../src/values/message.ts';
import type { RunContext, RunEmitted, Steer } from './context.ts';
import type { Enqueue } from './tool-calls.ts';

/**
 * Queues messages of the host (steering) for the model's next turn, and announces them, so that they are stored. A message
 * without room is refused.
 */
export function queueSteering(context: RunContext, steers: readonly Steer[], enqueue: Enqueue): void {
  queue(context, steers, { enqueue, isChanged: false });
}

/**
 * Queues messages to a run, as many as have room, and announces the change.
 * @param how.isChanged whether there is a change to announce besides the messages
 */
function queue(
  context: RunContext,
  steers: readonly Steer[],
  { enqueue, isChanged }: { readonly enqueue: Enqueue; readonly isChanged: boolean },
): void {
  const { progress, maxRecordBytes } = context;
  const most = MAX_UNDELIVERED - progress.undelivered.length;
  const { taken, refused } = admitted(steers, { most, room: roomToSay(progress, maxRecordBytes) });
  if (taken.length > 0 || isChanged) {
    const told = change(progress, ({ undelivered, commands }) => {
      undelivered.push(...taken.map(({ message }) => message));
      commands.push(...taken.flatMap(({ command }) => command ?? []));
    });
    const boundary = announce(context, told, enqueue);
    for (const { receipt } of taken) enqueue.emit({ type: 'steer.queued', receipt, boundary });
  }
  for (const refusal of refused) enqueue.emit(refusal);
}

/** Holds messages of the host for a run that is still resolving, up to the limits of the queue. */
export function holdSteering({ held }: RunContext, steer: Steer, enqueue: Enqueue): void {
  const room = held.reduce((left, { message }) => left - bytesOf(message), MAX_WAITING_BYTES);
  const { taken, refused } = admitted([steer], { most: MAX_UNDELIVERED - held.length, room });
  if (taken.length > 0) enqueue.assign({ held: [...held, ...taken] });
  for (const refusal of refused) enqueue.emit(refusal);
}

type Refusal = Extract<RunEmitted, { type: 'steer.refused' }>;

function admitted(steers: readonly Steer[], { most, room }: { readonly most: number; readonly room: number }) {
  const taken: Steer[] = [];
  const refused: Refusal[] = [];
  let left = room;
  for (const steer of steers) {
    const { receipt, message } = steer;
    const bytes = bytesOf(message);
    if (taken.length >= most) refused.push({ type: 'steer.refused', receipt });
    else if (bytes > left) refused.push({ type: 'steer.refused', receipt, bytes, left });
    else {
      taken.push(steer);
      left -= bytes;
    }
  }
  return { taken, refused };
}

/** Queues a message of the critic (nudge) for the model's next turn; one without room is dropped. */
export function queueNudge(context: RunContext, message: Message, enqueue: Enqueue): void {
  const { progress, maxRecordBytes } = context;
  if (progress.nudges.length >= MAX_UNDELIVERED) return;
  const [bytes, left] = [bytesOf(message), roomToSay(progress, maxRecordBytes)];
  if (bytes > left) enqueue.emit({ type: 'nudge.dropped', bytes, left });
  else
    announce(
      context,
      change(progress, ({ nudges }) => void nudges.push(message)),
      enqueue,
    );
}

/** Holds a message of the critic for a run that is still resolving. */
export function holdNudge({ heldNudges }: RunContext, message: Message, enqueue: Enqueue): void {
  const left = heldNudges.reduce((room, each) => room - bytesOf(each), MAX_WAITING_BYTES);
  const bytes = bytesOf(message);
  if (bytes > left) enqueue.emit({ type: 'nudge.dropped', bytes, left });
  else if (heldNudges.length < MAX_UNDELIVERED) enqueue.assign({ heldNudges: [...heldNudges, message] });
}

/**
 * Queues the messages that arrived while the run was resolving, now that its record is loaded. Those of the host come first.
 */
export function queueHeld(context: RunContext, enqueue: Enqueue): void {
  const { held, heldNudges, heldSteps, progress, maxRecordBytes } = context;
  if (held.length === 0 && heldNudges.length === 0 && heldSteps === 0) return;
  enqueue.assign({ held: [], heldNudges: [], heldSteps: 0 });
  const hostBytes = held.reduce((sum, { message }) => sum + bytesOf(message), 0);
  let left = roomToSay(progress, maxRecordBytes) - hostBytes;
  const told = change(progress, (draft) => {
    draft.raisedSteps += heldSteps;
    for (const message of heldNudges) {
      const bytes = bytesOf(message);
      if (bytes > left) enqueue.emit({ type: 'nudge.dropped', bytes, left: Math.max(0, left) });
      else if (draft.nudges.length < MAX_UNDELIVERED) {
        draft.nudges.push(message);
        left -= bytes;
      }
    }
  });
  queue({ ...context, progress: told }, held, { enqueue, isChanged: true });
}

/** Resets the attempts of a run whose children make progress: it is not stuck, even if its process dies often meanwhile. */
export function countProgress(context: RunContext, enqueue: Enqueue): void {
  if (context.progress.attempts > 0) announce(context, { ...context.progress, attempts: 0 }, enqueue);
}

function announce(context: RunContext, progress: Progress, { assign, emit }: Enqueue): number {
  const { isDurable, requested } = context;
  const boundary = isDurable ? requested + 1 : requested;
  assign({ progress, requested: boundary });
  if (isDurable) emit({ type: 'boundary', boundary, kind: 'steer', force: true, progress });
  return boundary;
}

/** Bytes of the messages that may wait for the next turn, steered ones and nudges together. */
const MAX_WAITING_BYTES: number = 8 * 2 ** 20;

/** Messages may fill a record up to this share of `maxRecordBytes`; the rest is for the run's own data. */
const SHARE = 0.75;

const messageSizes = new WeakMap<Message, number>();
const stepSizes = new WeakMap<OpenStep, number>();
const extrasSizes = new WeakMap<object, number>();

/** Bytes of a message's JSON. */
function bytesOf(message: Message): number {
  return cached(messageSizes, message, () => Buffer.byteLength(encodeMessage(message)));
}

/** Returns how many bytes of messages a run may still take, so that they cannot make its record too large. */
function roomToSay(progress: Progress, maxRecordBytes: number): number {
  const { undelivered, nudges } = progress;
  const waiting = [...undelivered, ...nudges].reduce((sum, message) => sum + bytesOf(message), 0);
  const inRecord = maxRecordBytes === Number.POSITIVE_INFINITY ? 0 : recordSize(progress) + waiting;
  return Math.max(0, Math.floor(Math.min(MAX_WAITING_BYTES - waiting, maxRecordBytes * SHARE - inRecord)));
}

/** The approximate bytes of a run's record, without the messages that wait. */
function recordSize(progress: Progress): number {
  const { openStep, inputs, images, earlier, completedPhases, meta } = progress;
  const extras = cached(extrasSizes, images, () => jsonBytes([inputs.value, images.value, earlier.value]));
  const step = openStep ? cached(stepSizes, openStep, () => 2 * jsonBytes(openStep)) : 0;
  return allMessagesOf(progress).size + extras + step + jsonBytes(completedPhases) + jsonBytes(meta);
}

const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

function cached<Key extends object>(sizes: WeakMap<Key, number>, key: Key, measure: () => number): number {
  const known = sizes.get(key);
  if (known !== undefined) return known;
  const size = measure();
  sizes.set(key, size);
  return size;
}
