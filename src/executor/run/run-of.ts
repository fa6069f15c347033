import type { AnyActorRef } from 'xstate';
import type { Kernel, RunScope } from './active-run.ts';

/** The scope of the run that a model call, tool call, resolve or settle actor works for. */
export function scopeOf(kernel: Kernel, child: AnyActorRef): RunScope {
  const scope = child._parent && kernel.scopes.get(child._parent);
  if (!scope) throw new Error('this actor belongs to no run of this executor');
  return scope;
}
