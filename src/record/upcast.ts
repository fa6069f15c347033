import { change, type Recipe } from '../run/change.ts';
import { CheckpointCorruptError } from '../values/errors.ts';
import { RECORD_VERSION } from './checkpoint.ts';

type Stored = Record<string, unknown>;

/**
 * One small function a version: `upcasts[n]` changes the draft of a record of version n into one of version n + 1, or returns
 * that one. It gets a head without messages as well: lists read no more than that.
 */
export type Upcasts = Readonly<Record<number, Recipe<Stored>>>;

/** A change that raises RECORD_VERSION adds the step from the version before, and pins under `fixtures` what that one wrote. */
const upcasts: Upcasts = {
  // Version 2 has labels, waits, threads, and whether a host's machine began the run: a record without them has none.
  1: () => {},
};

/** On a record that is no longer what its store holds: its next write has to be a whole one. Copies keep it, JSON does not. */
export const rewritten: unique symbol = Symbol('pawl.rewritten');

/** Whether a record was changed since its store gave it away, so that nothing may be appended to what is stored. */
export function isRewritten(record: object): boolean {
  return rewritten in record;
}

/**
 * Brings a stored record, or its head, of an older version to today's. Fields that a version dropped are ignored.
 * @param record its version is a whole number
 * @throws {CheckpointCorruptError} when there is no way from its version to today's
 */
export function upcast(record: Stored, steps: Upcasts = upcasts, target: number = RECORD_VERSION): Stored {
  let current = record;
  for (let version = Number(record.version); version < target; version++) {
    const step = steps[version];
    if (!step) throw new CheckpointCorruptError(`this record has version ${version}, which no Pawl has written`);
    const next = change(current, step);
    // Only what a step has changed is other than what the store holds.
    const marks = next === current ? {} : { [rewritten]: true };
    current = { ...next, version: version + 1, ...marks };
  }
  return current;
}
