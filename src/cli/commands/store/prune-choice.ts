import type { InterruptedRun } from '../../../index.ts';
import { damageIn } from '../../../record/interrupted.ts';
import { listedStatus } from '../../../record/listed-status.ts';
import { NOT_OPENED } from '../../../values/error-codes.ts';
import { hasCode, toErrorData } from '../../../values/error-data.ts';
import type { Arguments } from '../../arguments.ts';
import type { RunStore } from '../../open/open-store.ts';

import { allRuns } from '../../open/stored-runs.ts';

import { lengthOf } from '../../option-values.ts';
import { Failure } from '../../ui/failure.ts';

/** Which records to delete. */
export interface PruneWish {
  readonly quarantined: boolean;
  readonly parked: boolean;
  /** Runs that wait, for a person or anything else: they are ended as cancelled. */
  readonly waiting?: boolean;
  /** Wall clock, ms: only records last written before this. */
  readonly before: number | undefined;
}

/**
 * Reads from the options of `pawl prune` which records it deletes: quarantined, parked, older than.
 * @throws {Failure} for options that would delete too much, or contradict each other
 */
export function wishOf({ quarantined, parked, waiting, olderThan }: Arguments): PruneWish {
  if (parked && olderThan === undefined) {
    throw new Failure('--parked needs --older-than <time>, for example 30d: newer ones may still be needed');
  }
  if (waiting && olderThan === undefined) {
    throw new Failure('--waiting needs --older-than <time>, for example 30d: newer ones may still get their answers');
  }
  if (olderThan !== undefined && !parked && !quarantined && !waiting) {
    throw new Failure('--older-than needs --parked, --waiting or --quarantined; outcomes expire by themselves');
  }
  const before = olderThan === undefined ? undefined : Date.now() - lengthOf('older-than', olderThan);
  return { quarantined, parked, waiting, before };
}

/** The progress of the search: `done` of `all` records. */
export type OnRead = (done: number, all: number) => void;

/**
 * Finds the records that `pawl prune` deletes, as listed. A list does not read the messages. To find damaged records, each
 * record is read whole, one at a time.
 * @throws errors of the store that are not about one record
 */
export async function* chosenOf(
  store: Pick<RunStore, 'listInterrupted' | 'load'>,
  wish: PruneWish,
  onRead: OnRead = () => {},
): AsyncGenerator<InterruptedRun, void, undefined> {
  const entries = wish.quarantined || wish.parked || wish.waiting ? await allRuns(store) : [];
  for (const [i, entry] of entries.entries()) {
    const isInQuestion = listedStatus(entry) !== 'live' && isOldEnough(entry, wish);
    const found = isInQuestion && wish.quarantined ? await asRead(store, entry) : entry;
    onRead(i + 1, entries.length);
    if (isInQuestion && found && isWanted(found, wish)) yield found;
  }
}

/** Some damaged records have no readable time. */
function isOldEnough({ updatedAt }: InterruptedRun, { before }: PruneWish): boolean {
  return before === undefined || (updatedAt !== undefined && updatedAt > 0 && updatedAt < before);
}

function isWanted(entry: InterruptedRun, { quarantined, parked, waiting = false }: PruneWish): boolean {
  const status = listedStatus(entry);
  if (entry.status !== 'quarantined') return (parked && status === 'parked') || (waiting && status === 'waiting');
  // A record of a newer version, or an encrypted one, is whole: an upgrade, or a key, can read it.
  const { code, message } = damageIn(entry.reason);
  return quarantined && code === 'CHECKPOINT_CORRUPT' && !message.includes(NOT_OPENED);
}

const whole = ['CHECKPOINT_TOO_NEW', 'KEY_MISMATCH'];

/** Reads a listed record as a resume would; undefined if it is gone, or only others can read it. */
async function asRead(store: Pick<RunStore, 'load'>, entry: InterruptedRun): Promise<InterruptedRun | undefined> {
  if (entry.status === 'quarantined') return entry;
  try {
    return (await store.load(entry.runId)) ? entry : undefined;
  } catch (error) {
    if (whole.some((code) => hasCode(error, code))) return undefined;
    if (!hasCode(error, 'CHECKPOINT_CORRUPT')) throw error;
    const { code, message } = toErrorData(error);
    const { runId, updatedAt } = entry;
    return { runId, status: 'quarantined', reason: `${code}: ${message}`, updatedAt };
  }
}
