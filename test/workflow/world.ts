import { createExecutor, defineTool, type ExecutorOptions, memoryStore, type Workflow } from 'pawl';
import { type TestClock, testClock } from 'pawl/testing';
import { settle } from '../fixtures/host.ts';

/** An executor of workflows on a store that outlives it, with a clock that tests move. */
export function worldOf(
  workflows: readonly Workflow[],
  options: Partial<ExecutorOptions> = {},
  makeStore: (options: { readonly clock: TestClock }) => ReturnType<typeof memoryStore> = memoryStore,
) {
  const clock = testClock(1_000_000);
  const store = makeStore({ clock });
  const warnings: { readonly message: string; readonly fields: unknown }[] = [];
  const boot = (...deployed: readonly Workflow[]) =>
    createExecutor({
      store,
      workflows: deployed.length > 0 ? deployed : workflows,
      clock,
      defaults: { waitLingerMs: 1_000, dueMs: 1_000, controlMs: 1_000 },
      logger: { warn: (message, fields) => void warnings.push({ message, fields }) },
      ...options,
    });
  /** Lets time pass, and all that comes of it. */
  const pass = async (ms: number, parts = 4) => {
    for (let i = 0; i < parts; i++) {
      await clock.advance(ms / parts);
      await settle();
    }
  };
  return { clock, store, boot, pass, settle, warnings };
}

/** A tool that notes its inputs, and does what it is told. */
export function noted<Output>(
  name: string,
  effect: 'read' | 'idempotent' | 'once',
  work: (input: { readonly [key: string]: unknown }, signal: AbortSignal) => Output,
) {
  const calls: unknown[] = [];
  const keys: string[] = [];
  const tool = defineTool({
    name,
    description: '',
    input: { type: 'object' },
    effect,
    execute: (input, { signal, idempotencyKey }): Output => {
      calls.push(input);
      keys.push(idempotencyKey);
      return work(input, signal);
    },
  });
  return { tool, calls, keys };
}
