import type { JsonValue } from '../values/json.ts';
import { textOf } from '../values/message.ts';
import type { Progress } from './progress.ts';
import type { EndedFacts, FailedOutput, RunOutcome } from './result.ts';

/** The last text the model wrote in this conversation: the answer, or what there is of one. */
export function lastTextOf(progress: Progress): string {
  const open = progress.openStep ? textOf(progress.openStep.message) : '';
  if (open !== '') return open;
  // What an earlier conversation ended with is no answer of this one.
  for (let i = progress.transcript.length - 1; i >= progress.earlier.value.length; i--) {
    const message = progress.transcript.at(i);
    if (message?.role !== 'assistant') continue;
    const text = textOf(message);
    if (text !== '') return text;
  }
  return '';
}

/** A pipeline's output is that of its last phase; of one that broke off, what there is of the phase in progress. */
function outputOf(progress: Progress): string {
  const last = progress.completedPhases.at(-1)?.output;
  if (!progress.openPhase && last !== undefined) return last;
  return lastTextOf(progress) || (last ?? '');
}

/** The answer in the form of the output schema: just given, or recorded with the last phase before a crash. */
function dataOf(progress: Progress, data: JsonValue | undefined): { data?: JsonValue } {
  const recorded = progress.openPhase ? undefined : progress.completedPhases.at(-1)?.data;
  const found = data === undefined ? recorded : data;
  return found === undefined ? {} : { data: found };
}

/** With which status a run ends; any but `ok` says why. */
export type RunEnd = { readonly status: 'ok'; readonly data?: JsonValue } | Pick<FailedOutput, 'status' | 'error'>;

/** How the run ends, from what it has done. */
export function outcomeOf(
  progress: Progress,
  end: RunEnd,
  told: Pick<RunOutcome, 'durable' | 'saveErrors' | 'outcomeId'>,
): RunOutcome {
  const { runId, output, ...facts } = factsOf(progress);
  // Stores keep an outcome in the order of its keys here.
  if (end.status === 'ok')
    return { runId, status: end.status, output, ...facts, ...told, ...dataOf(progress, end.data) };
  return { runId, status: end.status, output, error: end.error, ...facts, ...told };
}

function factsOf(progress: Progress): Omit<EndedFacts, 'durable' | 'saveErrors'> {
  return {
    runId: progress.meta.runId,
    output: outputOf(progress),
    usage: progress.usage,
    ...(progress.spend ? { spend: progress.spend } : {}),
    iterations: progress.iteration,
    phases: progress.completedPhases,
    undelivered: progress.undelivered,
  };
}
