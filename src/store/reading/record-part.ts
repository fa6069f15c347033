import type { LoadPartOptions, RecordPart } from '../journal-port.ts';
import type { CheckpointStore } from '../port.ts';

/** Loads a part of a record; in a store that has only whole ones, out of the whole. @throws the store's error */
export async function loadPart(
  store: CheckpointStore,
  runId: string,
  options: LoadPartOptions,
): Promise<RecordPart | null> {
  if (store.journal) return store.journal.loadPart(runId, options);
  const { from, to, ended } = options;
  const record = await store.load(runId, ended ? { ended } : {});
  if (!record) return null;
  return { record: { ...record, messages: record.messages.slice(from, to) }, messageCount: record.messages.length };
}
