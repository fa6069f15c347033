import { change, type Writable } from '../run/change.ts';
import { CheckpointCorruptError, MigrationError } from '../values/errors.ts';
import { jsonText } from '../values/json.ts';
import { enterMessage } from '../values/message.ts';
import { isThenable, letGo } from '../values/thenable.ts';
import type { RunCheckpoint } from './checkpoint.ts';
import { parseCheckpoint } from './parse.ts';
import { rewritten } from './upcast.ts';

/** A record to be changed in place. Messages and values of `inputs` are replaced as a whole. */
export type RecordDraft = Writable<RunCheckpoint>;

/**
 * A host's change to stored records before their runs continue, after a deploy that renamed or dropped a tool, a tier or a
 * field of `inputs`. It gets a draft of the record. Either it changes the draft and returns nothing, or it returns another
 * record and does not change the draft. The stored record does not change until the run's next save. The function may see a
 * record again that it has changed before.
 * @example
 * const migrate: Migrate = (record) => {
 *   if (record.meta.modelTier === 'smart') record.meta.modelTier = 'deep';
 * };
 */
// biome-ignore lint/suspicious/noConfusingVoidType: a function without a return statement must fit
export type Migrate = (record: RecordDraft) => RunCheckpoint | RecordDraft | void;

/**
 * Applies the host's `migrate` to a record and checks the result. Writes nothing: with a loaded record this is a dry run.
 * @throws {MIGRATION} if `migrate` throws, or returns a value that is not a record of this run
 * @example
 * const record = await store.load(runId)
 * if (record) migrateRecord(record, migrate) // throws if the run could not continue
 */
export function migrateRecord(record: RunCheckpoint, migrate: Migrate | undefined): RunCheckpoint {
  if (!migrate) return record;
  const { runId } = record.meta;
  const changed = attempt(runId, () => migrated(record, migrate));
  if (changed === record) return record;
  const messages = attempt(runId, () => {
    jsonText(changed, 'record');
    if (parseCheckpoint(changed).meta.runId !== runId) throw new CheckpointCorruptError('it has another run id');
    return changed.messages.map((message, i) => enterMessage(message, `record.messages[${i}]`));
  });
  // The host does not count these.
  const { version, revision, attempts } = record;
  return { ...changed, messages, version, revision, attempts, [rewritten]: true } as RunCheckpoint;
}

function migrated(record: RunCheckpoint, migrate: Migrate): RunCheckpoint {
  let hasReturned = false;
  try {
    return change(record, (draft) => {
      const answer = migrate(draft);
      if (isThenable(answer)) {
        letGo(answer);
        throw new TypeError('migrate gave a promise: it must be done when it returns');
      }
      hasReturned = true;
      return answer;
    });
  } catch (cause) {
    if (!hasReturned) throw cause;
    throw new TypeError('migrate must change the record that it gets, or return another one, not both', { cause });
  }
}

function attempt<T>(runId: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    throw new MigrationError(`migrate failed for the record of run ${runId}; the record is unchanged`, { cause });
  }
}
