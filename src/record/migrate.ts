import { CheckpointCorruptError, MigrationError } from '../run/errors.ts';
import { jsonText } from '../run/json.ts';
import { enterMessage, enterStored } from '../run/message.ts';
import { isThenable, letGo } from '../run/thenable.ts';
import type { RunCheckpoint } from './checkpoint.ts';
import { parseCheckpoint } from './parse.ts';
import { rewritten } from './upcast.ts';

/**
 * A host's change to stored records before their runs go on, for what a deploy has renamed or dropped: a tool, a tier, a
 * field of `inputs`. It gets a record that must not be changed, and returns another one, or the same where there is
 * nothing to do. It may see a record again that it has changed before.
 */
export type Migrate = (record: RunCheckpoint) => RunCheckpoint;

/**
 * A record as it is after the host's change. Nothing is written: with a loaded record this is a dry run.
 * @throws {MigrationError} when `migrate` throws, or gives what is no record of this run
 * @example
 * const record = await store.load(runId)
 * if (record) migrateRecord(record, migrate) // throws where the run could not go on
 */
export function migrateRecord(record: RunCheckpoint, migrate: Migrate | undefined): RunCheckpoint {
  if (!migrate) return record;
  const { runId } = record.meta;
  const given = frozen(record);
  const changed = attempt(runId, () => {
    const answer = migrate(given);
    if (isThenable(answer)) {
      letGo(answer);
      throw new TypeError('migrate gave a promise: it must give the record itself');
    }
    return answer;
  });
  if (changed === given) return record;
  const messages = attempt(runId, () => {
    jsonText(changed, 'record');
    if (parseCheckpoint(changed).meta.runId !== runId) throw new CheckpointCorruptError('it has another run id');
    return changed.messages.map((message, i) => enterMessage(message, `record.messages[${i}]`));
  });
  // Who counts these is not the host.
  const { version, revision, attempts } = record;
  return { ...changed, messages, version, revision, attempts, [rewritten]: true } as RunCheckpoint;
}

function frozen({ messages, meta, ...rest }: RunCheckpoint): RunCheckpoint {
  return Object.freeze({
    ...rest,
    messages: Object.freeze(messages.map(enterStored)),
    meta: Object.freeze({ ...meta }),
  });
}

function attempt<T>(runId: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    throw new MigrationError(`migrate could not bring the record of run ${runId} over; it is as it was`, { cause });
  }
}
