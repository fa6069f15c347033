import { checkRunId } from '../run/identity.ts';
import { CheckpointCorruptError } from '../values/errors.ts';
import { jsonText } from '../values/json.ts';
import type { RunCheckpoint } from './checkpoint.ts';
import { checkCheckpoint, parseCheckpoint } from './parse.ts';

/**
 * Encodes a record as JSON text, for a store of a host's own.
 * @throws {NOT_JSON} naming the path of a value that JSON cannot hold @throws {INVALID_RUN_ID}
 * @throws {CHECKPOINT_CORRUPT} for a value that is not a record: refusing it now is better than an unreadable record at
 *   recovery
 */
export function encodeCheckpoint(record: RunCheckpoint): string {
  checkRunId(record.meta?.runId);
  const text = jsonText(record, 'record');
  checkCheckpoint(record);
  return text;
}

/**
 * Decodes the JSON text of a record, upcast to the present version, for a store of a host's own.
 * @param runId the id that it is stored under
 * @throws {CHECKPOINT_CORRUPT} if it is damaged, or of another run @throws {CHECKPOINT_TOO_NEW}
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
