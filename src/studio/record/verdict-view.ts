import { publicParking } from '../../http/runs/run-line.ts';
import type { RunExplanation } from '../../index.ts';
import type { VerdictView } from '../wire.ts';

/** What is said in place of a reason that quotes the store, or the host. */
const plain: { readonly [verdict in RunExplanation['verdict']]?: string } = {
  child: 'the run above it continues it',
  fails: 'the server cannot continue it',
  unreadable: 'its record cannot be read',
};

/**
 * Says what becomes of a run. A caller who sees only its own runs gets no text of a host: reasons may quote an operator, a
 * provider or a path.
 */
export function verdictView({ verdict, reason, code, needsPerson }: RunExplanation, all: boolean): VerdictView {
  if (!all && verdict === 'parked') {
    const parking = publicParking(code ?? '');
    return { verdict, needsPerson, reason: parking.why, code: parking.code };
  }
  const shown = all ? reason : (plain[verdict] ?? reason);
  return { verdict, needsPerson, reason: shown, ...(code ? { code } : {}) };
}
