// Ids of runs, threads, calls, waits and model calls: how they are made and checked, and the fingerprint of a request.
import { nodeCrypto } from '../values/digest.ts';
import { InvalidRunIdError, InvalidThreadIdError } from '../values/errors.ts';
import { canonicalJson, type JsonObject, type JsonValue } from '../values/json.ts';
import { unmarked } from '../values/message-mark.ts';
import type { Answer } from './command.ts';
import { givenFields } from './field-rows.ts';
import type { GivenFields, IdentityFields } from './fields.ts';
import type { RunRequest } from './request.ts';

/** The prefix of the ids of children. A host cannot start a run under such an id. */
export const CHILD_MARK = '~';

/** The prefix of the ids of runs that messages of threads begin. A host may use it too. */
export const TURN_MARK = 't-';

/**
 * Makes the births of runs. A host cannot replace it, as it can the port of ids: two runs under one id must not share a key. Tests
 * set it, so that their keys and the ids of children are the same each time.
 */
export const births: { make(runId: string): string } = { make: () => nodeCrypto().randomUUID() };

/** A run by its id and its birth: what the keys of its calls and the ids of its children are made of. */
export interface BornRun {
  readonly runId: string;
  /** Absent: an older version began it, and its keys are made of its id alone. */
  readonly birth?: string | undefined;
}

/** Returns what the keys of a run are made of, from its record or its progress. */
export function bornRunOf({ meta, birth }: Pick<IdentityFields, 'meta' | 'birth'>): BornRun {
  return { runId: meta.runId, birth };
}

/** The part that all keys of one run share; no two runs under one id have the same. */
const lifeOf = ({ runId, birth }: BornRun): readonly string[] => (birth === undefined ? [runId] : [runId, birth]);

/** Returns the id of the child run that a tool call begins. A process that repeats the call finds the same run. */
export function childRunId(parent: BornRun, callId: string): string {
  return CHILD_MARK + base32(sha256Of(JSON.stringify([...lifeOf(parent), callId])));
}

/** Returns the id of the child run of a recorded call. One that an older version began has its child under that version's id. */
export function childOfCall(run: BornRun, { callId, hasOldKey }: RecordedCall): string {
  return hasOldKey ? oldCallName(run.runId, callId, '~') : childRunId(run, callId);
}

/**
 * Returns the id of the run that a message of a thread begins. A process that repeats the message finds the same run.
 * @param attempt counts the runs of this message, from 0: after a rewind the same message begins another run
 */
export function threadRunId(
  of: { readonly callerId: string; readonly threadId: string; readonly messageId: string },
  attempt = 0,
): string {
  const { callerId, threadId, messageId } = of;
  const named = ['thread', callerId, threadId, messageId];
  return `${TURN_MARK}${base32(sha256Of(JSON.stringify(attempt === 0 ? named : [...named, attempt])))}`;
}

/** A call as a record has it. */
interface RecordedCall {
  readonly callId: string;
  /** It ran when its record had no fingerprint yet: it keeps the key and the child of that time. */
  readonly hasOldKey?: true | undefined;
}

/** Returns the idempotency key of a tool call, by which its receiver recognises a repetition: 64 hexadecimal digits. */
export function idempotencyKeyOf(run: BornRun, { callId, hasOldKey }: RecordedCall): string {
  if (hasOldKey) return oldCallName(run.runId, callId, ':');
  return sha256Of(JSON.stringify([...lifeOf(run), 'tool', callId])).toString('hex');
}

/**
 * Returns the key of a model call: 64 hexadecimal digits, equal in each process that makes the call for this step. A failed
 * phase and the next phase may use the same step number, so the phase is part of it.
 */
export function modelCallKeyOf(run: BornRun, step: number, phase: number | undefined): string {
  const call = [...lifeOf(run), 'model', step];
  return sha256Of(JSON.stringify(phase === undefined ? call : [...call, phase])).toString('hex');
}

/**
 * Returns the key of a model call in a budget: before its last `:` it names the run. A further model of a list, asked in the same
 * turn, is another call.
 */
export function budgetKeyOf(run: BornRun, call: { turn: number; phase: number | undefined; place?: number }): string {
  const { turn, phase, place = 0 } = call;
  return `${lifeOf(run).join(':')}:${phase === undefined ? '' : `${phase}.`}${turn}${place === 0 ? '' : `~${place + 1}`}`;
}

/** Returns the id of a run's end. @param epoch that of the claim under which it ended */
export function outcomeIdOf(run: BornRun, epoch = 1): string {
  return `${lifeOf(run).join(':')}:${epoch}`;
}

/** Returns the old spelling of a call's key and child id, for a call that ran when its record had no fingerprint yet. */
function oldCallName(runId: string, callId: string, separator: ':' | '~'): string {
  return `${runId}${separator}${callId}`;
}

/** Returns the id of a wait: 26 characters, unique in its run. */
export function waitIdOf(of: readonly (string | number)[]): string {
  return base32(sha256Of(JSON.stringify(['wait', ...of]))).slice(0, 26);
}

/**
 * Returns the id of a person's answer to a wait. An equal answer of the same person has the same id, in each process. Notes and
 * reasons are not part of it.
 */
export function decisionIdOf(
  waitId: string,
  { how, value = null, input = null }: Pick<Answer, 'how' | 'value' | 'input'>,
  personId = '',
): string {
  return waitIdOf([waitId, how, personId, canonicalJson([value, input])]);
}

/**
 * Computes the digest of a call that a person approves: SHA-256, as 64 hexadecimal digits, of tool, canonical input and the
 * version of the agent. An approval of one digest allows no other call.
 */
export function approvalDigest(tool: string, input: JsonValue, version: string): string {
  return sha256Of(canonicalJson([tool, input, version])).toString('hex');
}

/** Returns the name of a topic in a store: SHA-256, as 64 hexadecimal digits, of the name and the key of an event. */
export function topicOf(name: string, key: string): string {
  return sha256Of(JSON.stringify([name, key])).toString('hex');
}

/** The fields that make two starts the same request. */
type Asked = Pick<
  RunRequest,
  'prompt' | 'earlier' | 'images' | 'callerId' | 'channelId' | 'guildId' | 'inputs' | keyof GivenFields
> & {
  readonly agentId: string;
};

/**
 * Computes the fingerprint of a request, by which a repeated start is recognised: SHA-256, as 64 hexadecimal digits, of its
 * canonical JSON, without the marks of its messages. An empty field ('', [], {}) is left out, like an absent one: a field that a later version adds changes no
 * existing fingerprint.
 */
export function fingerprintOf(asked: Asked): string {
  const { agentId, prompt, earlier: history = [], images, callerId, channelId, guildId, inputs } = asked;
  const texts = { agentId, prompt, callerId, channelId, guildId };
  const short = givenFields.flatMap(([key, { isAsked }]) => (isAsked ? [[key, asked[key] ?? '']] : []));
  const long: JsonObject = { inputs, history: history.map(unmarked) as never, images: images as never };
  const fields: JsonObject = { ...texts, ...long, ...Object.fromEntries(short) };
  const given = Object.entries(fields).filter(([, value]) => !isEmpty(value));
  return sha256Of(canonicalJson(Object.fromEntries(given))).toString('hex');
}

/** The prefix of a fingerprint that was computed from a stored request. */
const STORED = 'stored:';

/**
 * Computes the fingerprint of a record that was stored without one: that of its stored request. Redaction may turn two
 * requests into one text, so this fingerprint has its own prefix.
 */
export function storedFingerprintOf(asked: Asked): string {
  return STORED + fingerprintOf(asked);
}

/** Returns whether a fingerprint is that of a record which was stored without one. */
export function isStoredFingerprint(fingerprint: string): boolean {
  return fingerprint.startsWith(STORED);
}

function isEmpty(value: unknown): boolean {
  return value === '' || (typeof value === 'object' && value !== null && Object.keys(value).length === 0);
}

function sha256Of(text: string): Buffer {
  return nodeCrypto().hash('sha256', text, 'buffer');
}

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';

/** Base32 of RFC 4648, in lower case and without padding: safe in file names that ignore case. */
function base32(bytes: Uint8Array): string {
  let text = '';
  let bits = 0;
  let value = 0;
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xfff;
    for (bits += 8; bits >= 5; bits -= 5) text += alphabet[(value >>> (bits - 5)) & 31];
  }
  return bits === 0 ? text : text + alphabet[(value << (5 - bits)) & 31];
}

const MAX_RUN_ID_BYTES = 512;

/**
 * Checks a run id, for all stores and the executor: any string of 1 to 512 bytes (UTF-8) is an id. A lone surrogate is
 * refused, because UTF-8 would turn two such ids into one.
 * @throws {INVALID_RUN_ID}
 */
export function checkRunId(runId: unknown): string {
  if (typeof runId !== 'string' || runId === '')
    throw new InvalidRunIdError('a run id must be a string that is not empty');
  const bytes = Buffer.byteLength(runId, 'utf8');
  if (bytes > MAX_RUN_ID_BYTES)
    throw new InvalidRunIdError(`a run id has at most ${MAX_RUN_ID_BYTES} bytes, and this one has ${bytes}`);
  if (!runId.isWellFormed()) throw new InvalidRunIdError('a run id must be well-formed Unicode');
  return runId;
}

/**
 * Checks the id of a thread, of its caller or of a message: any string of 1 to 512 bytes (UTF-8) that is well-formed.
 * @param what names it, for example `a thread`
 * @throws {INVALID_THREAD_ID}
 */
export function checkThreadId(id: unknown, what: string): string {
  const problem = problemOf(id);
  if (problem === undefined) return id as string;
  throw new InvalidThreadIdError(`the id of ${what} ${problem}`);
}

function problemOf(id: unknown): string | undefined {
  if (typeof id !== 'string' || id === '') return 'must be a string that is not empty';
  const bytes = Buffer.byteLength(id, 'utf8');
  if (bytes > MAX_RUN_ID_BYTES) return `has at most ${MAX_RUN_ID_BYTES} bytes, and this one has ${bytes}`;
  return id.isWellFormed() ? undefined : 'must be well-formed Unicode';
}

/** Each URL parser takes these for steps between folders, also when they are written as `%2e`: no address can hold such an id. */
const steps: ReadonlySet<string> = new Set(['.', '..']);

/** Returns whether a URL can name a thread. Stored threads of other ids stay readable: only new ones are refused. */
export function isNameable(threadId: string): boolean {
  return !steps.has(threadId);
}

/**
 * Checks the id of a thread that begins: also that a URL can name it.
 * @throws {INVALID_THREAD_ID}
 */
export function checkNewThreadId(id: unknown): string {
  const checked = checkThreadId(id, 'a thread');
  if (isNameable(checked)) return checked;
  throw new InvalidThreadIdError('the id of a thread must not be "." or "..": no URL can name it; use another id');
}

/**
 * Checks the id of a run that a host begins: an id that begins with the prefix of children is refused, and one that no
 * address can hold. Stored runs of such an id stay readable: stores check less.
 * @throws {INVALID_RUN_ID} also for an id that begins with `~`: only a call of another run begins such a run; for `.` and
 *   `..`: each URL parser takes them for steps between folders, also as `%2e`
 */
export function checkHostRunId(runId: unknown): string {
  const checked = checkRunId(runId);
  if (steps.has(checked))
    throw new InvalidRunIdError('a run id must not be "." or "..": no URL can name such a run; use another id');
  if (!checked.startsWith(CHILD_MARK)) return checked;
  throw new InvalidRunIdError(
    'a run id that begins with ~ names a run that a call of another run begins: use another id',
  );
}
