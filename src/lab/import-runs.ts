import { insideOf } from '../executor/inside.ts';
import type { Executor, RunCheckpoint } from '../index.ts';
import type { RunOutcome } from '../run/result.ts';
import { toErrorData } from '../values/error-data.ts';
import { CancelledError } from '../values/errors.ts';
import { type LabFile, type RunLines, readFiled } from './read-runs.ts';
import { type FiledRun, hasEndedStatus } from './run-form.ts';

/** What became of the runs of a file. */
export interface ImportReport {
  /** The runs that are new in the store. */
  readonly imported: readonly string[];
  /** The runs that the store knew: they stay as they are. */
  readonly skipped: readonly string[];
  /** What could not be read. */
  readonly damaged: readonly { readonly line: number; readonly message: string }[];
}

/**
 * Puts exported runs into the store of an executor. An imported run has ended: no process continues it, it asks no person and its end is
 * not delivered; it can be read, forked and replayed. A run that had not ended is `cancelled` here. A repeated import
 * adds what is missing.
 * @throws {UNSUPPORTED} if the store keeps no records of ended runs @throws {NOT_DURABLE} @throws the store's own error, or that of
 *   the file
 * @example const { imported, damaged } = await importRuns(executor, 'runs.jsonl');
 */
export async function importRuns(executor: Executor, from: RunLines): Promise<ImportReport> {
  const inside = insideOf(executor);
  const report = {
    imported: [] as string[],
    skipped: [] as string[],
    damaged: [] as { line: number; message: string }[],
  };
  const onDamaged = ({ line, message }: LabFile) => void report.damaged.push({ line, message });
  for await (const filed of readFiled(from, { onDamaged })) {
    const isNew = await inside.importRun(recordOf(filed), outcomeOf(filed));
    report[isNew ? 'imported' : 'skipped'].push(filed.run.runId);
  }
  return report;
}

/** No start asks for an imported run: its request is not in the file. */
const NO_REQUEST = 'imported';

function recordOf({ run, kept }: FiledRun): RunCheckpoint {
  const { runId, agentId, prompt, callerId, labels, inputs, earlier, messages, steps, usage } = run;
  return {
    ...kept,
    version: 3,
    revision: 1,
    updatedAt: 0,
    meta: {
      ...{ runId, agentId, agentName: agentId, callerId, prompt },
      ...{ channelId: '', guildId: '', modelTier: '', parentRunId: '' },
    },
    fingerprint: NO_REQUEST,
    ...(run.parent ? { parent: { ...run.parent, rootRunId: run.parent.runId } } : {}),
    ...(Object.keys(labels).length > 0 ? { labels } : {}),
    imported: true,
    ...{ iteration: steps.length, attempts: 0, usage, inputs, earlier },
    ...(run.spend ? { spend: run.spend } : {}),
    ...(run.raisedSteps ? { raisedSteps: run.raisedSteps } : {}),
    ...(run.forkedFrom ? { forkedFrom: run.forkedFrom } : {}),
    ...(run.retries ? { retries: run.retries } : {}),
    ...(run.finishReason ? { finishReason: run.finishReason } : {}),
    completedPhases: kept.completedPhases ?? [],
    messages: [...earlier, ...messages],
  };
}

function outcomeOf({ run, kept }: FiledRun): RunOutcome {
  const { runId, status, output, data, error, usage, spend, steps, finishReason } = run;
  const facts = {
    ...{ runId, output, usage, iterations: steps.length, phases: kept.completedPhases ?? [], undelivered: [] },
    ...(spend ? { spend } : {}),
    ...(finishReason ? { finishReason } : {}),
    ...{ durable: true, saveErrors: 0, outcomeId: `${runId}:imported`, fingerprint: NO_REQUEST },
    run: { meta: recordOf({ run, kept }).meta, labels: run.labels },
  };
  if (status === 'ok') return { ...facts, status, ...(data === undefined ? {} : { data }) };
  if (hasEndedStatus(status))
    return {
      ...facts,
      status,
      error: error ?? toErrorData(new CancelledError('its error is not in the file')),
    } as RunOutcome;
  const left = `it had not ended when it was exported (${status})`;
  return { ...facts, status: 'cancelled', error: toErrorData(new CancelledError(left)) };
}
