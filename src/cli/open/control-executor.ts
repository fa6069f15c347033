import { resolve } from 'node:path';
import { createExecutor, type Executor, type ExecutorOptions, type Workflow } from '../../index.ts';
import type { Arguments } from '../arguments.ts';
import { loadModule } from './agent-module.ts';
import type { RunStore } from './open-store.ts';

/**
 * Makes an executor for commands that only control runs (cancel, steer, park): it runs none, so it needs no model. What a command does
 * to a run is in the journal of the run.
 */
export function controlExecutor(
  store: RunStore,
  options: Pick<ExecutorOptions, 'agents' | 'audit' | 'migrate' | 'workflows'> = {},
): Executor {
  return createExecutor({ store, journal: true, ...options });
}

/** Loads the workflow of the module that `--agent` names; none without it. */
export async function workflowsIn({ agent }: Pick<Arguments, 'agent'>): Promise<readonly Workflow[]> {
  if (agent === undefined) return [];
  return [(await loadModule(resolve(agent), 'workflow module')).default as Workflow];
}

/** Returns the option `audit` of the executors of a command: `--audit`, or PAWL_AUDIT, keeps the runs that end. */
export function auditOption({ audit }: Pick<Arguments, 'audit'>): Pick<ExecutorOptions, 'audit'> {
  return audit || process.env.PAWL_AUDIT ? { audit: true } : {};
}
