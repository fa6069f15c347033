import { readProperty } from '../values/error-data.ts';
import { noUsage, type Usage } from '../values/usage.ts';

/** The cost of failed model calls. Not a property of the error: a host's model may throw any value. */
const spent = new WeakMap<object, Usage>();

/** Remembers for an error of a model call the usage that the model reported; a report of zero is ignored. */
export function noteSpent(error: object, usage: Usage): void {
  if (Object.keys(noUsage).some((key) => readProperty(usage, key) !== 0)) spent.set(error, usage);
}

/** Returns the tokens that a failed model call cost, if the model reported them. */
export function spentBy(error: unknown): Usage | undefined {
  return typeof error === 'object' && error !== null ? spent.get(error) : undefined;
}
