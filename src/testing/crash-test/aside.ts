import type { RunCheckpoint } from '../../record/checkpoint.ts';
import { hasUnknownOutcome } from '../../run/open-step.ts';
import type { EffectLedger } from './ledger.ts';
import type { CrashTestExecutorOptions } from './process.ts';

type Settings = Pick<CrashTestExecutorOptions, 'onUnknownOutcome'>;

/**
 * Returns whether the crash test's run was parked as its host asked: `onUnknownOutcome: 'park'`, and a `once` call during
 * which its process died. Such an end is promised; a run that was parked for another reason breaks the promise.
 */
export function isAsideAsAsked(record: RunCheckpoint | null | undefined, { onUnknownOutcome }: Settings): boolean {
  if (onUnknownOutcome !== 'park' || record?.parked?.code !== 'OUTCOME_UNKNOWN') return false;
  return record.openStep !== undefined && hasUnknownOutcome(record.openStep);
}

/** Returns whether a sub-agent of the run was parked as asked: the run continued without it, and may end in another way. */
export function isShortOfHelp(ledger: EffectLedger, settings: Settings): boolean {
  const children = [...ledger.aside()].filter(({ meta }) => meta.runId !== ledger.runId);
  return children.some((record) => isAsideAsAsked(record, settings));
}

/** Checks that no process continues a parked run, and that the list shows it. */
export function checkAside(
  ledger: EffectLedger,
  settings: Settings,
  listed: readonly { readonly runId: string }[],
): void {
  const { runId } = ledger;
  if (!isAsideAsAsked(ledger.recordOf(runId), settings)) {
    ledger.complain('c', 'the run was parked for a person, and the next process continued it');
  } else if (ledger.outcomes.length > 0) {
    ledger.complain('e', 'the run was parked for a person although its outcome had been delivered');
  } else if (!listed.some((entry) => entry.runId === runId)) {
    ledger.complain('a', 'the run was parked for a person, and the store does not list it');
  }
}
