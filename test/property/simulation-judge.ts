import type { RunOutcome } from 'pawl';
import { type AllowedFaults, essenceOf, mayDiffer } from '../../src/testing/crash-test/judge.ts';
import type { Complaint } from '../../src/testing/crash-test/ledger.ts';
import type { Death, TimedLedger, Work } from './simulation-ledger.ts';

/** What a process may leave undone, and have done again. */
export interface Losses {
  /** For so long a finished step may be unsaved. */
  readonly throttleMs: number;
  /** For so long a write may be under way. */
  readonly writeMs: number;
  /** Of a store in trouble: steps beyond those of one throttle's window. undefined = the store is well. */
  readonly unsavedSteps: number | undefined;
  /** Whether phases of the first run begin anew: what they only read may be read again, all of it. */
  readonly hasPhasesAnew: boolean;
}

/** Steps that were done again although they must have been saved when their process ended. */
export function judgeLosses(ledger: TimedLedger, losses: Losses): Complaint[] {
  const { works, runId } = ledger;
  const counted = works.filter((work) => !(losses.hasPhasesAnew && work.isRead && work.runId === runId));
  const lives = Map.groupBy(redoneIn(counted), ({ first, again }) => `${first.life} ${again.life} ${again.runId}`);
  return [...lives.values()].flatMap((redone) => {
    const life = redone[0]?.first.life ?? 0;
    const steps = [...new Map(redone.map(({ first }) => [first.step, first])).values()];
    const finished = steps.flatMap((first): Finished[] => {
      const at = finishedAt(ledger, first);
      return at === undefined ? [] : [{ id: first.id, at }];
    });
    if (losses.unsavedSteps !== undefined) return inTrouble(finished, losses);
    return tooMany(finished, ledger.deaths.get(life), losses);
  });
}

/** Whether a finished step was done again. */
export function isFinishedLost(ledger: TimedLedger): boolean {
  return redoneIn(ledger.works).some(({ first }) => finishedAt(ledger, first) !== undefined);
}

/** What was done in an earlier process and in a later one, with the last time before. */
function redoneIn(works: readonly Work[]): { first: Work; again: Work }[] {
  const found: { first: Work; again: Work }[] = [];
  const seen = new Map<string, Work>();
  for (const work of works) {
    const before = seen.get(work.id);
    if (before && before.life < work.life) found.push({ first: before, again: work });
    seen.set(work.id, work);
  }
  return found;
}

/** A step that was followed by another one before its process was ended. */
interface Finished {
  readonly id: string;
  readonly at: number;
}

function finishedAt({ works, deaths }: TimedLedger, { life, runId, step }: Work): number | undefined {
  const before = deaths.get(life)?.works ?? works.length;
  return works.find((work, i) => i < before && work.life === life && work.runId === runId && work.step > step)?.at;
}

/** Who leaves in good order saves all of it, also what a throttle had put off; in a crash one save may be under way. */
function tooMany(finished: readonly Finished[], death: Death | undefined, losses: Losses): Complaint[] {
  const isCrash = death?.how === 'crash';
  const window = isCrash ? losses.throttleMs : 0;
  const end = death?.at ?? Number.POSITIVE_INFINITY;
  const old = finished.filter(({ at }) => end - at > window + losses.writeMs);
  const isMany = window === 0 && finished.length > (isCrash ? 1 : 0);
  if (old.length === 0 && !isMany) return [];
  const what = finished.map(({ id, at }) => `${id} (${end - at} ms before)`).join(', ');
  return [{ promise: 'f', detail: `done again although finished when the process ended: ${what}` }];
}

/** What one window of the throttle put off is lost when the store fails then; after that the steps are counted. */
function inTrouble(finished: readonly Finished[], { throttleMs, writeMs, unsavedSteps = 0 }: Losses): Complaint[] {
  const until = Math.min(...finished.map(({ at }) => at)) + throttleMs + writeMs;
  const beyond = finished.filter(({ at }) => at > until);
  if (beyond.length <= unsavedSteps) return [];
  return [{ promise: 'f', detail: `${beyond.length} finished steps were done again: ${beyond.map(({ id }) => id)}` }];
}

/** Each child ended once, and as in the history without trouble; and there is no other. */
export function judgeFamily(ledger: TimedLedger, whole: TimedLedger, allowed: AllowedFaults): Complaint[] {
  const isCompared = !mayDiffer(ledger, whole, allowed);
  const ids = isCompared ? [...ledger.told.keys(), ...whole.told.keys()] : ledger.told.keys();
  return [...new Set(ids)].flatMap((runId): Complaint[] => {
    const told = ledger.told.get(runId);
    const expected = isCompared ? whole.told.get(runId)?.[0] : told?.[0];
    if (runId === ledger.runId || isEndedLate(told)) return [];
    if (!told) return [{ promise: 'a', detail: `child ${runId} never ended` }];
    if (!expected) return [{ promise: 'b', detail: `child ${runId} was begun beside those of the plan` }];
    if (new Set(told.map(({ outcomeId }) => outcomeId)).size > 1)
      return [{ promise: 'e', detail: `child ${runId} has several outcomes` }];
    const ways = new Set([...told, expected].map((outcome) => JSON.stringify(essenceOf(outcome, runId))));
    if (ways.size === 1) return [];
    return [{ promise: 'a', detail: `child ${runId} ended in several ways: ${[...ways].join(' and ')}` }];
  });
}

/**
 * Its parent had its answer, which could not be stored in time, and was over when somebody found its record: nobody waits
 * for it any more.
 */
export function isEndedLate(told: readonly RunOutcome[] | undefined): boolean {
  return told?.every(({ status, error }) => status === 'cancelled' && error?.code === 'CANCELLED') ?? false;
}
