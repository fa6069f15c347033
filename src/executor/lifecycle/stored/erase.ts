import { bornRunOf, checkRunId, childRunId } from '../../../run/identity.ts';
import type { KeepingStore } from '../../../store/history-port.ts';
import { hasCode } from '../../../values/error-data.ts';
import { RunOwnedElsewhereError, UnsupportedError } from '../../../values/errors.ts';
import { toolCallsOf } from '../../../values/message.ts';
import type { ExecutorServices } from '../../run/active-run.ts';
import { untilUntouched } from '../../run/record/stored-run.ts';
import { historyStoreOf } from './history.ts';

/**
 * Removes all that is stored of a run that ended, and of the child runs that the calls of its kept messages began.
 * @throws {RUN_OWNED_ELSEWHERE} while a process works on it @throws {RUN_NOT_ENDED} @throws {UNSUPPORTED}
 *   @throws {NOT_DURABLE} @throws the store's own error
 */
export async function erase(services: ExecutorServices, runId: string): Promise<void> {
  const store = historyStoreOf(services);
  checkRunId(runId);
  await untilUntouched(services, runId);
  if (services.registry.live(runId)) throw new RunOwnedElsewhereError(`run ${runId} is live in this process`);
  const children = await childrenOf(services, store, runId);
  // The children first: a repeated call finds those that are left by the record of their parent.
  for (const child of children) {
    await store.history.erase(child);
    services.registry.forget(child);
  }
  await store.history.erase(runId);
  services.registry.forget(runId);
}

/** A record that cannot be read is erased without its children. */
async function childrenOf(
  { config }: ExecutorServices,
  store: KeepingStore,
  runId: string,
): Promise<readonly string[]> {
  try {
    // The store refuses to erase a run that has not ended, and its children stay.
    if (await store.load(runId)) return [];
    const record = await store.load(runId, { ended: true });
    if (record?.thread) {
      throw new UnsupportedError(
        `run ${runId} is a turn of thread ${record.thread.id}: its thread erases it (thread.rewind, thread.delete)`,
      );
    }
    if (!record) return [];
    const born = bornRunOf(record);
    return record.messages.flatMap((message) => toolCallsOf(message).map((call) => childRunId(born, call.toolCallId)));
  } catch (error) {
    if (!unreadable.some((code) => hasCode(error, code))) throw error;
    config.warn('run.erase.partial', {
      runId,
      error,
    });
    return [];
  }
}

const unreadable = ['CHECKPOINT_CORRUPT', 'CHECKPOINT_TOO_NEW', 'KEY_MISMATCH'];
