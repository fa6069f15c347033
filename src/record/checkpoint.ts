import { type HeadFields, type IdentityFields, rowsOf, SMALL_FIELD, type StartFields } from '../run/fields.ts';
import type { PhaseOutput } from '../run/phase.ts';
import { recordable } from '../run/pipeline.ts';
import type { Progress } from '../run/progress.ts';
import type { ResumeState } from '../run/resume.ts';
import type { Message } from '../values/message.ts';
import type { Usage } from '../values/usage.ts';

/** The version this code writes. Older records are upcast, newer ones refused. */
export const RECORD_VERSION = 2;

/** What changes from save to save, and which run it is: the record without messages, inputs, images and the earlier conversation. */
export interface RunHead extends IdentityFields, Partial<HeadFields> {
  readonly version: 2;
  /** Counts the saves of the run. */
  readonly revision: number;
  /** Wall clock of the save that wrote it, ms. */
  readonly updatedAt: number;
  /** Above this number the events of the next process begin. */
  readonly seq?: number;
  readonly iteration: number;
  readonly completedPhases: readonly PhaseOutput[];
  readonly usage: Usage;
  readonly attempts: number;
}

/** One stored run: plain JSON, the whole of what a new process needs to go on. */
export interface RunCheckpoint extends RunHead, Partial<StartFields> {
  /** The conversation, as it is before compaction; in a pipeline that of the phase in progress. */
  readonly messages: readonly Message[];
}

/** A run's record at this moment. @param now wall clock, ms @param revision the number of this save */
export function toCheckpoint(run: Progress, now: number, revision = 0): RunCheckpoint {
  const progress = recordable(run);
  const { meta, transcript } = progress;
  const marks = { version: RECORD_VERSION, revision, updatedAt: now } as const;
  const head = { ...marks, meta };
  addHead(head, progress);
  return addStart({ ...(head as RunHead), messages: transcript.slice() }, progress);
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
 * Adds to an object what makes the head of a record, without its meta: small, whatever the length of the run.
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

/** Adds to an object what a run was given at its start, as far as it was given anything. */
export function addStart<T extends object>(to: T, progress: Progress): T & Partial<StartFields> {
  const target = to as Record<string, unknown>;
  for (const key of startKeys) {
    const { value } = progress[key];
    if (!isEmpty(value)) target[key] = value;
  }
  return to;
}

function isEmpty(value: object): boolean {
  return Array.isArray(value) ? value.length === 0 : Object.keys(value).length === 0;
}

/** What stands in a record and not in a resume state. */
const isOfRecord = new Set<string>([
  'version',
  'updatedAt',
  'revision',
  'messages',
  ...rowsOf('identity').map(({ key }) => key),
]);

/** Where a record's run goes on. */
export function toResumeState(record: RunCheckpoint): ResumeState {
  const state = Object.entries(record).filter(([key]) => !isOfRecord.has(key));
  return { ...Object.fromEntries(state), history: record.messages };
}
