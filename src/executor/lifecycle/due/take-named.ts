import type { TakenClaim } from '../../services/due/taken-claim.ts';
import type { TakenUp, Work } from '../stored/recover-one-run.ts';
import { takeDue } from './take-due.ts';

/** Most runs that one call names. */
const MAX_NAMED = 500;

/** Whether a sweep starts no further runs. */
export const isTakeOver = ({ signal, services }: Work): boolean => signal?.aborted === true || services.isShutDown;

/** Waits for a place; there is none after the sweep's end. */
export function hasPlace(work: Work): Promise<boolean> {
  return work.services.recovery.place(work, () => isTakeOver(work));
}

/**
 * Takes runs that were found in a list, and begins those that this process gets: of several processes that ask for the same run,
 * the store gives it to one. Each has a place. A store without the group `due` gives none.
 * @param begin starts a run; what it returns is not awaited
 * @returns the runs that it did not get
 */
export async function takeNamed<Run extends TakenUp>(
  runs: readonly Run[],
  work: Work,
  begin: (run: Run) => unknown,
): Promise<readonly Run[]> {
  const { store } = work.services.config;
  if (!store?.due) return runs;
  const others: Run[] = [];
  for (let i = 0; i < runs.length; i += MAX_NAMED)
    others.push(...(await takeSome(runs.slice(i, i + MAX_NAMED), work, begin)));
  return isTakeOver(work) ? [] : others;
}

async function takeSome<Run extends TakenUp>(
  runs: readonly Run[],
  work: Work,
  begin: (run: Run) => unknown,
): Promise<readonly Run[]> {
  const { places } = work.services.recovery;
  const pending = new Map(runs.map((run) => [run.run.runId, run]));
  const { paused } = work.services;
  const isTaken = ({ run }: Run) => paused.mayTake(run.meta.agentId);
  while ([...pending.values()].some(isTaken) && (await hasPlace(work))) {
    const wished = [...pending.values()].filter(isTaken).map(({ run }) => run.runId);
    let free = 1;
    while (free < wished.length && places.tryEnter(work.concurrency)) free++;
    const claims = await takeByName(wished, free, work);
    for (; free > claims.length; free--) places.leave();
    if (claims.length === 0) break;
    for (const claim of claims) {
      begin({ ...(pending.get(claim.run.runId) as Run), claim });
      pending.delete(claim.run.runId);
    }
  }
  return [...pending.values()];
}

/** If the store does not answer, each run is claimed by its start, which reports the error. */
async function takeByName(
  runIds: readonly string[],
  limit: number,
  { services }: Work,
): Promise<readonly TakenClaim[]> {
  const { store } = services.config;
  if (!store?.due) return [];
  const { claims } = await takeDue(services, store.due, { runIds, limit }).catch(() => ({ claims: [] }));
  // A host's store may not know `runIds`.
  const others = claims.filter(({ run }) => !runIds.includes(run.runId));
  await Promise.all(others.map((claim) => claim.giveBack(0)));
  return claims.filter((claim) => !others.includes(claim));
}
