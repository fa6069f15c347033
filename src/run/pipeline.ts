import { sha256 } from '../values/digest.ts';
import type { ErrorData } from '../values/error-data.ts';
import type { JsonValue } from '../values/json.ts';
import { enterMessage, type Message, textOf } from '../values/message.ts';
import { change } from './change.ts';
import { noCounters } from './limits.ts';
import { lastTextOf } from './outcome.ts';
import type { OpenPhase, PhaseFacts, PhaseOutput } from './phase.ts';
import { allMessagesOf, isBeyondOpening, openingOf, ownFrom, type Progress, withMessages } from './progress.ts';
import { Transcript } from './transcript.ts';

/** Returns the phase in progress, or the next one; undefined if all are done, or there are none. */
export function currentPhase(progress: Progress, phases: readonly PhaseFacts[]): PhaseFacts | undefined {
  return phases[progress.openPhase?.index ?? progress.completedPhases.length];
}

/**
 * Begins a phase with a conversation of its own, which begins with the run's opening; a phase that was in progress when the process
 * died is unchanged. The messages of the phases before it stay in the record.
 */
export function beginPhase(progress: Progress, facts: PhaseFacts): Progress {
  if (progress.openPhase) return progress;
  const { iteration, usage, counters, spend, finishReason } = progress;
  // If the run has no turn yet, its opening is there, and stored.
  const isBegun = !isAtOpening(progress);
  const earlier = isBegun ? allMessagesOf(progress) : progress.whole;
  const from = earlier ? Math.max(0, earlier.length - ownFrom(progress)) : 0;
  const opening = { index: progress.completedPhases.length, hash: facts.hash, iteration: 0, from };
  const start = {
    ...{ messages: earlier ?? progress.transcript, iteration, usage, counters },
    ...(spend ? { spend } : {}),
    ...(finishReason ? { finishReason } : {}),
  };
  return change(progress, (draft) => {
    if (isBegun) draft.transcript = openingOf(progress);
    if (earlier) draft.whole = earlier;
    draft.counters = noCounters;
    delete draft.finishReason;
    draft.openPhase = facts.recovery === 'boundary' ? { ...opening, start } : opening;
  });
}

const isAtOpening = (progress: Progress): boolean => progress.transcript.length > 0 && !isBeyondOpening(progress);

/** Keeps the phase in progress: from now on its steps are recorded, because it had an effect that must not happen twice. */
export function keepPhase(progress: Progress): Progress {
  if (!progress.openPhase?.start) return progress;
  return change(progress, (draft) => {
    delete draft.openPhase?.start;
  });
}

/** Ends the phase in progress. Its output is its last text, or the fallback if it failed. */
export function closePhase(
  progress: Progress,
  facts: PhaseFacts,
  { hasFailed, data }: { readonly hasFailed: boolean; readonly data?: JsonValue | undefined },
): Progress {
  if (!progress.openPhase) return progress;
  const { index, hash, from = 0 } = progress.openPhase;
  const output = hasFailed ? facts.fallback : lastTextOf(progress);
  const reason = hasFailed ? undefined : progress.finishReason;
  const phase = {
    ...{ name: facts.name, output, index, hash, from },
    ...(data === undefined ? {} : { data }),
    ...(reason === undefined ? {} : { finishReason: reason }),
  };
  return change(progress, (draft) => {
    draft.completedPhases.push(phase);
    delete draft.openPhase;
    delete draft.openStep;
    if (hasFailed) delete draft.finishReason;
  });
}

const MISSES = 'That answer does not have the requested form: ';

/** Returns whether a message is the request to repair the answer before it. */
export function isRepairRequest(message: Message): boolean {
  return message.role === 'user' && textOf(message).startsWith(MISSES);
}

/** Asks the model to repair an answer that does not fit the output schema: gives the model the problem and another turn. */
export function askForRepair(progress: Progress, problem: string): Progress {
  const text = `${MISSES}${problem}. Answer again, in that form only.`;
  const asked = withMessages(progress, [enterMessage({ role: 'user', content: [{ type: 'text', text }] })]);
  return change(progress, (draft) => {
    Object.assign(draft, asked);
    draft.counters.repairs = (draft.counters.repairs ?? 0) + 1;
  });
}

/** Returns whether the pipeline continues after this error of its phase. */
export function isPhasePassable(error: ErrorData | undefined, facts: PhaseFacts | undefined): boolean {
  return error === undefined || error.code === 'STEP_LIMIT' || facts?.isOptional === true;
}

/** Returns the recordable part of a run: the messages of all phases, without a phase of which nothing may be recorded yet. */
export function recordable(progress: Progress): Progress {
  const { openPhase, whole, thread, outcome } = progress;
  // The conversation of a turn that has ended belongs to its thread.
  if (openPhase?.start && !(thread && outcome)) {
    const { openPhase: _, openStep: __, spend: ___, whole: ____, ...rest } = progress;
    const { messages, ...start } = openPhase.start;
    return { ...rest, ...start, transcript: messages };
  }
  if (!whole) return progress;
  const { whole: _, ...rest } = progress;
  return { ...rest, transcript: whole };
}

/** Returns whether the messages of a run without an open phase are those of its completed phases. */
export function isBetweenPhases({ openPhase, completedPhases = [] }: Partial<PipelinePast>): boolean {
  return !openPhase && completedPhases.at(-1)?.from !== undefined;
}

/** The completed phases of a resumed pipeline, and its phase in progress. */
interface PipelinePast {
  readonly completedPhases: readonly PhaseOutput[];
  readonly openPhase?: OpenPhase;
}

/**
 * Returns how many completed phases still match the agent's list: same place, same name, same definition. A host's own list
 * may lack places and hashes.
 */
function matching(past: PipelinePast, phases: readonly PhaseFacts[]): number {
  const isSame = ({ name, index, hash }: PhaseOutput, i: number) =>
    phases[i]?.name === name && (index ?? i) === i && (hash ?? phases[i]?.hash) === phases[i]?.hash;
  const first = past.completedPhases.findIndex((phase, i) => !isSame(phase, i));
  return first === -1 ? past.completedPhases.length : first;
}

/** Returns whether the agent's list of phases still matches a record of the run. */
export function isSamePipeline(past: PipelinePast, phases: readonly PhaseFacts[], hasMessages: boolean): boolean {
  const { completedPhases, openPhase } = past;
  if (matching(past, phases) < completedPhases.length) return false;
  if (openPhase) return openPhase.index === completedPhases.length && phases[openPhase.index]?.hash === openPhase.hash;
  // A conversation without a phase belongs to a single loop, and the other way round.
  return phases.length === 0 ? completedPhases.length === 0 : isBetweenPhases(past) || !hasMessages;
}

/**
 * Returns the definitions that an agent has for `neededPhases`: its first phases, its first two, and so on. One without phases
 * has one.
 */
export function knownPhases(agentId: string, hashes: readonly string[]): readonly string[] {
  if (hashes.length === 0) return [digestOf(agentId, [])];
  return hashes.map((_, i) => digestOf(agentId, hashes.slice(0, i + 1)));
}

/**
 * Returns the definition that the agent of a run must have: `isSamePipeline` holds for each agent that has it. Undefined if the
 * run does not say it, as one with a host's own list of phases.
 */
export function neededPhases(agentId: string, { completedPhases, openPhase }: PipelinePast): string | undefined {
  const hashes = [...completedPhases, ...(openPhase ? [openPhase] : [])].map(({ hash }) => hash);
  return hashes.every((hash) => hash !== undefined) ? digestOf(agentId, hashes) : undefined;
}

const digestOf = (agentId: string, hashes: readonly string[]) => sha256(JSON.stringify([agentId, ...hashes]));

/**
 * Restarts a pipeline whose agent has changed: phases that still match stay, with their messages, and the rest begins again.
 */
export function restartPipeline(
  progress: Progress,
  phases: readonly PhaseFacts[],
  policy: 'restart' | 'continue-matching',
): Progress {
  const kept = policy === 'restart' ? 0 : matching(progress, phases);
  const all = allMessagesOf(progress);
  const first = ownFrom(progress);
  const dropped = progress.completedPhases[kept] ?? progress.openPhase;
  const from = dropped ? dropped.from : isBetweenPhases(progress) ? all.length - first : undefined;
  const messages = kept > 0 && from ? all.slice(0, first + from) : undefined;
  const outputs = progress.completedPhases.slice(0, kept).map((phase) => {
    const { from: _, ...unkept } = phase;
    return messages ? phase : unkept;
  });
  return change(progress, (draft) => {
    draft.completedPhases = outputs;
    draft.counters = noCounters;
    draft.transcript = openingOf(progress);
    delete draft.whole;
    if (messages) draft.whole = Transcript.of(messages);
    delete draft.openPhase;
    delete draft.openStep;
  });
}
