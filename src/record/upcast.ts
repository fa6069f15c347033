import type { RECORD_VERSION } from './checkpoint.ts';

type Stored = Record<string, unknown>;

/** One small function a version: `upcasts[n]` turns a record of version n into one of version n + 1. */
const upcasts: Readonly<Record<number, (record: Stored) => Stored>> = {};

/** Brings a stored record of an older version to today's. Fields that a version dropped are ignored. */
export function upcast(record: Stored): Stored & { version: typeof RECORD_VERSION } {
  let current = record;
  for (let step = upcasts[Number(current.version)]; step; step = upcasts[Number(current.version)])
    current = step(current);
  return current as Stored & { version: typeof RECORD_VERSION };
}
