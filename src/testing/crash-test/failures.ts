import type { BegunCall, Complaint, Ledger } from './ledger.ts';

/**
 * What succeeded without a crash succeeds after one, when the same is asked of the same tool. Quiet where something else
 * than the crash explains the failure: the call was ended from outside, nothing had died yet, or it is not known whether
 * another call took effect, on which this one may rest.
 */
export function judgeFailures(ledger: Ledger, whole: Ledger, hasRealTime: boolean): Complaint[] {
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

/** Whether each `once` call that nobody knows the outcome of had come to its end when its process died. */
function isEffectKnown({ unknown, finished }: Ledger): boolean {
  return [...unknown].every((id) => finished.has(id));
}

/** The run was stopped; or time was up, which says nothing where time is made by the host. */
function isEndedFromOutside({ signal }: BegunCall, hasRealTime: boolean): boolean {
  if (!signal?.aborted) return false;
  return !hasRealTime || (signal.reason as Error | undefined)?.name !== 'TimeoutError';
}

function adviceFor({ effect }: BegunCall, times: number): string {
  if (times === 1)
    return 'begun once: see what calls before it do when they are repeated, and what is kept between runs';
  if (effect === 'idempotent') return 'the same idempotencyKey came twice: the tool must give the first answer again';
  return 'a "read" is made again after a crash: the second time must be like the first';
}

function shortened(text: string): string {
  return text.length > 200 ? `${text.slice(0, 199)}…` : text;
}
