import type { GuardCounters } from '../run/limits.ts';
import type { OpenStep } from '../run/open-step.ts';
import type { OpenPhase, PhaseOutput } from '../run/phase.ts';
import { recordable } from '../run/pipeline.ts';
import type { ParkedReason, Progress, RunDefinition } from '../run/progress.ts';
import type { ImagePart, ParentCall, RunCheckpointMeta } from '../run/request.ts';
import type { RunOutcome } from '../run/result.ts';
import type { ResumeState } from '../run/resume.ts';
import type { JsonObject } from '../values/json.ts';
import type { Message } from '../values/message.ts';
import type { Spend, Usage } from '../values/usage.ts';

/** The version this code writes. Older records are upcast, newer ones refused. */
export const RECORD_VERSION = 1;

/** What changes from save to save: the record without messages, inputs, images and the earlier conversation. */
export interface RunHead {
  readonly version: 1;
  readonly meta: RunCheckpointMeta;
  readonly iteration: number;
  readonly completedPhases: readonly PhaseOutput[];
  /** Wall clock of the save that wrote it, ms. */
  readonly updatedAt: number;
  /** Counts the saves of the run. */
  readonly revision: number;
  readonly usage: Usage;
  readonly spend?: Spend;
  readonly raisedSteps?: number;
  /** What the critic wants to know after a crash. */
  readonly critic?: JsonObject;
  readonly attempts: number;
  readonly counters?: GuardCounters;
  readonly openStep?: OpenStep;
  /** The phase in progress of a multi-phase agent; `messages` is its conversation. */
  readonly openPhase?: OpenPhase;
  readonly elapsedMs?: number;
  /** Above this number the events of the next process begin. */
  readonly seq?: number;
  readonly definition?: RunDefinition;
  readonly undelivered?: readonly Message[];
  /** What the critic wants to say to the model. */
  readonly nudges?: readonly Message[];
  /** Ids of the commands that the run has taken in, and that may wait in the store still, or be sent again. */
  readonly commands?: readonly string[];
  readonly outcome?: RunOutcome;
  readonly parked?: ParkedReason;
  /** Tells the request from others: a start with another one is refused. Written once, with the first record. */
  readonly fingerprint?: string;
  /** The call that began the run; absent = a host did. Written once, with the first record. */
  readonly parent?: ParentCall;
}

/** One stored run: plain JSON, the whole of what a new process needs to go on. */
export interface RunCheckpoint extends RunHead {
  readonly messages: readonly Message[];
  readonly inputs?: JsonObject;
  readonly images?: readonly ImagePart[];
  /** The earlier conversation that the run was begun with. A conversation in `messages` begins with it. */
  readonly earlier?: readonly Message[];
}

/** A run's record at this moment. @param now wall clock, ms @param revision the number of this save */
export function toCheckpoint(run: Progress, now: number, revision = 0): RunCheckpoint {
  const progress = recordable(run);
  return {
    version: RECORD_VERSION,
    meta: progress.meta,
    messages: progress.transcript.slice(),
    ...variablePart(progress),
    updatedAt: now,
    revision,
    ...(Object.keys(progress.inputs.value).length > 0 ? { inputs: progress.inputs.value } : {}),
    ...(progress.images.value.length > 0 ? { images: progress.images.value } : {}),
    ...(progress.earlier.value.length > 0 ? { earlier: progress.earlier.value } : {}),
  };
}

/** The fields of a recordable progress that make the head of a record; small, whatever the length of the run. */
export function variablePart(progress: Progress): Omit<RunHead, 'version' | 'meta' | 'updatedAt' | 'revision'> {
  const { openStep, openPhase, outcome, parked, spend, raisedSteps, fingerprint, parent } = progress;
  return {
    iteration: progress.iteration,
    completedPhases: progress.completedPhases,
    usage: progress.usage,
    attempts: progress.attempts,
    counters: progress.counters,
    elapsedMs: progress.elapsedMs,
    definition: progress.definition,
    ...(progress.undelivered.length > 0 ? { undelivered: progress.undelivered } : {}),
    ...(progress.nudges.length > 0 ? { nudges: progress.nudges } : {}),
    ...(progress.commands.length > 0 ? { commands: progress.commands } : {}),
    ...(openStep ? { openStep } : {}),
    ...(openPhase ? { openPhase } : {}),
    ...(spend ? { spend } : {}),
    ...(raisedSteps > 0 ? { raisedSteps } : {}),
    ...(outcome ? { outcome } : {}),
    ...(parked ? { parked } : {}),
    ...(fingerprint === undefined ? {} : { fingerprint }),
    ...(parent ? { parent } : {}),
  };
}

/** Where a record's run goes on. */
export function toResumeState(record: RunCheckpoint): ResumeState {
  const { version: _, meta: __, updatedAt: ___, revision: ____, fingerprint: _____, parent: ______, ...state } = record;
  const { messages, ...rest } = state;
  return { ...rest, history: messages };
}
