import { isEndStatus, isOutcomeOwner, type OutcomeOwner, type RunOutcome } from '../run/result.ts';
import type { ErrorData } from '../values/error-data.ts';
import { isErrorData, toErrorData } from '../values/error-data.ts';
import { CheckpointCorruptError } from '../values/errors.ts';
import { isCount, isObject, jsonText } from '../values/json.ts';
import { isSpend, isUsage, type Spend, type Usage } from '../values/usage.ts';
import { parseStored } from './encoding/encode.ts';
import type { Encryption } from './encoding/encryption.ts';

/** The entry of a run that ended, as `listEnded` shows it. */
export interface ReadableKeptRun extends OutcomeOwner {
  readonly runId: string;
  readonly status: RunOutcome['status'];
  /** Absent if it succeeded. Its message has up to 1,000 characters. */
  readonly error?: ErrorData;
  readonly usage: Usage;
  /** Absent without a budget. */
  readonly spend?: Spend;
  readonly iterations: number;
  /** When the end was stored, wall clock of the store, ms. */
  readonly endedAt: number;
}

/** What is kept of a run that ended, without its transcript. */
export type KeptRun =
  | ReadableKeptRun
  | {
      readonly runId: string;
      /** The entry cannot be read. */
      readonly status: 'quarantined';
      /** The error code, and the problem. */
      readonly reason: string;
      readonly endedAt: number;
    };

const MAX_ERROR_CHARS = 1_000;

/** Encodes the entry of a run that ends, from its outcome. @throws {NotJsonError} */
export function encodeKeptRun({ status, error, usage, spend, iterations, run }: RunOutcome): string {
  const { name, code, message } = error ?? {};
  const short = error && { name, code, message: message?.slice(0, MAX_ERROR_CHARS).toWellFormed() };
  const owner: OutcomeOwner = run ?? { agentId: '', agentName: '', callerId: '' };
  const line = { ...owner, status, ...(short ? { error: short } : {}), usage, spend, iterations };
  return jsonText(line, 'outcome');
}

/** Decodes the entry of a run that ended. @throws {CheckpointCorruptError} */
export function decodeKeptRun(text: string, { runId, endedAt }: Pick<KeptRun, 'runId' | 'endedAt'>): KeptRun {
  const line = parseStored(text, 'entry');
  if (!isKeptLine(line)) {
    throw new CheckpointCorruptError('this record is damaged: its entry is not what it should be');
  }
  return { runId, ...(line as Omit<ReadableKeptRun, 'runId' | 'endedAt'>), endedAt };
}

function isKeptLine(line: unknown): boolean {
  if (!isObject(line) || !isOutcomeOwner(line)) return false;
  const { status, error, usage, spend, iterations } = line;
  const isCounted = isUsage(usage) && isCount(iterations) && (spend === undefined || isSpend(spend));
  return isCounted && isEndStatus(status) && (error === undefined || isErrorData(error));
}

/** Most characters of an id by which a run that ended is found: databases index short texts only. */
const MAX_KEY_CHARS = 200;

/**
 * Returns the texts under which the ended runs of an agent or a caller are found, the one to store first. Ids may share one: each
 * found entry is compared as well. Undefined: a host's codec cannot hash, and all entries are read.
 */
export function keysOf(
  id: string,
  what: 'agent' | 'caller',
  encryption: Encryption,
): readonly [string, ...string[]] | undefined {
  return encryption.lookups(id.slice(0, MAX_KEY_CHARS).toWellFormed().replaceAll('\0', '\ufffd'), what);
}

/** Makes the entry of a run whose own cannot be read. @param error what reading it threw */
export function quarantinedKeptRun({ runId, endedAt }: Pick<KeptRun, 'runId' | 'endedAt'>, error: unknown): KeptRun {
  const { code, message } = toErrorData(error, 'CHECKPOINT_CORRUPT');
  return { runId, status: 'quarantined', reason: `${code}: ${message}`, endedAt };
}
