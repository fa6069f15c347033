import { publicParking } from '../../http/runs/run-line.ts';
import type { RunInspection } from '../../index.ts';
import type { VerdictView } from '../wire.ts';

/**
 * Says what becomes of a run. A caller who sees only its own runs gets no text of a host: reasons may quote an operator, a
 * provider or a path.
 */
export function verdictView({ verdict, reason, code, needsPerson }: RunInspection, all: boolean): VerdictView {
  const named = { verdict, needsPerson };
  if (all || (verdict !== 'parked' && verdict !== 'fails')) return { ...named, reason, ...(code ? { code } : {}) };
  if (verdict === 'fails') return { ...named, reason: 'the server cannot continue it', ...(code ? { code } : {}) };
  const parking = publicParking(code ?? '');
  return { ...named, reason: parking.why, code: parking.code };
}
