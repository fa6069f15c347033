import type { RunCheckpoint } from '../../record/checkpoint.ts';
import type { CheckpointStore } from '../port.ts';

/** Which part of a record is loaded. */
export interface LoadPartOptions {
  /** The messages from this index on, up to `to` (excluded). None if `to` is not above it. */
  readonly from: number;
  readonly to: number;
  /** Loads the record of a run that ended too. Default `false`. */
  readonly ended?: boolean | undefined;
}

/** A part of a record. It must not be saved. */
export interface RecordPart {
  /** The record without its inputs and images; of its messages it has those that were asked for. */
  readonly record: RunCheckpoint;
  /** How many messages the whole record has. */
  readonly messageCount: number;
}

/** A store that loads a part of a long record: what that costs does not grow with the whole. */
export interface PartStore extends CheckpointStore {
  /** Null if there is no record of the run. @throws {CHECKPOINT_CORRUPT} */
  loadPart(runId: string, options: LoadPartOptions): Promise<RecordPart | null>;
}

/** Returns whether a store loads parts of records: it has `loadPart`. */
const isPartial = (store: CheckpointStore): store is PartStore =>
  typeof (store as Partial<PartStore>).loadPart === 'function';

/** Loads a part of a record; in a store that has only whole ones, out of the whole. @throws the store's error */
export async function loadPart(
  store: CheckpointStore,
  runId: string,
  options: LoadPartOptions,
): Promise<RecordPart | null> {
  if (isPartial(store)) return store.loadPart(runId, options);
  const { from, to, ended } = options;
  const record = await store.load(runId, ended ? { ended } : {});
  if (!record) return null;
  return { record: { ...record, messages: record.messages.slice(from, to) }, messageCount: record.messages.length };
}
