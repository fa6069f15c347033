import type { AnyActorRef } from 'xstate';
import type { Config } from './config.ts';
import type { LeaseKeeper } from './lease-keeper.ts';
import type { Registry } from './registry.ts';
import type { RunScope } from './scope.ts';

/** What all runs of one executor share. */
export interface Kernel {
  readonly config: Config;
  readonly registry: Registry;
  readonly leases: LeaseKeeper;
  /** Who we are in claims: this process and this executor. */
  readonly owner: string;
  /** The scope behind a run's actor. */
  readonly scopes: WeakMap<AnyActorRef, RunScope>;
  isShutDown: boolean;
}

/** The scope of the run that a model call, tool call, resolve or settle actor works for. */
export function scopeOf(kernel: Kernel, child: AnyActorRef): RunScope {
  const scope = child._parent && kernel.scopes.get(child._parent);
  if (!scope) throw new Error('this actor belongs to no run of this executor');
  return scope;
}
