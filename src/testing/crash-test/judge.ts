import type { RunOutcome } from '../../run/result.ts';
import { hasCode } from '../../values/error-data.ts';
import { isOfSetup } from './bad-setup.ts';
import type { History } from './history.ts';
import type { BegunCall, Complaint, EffectLedger } from './ledger.ts';
import { judgeMachine } from './machine-story.ts';

export interface AllowedFaults {
  /** How many failed calls in a row end a run; an unknown outcome counts as a failed call. */
  readonly errorsInARow: number;
  /** How many steps a crash may repeat. Calls of a workflow that its record had open are not among them. */
  readonly redoneSteps: number;
  /** Whether phases start again after a crash: then all calls that only read may be repeated. */
  readonly hasPhasesAnew: boolean;
  /** Whether each turn of the model belongs to the run itself. */
  readonly isAlone: boolean;
  /** Whether the run may have ended in another way for a reason of its own. */
  readonly mayDiffer?: boolean;
  /** Whether real time passes: then a tool that exceeded its time limit was too slow. */
  readonly hasRealTime?: boolean;
  /** Whether the store gets only what is new; a store of four methods gets the whole record each time. */
  readonly isAppending: boolean;
}

/** Compares a history of the crash test with the run without a crash, and returns the broken promises. */
export function judgeHistories(history: History, whole: History, allowed: AllowedFaults): Complaint[] {
  const { ledger } = history;
  const complaints = [...ledger.complaints];
  // A run that did not end is already reported: its missing calls might still have come.
  if (ledger.isOver)
    complaints.push(...judgeEnd(ledger, whole.ledger, allowed), ...judgeWork(ledger, whole.ledger, allowed));
  complaints.push(...judgeSetups(ledger, whole.ledger, allowed), ...judgeCalls(ledger), ...judgeApprovals(ledger));
  complaints.push(...judgeUntaken(ledger));
  complaints.push(
    ...judgeMachine(ledger.machine, whole.ledger.machine, !ledger.isOver || mayDiffer(ledger, whole.ledger, allowed)),
  );
  // If a sub-agent was parked, other calls may lack the effects of its missing calls.
  if (!allowed.mayDiffer) complaints.push(...judgeFailures(ledger, whole.ledger, allowed.hasRealTime ?? false));
  complaints.push(...judgeRepeats(history, allowed), ...judgeSize(history, allowed));
  return [...Map.groupBy(complaints, ({ promise }) => promise).values()].flatMap((group) => {
    // Another output may be what a lost call has brought.
    const first = group.find(({ isOfOutput }) => !isOfOutput) ?? group[0];
    return first ? [first] : [];
  });
}

/**
 * Returns whether a crashed run may end differently: to the model an unknown outcome is a failed call. Together with other
 * failed calls, also those that need its effect, it can make the guards end the run earlier.
 */
export function mayDiffer(
  { unknown, answers }: EffectLedger,
  { hasFailures }: EffectLedger,
  allowed: AllowedFaults,
): boolean {
  const { errorsInARow, mayDiffer: isOtherwise = false } = allowed;
  if (isOtherwise) return true;
  const failed = [...answers.values()].filter(({ failure }) => failure !== undefined);
  return unknown.size > 0 && (hasFailures || unknown.size + failed.length >= errorsInARow);
}

function judgeEnd(ledger: EffectLedger, whole: EffectLedger, allowed: AllowedFaults): Complaint[] {
  const ids = new Set(ledger.outcomes.map(({ outcome }) => outcome.outcomeId));
  const told = new Set(ledger.outcomes.map(({ outcome }) => JSON.stringify(essenceOf(outcome, ledger.runId))));
  if (ids.size > 1) return [{ promise: 'e', detail: `the run has several outcomes: ${[...ids].join(', ')}` }];
  if (told.size > 1)
    return [{ promise: 'e', detail: `one outcome was delivered in two ways: ${[...told].join(' and ')}` }];
  const outcome = ledger.outcomes.at(-1)?.outcome;
  const difference = outcome && !mayDiffer(ledger, whole, allowed) && differenceOf(outcome, whole);
  if (!difference) return [];
  const { key, text } = difference;
  const detail = `the result differs from that of the run without a crash: ${text}`;
  if (key === 'usage' || key === 'iterations') return [{ promise: 'b', detail }];
  return [{ promise: 'a', detail, ...(isOutput(key) ? { isOfOutput: true } : {}) }];
}

function isOutput(key: string): boolean {
  return key === 'output' || key === 'data';
}

/** Returns the first difference between an outcome and that of the run without a crash; undefined = there is none. */
function differenceOf(outcome: RunOutcome, whole: EffectLedger): { key: string; text: string } | undefined {
  const expected = whole.outcomes[0]?.outcome;
  if (!expected) return undefined;
  const is = essenceOf(outcome, outcome.runId);
  const should = essenceOf(expected, whole.runId);
  for (const key of Object.keys(should) as (keyof typeof should)[]) {
    const [found, wanted] = [JSON.stringify(is[key]), JSON.stringify(should[key])];
    if (found !== wanted) return { key, text: `${key} is ${found} instead of ${wanted}` };
  }
  return undefined;
}

/** A run without a crash has no unknown outcome: a workflow that takes none of them is lost by a crash. */
function judgeUntaken({ outcomes }: EffectLedger): Complaint[] {
  const error = outcomes.at(-1)?.outcome.error;
  if (error?.code !== 'WORKFLOW_ERROR' || !hasCode(error, 'OUTCOME_UNKNOWN')) return [];
  const advice = "give its invoke an onError, or set executor: { onUnknownOutcome: 'park' }";
  return [{ promise: 'a', detail: `the crash ended the workflow: ${error.message} (${advice})` }];
}

/** A process with a broken setup may deliver an end, and make one for which nothing is missing: each as it should be. */
function judgeSetups(ledger: EffectLedger, whole: EffectLedger, allowed: AllowedFaults): Complaint[] {
  return ledger.outcomes.flatMap(({ outcome, badSetup }): Complaint[] => {
    if (badSetup === undefined) return [];
    const found = mayDiffer(ledger, whole, allowed) ? undefined : differenceOf(outcome, whole);
    // Another output alone is no fault of the setup, and said by itself.
    const difference = found && isOutput(found.key) ? undefined : found;
    if (!difference && !isOfSetup(outcome)) return [];
    const { status, error } = outcome;
    const how = error ? `${status}, ${error.code}: ${error.message}` : (difference?.text ?? status);
    return [{ promise: 'i', detail: `a process with ${badSetup} ended the run: ${how}` }];
  });
}

/** Returns the part of an outcome that two equal runs have in common, for comparison. */
export function essenceOf(outcome: RunOutcome, runId: string) {
  const { status, output, data = null, error, usage, iterations, phases, undelivered } = outcome;
  const failure = error ? `${error.code}: ${error.message}`.replaceAll(runId, '<run>') : null;
  const told = phases.map(({ name, output: text }) => ({ name, text }));
  return { status, error: failure, output, data, iterations, usage, phases: told, undelivered };
}

/** Each call of the run without a crash was made, and no others. */
function judgeWork(ledger: EffectLedger, whole: EffectLedger, allowed: AllowedFaults): Complaint[] {
  if (mayDiffer(ledger, whole, allowed)) return [];
  const made = new Set(ledger.calls.map(({ id }) => id));
  const expected = new Set(whole.calls.map(({ id }) => id));
  const complaints: Complaint[] = [];
  for (const { id, name } of whole.calls) {
    if (made.has(id) || ledger.unknown.has(id)) continue;
    complaints.push({ promise: 'a', detail: `call ${id} of tool ${name} was lost: the run ended without it` });
  }
  for (const { id, name } of ledger.calls) {
    if (!expected.has(id)) {
      complaints.push({
        promise: 'b',
        detail: `call ${id} of tool ${name} does not exist in the run without a crash`,
      });
    }
  }
  return complaints;
}

/** An approved call of a run that ended well has started, or it is not known whether it did. */
function judgeApprovals({ held, approvals, calls, unknown, outcomes, isOver }: EffectLedger): Complaint[] {
  if (!isOver || outcomes.at(-1)?.outcome.status !== 'ok') return [];
  const begun = new Set(calls.map(({ id }) => id));
  return [...held].flatMap(([id, needed]): Complaint[] => {
    if ((approvals.get(id) ?? 0) < needed || begun.has(id) || unknown.has(id)) return [];
    return [{ promise: 'h', detail: `call ${id} was approved, and never started` }];
  });
}

/** An execution that ended by waiting did nothing that a repeat could do twice. */
const isExecuted = ({ hasWaited }: BegunCall) => !hasWaited;

function judgeCalls({ calls }: EffectLedger): Complaint[] {
  return [...Map.groupBy(calls.filter(isExecuted), ({ id }) => id).values()].flatMap((group) => {
    const [first] = group as [BegunCall];
    const what = `call ${first.id} of tool ${first.name}`;
    const found: string[] = [];
    if (first.effect === 'once' && group.length > 1)
      found.push(`${what} started ${group.length} times, and its effect is "once"`);
    if (new Set(group.map(({ key }) => key)).size > 1) found.push(`${what} was repeated with another idempotency key`);
    const isCounted = group.every(({ attempt }, i) => attempt > (group[i - 1]?.attempt ?? 0));
    if (first.effect === 'idempotent' && !isCounted) {
      found.push(`${what} counted its attempts ${group.map(({ attempt }) => attempt).join(', ')}`);
    }
    return found.map((detail): Complaint => ({ promise: 'c', detail }));
  });
}

/** Checks what was done before a crash and again after it. */
function judgeRepeats({ ledger, points }: History, allowed: AllowedFaults): Complaint[] {
  const { asked, open } = ledger;
  const calls = ledger.calls.filter(isExecuted);
  for (let life = 1; life < points.length + 1; life++) {
    const before = new Set(calls.filter((call) => call.life < life).map(({ id }) => id));
    const isAgain = ({ life: at, id }: BegunCall) => at === life && before.has(id) && !open.get(life)?.has(id);
    const again = calls.filter(isAgain);
    const steps = new Set(
      again.filter(({ effect }) => effect !== 'read' || !allowed.hasPhasesAnew).map(({ step }) => step),
    );
    if (allowed.isAlone && steps.size > allowed.redoneSteps) {
      const ids = [...new Set(again.map(({ id }) => id))].join(', ');
      const which = open.has(life) ? 'whose calls were not open' : 'not only the open one';
      return [{ promise: 'f', detail: `a crash made ${steps.size} steps run again, ${which}: calls ${ids}` }];
    }
    const known = new Set(asked.filter((turn) => turn.life < life).map(({ turn }) => turn));
    const turns = new Set(asked.filter(({ life: at, turn }) => at === life && known.has(turn)).map(({ turn }) => turn));
    // The call for the next step may run while the step before it is being saved.
    if (allowed.isAlone && !allowed.hasPhasesAnew && turns.size > allowed.redoneSteps + 1) {
      const numbers = [...turns].map((turn) => turn + 1).join(', ');
      return [{ promise: 'f', detail: `a crash repeated the model calls of turns ${numbers}` }];
    }
  }
  return [];
}

/** Each process may write one record as a whole; nothing else may be written twice. */
function judgeSize({ ledger, points }: History, { isAppending }: AllowedFaults): Complaint[] {
  const { messages, said, largest } = ledger.written;
  const most = 2 * said + (points.length + ledger.badSetups) * (largest + 2);
  if (!isAppending || messages <= most) return [];
  const detail = `the store got ${messages} messages of a run with ${said}: at most ${most} are needed`;
  return [{ promise: 'g', detail }];
}

/**
 * Returns a complaint for each tool call that succeeded without a crash and failed after one. No complaint if something
 * else explains the failure: the call was stopped from outside, no process had died yet, or it is not known whether an
 * earlier call took effect, which this one may need.
 */
export function judgeFailures(ledger: EffectLedger, whole: EffectLedger, hasRealTime: boolean): Complaint[] {
  if (!isEffectKnown(ledger)) return [];
  return [...ledger.answers].flatMap(([id, { input, failure }]): Complaint[] => {
    const before = whole.answers.get(id);
    const begun = ledger.calls.filter((call) => call.id === id);
    const last = begun.at(-1);
    if (failure === undefined || !before || before.failure !== undefined || ledger.unknown.has(id)) return [];
    if (JSON.stringify(input) !== JSON.stringify(before.input)) return [];
    if (!last || (last.life === 0 && begun.length === 1) || isEndedFromOutside(last, hasRealTime)) return [];
    const what = `call ${id} of tool ${last.name} succeeded without a crash, and failed after one at attempt ${last.attempt}`;
    return [{ promise: 'c', detail: `${what}: ${shortened(failure)} (${adviceFor(last, begun.length)})` }];
  });
}

/** Whether each `once` call with an unknown outcome had completed when its process died. */
function isEffectKnown({ unknown, finished }: EffectLedger): boolean {
  return [...unknown].every((id) => finished.has(id));
}

/** The run was stopped; or the time limit passed, which means nothing if the host controls the clock. */
function isEndedFromOutside({ signal }: BegunCall, hasRealTime: boolean): boolean {
  if (!signal?.aborted) return false;
  return !hasRealTime || (signal.reason as Error | undefined)?.name !== 'TimeoutError';
}

function adviceFor({ effect }: BegunCall, times: number): string {
  if (times === 1)
    return 'started once: check the effects of repeated calls before it, and state that is kept between runs';
  if (effect === 'idempotent') return 'the same idempotencyKey came twice: the tool must return the first answer again';
  return 'a "read" is repeated after a crash: both results must be equal';
}

function shortened(text: string): string {
  return text.length > 200 ? `${text.slice(0, 199)}…` : text;
}
