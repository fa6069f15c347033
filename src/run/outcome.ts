import { toErrorData } from '../values/error-data.ts';
import { RunWaitsError } from '../values/errors.ts';
import type { JsonValue } from '../values/json.ts';
import { encodeMessage, textOf } from '../values/message.ts';
import { NPX_PAWL } from '../values/texts/command-name.ts';
import { traceIdIn } from './attempt.ts';
import type { Progress } from './progress.ts';
import type { EndedFacts, FailedOutput, RunOutcome, WaitingOutput } from './result.ts';
import { nameOfWait, type Wait } from './waits/wait.ts';

/** Returns the last text that the model wrote in this conversation: the answer, or an incomplete one. */
export function lastTextOf(progress: Progress): string {
  const open = progress.openStep ? textOf(progress.openStep.message) : '';
  if (open !== '') return open;
  // The end of an earlier conversation is not an answer of this one.
  for (let i = progress.transcript.length - 1; i >= progress.earlier.value.length; i--) {
    const message = progress.transcript.at(i);
    if (message?.role !== 'assistant') continue;
    const text = textOf(message);
    if (text !== '') return text;
  }
  return '';
}

/** The output of a pipeline is that of its last phase; of an interrupted pipeline, the last text of the phase in progress. */
function outputOf(progress: Progress): string {
  const last = progress.completedPhases.at(-1)?.output;
  if (!progress.openPhase && last !== undefined) return last;
  return lastTextOf(progress) || (last ?? '');
}

/** The answer after the output schema: just computed, or recorded with the last phase before a crash. */
function dataOf(progress: Progress, data: JsonValue | undefined): { data?: JsonValue } {
  const recorded = progress.openPhase ? undefined : progress.completedPhases.at(-1)?.data;
  const found = data === undefined ? recorded : data;
  return found === undefined ? {} : { data: found };
}

/** The status at a run's end; any but `ok` has an error. */
export type RunEnd = { readonly status: 'ok'; readonly data?: JsonValue } | Pick<FailedOutput, 'status' | 'error'>;

/** Returns the outcome of a run, from its progress. */
export function outcomeOf(
  progress: Progress,
  end: RunEnd,
  told: Pick<RunOutcome, 'durable' | 'saveErrors' | 'outcomeId'>,
): RunOutcome {
  const { runId, output, ...facts } = factsOf(progress);
  // Stores keep an outcome in the key order of this code.
  if (end.status === 'ok')
    return { runId, status: end.status, output, ...facts, ...told, ...dataOf(progress, end.data) };
  return { runId, status: end.status, output, error: end.error, ...facts, ...told };
}

function factsOf(progress: Progress): Omit<EndedFacts, 'durable' | 'saveErrors'> {
  const traceId = traceIdIn(progress.trace);
  return {
    runId: progress.meta.runId,
    output: outputOf(progress),
    usage: progress.usage,
    ...(progress.spend ? { spend: progress.spend } : {}),
    iterations: progress.iteration,
    ...(progress.forkedFrom ? { forkedFrom: progress.forkedFrom } : {}),
    ...(traceId === undefined ? {} : { traceId }),
    ...(progress.finishReason ? { finishReason: progress.finishReason } : {}),
    phases: progress.completedPhases,
    undelivered: progress.undelivered,
  };
}

/** The command does not know in which store a program keeps its runs. */
const listed = `\`${NPX_PAWL} waiting --store <its store>\` lists the commands`;

/** How each kind of wait ends. */
const ways: { readonly [kind in Wait['kind']]: string } = {
  approval: `a person answers with executor.control(runId).approve(…) or deny(…); ${listed}`,
  question: `a person answers with executor.control(runId).answer(…); ${listed}`,
  event: 'executor.signal sends the event',
  timer: 'its time comes',
  child: 'that run ends, or is answered',
  retry: 'the model answers again',
  limit: 'its turn comes',
};

/**
 * Says what a run waits for, and how the first of its waits ends.
 * @param rest where a workflow is that waits for events alone
 */
export function waitingText(runId: string, waits: readonly Wait[], rest?: string): string {
  const [first] = waits;
  if (!first) return `run ${runId} waits${rest === undefined ? '; it continues when a wait is over' : `: ${rest}`}`;
  const id = first.kind === 'approval' || first.kind === 'question' ? ` (wait ${first.id})` : '';
  const more = waits.length > 1 ? ` and ${waits.length - 1} more` : '';
  return `run ${runId} waits for ${nameOfWait(first)}${id}${more}; it continues once ${ways[first.kind]}`;
}

/** What its progress does not say of a run that waits. */
interface WaitingFacts {
  readonly saveErrors?: number;
  /** Where a workflow is that waits for events alone. */
  readonly rest?: string | undefined;
}

/** Returns the result of a run that waits. It is not an outcome: no store keeps it. */
export function waitingOutput(progress: Progress, { saveErrors = 0, rest }: WaitingFacts): WaitingOutput {
  const { runId, output, ...facts } = factsOf(progress);
  const { waits = [], wakeAt } = progress.waiting ?? {};
  const error = toErrorData(new RunWaitsError(waitingText(runId, waits, rest)));
  const until = wakeAt === undefined ? {} : { wakeAt };
  return { runId, status: 'waiting', output, waits, ...until, error, ...facts, durable: true, saveErrors };
}

/** Longest outcome that is stored, in characters. */
const MAX_CHARS = 8 * 2 ** 20;

/** How much a longer outcome keeps of its answer, of the outputs of its phases together, and of the undelivered messages. */
const OUTPUT_CHARS = 2 ** 21;
const PHASES_CHARS = 2 ** 20;
const UNDELIVERED_CHARS = 2 ** 20;

/**
 * Returns the outcome of a run as it is stored. A longer one is shortened and marked (`isCut`); the result of the run
 * itself, and the first delivery, stay whole.
 */
export function keptOutcome(outcome: RunOutcome): RunOutcome {
  if (sizeOf(outcome) <= MAX_CHARS) return outcome;
  const { data: _, ...rest } = outcome;
  const perPhase = Math.floor(PHASES_CHARS / Math.max(1, outcome.phases.length));
  let room = UNDELIVERED_CHARS;
  return {
    ...rest,
    output: cut(outcome.output, OUTPUT_CHARS),
    phases: outcome.phases.map(({ data: __, ...phase }) => ({ ...phase, output: cut(phase.output, perPhase) })),
    undelivered: outcome.undelivered.filter((message) => {
      room -= encodeMessage(message).length;
      return room >= 0;
    }),
    isCut: true,
  };
}

function sizeOf({ output, data, phases, undelivered }: RunOutcome): number {
  let size = output.length + lengthOf(data);
  for (const phase of phases) size += phase.output.length + lengthOf(phase.data);
  for (const message of undelivered) size += encodeMessage(message).length;
  return size;
}

const lengthOf = (data: unknown): number => (data === undefined ? 0 : JSON.stringify(data).length);

function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  return `${text.slice(0, most).toWellFormed()} [cut: ${text.length} characters, ${most} of them are kept]`;
}
