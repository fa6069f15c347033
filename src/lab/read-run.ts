import { childToolPrefixes } from '../agent/names.ts';
import { insideOf } from '../executor/inside.ts';
import { type Executor, type Message, PawlError, type RunCheckpoint, type RunExplanation } from '../index.ts';
import { openingOfSteps, ownStepsFrom, phasesBehind, withPhases } from '../record/steps.ts';
import { bornRunOf, childOfCall } from '../run/identity.ts';
import { RunNotFoundError } from '../values/errors.ts';
import type { KnownKeys } from '../values/known-options.ts';
import { type RecordedRun, type StepSource, stepsOf } from './recorded-run.ts';

/**
 * Reads a run from its store, as plain JSON with its whole steps: a live, waiting or parked one as it is recorded, a child by its own
 * id, and one that ended while its record is kept. Texts are redacted as the executor's `redact` says, also of older records.
 * @throws {RUN_NOT_FOUND} for an unknown run, and for one of which only the end is kept @throws {UNSUPPORTED} for a run of a
 *   workflow, which has no steps of a model, and for a turn of a thread whose phases an earlier version has not kept @throws the code of a record that cannot be read, and the store's own errors
 * @example
 * const run = await readRun(executor, 'order-17');
 * const effects = run.steps.flatMap(({ calls }) => calls).filter(({ effect }) => effect !== 'read');
 */
export async function readRun(executor: Executor, runId: string): Promise<RecordedRun> {
  return (await readStoredRun(executor, runId)).run;
}

/** What a file has of a run besides: an imported run is read, forked and continued in its phases like the original one. */
export type KeptFields = Pick<
  RunCheckpoint,
  'birth' | 'beganAt' | 'definition' | 'completedPhases' | 'openPhase' | 'elapsedMs' | 'models' | 'images' | 'counters'
>;

const keptKeys: KnownKeys<KeptFields> = {
  birth: true,
  beganAt: true,
  definition: true,
  completedPhases: true,
  openPhase: true,
  elapsedMs: true,
  models: true,
  images: true,
  counters: true,
};

/** Reads a run, and what a file has of it besides. */
export async function readStoredRun(
  executor: Executor,
  runId: string,
): Promise<{ readonly run: RecordedRun; readonly kept: KeptFields }> {
  const seen = await executor.explain(runId);
  const found = seen?.record;
  if (!found) throw notThere(runId, seen);
  const record = withPhases(found);
  if (record.workflow || seen.workflow) {
    const advice = 'it has no steps of a model: executor.explain returns its record';
    throw new PawlError('UNSUPPORTED', `run ${runId} is a run of a workflow, and ${advice}`);
  }
  // A turn of an earlier version has the message and the answer alone, and so has one that was ended without a process.
  if (record === found && record.thread && seen.outcome && (record.completedPhases.length > 0 || record.openPhase))
    throw new PawlError('UNSUPPORTED', `run ${runId} is a turn of a thread: the messages of its phases are not kept`);
  const earlier = await insideOf(executor).earlierOf(record);
  // The messages of a turn begin with its own ones: an imported one has those before them, too.
  const shift = record.thread ? earlier.length : 0;
  const phases = phasesBehind(record, shift);
  const { openPhase } = phases;
  const named = openPhase ? { openPhase: { ...openPhase, name: nameOf(openPhase, seen) } } : {};
  const fields: Partial<RunCheckpoint> = { ...record, ...phases, ...named };
  const kept = Object.fromEntries(Object.keys(keptKeys).map((key) => [key, fields[key as keyof KeptFields]]));
  return JSON.parse(JSON.stringify({ run: recordedRun(seen, record, earlier), kept }));
}

function notThere(runId: string, seen: RunExplanation | null): PawlError {
  if (seen?.verdict === 'unreadable') return new PawlError(seen.code ?? 'CHECKPOINT_CORRUPT', seen.reason);
  const why = seen
    ? `only its end is kept (${seen.outcome?.status ?? seen.verdict}): retention: { records: '7d' } keeps records`
    : 'there is none: it never began, or nothing of it is kept any more';
  return new RunNotFoundError(`run ${runId} cannot be read: ${why}`);
}

function recordedRun(seen: RunExplanation, record: RunCheckpoint, earlier: readonly Message[]): RecordedRun {
  const { meta, labels = {}, inputs = {}, usage, spend, parent, raisedSteps, retries } = record;
  const { outcome } = seen;
  const steps = stepsOf(sourceOf(seen, record));
  return {
    ...{ runId: meta.runId, agentId: meta.agentId, status: outcome ? ended(outcome) : standing(seen, record) },
    ...{ prompt: meta.prompt, callerId: meta.callerId, labels, inputs, earlier },
    ...{ messages: record.messages.slice(ownStepsFrom(record)), steps, output: outcome?.output ?? '' },
    ...(outcome?.data === undefined ? {} : { data: outcome.data as never }),
    ...(outcome?.error ? { error: outcome.error } : {}),
    ...(record.finishReason ? { finishReason: record.finishReason } : {}),
    usage: outcome?.usage ?? usage,
    ...(spend ? { spend } : {}),
    ...(raisedSteps ? { raisedSteps } : {}),
    ...(retries ? { retries: retries.map(({ at, steps: done, error }) => ({ at, steps: done, error })) } : {}),
    ...(record.forkedFrom ? { forkedFrom: record.forkedFrom } : {}),
    ...(parent ? { parent: { runId: parent.runId, callId: parent.callId } } : {}),
    ...(record.imported ? { imported: true as const } : {}),
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

/** A record has the names of finished phases only. */
function nameOf({ name, index }: NonNullable<RunCheckpoint['openPhase']>, { agent }: RunExplanation): string {
  return name ?? agent?.phases[index] ?? '';
}

function sourceOf(seen: RunExplanation, record: RunCheckpoint): StepSource {
  const { completedPhases, openPhase, messages, forkedFrom } = record;
  const open = openPhase && { from: openPhase.from ?? 0, name: nameOf(openPhase, seen) };
  const done = completedPhases.flatMap(({ name, from }) => (from === undefined ? [] : [{ from, name }]));
  return {
    messages,
    from: openingOfSteps(record),
    phases: open ? [...done, open] : done,
    // The calls that a fork has of its origin have begun no run below it.
    childOf: ({ id, name }, step) =>
      step >= (forkedFrom?.at ?? 0) && childToolPrefixes.some((prefix) => name.startsWith(prefix))
        ? childOfCall(bornRunOf(record), { callId: id })
        : undefined,
  };
}
