import type { Clock } from '../values/clock.ts';
import { PortTimeoutError } from '../values/errors.ts';
import { failedJudgement, type Judgement, judgementOf } from './decision.ts';
import type { Escalator, EscalatorState } from './escalator.ts';

/**
 * Asks the host's escalator. It never rejects: what throws, rejects, hangs or makes no sense is a failure that decides
 * nothing.
 * @param limit `signal`: aborted when nobody wants the answer any more
 */
export function askEscalator(
  escalator: Escalator,
  state: EscalatorState,
  limit: { readonly ms: number; readonly clock: Clock; readonly signal: AbortSignal },
): Promise<Judgement> {
  const { ms, clock, signal } = limit;
  return new Promise((resolve) => {
    const late = new AbortController();
    const settle = (judgement: Judgement): void => {
      clock.clearTimeout(timer);
      signal.removeEventListener('abort', abandon);
      resolve(judgement);
    };
    const giveUp = (reason: unknown): void => {
      settle(failedJudgement);
      late.abort(reason);
    };
    const abandon = (): void => giveUp(signal.reason);
    const timer = clock.setTimeout(
      () => giveUp(new PortTimeoutError(`the escalator did not answer within ${ms} ms`)),
      ms,
    );
    signal.addEventListener('abort', abandon);
    Promise.resolve()
      .then(() => escalator(state, late.signal))
      .then(
        (answer) => settle(judgementOf(answer)),
        () => settle(failedJudgement),
      );
  });
}
