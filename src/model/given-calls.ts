import { callModel } from './call.ts';

/** Makes one request of a model, as `callModel` does. */
export type CallModel = typeof callModel;

/** By the run or the signal that a port got. */
const given = new WeakMap<object, CallModel>();

/** Lets the ready ports of Pawl make their requests so: each is a span of the run. A host's own port sees nothing of it. */
export function giveCalls(to: object, call: CallModel): void {
  given.set(to, call);
}

/** Returns how a port makes its requests for the run, or with the signal, that it got. */
export function callsGivenTo(to: object): CallModel {
  return given.get(to) ?? callModel;
}
