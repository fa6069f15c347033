import { rowsOf } from '../run/field-rows.ts';
import type { StartFields } from '../run/fields.ts';
import type { Message } from '../values/message.ts';
import type { RunCheckpoint, RunHead } from './checkpoint.ts';

/** The addition of one save: the messages since the last save, and the head. */
export interface RunDelta {
  readonly runId: string;
  /** One more than the revision before it. */
  readonly revision: number;
  /** The number of messages in the record without this delta. */
  readonly from: number;
  readonly messages: readonly Message[];
  readonly head: RunHead;
}

const identityKeys = rowsOf('identity').map(({ key }) => key);

/**
 * Returns the fields of a head that can change from save to save; the rest is `undefined`, which JSON leaves out. A copy
 * costs less than a selection.
 */
export function changingPart(head: RunHead): object {
  const part: Record<string, unknown> = { ...head };
  for (const key of identityKeys) if (part[key] !== undefined) part[key] = undefined;
  return part;
}

const outside: ReadonlySet<string> = new Set(rowsOf('start', 'messages').map(({ key }) => key));

/**
 * Returns the head of a record, or of a state: without messages, inputs, images and the earlier conversation, which it does
 * not read.
 */
export function headOf(record: RunCheckpoint): RunHead;
export function headOf(record: object): object;
export function headOf(record: object): object {
  const head: Record<string, unknown> = {};
  for (const key of Object.keys(record)) if (!outside.has(key)) head[key] = record[key as keyof typeof record];
  return head;
}

const startKeys = rowsOf('start').map(({ key }) => key as keyof StartFields);

/** Returns the start data of a record or a state: what is written once. */
export function startOf(state: Partial<StartFields>): Partial<StartFields> {
  const given = startKeys.filter((key) => state[key] !== undefined).map((key) => [key, state[key]]);
  return Object.fromEntries(given) as Partial<StartFields>;
}
