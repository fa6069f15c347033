import { sha256 } from '../values/digest.ts';
import type { ErrorData } from '../values/error-data.ts';
import type { JsonValue } from '../values/json.ts';
import { enterMessage } from '../values/message.ts';
import { change } from './change.ts';
import { noCounters } from './limits.ts';
import { lastTextOf } from './outcome.ts';
import type { OpenPhase, PhaseFacts, PhaseOutput } from './phase.ts';
import { isBeyondOpening, openingOf, type Progress } from './progress.ts';
import { emptyTranscript } from './transcript.ts';

/** Returns the phase in progress, or the next one; undefined if all are done, or there are none. */
export function currentPhase(progress: Progress, phases: readonly PhaseFacts[]): PhaseFacts | undefined {
  return phases[progress.openPhase?.index ?? progress.completedPhases.length];
}

/** Begins a phase with its own conversation; a phase that was in progress when the process died is unchanged. */
export function beginPhase(progress: Progress, facts: PhaseFacts): Progress {
  if (progress.openPhase) return progress;
  const { iteration, usage, counters, spend, finishReason } = progress;
  const start = {
    ...{ iteration, usage, counters },
    ...(spend ? { spend } : {}),
    ...(finishReason ? { finishReason } : {}),
  };
  const opening = { index: progress.completedPhases.length, hash: facts.hash, iteration: 0 };
  return change(progress, (draft) => {
    // If the run has no turn yet, its opening is there, and stored.
    if (!isAtOpening(progress)) draft.transcript = openingOf(progress);
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
  const { index, hash } = progress.openPhase;
  const output = hasFailed ? facts.fallback : lastTextOf(progress);
  const reason = hasFailed ? undefined : progress.finishReason;
  const phase = {
    ...{ name: facts.name, output, index, hash },
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

/** Asks the model to repair an answer that does not fit the output schema: gives the model the problem and another turn. */
export function askForRepair(progress: Progress, problem: string): Progress {
  const text = `That answer does not have the requested form: ${problem}. Answer again, in that form only.`;
  const transcript = progress.transcript.append(enterMessage({ role: 'user', content: [{ type: 'text', text }] }));
  return change(progress, (draft) => {
    draft.transcript = transcript;
    draft.counters.repairs = (draft.counters.repairs ?? 0) + 1;
  });
}

/** Returns whether the pipeline continues after this error of its phase. */
export function isPhasePassable(error: ErrorData | undefined, facts: PhaseFacts | undefined): boolean {
  return error === undefined || error.code === 'STEP_LIMIT' || facts?.isOptional === true;
}

/**
 * Returns the recordable part of a run: without a phase that is not recorded yet, and without a conversation between two
 * phases.
 */
export function recordable(progress: Progress): Progress {
  const { openPhase, completedPhases, thread, outcome } = progress;
  // The conversation of a turn that has ended belongs to its thread.
  if (thread && outcome) return progress;
  if (openPhase?.start) {
    const { openPhase: _, openStep: __, spend: ___, ...rest } = progress;
    return { ...rest, ...openPhase.start, transcript: emptyTranscript };
  }
  return !openPhase && completedPhases.length > 0 ? { ...progress, transcript: emptyTranscript } : progress;
}

/** The completed phases of a resumed pipeline, and its phase in progress. */
export interface PipelinePast {
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
  return phases.length === 0 ? completedPhases.length === 0 : !hasMessages;
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

/** Restarts a pipeline whose agent has changed: phases that still match stay, the rest begins again. */
export function restartPipeline(
  progress: Progress,
  phases: readonly PhaseFacts[],
  policy: 'restart' | 'continue-matching',
): Progress {
  const kept = policy === 'restart' ? 0 : matching(progress, phases);
  return change(progress, (draft) => {
    draft.completedPhases.length = kept;
    draft.counters = noCounters;
    draft.transcript = openingOf(progress);
    delete draft.openPhase;
    delete draft.openStep;
  });
}
