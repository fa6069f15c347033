import { emptyHead } from '../run/field-rows.ts';
import type { RunDefinition } from '../run/fields.ts';
import type { OpenPhase, PhaseOutput } from '../run/phase.ts';
import type { Labels, RunCheckpointMeta } from '../run/request.ts';
import type { Message } from '../values/message.ts';
import { RECORD_VERSION, type RunCheckpoint } from './checkpoint.ts';
import { openingOfSteps, phasesBehind, stepsIn } from './steps.ts';

/* A fork is another run that begins with the first steps of a recorded one. */

/** Returns the index in a record's messages after which nothing belongs to its first `at` steps. */
export function cutAfter(record: RunCheckpoint, at: number): number {
  return at === 0 ? openingOfSteps(record) : (stepsIn(record)[at - 1]?.end ?? record.messages.length);
}

interface Cut {
  readonly at: number;
  readonly meta: RunCheckpointMeta;
  readonly definition: RunDefinition;
  readonly labels: Labels;
  readonly birth: string;
  /** Wall clock, ms. */
  readonly now: number;
  readonly fingerprint: string;
  /** The messages that the fork begins with: those before the cut, or what an edit made of them. */
  readonly messages: readonly Message[];
  /** The conversation before the run, where the record does not hold it. */
  readonly earlier: readonly Message[];
  readonly effects: 'ask' | 'refuse' | undefined;
  readonly isEdited: boolean;
}

/** Makes the first record of a fork. Its usage, keys and limits are its own, and begin at 0. */
export function forkedRecord(origin: RunCheckpoint, cut: Cut): RunCheckpoint {
  const { at, meta, definition, labels, birth, now, fingerprint, messages, earlier, effects, isEdited } = cut;
  const { thread, inputs = {}, images = [] } = origin;
  const from = { runId: origin.meta.runId, at, ...(isEdited ? { edited: true as const } : {}) };
  const opening = thread ? earlier : [];
  return {
    ...emptyHead,
    version: RECORD_VERSION,
    revision: 1,
    updatedAt: now,
    ...{ meta, fingerprint, labels, birth, beganAt: now, forkedFrom: from },
    ...(effects ? { effects } : {}),
    ...{ definition, inputs, images, earlier, attempts: 0, iteration: at, raisedSteps: at },
    ...phasesBehind(phasesIn(origin, cutAfter(origin, at)), opening.length),
    messages: [...opening, ...messages],
  };
}

/** The phases of a pipeline that are finished before the cut, and the one in which it is. */
function phasesIn(
  origin: RunCheckpoint,
  end: number,
): { completedPhases: readonly PhaseOutput[]; openPhase?: OpenPhase } {
  const { completedPhases, openPhase, messages } = origin;
  const begins = [...completedPhases.map(({ from }) => from ?? 0), ...(openPhase ? [openPhase.from ?? 0] : [])];
  const endOf = (i: number) => begins[i + 1] ?? messages.length;
  const kept = completedPhases.filter((_, i) => endOf(i) <= end);
  const next = kept.length;
  const phase = completedPhases[next] ?? openPhase;
  const from = begins[next];
  if (!phase || from === undefined || end <= from) return { completedPhases: kept };
  const iteration = stepsIn(origin).filter((step) => step.at >= from && step.end <= end).length;
  return { completedPhases: kept, openPhase: { index: next, hash: phase.hash ?? '', iteration, from } };
}
