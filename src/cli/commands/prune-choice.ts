import type { InterruptedRun } from '../../index.ts';
import { hasCode, toErrorData } from '../../values/error-data.ts';
import { NOT_OPENED } from '../../values/errors.ts';
import type { Arguments } from '../arguments.ts';
import { lengthOf } from '../bounds.ts';
import { type RunStore, statusOf } from '../open/run-store.ts';
import { Failure } from '../ui/failure.ts';

/** Which records are to go. */
export interface Wish {
  readonly quarantined: boolean;
  readonly parked: boolean;
  /** Wall clock, ms: only what was last written before that. */
  readonly before: number | undefined;
}

/**
 * Which records `pawl prune` deletes, by its options.
 * @throws {Failure} for a wish that would take too much, or says nothing
 */
export function wishOf({ quarantined, parked, olderThan }: Arguments): Wish {
  if (parked && olderThan === undefined) {
    throw new Failure(
      '--parked needs --older-than <time>, for example 30d: somebody may still be looking at the others',
    );
  }
  if (olderThan !== undefined && !parked && !quarantined) {
    throw new Failure('--older-than goes with --parked or --quarantined; outcomes have a time of their own');
  }
  const before = olderThan === undefined ? undefined : Date.now() - lengthOf('older-than', olderThan);
  return { quarantined, parked, before };
}

/** How far the search is: so many of so many records. */
export type OnRead = (done: number, all: number) => void;

/**
 * The records that are wanted gone, as they are listed. A list does not look at what was said: where damaged ones are wanted,
 * each record is read whole, one at a time.
 * @throws what the store throws that says nothing about one record
 */
export async function* chosenOf(
  store: Pick<RunStore, 'listInterrupted' | 'load'>,
  wish: Wish,
  onRead: OnRead = () => {},
): AsyncGenerator<InterruptedRun, void, undefined> {
  const entries = wish.quarantined || wish.parked ? await store.listInterrupted() : [];
  for (const [i, entry] of entries.entries()) {
    const isInQuestion = statusOf(entry) !== 'live' && isOldEnough(entry, wish);
    const found = isInQuestion && wish.quarantined ? await asRead(store, entry) : entry;
    onRead(i + 1, entries.length);
    if (isInQuestion && found && isWanted(found, wish)) yield found;
  }
}

/** Of some damaged records nobody can tell how old they are. */
function isOldEnough({ updatedAt }: InterruptedRun, { before }: Wish): boolean {
  return before === undefined || (updatedAt !== undefined && updatedAt > 0 && updatedAt < before);
}

function isWanted(entry: InterruptedRun, { quarantined, parked }: Wish): boolean {
  if (entry.status !== 'quarantined') return parked && statusOf(entry) === 'parked';
  // What a newer version wrote, or is encrypted, is whole: it takes an upgrade, or a key, to read it.
  return quarantined && entry.reason.startsWith('CHECKPOINT_CORRUPT') && !entry.reason.includes(NOT_OPENED);
}

const whole = ['CHECKPOINT_TOO_NEW', 'KEY_MISMATCH'];

/** A listed record as a resume would find it; undefined when it is gone, or only others can read it. */
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
