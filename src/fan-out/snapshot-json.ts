import type { WriteSnapshot } from '../edits/index.ts';
import { NotJsonError } from '../values/errors.ts';
import { isObject } from '../values/json.ts';
import type { ResponseSnapshot } from './snapshot.ts';

/** The name of a field on the disk, and the check of its values. */
type Fields<T> = { readonly [Name in keyof T]-?: readonly [name: string, is: (value: unknown) => boolean] };

const isText = (value: unknown) => typeof value === 'string';
const isFlag = (value: unknown) => typeof value === 'boolean';
/** JSON of other languages writes a list or an object without entries as null. */
const isNothing = (value: unknown) => value === undefined || value === null;
const isFigure = (value: unknown) => typeof value === 'number' && Number.isFinite(value);
const isAbsent = (value: unknown) => value === undefined;
const or = (first: (value: unknown) => boolean, second: (value: unknown) => boolean) => (value: unknown) =>
  first(value) || second(value);

const responseFields: Fields<ResponseSnapshot> = {
  modelId: ['model_id', isText],
  text: ['text', or(isText, isAbsent)],
  latencyMs: ['latency_ms', isFigure],
  inputTokens: ['input_tokens', isFigure],
  outputTokens: ['output_tokens', isFigure],
  reasoningTokens: ['reasoning_tokens', or(isFigure, isAbsent)],
  costUsd: ['cost_usd', isFigure],
  proposedWrites: ['proposed_writes', or(Array.isArray, isNothing)],
  toolCalls: ['tool_calls', or(isCounts, isNothing)],
  error: ['error', or(isText, isAbsent)],
  interrupted: ['interrupted', isFlag],
  completed: ['completed', isFlag],
  stopReason: ['stop_reason', or(isText, isAbsent)],
  steps: ['steps', or(isFigure, isAbsent)],
};

const writeFields: Fields<WriteSnapshot> = {
  path: ['path', isText],
  content: ['content', isText],
  delete: ['delete', or(isFlag, isAbsent)],
  base: [
    'base',
    or(
      isText,
      or(isAbsent, (value) => value === null),
    ),
  ],
};

/** Checks every field of a model's snapshot without encoding the texts. @throws {NOT_JSON} for an invalid field */
export function checkSnapshot(snapshot: ResponseSnapshot): void {
  fieldsOf(snapshot);
}

/** Encodes a model's snapshot as JSON text for a fan-out's checkpoint file. @throws {NOT_JSON} for an invalid field */
export function encodeSnapshot(snapshot: ResponseSnapshot): string {
  return JSON.stringify(fieldsOf(snapshot));
}

/** Empty fields are left out. */
function fieldsOf(snapshot: ResponseSnapshot): Record<string, unknown> {
  const { text, proposedWrites = [], toolCalls = {} } = snapshot;
  const writes = proposedWrites.map((write) => onDisk(write, writeFields));
  const fields = onDisk(snapshot, responseFields);
  const counts = counted.map((key) => [key, whole(fields[key])]);
  const calls = Object.entries(toolCalls).map(([tool, count]) => [tool, whole(count)]);
  return {
    ...fields,
    ...Object.fromEntries(counts),
    text: text || undefined,
    proposed_writes: writes.length === 0 ? undefined : writes,
    tool_calls: calls.length === 0 ? undefined : Object.fromEntries(calls),
  };
}

/** The fields that readers of the format take as whole numbers. A cost has decimals. */
const counted = ['latency_ms', 'input_tokens', 'output_tokens', 'reasoning_tokens', 'steps'] as const;

/** Returns a number as each JSON reader keeps it: whole, and within 2^53. */
function whole(value: unknown): unknown {
  if (typeof value !== 'number' || !Number.isFinite(value)) return value;
  return Math.min(Math.max(Math.round(value), Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);
}

/**
 * Parses a model's snapshot from the JSON of a fan-out's checkpoint file. One that is completed, and also interrupted or failed, is not
 * completed.
 * @param wrong makes the error from a description
 * @throws what `wrong` makes
 */
export function decodeSnapshot(value: unknown, wrong: (what: string) => Error): ResponseSnapshot {
  const { proposedWrites, toolCalls, ...rest } = inMemory(value, responseFields, wrong);
  const writes = proposedWrites?.map((write) => inMemory<WriteSnapshot>(write, writeFields, wrong));
  return {
    ...rest,
    completed: rest.completed && !rest.interrupted && rest.error === undefined,
    ...(writes ? { proposedWrites: writes } : {}),
    ...(toolCalls ? { toolCalls } : {}),
  };
}

function onDisk<T extends object>(value: T, fields: Fields<T>): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [name, [key, is]] of entriesOf(fields)) {
    const field: unknown = value[name];
    if (!is(field)) throw new NotJsonError(`${String(name)} is ${String(field)}; it cannot be stored`);
    result[key] = field;
  }
  return result;
}

function inMemory<T extends object>(value: unknown, fields: Fields<T>, wrong: (what: string) => Error): T {
  if (!isObject(value)) throw wrong('it is no object');
  const result: Partial<T> = {};
  for (const [name, [key, is]] of entriesOf(fields)) {
    const field = Object.hasOwn(value, key) ? value[key] : undefined;
    if (!is(field)) throw wrong(`${key} is invalid`);
    if (field !== undefined) result[name] = field as T[keyof T];
  }
  return result as T;
}

function entriesOf<T>(fields: Fields<T>) {
  return Object.entries(fields) as unknown as [keyof T, readonly [string, (value: unknown) => boolean]][];
}

function isCounts(value: unknown): boolean {
  return isObject(value) && Object.values(value).every(isFigure);
}
