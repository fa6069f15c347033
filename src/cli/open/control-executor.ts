import { createExecutor, type Executor } from '../../index.ts';
import type { AuditFile } from './audit-file.ts';
import type { RunStore } from './open-store.ts';

/**
 * Makes an executor for commands that only control runs (cancel, steer, park): it runs none, so it needs no model. It runs
 * none, so it needs no model.
 */
export function controlExecutor(store: RunStore, audit?: AuditFile): Executor {
  return createExecutor({
    models: () => undefined,
    checkpoints: store,
    ...(audit ? { ports: { audit } } : {}),
  });
}
