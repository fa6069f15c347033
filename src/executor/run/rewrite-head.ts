import type { RunCheckpoint } from '../../record/checkpoint.ts';
import { headOf } from '../../record/delta.ts';
import { isRewritten } from '../../record/upcast.ts';
import { type CheckpointStore, type Claim, isAppending } from '../../store/port.ts';

/** Changes the head of a record that we hold, and nothing else. */
export function rewriteHead(store: CheckpointStore, record: RunCheckpoint, claim: Claim | undefined): Promise<void> {
  const options = claim ? { claim } : {};
  const revision = (record.revision ?? 0) + 1;
  if (!isAppending(store) || isRewritten(record)) return store.save({ ...record, revision }, options);
  const head = { ...headOf(record), revision };
  return store.append(
    { runId: record.meta.runId, revision, from: record.messages.length, messages: [], head },
    options,
  );
}
