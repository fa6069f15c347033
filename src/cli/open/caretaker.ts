import { createExecutor, type Executor } from '../../index.ts';
import type { AuditFile } from './audit-file.ts';
import type { RunStore } from './run-store.ts';

/** An executor for what is done to runs from outside. Nothing is run by it: one without a model will do. */
export function caretakerOf(store: RunStore, audit?: AuditFile): Executor {
  return createExecutor({
    models: () => undefined,
    checkpoints: store,
    ...(audit ? { ports: { audit } } : {}),
  });
}
