import type { RunOutcome } from 'pawl';
import { type Allowed, essenceOf, mayDiffer } from '../../src/testing/crash-test-judge.ts';
import type { Complaint } from '../../src/testing/crash-test-ledger.ts';
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

/** Steps that were done again although they had been finished for too long when their process ended. */
export function judgeLosses(ledger: TimedLedger, losses: Losses): Complaint[] {
  const { works, deaths, runId } = ledger;
  const complaints: Complaint[] = [];
  const counted = works.filter((work) => !(losses.hasPhasesAnew && work.isRead && work.runId === runId));
  for (const redone of Map.groupBy(redoneIn(counted), ({ again }) => `${again.life} ${again.runId}`).values()) {
    const steps = [...new Map(redone.map((each) => [each.first.step, each.first])).values()];
    const found = steps.map((first) => ({ first, finishedAt: finishedAt(works, first) }));
    if (losses.unsavedSteps !== undefined) complaints.push(...inTrouble(found, losses));
    else for (const each of found) complaints.push(...tooLate(each, deaths.get(each.first.life), losses));
  }
  return complaints;
}

/** Whether a finished step was done again. */
export function isFinishedLost({ works }: TimedLedger): boolean {
  return redoneIn(works).some(({ first }) => finishedAt(works, first) !== undefined);
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

/** When the next step of the run was begun in the same process; undefined = the step was open at its end. */
function finishedAt(works: readonly Work[], { life, runId, step }: Work): number | undefined {
  return works.find((work) => work.life === life && work.runId === runId && work.step > step)?.at;
}

interface Redone {
  readonly first: Work;
  readonly finishedAt: number | undefined;
}

function tooLate({ first, finishedAt: at }: Redone, death: Death | undefined, losses: Losses): Complaint[] {
  if (at === undefined) return [];
  // Who leaves in good order saves what the throttle had put off.
  const window = death?.how === 'shutdown' ? 0 : losses.throttleMs;
  const age = (death?.at ?? Number.POSITIVE_INFINITY) - at;
  if (age <= window + losses.writeMs) return [];
  return [
    { promise: 'f', detail: `${first.id} was done again, and had been finished ${age} ms before the process ended` },
  ];
}

/** What one window of the throttle put off is lost when the store fails then; after that the steps are counted. */
function inTrouble(found: readonly Redone[], { throttleMs, writeMs, unsavedSteps = 0 }: Losses): Complaint[] {
  const times = found.map(({ finishedAt: at }) => at ?? Number.POSITIVE_INFINITY);
  const until = Math.min(...times) + throttleMs + writeMs;
  const beyond = times.filter((at) => at > until).length;
  if (beyond <= unsavedSteps + 1) return [];
  return [
    { promise: 'f', detail: `${beyond} steps were done again: ${found.map(({ first }) => first.id).join(', ')}` },
  ];
}

/** Each child ended once, and as in the history without trouble; and there is no other. */
export function judgeFamily(ledger: TimedLedger, whole: TimedLedger, allowed: Allowed): Complaint[] {
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
