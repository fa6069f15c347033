import type { Warn } from '../executor/host/guard.ts';
import { checkHostRunId } from '../run/run-id.ts';
import { toErrorData } from '../values/error-data.ts';

/**
 * Run ids from the host's port; a random one where the port throws, gives none, or one that another model has: two models
 * must never share a run.
 * @param isTaken ids of earlier processes, whose ports may have counted from 1 as well
 */
export function idsOf(
  ids: (() => string) | undefined,
  warn: Warn,
  isTaken: (id: string) => boolean = () => false,
): () => string {
  const given = new Set<string>();
  return () => {
    if (!ids) return crypto.randomUUID();
    try {
      const id = checkHostRunId(ids());
      if (given.has(id) || isTaken(id))
        throw new TypeError(`ids gave ${JSON.stringify(id)}, which another run has already`);
      given.add(id);
      return id;
    } catch (error) {
      warn('fan-out: ids gave no run id; a random one is used', { error: toErrorData(error) });
      return crypto.randomUUID();
    }
  };
}
