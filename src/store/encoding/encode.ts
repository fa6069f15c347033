import type { RunCheckpoint, RunHead } from '../../record/checkpoint.ts';
import { changingPart, headOf, type RunDelta, startOf } from '../../record/delta.ts';
import { type DueOfRecord, definitionOfParked, dueOfRecord, pauseOf } from '../../record/interrupted.ts';
import { checkCheckpoint, parseCheckpoint, parseHead } from '../../record/parse.ts';
import { identityOf } from '../../run/field-rows.ts';
import { checkRunId } from '../../run/identity.ts';
import type { RunOutcome } from '../../run/result.ts';
import { CheckpointCorruptError } from '../../values/errors.ts';
import { isObject, jsonText } from '../../values/json.ts';
import { encodeMessage, enterMessage, type Message } from '../../values/message.ts';
import { type StepSplitter, type StepTexts, withStepCount } from './step-texts.ts';

/** The changing part of a record, as text, with the fields that stores read without parsing it. */
export interface EncodedHead {
  readonly runId: string;
  /** JSON of the head without the fields that are written once. */
  readonly head: string;
  readonly version: number;
  readonly revision: number;
  readonly updatedAt: number;
  /** Undefined if the record has no such field (a host's own record may not). */
  readonly attempts: number | undefined;
  /** Whether its run is due. */
  readonly due: DueOfRecord;
  /** The definition by which a parked run is found: see `definitionOfParked`. */
  readonly definition?: string | undefined;
  /** Why its run is not due: see `pauseOf`. */
  readonly pausedBy?: string | undefined;
  /** The part that is stored beside the head, which then names it: only for stores with a `StepSplitter`. */
  readonly step?: StepTexts | undefined;
}

/** A record as the texts that stores keep. Texts are immutable: that isolates the stored data. */
export interface EncodedRecord extends EncodedHead {
  /**
   * JSON of the fields that are written once: the meta, and `identity` (the other fields of that part) where there are such.
   */
  readonly meta: string;
  /** JSON of inputs, images and the earlier conversation; null if there are none. */
  readonly extras: string | null;
  /** One JSON text for each message. */
  readonly messages: readonly string[];
}

/** The addition of a delta, as text. */
export interface EncodedDelta extends EncodedHead {
  readonly from: number;
  readonly messages: readonly string[];
}

/** The texts of a stored record; `messages` are already parsed. */
export interface StoredRecord {
  readonly runId: string;
  readonly meta: string;
  readonly head: string;
  readonly extras: string | null;
  readonly messages: readonly unknown[];
}

/**
 * Encodes a whole record as the texts that a store keeps.
 * @throws {NOT_JSON} naming the path of a value that JSON cannot hold
 * @throws {INVALID_RUN_ID}
 * @throws {CHECKPOINT_CORRUPT} for a value that is not a record: refusing it now is better than an unreadable record at
 *   recovery
 */
export function encodeRecord(record: RunCheckpoint, splitter?: StepSplitter): EncodedRecord {
  const extras = startOf(record);
  const runId = checkRunId(record.meta?.runId);
  const step = splitter?.split({ runId, revision: record.revision ?? 0, head: record }, { isWhole: true });
  const head = headOf(record);
  const encoded = {
    ...encodeHead(runId, step ? withoutOpenStep(head) : head, step),
    meta: startText(record),
    extras: Object.keys(extras).length > 0 ? jsonText(extras, 'record') : null,
    messages: encodeMessages(record.messages, 0),
  };
  checkCheckpoint(record);
  return encoded;
}

/** Encodes a delta of a record as the texts that a store keeps. @throws the errors of `encodeRecord`, for the same reasons */
export function encodeDelta(delta: RunDelta, splitter?: StepSplitter): EncodedDelta {
  const { runId, revision, from, head } = delta;
  const messages = encodeMessages(delta.messages, from);
  const step = splitter?.split({ runId, revision, head });
  // The splitter checks the part that it stores beside the head.
  const own = step ? withoutOpenStep(head) : head;
  const encoded = { ...encodeHead(checkRunId(runId), own, step), revision, from, messages };
  parseHead(own);
  return encoded;
}

function startText(head: RunHead): string {
  const identity = identityOf(head);
  const hasIdentity = Object.keys(identity).length > 0;
  return jsonText(hasIdentity ? { ...head.meta, identity } : head.meta, 'record.meta');
}

function encodeHead(runId: string, head: RunHead, step: StepTexts | undefined): EncodedHead {
  const text = jsonText(changingPart(head), 'record');
  return {
    runId,
    head: step ? withStepCount(text, step.count) : text,
    ...(step ? { step } : {}),
    version: head.version,
    revision: head.revision ?? 0,
    updatedAt: head.updatedAt,
    attempts: head.attempts,
    due: dueOfRecord(head),
    definition: definitionOfParked(head),
    pausedBy: pauseOf(head),
  };
}

function withoutOpenStep({ openStep: _, ...head }: RunHead): RunHead {
  return head;
}

function encodeMessages(messages: readonly Message[], from: number): string[] {
  return messages.map((message, i) => encodeMessage(enterMessage(message, `record.messages[${from + i}]`)));
}

/**
 * Builds a record from its stored texts.
 * @param attempts the count of the claim; it replaces the record's own count
 * @throws {CHECKPOINT_CORRUPT} @throws {CHECKPOINT_TOO_NEW}
 */
export function decodeRecord(stored: StoredRecord, attempts?: number): RunCheckpoint {
  const extras = stored.extras === null ? {} : parseStored(stored.extras, 'extras');
  if (!isObject(extras)) throw new CheckpointCorruptError('this record is damaged: its extras are not an object');
  const record = parseCheckpoint({ ...headFields(stored, attempts), messages: stored.messages, ...extras });
  return checkOwnId(record, stored.runId);
}

/**
 * Decodes the head of a stored record.
 * @throws {CHECKPOINT_CORRUPT}
 * @throws {CHECKPOINT_TOO_NEW}
 */
export function decodeHead(stored: Pick<StoredRecord, 'runId' | 'meta' | 'head'>, attempts?: number): RunHead {
  return checkOwnId(parseHead(headFields(stored, attempts)), stored.runId);
}

function headFields(
  stored: Pick<StoredRecord, 'meta' | 'head'>,
  attempts: number | undefined,
): Record<string, unknown> {
  const head = parseStored(stored.head, 'head');
  if (!isObject(head)) throw new CheckpointCorruptError('this record is damaged: its head is not an object');
  const counts = attempts !== undefined && head.attempts !== undefined ? { attempts } : {};
  return { ...head, ...startFields(parseStored(stored.meta, 'meta')), ...counts };
}

function startFields(start: unknown): Record<string, unknown> {
  if (!isObject(start) || !isObject(start.identity)) return { meta: start };
  const { identity, ...meta } = start;
  return { ...identity, meta };
}

function checkOwnId<T extends RunHead>(head: T, runId: string): T {
  if (head.meta.runId === runId) return head;
  throw new CheckpointCorruptError('this record is damaged: it is stored under the id of another run');
}

/** Parses a stored text. @throws {CHECKPOINT_CORRUPT} */
export function parseStored(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CheckpointCorruptError(`this record is damaged: its ${what} is not JSON`, { cause });
  }
}

/** Encodes an outcome as a text to store. @throws {NOT_JSON} */
export function encodeOutcome(outcome: RunOutcome): string {
  return jsonText(outcome, 'outcome');
}
