import { childToolPrefixes } from '../agent/names.ts';
import { insideOf } from '../executor/inside.ts';
import { type Executor, type Message, PawlError, type RunCheckpoint, type RunExplanation } from '../index.ts';
import { childOfCall } from '../run/identity.ts';
import { isThreads } from '../store/capabilities.ts';
import { RunNotFoundError } from '../values/errors.ts';
import { type RecordedRun, type StepSource, stepsOf } from './recorded-run.ts';

/**
 * Reads a run from its store, as plain JSON with its whole steps: a live, waiting or parked one as it is recorded, a child by its own
 * id, and one that ended while its record is kept. Texts are redacted as the executor's `redact` says, also of older records.
 * @throws {RUN_NOT_FOUND} for an unknown run, and for one of which only the end is kept @throws {UNSUPPORTED} for a run of a
 *   workflow, which has no steps of a model @throws the code of a record that cannot be read, and the store's own errors
 * @example
 * const run = await readRun(executor, 'order-17');
 * const effects = run.steps.flatMap(({ calls }) => calls).filter(({ effect }) => effect !== 'read');
 */
export async function readRun(executor: Executor, runId: string): Promise<RecordedRun> {
  const seen = await executor.explain(runId);
  const record = seen?.record;
  if (!record) throw notThere(runId, seen);
  if (record.workflow) {
    const advice = 'it has no steps of a model: executor.explain returns its record';
    throw new PawlError('UNSUPPORTED', `run ${runId} is a run of a workflow, and ${advice}`);
  }
  const earlier = record.thread ? await turnsBefore(executor, record) : (record.earlier ?? []);
  return JSON.parse(JSON.stringify(recordedRun(seen, record, earlier))) as RecordedRun;
}

function notThere(runId: string, seen: RunExplanation | null): PawlError {
  if (seen?.verdict === 'unreadable') return new PawlError(seen.code ?? 'CHECKPOINT_CORRUPT', seen.reason);
  const why = seen
    ? `only its end is kept (${seen.outcome?.status ?? seen.verdict}): retention: { records: '7d' } keeps records`
    : 'there is none: it never began, or nothing of it is kept any more';
  return new RunNotFoundError(`run ${runId} cannot be read: ${why}`);
}

/** The record of a turn has its own messages; those before it are in the records of earlier turns. */
async function turnsBefore(executor: Executor, { meta, thread }: RunCheckpoint): Promise<readonly Message[]> {
  const { store } = insideOf(executor);
  if (!thread || !store || !isThreads(store)) return [];
  return store.historyOf({ callerId: meta.callerId, id: thread.id }, thread.upTo);
}

function recordedRun(seen: RunExplanation, record: RunCheckpoint, earlier: readonly Message[]): RecordedRun {
  const { meta, labels = {}, inputs = {}, usage, spend, parent, raisedSteps } = record;
  const { outcome } = seen;
  const steps = stepsOf(sourceOf(seen, record));
  return {
    ...{ runId: meta.runId, agentId: meta.agentId, status: outcome ? ended(outcome) : standing(seen, record) },
    ...{ prompt: meta.prompt, callerId: meta.callerId, labels, inputs, earlier },
    ...{ messages: record.messages.slice(ownFrom(record)), steps, output: outcome?.output ?? '' },
    ...(outcome?.data === undefined ? {} : { data: outcome.data as never }),
    ...(outcome?.error ? { error: outcome.error } : {}),
    ...(record.finishReason ? { finishReason: record.finishReason } : {}),
    usage: outcome?.usage ?? usage,
    ...(spend ? { spend } : {}),
    ...(raisedSteps ? { raisedSteps } : {}),
    ...(parent ? { parent: { runId: parent.runId, callId: parent.callId } } : {}),
  };
}

function ended({ status }: NonNullable<RunExplanation['outcome']>): RecordedRun['status'] {
  return status === 'interrupted' ? 'error' : status;
}

function standing(
  { verdict, isLive, owner }: RunExplanation,
  { parked, waiting }: RunCheckpoint,
): RecordedRun['status'] {
  if (verdict === 'queued') return 'queued';
  if (isLive || owner) return 'live';
  if (parked) return 'parked';
  return (waiting?.waits.length ?? 0) > 0 ? 'waiting' : 'interrupted';
}

/** A record begins with the conversation before its prompt, unless that is the one of a thread. */
function ownFrom({ thread, earlier = [] }: RunCheckpoint): number {
  return thread ? 0 : earlier.length;
}

function sourceOf({ agent }: RunExplanation, record: RunCheckpoint): StepSource {
  const { meta, birth, completedPhases, openPhase, messages } = record;
  const open = openPhase && { from: openPhase.from ?? 0, name: agent?.phases[openPhase.index] ?? '' };
  const done = completedPhases.flatMap(({ name, from }) => (from === undefined ? [] : [{ from, name }]));
  return {
    messages,
    from: openingOf(record),
    phases: open ? [...done, open] : done,
    childOf: ({ id, name }) =>
      childToolPrefixes.some((prefix) => name.startsWith(prefix))
        ? childOfCall({ runId: meta.runId, ...(birth === undefined ? {} : { birth }) }, { callId: id })
        : undefined,
  };
}

/** A run that began with a state of its host has answers which it did not make: they belong to its opening. */
function openingOf(record: RunCheckpoint): number {
  const own = ownFrom(record);
  const answers = record.messages.flatMap(({ role }, at) => (role === 'assistant' && at >= own ? at : []));
  const given = answers.length - record.iteration;
  if (given <= 0) return own + 1;
  const end = answers[given - 1] as number;
  return record.messages[end + 1]?.role === 'tool' ? end + 2 : end + 1;
}
