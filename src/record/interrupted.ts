import type { Labels, ParentCall, RunCheckpointMeta } from '../run/request.ts';
import { toErrorData } from '../values/error-data.ts';
import type { RunHead } from './checkpoint.ts';
import { parentOf } from './identify.ts';

/** A stored run without its transcript, as lists show it. A host-written store may leave `status` and `attempts` out. */
export type InterruptedRun =
  | {
      readonly runId: string;
      readonly status?: 'interrupted' | 'parked';
      readonly meta: RunCheckpointMeta;
      readonly iteration: number;
      /** Names of the phases that are complete. */
      readonly completedPhases: readonly string[];
      readonly updatedAt: number;
      readonly attempts?: number;
      readonly owner?: string;
      /** Why it is parked: an error code, and a text. */
      readonly code?: string;
      readonly reason?: string;
      /** The call that began the run; absent = a host did. */
      readonly parent?: ParentCall;
      /** Absent = none. */
      readonly labels?: Labels;
    }
  | {
      readonly runId: string;
      /** The record cannot be read; its bytes are kept. */
      readonly status: 'quarantined';
      /** The error code, and the problem. */
      readonly reason: string;
      /** The time of the last write, if the store knows it: the next page of a list begins after it. */
      readonly updatedAt?: number;
    };

/** A listed run whose record can be read. */
export type ReadableRun = Extract<InterruptedRun, { meta: RunCheckpointMeta }>;

/**
 * Makes the list entry of a readable record, as `listInterrupted` returns it.
 * @param owner the owner of a live claim on it, if there is one
 */
export function interruptedRun(head: RunHead, owner?: string): InterruptedRun {
  const parent = parentOf(head);
  return {
    runId: head.meta.runId,
    status: head.parked ? 'parked' : 'interrupted',
    meta: head.meta,
    iteration: head.iteration,
    completedPhases: head.completedPhases.map((phase) => phase.name),
    updatedAt: head.updatedAt,
    attempts: head.attempts ?? 0,
    ...(parent ? { parent } : {}),
    ...(head.labels ? { labels: head.labels } : {}),
    ...(owner === undefined ? {} : { owner }),
    ...(head.parked ? { code: head.parked.code, reason: head.parked.reason } : {}),
  };
}

/** Makes the list entry of an unreadable record, as `listInterrupted` returns it. @param error what reading it threw */
export function quarantinedRun(
  at: { readonly runId: string; readonly updatedAt: number },
  error: unknown,
): InterruptedRun {
  const { code, message } = toErrorData(error, 'CHECKPOINT_CORRUPT');
  return { runId: at.runId, status: 'quarantined', reason: `${code}: ${message}`, updatedAt: at.updatedAt };
}

/** Returns the error in the entry of an unreadable record: its code, if the store gave one, and the text after it. */
export function damageIn(reason: string): { readonly code?: string; readonly message: string } {
  const code = /^[A-Z][A-Z_]+(?=: )/.exec(reason)?.[0];
  return code === undefined ? { message: reason } : { code, message: reason.slice(code.length + 2) };
}
