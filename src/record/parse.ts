import { rowsOf } from '../run/field-rows.ts';
import { runFields } from '../run/fields.ts';
import { isOpenCall } from '../run/ledger.ts';
import { isOpenStep, type OpenStep } from '../run/open-step.ts';
import { isMeta, metaFields } from '../run/request.ts';
import { isOutcome, type RunOutcome } from '../run/result.ts';
import { CheckpointCorruptError, CheckpointTooNewError } from '../values/errors.ts';
import { isCount, isDeeperThan, isObject, MESSAGE_DEPTH, RECORD_DEPTH } from '../values/json.ts';
import { isMessages, type Message } from '../values/message.ts';
import { RECORD_VERSION, type RunCheckpoint, type RunHead } from './checkpoint.ts';
import { upcast } from './upcast.ts';

/**
 * Parses a stored record. Checks the fields that the runtime relies on, and keeps all others unchanged.
 * @throws {CHECKPOINT_CORRUPT} if it is damaged, naming the field
 * @throws {CHECKPOINT_TOO_NEW} if a newer version wrote it
 */
export function parseCheckpoint(value: unknown): RunCheckpoint {
  const record = checkCheckpoint(value);
  const { messages, earlier = [], ...fields } = record;
  const isTooDeep = (message: Message) => isDeeperThan(MESSAGE_DEPTH, message);
  if (messages.some(isTooDeep)) throw tooDeep('messages');
  if (earlier.some(isTooDeep)) throw tooDeep('earlier');
  const deep = Object.entries(fields).find(([, field]) => isDeeperThan(RECORD_DEPTH, field));
  if (deep) throw tooDeep(deep[0]);
  return record;
}

/** Pawl writes nothing so deep, and a walk over it would overflow the stack. */
function tooDeep(field: string): CheckpointCorruptError {
  return new CheckpointCorruptError(`this record is damaged: its field ${field} is nested too deep`);
}

/** Checks a record before it is written, by the same rules as `parseCheckpoint`. @throws as `parseCheckpoint` */
export function checkCheckpoint(value: unknown): RunCheckpoint {
  const record = parseHead(value) as RunHead & { messages?: unknown };
  check(runFields.messages.isValid(record.messages), 'messages');
  return record as RunCheckpoint;
}

/** Parses a stored outcome of a run. @throws {CHECKPOINT_CORRUPT} if it is damaged */
export function parseOutcome(value: unknown): RunOutcome {
  check(isOutcome(value), 'outcome');
  return value as RunOutcome;
}

/** Checks the open step of a stored record. @throws {CHECKPOINT_CORRUPT} if it is damaged */
export function parseOpenStep(value: unknown): OpenStep {
  check(isOpenStep(value), 'openStep');
  return value as OpenStep;
}

/** Checks the calls of a stored open step. @throws {CHECKPOINT_CORRUPT} if one is damaged */
export function parseOpenCalls(calls: readonly unknown[]): void {
  check(calls.every(isOpenCall), 'openStep');
}

/** Parses the head of a record: everything but messages, inputs and images. */
export function parseHead(value: unknown): RunHead {
  check(isObject(value), 'record');
  check(Number.isInteger(value.version) && Number(value.version) > 0, 'version');
  if (Number(value.version) > RECORD_VERSION) {
    throw new CheckpointTooNewError(
      `this record has version ${value.version}, this Pawl reads versions up to ${RECORD_VERSION}: upgrade the package (the record is untouched)`,
    );
  }
  const head = upcast(value);
  const { meta } = head;
  check(isObject(meta), 'meta');
  if (!isMeta(meta)) for (const field of metaFields) check(typeof meta[field] === 'string', `meta.${field}`);
  check(typeof head.updatedAt === 'number' && Number.isFinite(head.updatedAt), 'updatedAt');
  for (const mark of ['revision', 'seq']) check(head[mark] === undefined || isCount(head[mark]), mark);
  for (const key of required) check(head[key] !== undefined, key);
  // Each save of a run comes by here: what is there costs less to go through than what may be.
  for (const key of Object.keys(head)) {
    const field = head[key];
    if (field === undefined) continue;
    const isValid = checks.get(key);
    if (isValid) check(isValid(field), key);
  }
  return head as unknown as RunHead;
}

/**
 * Returns the name of the first invalid field of a resume state or head; undefined = all are valid. Optional fields that
 * are absent, and its messages, are not checked here.
 */
export function wrongFieldOf(state: Readonly<Record<string, unknown>>): string | undefined {
  const isWrong = (key: string, isFine: (value: unknown) => boolean) => state[key] !== undefined && !isFine(state[key]);
  const wrong = rows.find(({ key, spec }) => spec.isValid !== isMessages && isWrong(key, spec.isValid));
  return wrong?.key ?? ['revision', 'seq'].find((mark) => isWrong(mark, isCount));
}

/** Inputs, images and the earlier conversation are beside the head in a whole record. */
const rows = rowsOf('identity', 'head', 'start');
const required = rows.flatMap(({ key, spec }) => (spec.required ? [key] : []));
const checks = new Map<string, (value: unknown) => boolean>(
  rows.filter(({ key }) => key !== 'meta').map(({ key, spec }) => [key, spec.isValid]),
);

function check(isFine: boolean, field: string): asserts isFine {
  if (!isFine) throw new CheckpointCorruptError(`this record is damaged: its field ${field} is missing or invalid`);
}
