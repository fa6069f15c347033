import type { RunCheckpoint } from '../../record/checkpoint.ts';
import { hasUnknownOutcome } from '../../run/open-step.ts';
import type { Ledger } from './ledger.ts';
import type { CrashTestExecutorOptions } from './process.ts';

type Settings = Pick<CrashTestExecutorOptions, 'onUnknownOutcome'>;

/**
 * Whether a run was set aside as its host asked: `onUnknownOutcome: 'park'`, and the record shows a `once` call that its
 * process died in. With a person it has come to an end that is promised; any other reason is one that nobody asked for.
 */
export function isAsideAsAsked(record: RunCheckpoint | null | undefined, { onUnknownOutcome }: Settings): boolean {
  if (onUnknownOutcome !== 'park' || record?.parked?.code !== 'OUTCOME_UNKNOWN') return false;
  return record.openStep !== undefined && hasUnknownOutcome(record.openStep);
}

/** Whether an agent at work for the run was set aside as asked: the run did without it, and may end otherwise. */
export function isShortOfHelp(ledger: Ledger, settings: Settings): boolean {
  const children = [...ledger.aside()].filter(({ meta }) => meta.runId !== ledger.runId);
  return children.some((record) => isAsideAsAsked(record, settings));
}

/** Nobody touches a run that waits for a person, who finds it in the list. */
export function checkAside(ledger: Ledger, settings: Settings, listed: readonly { readonly runId: string }[]): void {
  const { runId } = ledger;
  if (!isAsideAsAsked(ledger.recordOf(runId), settings)) {
    ledger.complain('c', 'the run was set aside for a person, and the next process went on with it');
  } else if (ledger.outcomes.length > 0) {
    ledger.complain('e', 'the run was set aside for a person although its outcome had been told');
  } else if (!listed.some((entry) => entry.runId === runId)) {
    ledger.complain('a', 'the run was set aside for a person, and the store does not list it');
  }
}
