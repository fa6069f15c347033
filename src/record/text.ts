import { checkRunId } from '../run/identity.ts';
import { CheckpointCorruptError } from '../values/errors.ts';
import { jsonText } from '../values/json.ts';
import type { RunCheckpoint } from './checkpoint.ts';
import { checkCheckpoint, parseCheckpoint } from './parse.ts';

/**
 * The JSON text of a record, for a store of a host's own.
 * @throws {NotJsonError} naming the path of what JSON cannot hold @throws {InvalidRunIdError}
 * @throws {CheckpointCorruptError} when it is no record: better refused now than found unreadable at recovery
 */
export function encodeCheckpoint(record: RunCheckpoint): string {
  checkRunId(record.meta?.runId);
  const text = jsonText(record, 'record');
  checkCheckpoint(record);
  return text;
}

/**
 * The record of a stored text, brought to today's version.
 * @param runId under which it is stored
 * @throws {CheckpointCorruptError} when it is damaged, or of another run @throws {CheckpointTooNewError}
 */
export function decodeCheckpoint(text: string, runId: string): RunCheckpoint {
  const record = parseCheckpoint(parsed(text));
  if (record.meta.runId === runId) return record;
  throw new CheckpointCorruptError('this record is damaged: it is stored under the id of another run');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CheckpointCorruptError('this record is damaged: it is not JSON', { cause });
  }
}
