import { readProperty } from '../values/error-data.ts';
import { noUsage, type Usage } from '../values/usage.ts';

/** What failed model calls cost. Not a property of the error: a host's model may throw whatever it likes. */
const spent = new WeakMap<object, Usage>();

/** Notes what a model reported for a call that failed all the same; a report of nothing is none. */
export function noteSpent(error: object, usage: Usage): void {
  if (Object.keys(noUsage).some((key) => readProperty(usage, key) !== 0)) spent.set(error, usage);
}

/** The tokens that a failed model call cost, as far as the model reported them. */
export function spentBy(error: unknown): Usage | undefined {
  return typeof error === 'object' && error !== null ? spent.get(error) : undefined;
}
