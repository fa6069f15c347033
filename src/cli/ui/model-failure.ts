import type { RunEvent } from '../../index.ts';
import { oneLine } from './failure.ts';
import { duration, shortened } from './format.ts';

/** The most characters of a provider's error in a line. */
const SAID = 100;

/** Returns why a model did not answer, and what comes after it, as one line; undefined of any other event. */
export function modelFailureIn(event: RunEvent): string | undefined {
  if (event.type !== 'model.retry' && event.type !== 'model.fallback') return undefined;
  const { step, error, status } = event;
  const why = `${shortened(oneLine(error.message), SAID)}${status === undefined ? '' : ` (${status})`}`;
  const [model, after] =
    event.type === 'model.fallback'
      ? [event.from, `now ${oneLine(event.to)} is asked`]
      : [event.model, `it is asked again in ${duration(event.delayMs)}`];
  return `step ${step}: ${oneLine(model)}: ${why}; ${after}`;
}
