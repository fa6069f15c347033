import { rowsOf } from '../run/field-rows.ts';
import { type HeadFields, type IdentityFields, SMALL_FIELD, type StartFields } from '../run/fields.ts';
import type { PhaseOutput } from '../run/phase.ts';
import { recordable } from '../run/pipeline.ts';
import { ownFrom, type Progress } from '../run/progress.ts';
import type { ResumeState } from '../run/resume.ts';
import type { Message } from '../values/message.ts';
import type { Usage } from '../values/usage.ts';

/** The version of records that this code writes. Older records are upcast, newer ones refused. */
export const RECORD_VERSION = 3;

/**
 * The changing part of a record and its identity: the record without messages, inputs, images and the earlier conversation.
 */
export interface RunHead extends IdentityFields, Partial<HeadFields> {
  readonly version: 3;
  /** Counts the saves of the run. */
  readonly revision: number;
  /** Wall clock of the save that wrote it, ms. */
  readonly updatedAt: number;
  /** The events of the next process have higher numbers than this. */
  readonly seq?: number;
  readonly iteration: number;
  readonly completedPhases: readonly PhaseOutput[];
  readonly usage: Usage;
  readonly attempts: number;
}

/** One stored run: plain JSON with everything that a new process needs to continue it. */
export interface RunCheckpoint extends RunHead, Partial<StartFields> {
  /** The conversation, before compaction; in a pipeline that of the phase in progress. */
  readonly messages: readonly Message[];
}

/**
 * Makes the record of a run from its progress.
 * @param now wall clock, ms
 * @param revision the number of this save
 */
export function toCheckpoint(run: Progress, now: number, revision = 0): RunCheckpoint {
  const progress = recordable(run);
  const { meta, transcript } = progress;
  const marks = { version: RECORD_VERSION, revision, updatedAt: now } as const;
  const head = { ...marks, meta };
  addHead(head, progress);
  return addStart({ ...(head as RunHead), messages: transcript.slice(ownFrom(progress)) }, progress);
}

/** The head rows as each save needs them: loops over plain values, because a save is a part of each step. */
const written = rowsOf('identity', 'head')
  .filter(({ key }) => key !== 'meta')
  .map(({ key, spec }) => ({
    key: key as keyof HeadFields,
    isAlways: spec.write === 'always',
    isList: Array.isArray(spec.empty),
    empty: spec.empty,
    size: spec.size,
  }));

/**
 * Adds the head fields of a run's progress to a record: small for a run of any length.
 * @param progress recordable
 * @returns a bound for the UTF-16 units of its JSON: it costs less than to measure them, and is nearly always enough
 */
export function addHead(to: object, progress: Progress): number {
  const head = to as Record<string, unknown>;
  // Version, revision and times.
  let units = SMALL_FIELD;
  for (const { key, isAlways, isList, empty, size } of written) {
    const value = progress[key];
    if (value === undefined) continue;
    if (!isAlways && (value === empty || (isList && (value as readonly unknown[]).length === 0))) continue;
    head[key] = value;
    units += size === 0 ? SMALL_FIELD : size(value);
  }
  return units;
}

const startKeys = rowsOf('start').map(({ key }) => key as keyof StartFields);

/**
 * Adds the start data of a run (what is written once, as inputs and images) to a record, as far as it is not empty. The earlier
 * turns of a thread are in the records of their own runs.
 */
export function addStart<T extends object>(to: T, progress: Progress): T & Partial<StartFields> {
  const target = to as Record<string, unknown>;
  for (const key of startKeys) {
    const value = progress[key]?.value;
    if (value && !isEmpty(value) && !(key === 'earlier' && progress.thread)) target[key] = value;
  }
  return to;
}

function isEmpty(value: object): boolean {
  return Array.isArray(value) ? value.length === 0 : Object.keys(value).length === 0;
}

/** The fields of the identity that a resume state has: a run that continues makes its calls with the keys that it began with. */
const kept: readonly string[] = ['birth', 'beganAt'];

/** The fields of a record that a resume state does not have. */
const isOfRecord = new Set<string>([
  ...['version', 'updatedAt', 'revision', 'messages'],
  ...rowsOf('identity').flatMap(({ key }) => (kept.includes(key) ? [] : key)),
]);

/** Returns the resume state of a record, from which its run continues. */
export function toResumeState(record: RunCheckpoint): ResumeState {
  const state = Object.entries(record).filter(([key]) => !isOfRecord.has(key));
  return { ...Object.fromEntries(state), history: record.messages };
}
