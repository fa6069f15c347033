import type { InterruptedRun, RunCheckpoint } from '../../index.ts';
import { RunTree } from '../../record/run-tree.ts';
import { Failure, lineOf, oneLine } from '../ui/failure.ts';
import { shortened } from '../ui/format.ts';
import type { RunStore } from './open-store.ts';

/** Lists all runs of a store that have not ended, also those that rest, by the time of their last record. */
export async function allRuns(store: Pick<RunStore, 'listInterrupted'>): Promise<InterruptedRun[]> {
  const working = await store.listInterrupted();
  const known = new Set(working.map(({ runId }) => runId));
  // One that has just begun to rest may be in both lists.
  const resting = (await store.listInterrupted({ status: 'waiting' })).filter(({ runId }) => !known.has(runId));
  if (resting.length === 0) return [...working];
  return [...working, ...resting].sort((a, b) => (a.updatedAt ?? 0) - (b.updatedAt ?? 0));
}

/** Finds one run by its id among those of the store that have not ended. */
export async function findWaiting(store: RunStore, runId: string): Promise<InterruptedRun | undefined> {
  return (await allRuns(store)).find((entry) => entry.runId === runId);
}

/** Builds the trees of parent and child runs in an opened store, from its listed runs. */
export function treeInStore(store: Pick<RunStore, 'load'>, entries: readonly InterruptedRun[]): RunTree {
  const tree = new RunTree({ load: (runId) => store.load(runId) });
  for (const entry of entries) tree.add(entry);
  return tree;
}

/** Loads the record of a run from an opened store; null if there is none. @throws {Failure} if it cannot be read */
export async function loadRecord(store: RunStore, runId: string): Promise<RunCheckpoint | null> {
  try {
    return await store.load(runId);
  } catch (error) {
    throw new Failure(`run ${shortened(oneLine(runId), 80)} cannot be read: ${lineOf(error)}`, { cause: error });
  }
}

/** Returns the pid of the process that works on a listed run; undefined if there is none, or it is on another machine. */
export function pidOf(entry: InterruptedRun | undefined): number | undefined {
  if (entry === undefined || entry.status === 'quarantined' || entry.owner === undefined) return undefined;
  return pidOfOwner(entry.owner);
}

/** Returns the pid in the name of an owner. */
export function pidOfOwner(owner: string): number | undefined {
  return Number(owner.split('|')[3]) || undefined;
}
