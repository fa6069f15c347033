import { change, type Recipe } from '../run/change.ts';
import { CheckpointCorruptError } from '../values/errors.ts';
import { RECORD_VERSION } from './checkpoint.ts';

type Stored = Record<string, unknown>;

/**
 * One small function for each version: `upcasts[n]` changes the draft of a record of version n into one of version n + 1, or
 * returns that one. It also gets heads without messages: lists read only those.
 */
export type Upcasts = Readonly<Record<number, Recipe<Stored>>>;

/**
 * A change that raises RECORD_VERSION adds the step from the version before, and pins a record of that version under
 * `fixtures`.
 */
const upcasts: Upcasts = {
  // Version 2 has labels, waits, threads and `hosted`: a record without them has none.
  1: () => {},
  // Version 3 has optional rows that a record of version 2 lacks: what each of them means when absent is said at its row.
  2: () => {},
};

/**
 * Marks a record that differs from the stored one: its next write has to be a whole one. Copies keep the mark, JSON does not.
 */
export const rewritten: unique symbol = Symbol('pawl.rewritten');

/** Returns whether a record was changed after its store returned it: then a delta must not be appended to the stored one. */
export function isRewritten(record: object): boolean {
  return rewritten in record;
}

/**
 * Upcasts a stored record, or its head, to the present version. Fields that a version dropped are ignored.
 * @param record its version is a whole number
 * @throws {CHECKPOINT_CORRUPT} if there is no path from its version to the present one
 */
export function upcast(record: Stored, steps: Upcasts = upcasts, target: number = RECORD_VERSION): Stored {
  let current = record;
  for (let version = Number(record.version); version < target; version++) {
    const step = steps[version];
    if (!step) throw new CheckpointCorruptError(`this record has version ${version}, which no Pawl has written`);
    const next = change(current, step);
    // Only a step that changed the record makes it differ from the stored one.
    const marks = next === current ? {} : { [rewritten]: true };
    current = { ...next, version: version + 1, ...marks };
  }
  return current;
}
