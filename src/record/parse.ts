import type { RunOutcome } from '../run/result.ts';
import { CheckpointCorruptError, CheckpointTooNewError } from '../values/errors.ts';
import { isObject } from '../values/json.ts';
import { RECORD_VERSION, type RunCheckpoint, type RunHead } from './checkpoint.ts';
import { upcast } from './upcast.ts';

const metaFields = [
  'runId',
  'agentId',
  'agentName',
  'callerId',
  'channelId',
  'guildId',
  'prompt',
  'modelTier',
  'parentRunId',
];

/**
 * Reads a stored record. Checks what the runtime relies on and keeps everything else as it is.
 * @throws {CheckpointCorruptError} when it is damaged, naming the field
 * @throws {CheckpointTooNewError} when a newer version wrote it
 */
export function parseCheckpoint(value: unknown): RunCheckpoint {
  const record = parseHead(value) as RunHead & { messages?: unknown };
  check(isMessages(record.messages), 'messages');
  return record as RunCheckpoint;
}

/** Reads a kept outcome. @throws {CheckpointCorruptError} when it is damaged */
export function parseOutcome(value: unknown): RunOutcome {
  check(isOutcome(value), 'outcome');
  return value as RunOutcome;
}

/** Reads the head of a record: everything but messages, inputs and images. */
export function parseHead(value: unknown): RunHead {
  check(isObject(value), 'record');
  check(Number.isInteger(value.version) && Number(value.version) > 0, 'version');
  if (Number(value.version) > RECORD_VERSION) {
    throw new CheckpointTooNewError(
      `this record has version ${value.version}, this Pawl reads up to ${RECORD_VERSION}: upgrade the package (the record is untouched)`,
    );
  }
  const head = upcast(value);
  const { meta } = head;
  check(isObject(meta), 'meta');
  for (const field of metaFields) check(typeof meta[field] === 'string', `meta.${field}`);
  check(isCount(head.iteration), 'iteration');
  check(isPhaseOutputs(head.completedPhases), 'completedPhases');
  check(typeof head.updatedAt === 'number' && Number.isFinite(head.updatedAt), 'updatedAt');
  checkOptional(head);
  return head as unknown as RunHead;
}

/** What a resume state may leave out, and its messages, are not looked at here. @returns the first field that is not what it should be */
export function wrongFieldOf(state: Readonly<Record<string, unknown>>): string | undefined {
  const fields: typeof optionalFields = [
    ['iteration', isCount],
    ['completedPhases', isPhaseOutputs],
    ...optionalFields,
  ];
  const wrong = fields.find(
    ([field, isFine]) => !givenMessages.has(field) && state[field] !== undefined && !isFine(state[field]),
  );
  return wrong?.[0];
}

const givenMessages: ReadonlySet<string> = new Set(['earlier', 'undelivered', 'nudges']);

function checkOptional(head: Record<string, unknown>): void {
  for (const [field, isFine] of optionalFields) check(head[field] === undefined || isFine(head[field]), field);
}

/** What may be absent, and what it has to be when it is there. */
const optionalFields: readonly (readonly [field: string, isFine: (value: unknown) => boolean])[] = [
  ['revision', isCount],
  ['attempts', isCount],
  ['seq', isCount],
  ['elapsedMs', isAmount],
  ['usage', isUsage],
  ['counters', isCounters],
  ['definition', (value) => isObject(value) && typeof value.version === 'string' && typeof value.hash === 'string'],
  ['outcome', isOutcome],
  ['parked', (value) => isObject(value) && typeof value.code === 'string' && typeof value.reason === 'string'],
  ['undelivered', isMessages],
  ['nudges', isMessages],
  ['commands', (value) => Array.isArray(value) && value.every((id) => typeof id === 'string')],
  ['openStep', isOpenStep],
  ['openPhase', isOpenPhase],
  ['spend', (value) => isObject(value) && ['tokens', 'usd', 'seconds'].every((field) => isAmount(value[field]))],
  ['raisedSteps', isCount],
  ['critic', isObject],
  ['fingerprint', (value) => typeof value === 'string'],
  ['parent', isParentCall],
  ['inputs', isObject],
  ['images', (value) => Array.isArray(value) && value.every(isObject)],
  ['earlier', isMessages],
];

const statuses = ['ok', 'error', 'timeout', 'cancelled', 'killed', 'interrupted'];
const usageFields = ['inputTokens', 'outputTokens', 'reasoningTokens', 'cacheReadTokens', 'cacheWriteTokens'];

function check(isFine: boolean, field: string): asserts isFine {
  if (!isFine)
    throw new CheckpointCorruptError(`this record is damaged: its field ${field} is missing or not what it should be`);
}

function isParentCall(value: unknown): boolean {
  return isObject(value) && ['runId', 'callId', 'rootRunId'].every((field) => typeof value[field] === 'string');
}

function isCount(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) >= 0;
}

function isAmount(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

function isUsage(value: unknown): boolean {
  return isObject(value) && usageFields.every((field) => isAmount(value[field]));
}

function isErrorData(value: unknown): boolean {
  return isObject(value) && ['name', 'code', 'message'].every((field) => typeof value[field] === 'string');
}

function isCounters(value: unknown): boolean {
  if (!isObject(value) || !isCount(value.failedSteps) || !isCounts(value.repeats)) return false;
  return value.repairs === undefined || isCount(value.repairs);
}

function isCounts(value: unknown): boolean {
  return isObject(value) && Object.values(value).every(isCount);
}

function isOutcome(value: unknown): boolean {
  if (!isObject(value)) return false;
  const hasTexts = ['runId', 'output', 'outcomeId'].every((field) => typeof value[field] === 'string');
  const hasLists = Array.isArray(value.phases) && value.phases.every(isPhaseOutput) && isMessages(value.undelivered);
  const isFine =
    statuses.includes(String(value.status)) &&
    hasTexts &&
    hasLists &&
    isUsage(value.usage) &&
    isCount(value.iterations);
  const isExplained = value.status === 'ok' ? value.error === undefined : isErrorData(value.error);
  const isNamed = value.fingerprint === undefined || typeof value.fingerprint === 'string';
  return isFine && isNamed && typeof value.durable === 'boolean' && isExplained;
}

/** `every` passes over the holes of a sparse array; `includes` does not. */
function isMessages(value: unknown): boolean {
  return Array.isArray(value) && !value.includes(undefined) && value.every(isMessage);
}

function isMessage(value: unknown): boolean {
  if (!isObject(value)) return false;
  if (value.role === 'system') return typeof value.content === 'string';
  return (
    ['user', 'assistant', 'tool'].includes(String(value.role)) &&
    Array.isArray(value.content) &&
    value.content.every(isObject)
  );
}

function isPhaseOutputs(value: unknown): boolean {
  return Array.isArray(value) && value.every(isPhaseOutput);
}

function isPhaseOutput(value: unknown): boolean {
  return isObject(value) && typeof value.name === 'string' && typeof value.output === 'string';
}

function isOpenPhase(value: unknown): boolean {
  if (!isObject(value) || value.start !== undefined) return false;
  return isCount(value.index) && typeof value.hash === 'string' && isCount(value.iteration);
}

function isOpenStep(value: unknown): boolean {
  return isObject(value) && isMessage(value.message) && Array.isArray(value.calls) && value.calls.every(isOpenCall);
}

function isOpenCall(value: unknown): boolean {
  if (!isObject(value) || typeof value.callId !== 'string' || typeof value.name !== 'string') return false;
  const isKnown = ['read', 'idempotent', 'once'].includes(String(value.effect)) && isCount(value.attempt);
  const isAnswered =
    value.state === 'done' ? isObject(value.result) : ['planned', 'started'].includes(String(value.state));
  return isKnown && isAnswered && (value.hasOldKey === undefined || value.hasOldKey === true);
}
