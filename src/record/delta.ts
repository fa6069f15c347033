import type { Message } from '../values/message.ts';
import type { RunCheckpoint, RunHead } from './checkpoint.ts';

/** What one save adds: the messages since the last save, and the head. */
export interface RunDelta {
  readonly runId: string;
  /** One more than the revision it follows. */
  readonly revision: number;
  /** How many messages the record has without this delta. */
  readonly from: number;
  readonly messages: readonly Message[];
  readonly head: RunHead;
}

/** The head of a record. */
export function headOf(record: RunCheckpoint): RunHead {
  const { messages: _, inputs: __, images: ___, earlier: ____, ...head } = record;
  return head;
}
