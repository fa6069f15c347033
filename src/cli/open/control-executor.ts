import { createExecutor, type Executor } from '../../index.ts';
import type { AuditFile } from './audit-file.ts';
import type { RunStore } from './open-store.ts';

/** An executor that controls runs from outside. It runs none, so it needs no model. */
export function caretakerOf(store: RunStore, audit?: AuditFile): Executor {
  return createExecutor({
    models: () => undefined,
    checkpoints: store,
    ...(audit ? { ports: { audit } } : {}),
  });
}
