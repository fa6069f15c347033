// A function of AWS Lambda, which a schedule of EventBridge (`rate(1 minute)`) invokes. IAM says who may: it needs no secret.
import type { Driven, Executor } from 'pawl';
import { sliceBelow } from './slice.ts';

/** The handler: `export const handler = handlerOf(executor)`, with the executor made once, outside of it. */
export function handlerOf(executor: Executor) {
  // Lambda says how long this request may still take; its Timeout is at most 15 min.
  return (_event: unknown, context: { getRemainingTimeInMillis(): number }): Promise<Driven> =>
    executor.drive('due', sliceBelow(context.getRemainingTimeInMillis()));
}
