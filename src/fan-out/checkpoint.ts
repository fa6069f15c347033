import type { ErrorData } from '../index.ts';
import { isErrorData } from '../values/error-data.ts';
import { CheckpointCorruptError, CheckpointTooNewError, NotJsonError } from '../values/errors.ts';
import { isObject } from '../values/json.ts';
import type { JudgeUsage, Ranking } from './ranking.ts';
import { fromModelResponse, type ModelResponse, type ResponseSnapshot } from './snapshot.ts';
import { decodeSnapshot, encodeSnapshot } from './snapshot-json.ts';

/** The version that this code writes. Newer versions are refused. */
const VERSION = 1;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** A fan-out on the disk: the prompt, and the newest turn of each model that has one, in the order of `adapterIds`. */
export interface Checkpoint {
  readonly version: 1;
  readonly prompt: string;
  /**
   * When it was written: RFC 3339, for example `2026-11-23T08:00:00.000Z`. A number is wall clock time in ms. It is stored as
   * RFC 3339, but files with a number can be read.
   */
  readonly timestamp: string | number;
  /** The ids of all models, in the caller's order. */
  readonly adapterIds: readonly string[];
  readonly responses: readonly ResponseSnapshot[];
  /** A setting of the caller, which is only stored. */
  readonly verbose: boolean;
  /** The judge's ranking, if there is one. */
  readonly ranking?: Ranking;
  /** Names an unfinished `fanOut` in the keys of its judge's calls in a budget. */
  readonly birth?: string;
  /** How a `fanOut` ended; absent in a checkpoint file, and in answers of an earlier version. */
  readonly end?: FanOutEnd;
}

/** How a fan-out ended, besides its answers and their ranking. */
export interface FanOutEnd {
  /** The hash of the request: prompt, model ids, instructions, and the path relative to the folder of the answers. */
  readonly requestHash: string;
  /** As `timestamp`. */
  readonly endedAt: string | number;
  readonly judgeError?: ErrorData;
  readonly judgeUsage?: JudgeUsage;
}

/**
 * Returns the checkpoint of a fan-out that ended.
 * @returns null if no response was interrupted: then there is nothing to continue
 */
export function buildCheckpoint(
  prompt: string,
  adapterIds: readonly string[],
  responses: readonly ModelResponse[],
  verbose: boolean,
): Checkpoint | null {
  if (!responses.some(({ interrupted }) => interrupted)) return null;
  const snapshots = responses.map(fromModelResponse);
  return {
    version: VERSION,
    prompt,
    timestamp: new Date().toISOString(),
    adapterIds,
    responses: inOrder(snapshots, adapterIds),
    verbose,
  };
}

/** Sorts responses into the order of the models; those of unknown models come last. */
export function inOrder<R extends { readonly modelId: string }>(
  responses: readonly R[],
  adapterIds: readonly string[],
): readonly R[] {
  const places = new Map(adapterIds.map((id, place) => [id, place]));
  const placeOf = ({ modelId }: R) => places.get(modelId) ?? adapterIds.length;
  return [...responses].sort((a, b) => placeOf(a) - placeOf(b));
}

/**
 * Encodes a fan-out's checkpoint as JSON text: snake_case, one response a line, without empty fields.
 * @param encode may cache the texts of responses that do not change
 * @throws {NOT_JSON} for a number that JSON cannot hold, and for an invalid timestamp
 */
export function encodeFanOut({ responses, ...rest }: Checkpoint, encode = encodeSnapshot): string {
  const { version, prompt, adapterIds, verbose, ranking, birth, end } = rest;
  const timestamp = writtenTime('timestamp', rest.timestamp);
  const head = JSON.stringify({ version, prompt, timestamp, adapter_ids: adapterIds, verbose, birth, ...onDisk(end) });
  const tail = ranking === undefined ? '' : `,"ranking":${JSON.stringify(ranking)}`;
  return `${head.slice(0, -1)},"responses":[\n${responses.map((each) => encode(each)).join(',\n')}\n]${tail}}\n`;
}

function onDisk(end: FanOutEnd | undefined) {
  if (end === undefined) return {};
  const { requestHash, endedAt, judgeError, judgeUsage } = end;
  return {
    request_hash: requestHash,
    ended_at: writtenTime('endedAt', endedAt),
    judge_error: judgeError,
    judge_usage: judgeUsage,
  };
}

function writtenTime(name: string, value: unknown): string {
  const time = timeFrom(value);
  if (time !== undefined) return time;
  throw new NotJsonError(`${name} is ${String(value).slice(0, 100)}; it must be RFC 3339, or a number of ms`);
}

/** For example `2026-11-23T08:00:00.123456789+01:00`. */
const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;
/** RFC 3339 has four digits for the year: a clock with a later year must not prevent the write. */
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** Returns a time as RFC 3339, or undefined if the value is not a time. */
function timeFrom(value: unknown): string | undefined {
  if (typeof value === 'number' && Number.isFinite(value)) {
    return new Date(Math.min(Math.max(value, 0), LAST_MS)).toISOString();
  }
  const isTime = typeof value === 'string' && rfc3339.test(value) && !Number.isNaN(Date.parse(value));
  return isTime ? value : undefined;
}

/**
 * Parses the JSON text of a fan-out's checkpoint, also in the older format without version, stop reasons or steps. Unknown
 * fields are dropped.
 * @param source the text, or its bytes in UTF-8
 * @param where the path, for error messages
 * @throws {CHECKPOINT_CORRUPT} {CHECKPOINT_TOO_NEW}
 */
export function decodeFanOut(source: string | Uint8Array, where: string): Checkpoint {
  const corrupt = (what: string) =>
    new CheckpointCorruptError(
      `${where} is not a checkpoint of a fan-out: ${what}; restore it from a copy, or remove it`,
    );
  const value = parsed(source, corrupt);
  if (!isObject(value)) throw corrupt('it is not an object');
  const { version = VERSION, prompt, verbose, ranking, birth } = value;
  // JSON of other languages writes an empty list as null.
  const [adapterIds, responses] = [value.adapter_ids, value.responses].map((list) => (list === null ? [] : list));
  if (typeof version === 'number' && version > VERSION) {
    throw new CheckpointTooNewError(
      `${where} has version ${version}, this Pawl reads up to ${VERSION}; upgrade the package (nothing was changed)`,
    );
  }
  if (version !== VERSION) throw corrupt('its version is invalid');
  if (typeof prompt !== 'string') throw corrupt('prompt is not a string');
  const timestamp = timeFrom(value.timestamp);
  if (timestamp === undefined) throw corrupt('timestamp is not a time');
  if (!isTexts(adapterIds)) throw corrupt('adapter_ids is not a list of strings');
  if (typeof verbose !== 'boolean') throw corrupt('verbose is not a boolean');
  if (!Array.isArray(responses)) throw corrupt('responses is not a list');
  if (ranking !== undefined && !isRanking(ranking)) throw corrupt('ranking is none');
  if (birth !== undefined && typeof birth !== 'string') throw corrupt('birth is not a string');
  const end = endOf(value, corrupt);
  const snapshots = responses.map((each, i) => decodeSnapshot(each, (what) => corrupt(`responses[${i}]: ${what}`)));
  const ids = snapshots.map(({ modelId }) => modelId);
  if (new Set(ids).size < ids.length) throw corrupt('a model has two responses');
  return {
    version: VERSION,
    prompt,
    timestamp,
    adapterIds,
    responses: snapshots,
    verbose,
    ...(ranking === undefined ? {} : { ranking }),
    ...(birth === undefined ? {} : { birth }),
    ...(end ? { end } : {}),
  };
}

function endOf(value: Readonly<Record<string, unknown>>, corrupt: (what: string) => Error): FanOutEnd | undefined {
  const { request_hash: requestHash, judge_error: judgeError, judge_usage: judgeUsage } = value;
  if (requestHash === undefined) return undefined;
  if (typeof requestHash !== 'string') throw corrupt('request_hash is not a string');
  const endedAt = timeFrom(value.ended_at);
  if (endedAt === undefined) throw corrupt('ended_at is not a time');
  if (judgeError !== undefined && !isErrorData(judgeError)) throw corrupt('judge_error is not an error');
  if (judgeUsage !== undefined && !isJudgeUsage(judgeUsage)) throw corrupt('judge_usage is invalid');
  return {
    requestHash,
    endedAt,
    ...(judgeError === undefined ? {} : { judgeError: judgeError as ErrorData }),
    ...(judgeUsage === undefined ? {} : { judgeUsage }),
  };
}

function isJudgeUsage(value: unknown): value is JudgeUsage {
  const isFigure = (name: keyof JudgeUsage) => isObject(value) && Number.isFinite(value[name]);
  return isFigure('inputTokens') && isFigure('outputTokens') && isFigure('costUsd');
}

function parsed(source: string | Uint8Array, corrupt: (what: string) => Error): unknown {
  try {
    // Invalid UTF-8 is an error; it must not be read as other text.
    return JSON.parse(typeof source === 'string' ? source : utf8.decode(source));
  } catch (error) {
    throw corrupt((error as Error).message);
  }
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

function isRanking(value: unknown): value is Ranking {
  return isObject(value) && isTexts(value.order) && typeof value.reason === 'string';
}
