import type { RunCheckpoint } from '../record/checkpoint.ts';
import { withDeadline } from '../run/deadline.ts';
import { CheckpointMissingError, NotDurableError, RunOwnedElsewhereError } from '../run/errors.ts';
import { isOwning } from '../store/port.ts';
import { rewriteHead } from './rewrite-head.ts';
import type { Kernel } from './scope.ts';

/**
 * Sets a stored run aside: nobody takes it up until it is unparked.
 * @throws {RunOwnedElsewhereError} while somebody works on it: cancel it, or shut its process down, first
 * @throws {CheckpointMissingError} when the store has no record of it
 */
export function park(kernel: Kernel, runId: string, reason: string): Promise<void> {
  return changed(kernel, runId, (record) => ({ ...record, parked: { code: 'PARKED', reason } }));
}

/** Makes a parked run one that can be taken up again, with all of its attempts. @throws what `park` throws */
export function unpark(kernel: Kernel, runId: string): Promise<void> {
  return changed(kernel, runId, ({ parked: _, ...record }) => ({ ...record, attempts: 0 }));
}

async function changed(kernel: Kernel, runId: string, change: (record: RunCheckpoint) => RunCheckpoint): Promise<void> {
  const { store, clock, defaults } = kernel.config;
  if (!store) throw new NotDurableError('this executor has no store: there are no runs that could be parked');
  const bounded = <T>(what: string, answer: Promise<T>) => withDeadline(answer, { ms: defaults.portMs, clock, what });
  if (kernel.registry.live(runId)) throw new RunOwnedElsewhereError(`run ${runId} is live in this process`);
  const claim = isOwning(store)
    ? await bounded('store.claim', store.claim(runId, kernel.owner, defaults.leaseMs))
    : undefined;
  if (claim === null) throw new RunOwnedElsewhereError(`run ${runId} is being worked on by another process`);
  try {
    const record = await bounded('store.load', store.load(runId));
    if (!record) throw new CheckpointMissingError(`the store has no record of run ${runId}`);
    // The claim counted a start that is none.
    const before = { ...record, attempts: Math.max(0, (claim?.attempts ?? record.attempts + 1) - 1) };
    await bounded('store.append', rewriteHead(store, change(before), claim));
  } finally {
    // One that is not released runs out by itself.
    if (claim && isOwning(store)) await bounded('store.release', store.release(claim)).catch(() => {});
  }
}
