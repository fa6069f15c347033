import type { ForkedFrom, RunCheckpointMeta } from '../run/request.ts';
import { isEndStatus, isOutcomeOwner, type OutcomeOwner, type RunOutcome } from '../run/result.ts';
import { type ErrorData, isErrorData, toErrorData } from '../values/error-data.ts';
import { CheckpointCorruptError } from '../values/errors.ts';
import { isCount, isObject } from '../values/json.ts';
import { isSpend, isUsage, type Spend, type Usage } from '../values/usage.ts';

/** The entry of a run that ended, as lists show it. */
export interface ReadableKeptRun extends OutcomeOwner {
  readonly runId: string;
  readonly status: RunOutcome['status'];
  /** Absent if it succeeded. Its message has up to 1,000 characters. */
  readonly error?: ErrorData;
  readonly usage: Usage;
  /** Absent without a budget. */
  readonly spend?: Spend;
  readonly iterations: number;
  /** The run is a fork of this one. */
  readonly forkedFrom?: ForkedFrom;
  /** The trace of `pawl/otel`; absent = it has none. */
  readonly traceId?: string;
  /** When the end was stored, by the wall clock of the store, ms. */
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

/** The part of an entry that is stored as its text. */
type KeptLine = Omit<ReadableKeptRun, 'runId' | 'endedAt'>;

/** Where the store has an entry. */
type KeptPlace = Pick<KeptRun, 'runId' | 'endedAt'>;

const MAX_ERROR_CHARS = 1_000;

/** Returns the entry of a run that ends, from its outcome. One that does not say whose it is belongs to no agent and caller. */
export function keptLineOf(outcome: RunOutcome): KeptLine {
  const { runId, status, error, usage, spend, iterations, forkedFrom, traceId, run } = outcome;
  const short = error && shortened(error);
  const owner: OutcomeOwner = run ?? { meta: { ...noMeta, runId } };
  return {
    ...owner,
    status,
    ...(short ? { error: short } : {}),
    usage,
    ...(spend ? { spend } : {}),
    iterations,
    ...(forkedFrom ? { forkedFrom } : {}),
    ...(traceId === undefined ? {} : { traceId }),
  };
}

const noMeta: RunCheckpointMeta = {
  runId: '',
  agentId: '',
  agentName: '',
  callerId: '',
  channelId: '',
  guildId: '',
  prompt: '',
  modelTier: '',
  parentRunId: '',
};

function shortened({ name, code, message }: ErrorData): ErrorData {
  return { name, code, message: message.slice(0, MAX_ERROR_CHARS).toWellFormed() };
}

/** Makes an entry of its parsed text. @throws {CHECKPOINT_CORRUPT} */
export function keptRunOf(line: unknown, { runId, endedAt }: KeptPlace): KeptRun {
  if (!isKeptLine(line)) {
    throw new CheckpointCorruptError('this record is damaged: its entry is not what it should be');
  }
  return { runId, ...(line as KeptLine), endedAt };
}

function isKeptLine(line: unknown): boolean {
  if (!isObject(line) || !isOutcomeOwner(line)) return false;
  const { status, error, usage, spend, iterations, traceId = '' } = line;
  const isCounted = isUsage(usage) && isCount(iterations) && (spend === undefined || isSpend(spend));
  const isNamed = typeof traceId === 'string';
  return isCounted && isNamed && isEndStatus(status) && (error === undefined || isErrorData(error));
}

/** Makes the entry of a run whose own cannot be read. @param error what reading it threw */
export function quarantinedKeptRun({ runId, endedAt }: KeptPlace, error: unknown): KeptRun {
  const { code, message } = toErrorData(error, 'CHECKPOINT_CORRUPT');
  return { runId, status: 'quarantined', reason: `${code}: ${message}`, endedAt };
}
