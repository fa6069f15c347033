import { createActor, waitFor } from 'xstate';
import {
  type Agent,
  asSnapshot,
  type Executor,
  type Invocation,
  type RunCheckpoint,
  type RunResult,
} from '../../index.ts';

/** A run that this process works on. */
export interface WorkedOn {
  /** False when it was refused, or had ended before: then it never begins here. */
  readonly hasBegun: boolean;
  readonly result: Promise<RunResult>;
}

/** Starts a run, or meets the one of this request. */
export async function startedRun(executor: Executor, agent: Agent, invocation: Invocation): Promise<WorkedOn> {
  const { actor, result } = await executor.start(agent, invocation);
  return { hasBegun: hasBegun(actor.getSnapshot().value), result };
}

function hasBegun(value: unknown): boolean {
  return value !== 'failing' && value !== 'settled';
}

/**
 * Continues a stored run by its record alone. Its request may stand there redacted, so that it cannot be repeated: a start
 * would compare it. A run that has ended since the record was read answers with its outcome, and is not begun again.
 */
export async function continuedRun(executor: Executor, agent: Agent, record: RunCheckpoint): Promise<WorkedOn> {
  const { runId } = record.meta;
  const snapshot = { ...asSnapshot(record), messages: [], stored: true as const };
  const actor = createActor(executor.logic(agent), { id: `run:${runId}`, snapshot, input: undefined });
  actor.start();
  const { value } = await waitFor(actor, (state) => state.value !== 'resolving', { timeout: Number.POSITIVE_INFINITY });
  const known = executor.get(runId)?.result;
  return { hasBegun: hasBegun(value), result: known ?? settledResult(actor) };
}

async function settledResult(actor: ReturnType<typeof createActor<ReturnType<Executor['logic']>>>): Promise<RunResult> {
  const { context } = await waitFor(actor, (state) => state.context.output !== undefined, {
    timeout: Number.POSITIVE_INFINITY,
  });
  if (!context.output) throw new Error('a run that has ended has no result');
  return { ...context.output, messages: [] };
}
