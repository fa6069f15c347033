import { createExecutor, type Executor, type ExecutorOptions } from '../../index.ts';
import type { Arguments } from '../arguments.ts';
import type { RunStore } from './open-store.ts';

/**
 * Makes an executor for commands that only control runs (cancel, steer, park): it runs none, so it needs no model.
 */
export function controlExecutor(store: RunStore, options: Pick<ExecutorOptions, 'audit'> = {}): Executor {
  return createExecutor({ store, ...options });
}

/** Returns the option `audit` of the executors of a command: `--audit`, or PAWL_AUDIT, keeps the runs that end. */
export function auditOption({ audit }: Pick<Arguments, 'audit'>): Pick<ExecutorOptions, 'audit'> {
  return audit || process.env.PAWL_AUDIT ? { audit: true } : {};
}
