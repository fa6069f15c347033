import type { Agent } from '../../../agent/agent.ts';
import { type OpenWait, openWaitsIn } from '../../../record/interrupted.ts';
import { checkThreadId } from '../../../run/identity.ts';
import { type ImageInput, type ImagePart, imagePartOf, type Labels } from '../../../run/request.ts';
import type { Admission, OnBusy, ThreadKey, ThreadStore } from '../../../store/thread-port.ts';
import { sha256 } from '../../../values/digest.ts';
import { hasCode } from '../../../values/error-data.ts';
import { RecordTooLargeError, ThreadBusyError, ThreadMissingError } from '../../../values/errors.ts';
import { canonicalJson, isObject } from '../../../values/json.ts';
import { checkKeys, checkWord, kindOf } from '../../../values/known-options.ts';
import { encodeMessage, enterMessage } from '../../../values/message.ts';
import type { ExecutorServices } from '../../run/active-run.ts';
import { fairKeyOf } from '../../run/run-info.ts';
import { controlOf } from '../control.ts';
import { messagesOfRun } from '../stored/history.ts';
import { firstRecordOf, startTurn, type UserTurn } from './begin-turn.ts';
import { passParked } from './parked-turn.ts';
import type { ThreadContent, ThreadSend, ThreadSent } from './threads.ts';

/** A part of a user's message: a text, or a file (an image, a document). */
export type MessagePart =
  | { readonly type: 'text'; readonly text: string }
  | ({ readonly type: 'file'; readonly filename?: string } & ImageInput);

/** A thread, and what its messages do. */
export interface ThreadSetting {
  readonly services: ExecutorServices;
  readonly store: ThreadStore;
  readonly key: ThreadKey;
  readonly agent: Agent;
  readonly onBusy: OnBusy;
  readonly maxQueued: number;
  readonly labels: Labels;
}

/** What a message may do that finds a live run. */
export const onBusyWords: readonly OnBusy[] = ['queue', 'steer', 'reject', 'interrupt'];

const MAX_MESSAGE_PARTS = 100;
/** Longest message, as JSON, in characters. */
const MAX_MESSAGE_CHARS = 16 * 2 ** 20;

/** Adds a message to a thread, and starts its run if that begins now. */
export async function sendMessage(setting: ThreadSetting, given: ThreadSend, again = false): Promise<ThreadSent> {
  checkKeys(given, { id: true, text: true, parts: true, onBusy: true }, { of: 'thread.send' });
  const { id, onBusy = setting.onBusy } = given;
  checkWord('thread.send: onBusy', onBusy, onBusyWords);
  const messageId = checkThreadId(id, 'a message');
  const turn = userTurnOf(setting, given);
  const admission = await admitPast(setting, turn, { messageId, onBusy, again });
  const { runId, state, live } = admission;
  if (state === 'started') await begin(setting, runId);
  if (live === undefined || state === 'started') return { runId, state };
  const isBehind = state !== 'known' || live !== runId;
  if (isBehind && (await tryToPass(setting, live))) return afterParked(setting, messageId, admission);
  const waits = await waitsOf(setting.services, live);
  // The process that stored it may have died before its run began.
  if (state === 'known' && live === runId && waits.length === 0) await begin(setting, runId);
  if (onBusy === 'interrupt' && state === 'queued') interrupt(setting, live);
  // One that is live here gets it now; one that rests is due.
  if (state === 'steered') void setting.services.inbox.look();
  if (state === 'steered' && setting.services.sweep.isOn) void setting.services.sweep.look();
  return { runId, state, ...(waits.length > 0 ? { waits } : {}) };
}

/** Never rejects: the message is stored. */
async function tryToPass({ services }: ThreadSetting, live: string): Promise<boolean> {
  return passParked(services, live).catch((error: unknown) => {
    services.config.warn('turn.end.failed', { runId: live, error });
    return false;
  });
}

/** What became of a message that has ended the parked run before it. */
async function afterParked(
  { store, key }: ThreadSetting,
  messageId: string,
  { runId, state }: Admission,
): Promise<ThreadSent> {
  const turn = await store.turnOf(key, { messageId });
  if (state === 'known') return { runId: turn?.runId ?? runId, state };
  return { runId: turn?.runId ?? runId, state: turn?.state === 'queued' ? 'queued' : 'started' };
}

/** Begins another run of the last message of a thread. @throws {THREAD_BUSY} @throws {THREAD_MISSING} */
export async function retryMessage(
  setting: ThreadSetting,
  given: string,
  edited: ThreadContent | undefined,
): Promise<ThreadSent> {
  const { services, store, key } = setting;
  const messageId = checkThreadId(given, 'a message');
  await liveIsPassed(setting);
  const turn = await store.turnOf(key, { messageId });
  const [last] = await store.turns(key, { limit: 1 });
  if (turn?.state === 'queued' || last?.state === 'live') throw new ThreadBusyError('a run of the thread is live');
  // A steered message has no turn of its own.
  if (!turn || last?.messageId !== messageId)
    throw new ThreadMissingError('this is not the last message of the thread; rewind to it first');
  const content = edited ?? (await readContent(services, turn.runId));
  return sendMessage(setting, { ...content, id: messageId }, true);
}

async function readContent(services: ExecutorServices, runId: string): Promise<ThreadContent> {
  const [message] = (await messagesOfRun(services, runId, { limit: 1 })) ?? [];
  if (message?.role !== 'user') throw new ThreadMissingError('the thread has the message of this turn no more');
  return { parts: (message.content as readonly Content[]).map(givenPart) };
}

/** A part of a stored message as it was sent. */
function givenPart(part: Content): MessagePart {
  if (part.type === 'text') return part;
  return { ...part, data: part.data.type === 'url' ? part.data.url : part.data.data };
}

/** How a message is admitted. */
interface Admitting {
  readonly messageId: string;
  readonly onBusy: OnBusy;
  /** It is the last message of the thread: another run takes the place of its own. */
  readonly again: boolean;
}

/** As `admit`; a parked run is no live one. */
async function admitPast(setting: ThreadSetting, turn: UserTurn, how: Admitting): Promise<Admission> {
  try {
    return await admit(setting, turn, how);
  } catch (error) {
    const isRefused = hasCode(error, 'THREAD_BUSY') || hasCode(error, 'THREAD_FULL');
    if (!isRefused || !(await liveIsPassed(setting))) throw error;
    return admit(setting, turn, how);
  }
}

/** Ends the live run of a thread if it is parked. @returns whether it did */
async function liveIsPassed({ services, store, key }: ThreadSetting): Promise<boolean> {
  const [newest] = await store.turns(key, { limit: 1 });
  return newest?.state === 'live' && passParked(services, newest.runId);
}

async function admit(
  { services, store, key, agent, maxQueued }: ThreadSetting,
  turn: UserTurn,
  { messageId, onBusy, again }: Admitting,
): Promise<Admission> {
  const { text, files, message } = turn;
  const digest = sha256(canonicalJson(message.content as never));
  const steered = files.length === 0 && text.trim() !== '' ? { text } : {};
  const record = firstRecordOf(services, agent, turn);
  const fairKey = fairKeyOf(services.config, turn.labels);
  const fair = fairKey === undefined ? {} : { fairKey };
  const given = { ...key, messageId, digest, record, maxQueued, again, ...fair, ...steered };
  try {
    return await store.admit({ ...given, onBusy });
  } catch (error) {
    // The live run has no room for it: then it waits for its turn.
    if (onBusy !== 'steer' || !hasCode(error, 'UNDELIVERED')) throw error;
    return store.admit({ ...given, onBusy: 'queue' });
  }
}

function begin({ services, agent }: ThreadSetting, runId: string): Promise<void> {
  return startTurn(services, { runId, agentId: agent.id }, agent);
}

/** The command to cancel is stored with the message; a run that is live here, or rests, ends at once. */
function interrupt({ services }: ThreadSetting, live: string): void {
  const cancelling = cancelTurn(services, live, 'another message of its thread interrupts it');
  services.outlive(cancelling).catch((error: unknown) => {
    services.config.warn('run.cancel.failed', { runId: live, error });
  });
}

/** Cancels the run of a turn. @returns `sent`: it is live in another process, and ends at its next look */
export async function cancelTurn(
  services: ExecutorServices,
  runId: string,
  reason?: string,
): Promise<'ended' | 'sent'> {
  try {
    return await controlOf(services, runId).cancel(reason);
  } catch (error) {
    if (hasCode(error, 'RUN_NOT_FOUND')) return 'ended';
    throw error;
  }
}

/** The open waits of a run, live here or stored. */
async function waitsOf({ registry, config }: ExecutorServices, runId: string): Promise<readonly OpenWait[]> {
  const live = registry.live(runId)?.progress;
  const state = live ?? (await config.store?.load(runId).catch(() => null));
  return state ? openWaitsIn(state) : [];
}

function userTurnOf({ key, labels }: ThreadSetting, { text, parts }: ThreadSend): UserTurn {
  const content = contentOf(text, parts);
  const texts = content.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  const files = content.flatMap((part) => (part.type === 'file' ? [withoutName(part)] : []));
  if (files.length === 0 && texts.join('').trim() === '') throw new TypeError('thread.send: the message is empty');
  const message = enterMessage({ role: 'user', content }, 'thread.send: parts');
  if (encodeMessage(message).length > MAX_MESSAGE_CHARS)
    throw new RecordTooLargeError(
      `a message of a thread has at most ${MAX_MESSAGE_CHARS} characters, with its files as base64`,
    );
  return { callerId: key.callerId, text: texts.join('\n\n'), files, message, labels };
}

type Content = { readonly type: 'text'; readonly text: string } | (ImagePart & { readonly filename?: string });

function contentOf(text: unknown, parts: unknown): readonly Content[] {
  if ((text === undefined) === (parts === undefined)) throw new TypeError('thread.send needs either text or parts');
  if (parts === undefined) return [textPart(text, 'thread.send: text')];
  if (!Array.isArray(parts)) throw new TypeError(`thread.send: parts must be an array, not ${kindOf(parts)}`);
  if (parts.length > MAX_MESSAGE_PARTS)
    throw new TypeError(`thread.send: a message has at most ${MAX_MESSAGE_PARTS} parts, not ${parts.length}`);
  return parts.map((part, i) => partOf(part, `parts[${i}]`));
}

function partOf(part: unknown, where: string): Content {
  if (!isObject(part))
    throw new TypeError(`${where} must be { type: 'text', text } or { type: 'file', mediaType, data }`);
  const { type, ...rest } = part;
  if (type === 'text') {
    checkKeys(rest, { text: true }, { of: where });
    return textPart(rest.text, `${where}.text`);
  }
  if (type !== 'file') throw new TypeError(`${where}.type must be 'text' or 'file'`);
  const { filename, ...image } = rest;
  if (filename !== undefined && typeof filename !== 'string') throw new TypeError(`${where}.filename must be a string`);
  const file = imagePartOf(image as unknown as ImageInput, where);
  return filename === undefined ? file : { ...file, filename };
}

function textPart(text: unknown, where: string): Content {
  if (typeof text !== 'string') throw new TypeError(`${where} must be a string, not ${kindOf(text)}`);
  return { type: 'text', text };
}

function withoutName({ type, mediaType, data }: ImagePart): ImagePart {
  return { type, mediaType, data };
}
