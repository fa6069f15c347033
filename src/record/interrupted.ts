import { traceIdIn } from '../run/attempt.ts';
import { type HeadFields, type IdentityFields, type SetupFault, staysParked } from '../run/fields.ts';
import { inputOf } from '../run/open-step.ts';
import { neededPhases } from '../run/pipeline.ts';
import type { Labels, ParentCall, RunCheckpointMeta } from '../run/request.ts';
import { isAtRest } from '../run/waits/model-waits.ts';
import type { Wait } from '../run/waits/wait.ts';
import { toErrorData } from '../values/error-data.ts';
import type { JsonValue } from '../values/json.ts';
import type { Spend, Usage } from '../values/usage.ts';
import type { RunHead } from './checkpoint.ts';
import { parentOf } from './identify.ts';

/** An open wait, as lists show it. */
export type OpenWait = Wait & {
  /** The input with which the call runs, as it is recorded; for an approval, as a person changed it. Absent = not in the list. */
  readonly input?: JsonValue;
  /** The model's own input, if a person changed it. */
  readonly modelInput?: JsonValue;
};

/** A stored run without its transcript, as lists show it. A host-written store may leave `status` and `attempts` out. */
export type InterruptedRun =
  | {
      readonly runId: string;
      /** `waiting`: it has open waits, or is a workflow that waits for machine events. */
      readonly status?: 'interrupted' | 'parked' | 'waiting';
      /** It is a run of a workflow; absent = of an agent, or the machine of the workflow has not begun. */
      readonly kind?: 'workflow';
      /** Of a workflow: the version that its machine has last run with. */
      readonly version?: string;
      readonly meta: RunCheckpointMeta;
      readonly iteration: number;
      /** Names of the phases that are complete. */
      readonly completedPhases: readonly string[];
      readonly updatedAt: number;
      readonly attempts?: number;
      readonly owner?: string;
      /** The trace of `pawl/otel`; absent = it has none. */
      readonly traceId?: string;
      /** Why it is parked: an error code, and a text. */
      readonly code?: string;
      readonly reason?: string;
      /** The call that began the run; absent = a host did. */
      readonly parent?: ParentCall;
      /** Absent = none. */
      readonly labels?: Labels;
      /** When it began, wall clock of its process, ms; absent: its record does not say it. */
      readonly beganAt?: number;
      /** Tokens of all its model calls so far; absent in a list of a host's own store. */
      readonly usage?: Usage;
      /** The cost so far as a budget counts it; absent without a budget. */
      readonly spend?: Spend;
      /** The open waits of a run with the status `waiting`. */
      readonly waits?: readonly OpenWait[];
      /** Since when no process could continue it: a model, its key or a tool was missing in each that tried; absent = not known. */
      readonly setup?: SetupFault;
      /** When a resting run continues, wall clock, ms; absent = when a command comes, or unknown to the store. */
      readonly dueAt?: number;
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
 * @param dueAt when the run continues, if the store knows it
 */
export function interruptedRun(head: RunHead, owner?: string, dueAt?: number): InterruptedRun {
  const parent = parentOf(head);
  const waits = head.waiting ? openWaitsIn(head) : [];
  const isWaiting = !head.parked && (waits.length > 0 || isAwaitingEvents(head));
  return {
    runId: head.meta.runId,
    status: head.parked ? 'parked' : isWaiting ? 'waiting' : 'interrupted',
    meta: head.meta,
    iteration: head.iteration,
    completedPhases: head.completedPhases.map((phase) => phase.name),
    updatedAt: head.updatedAt,
    attempts: head.attempts ?? 0,
    ...(parent ? { parent } : {}),
    ...listedIdentity(head),
    ...(head.workflow && head.definition ? { version: head.definition.version } : {}),
    usage: head.usage,
    ...(head.spend ? { spend: head.spend } : {}),
    ...(owner === undefined ? {} : { owner }),
    ...(isWaiting ? { waits } : {}),
    ...(head.setup ? { setup: head.setup } : {}),
    ...(dueAt === undefined ? {} : { dueAt }),
    ...(head.parked ? { code: head.parked.code, reason: head.parked.reason } : {}),
  };
}

/** Returns whether a run is a workflow that waits for machine events alone. */
export function isAwaitingEvents(run: Pick<RunHead, 'waiting' | 'openStep' | 'outcome' | 'workflow'>): boolean {
  return run.workflow !== undefined && !run.waiting?.waits.length && isAtRest(run);
}

/** What lists show of the identity of a run besides its meta. */
interface ListedIdentity extends Pick<IdentityFields, 'labels' | 'beganAt'> {
  /** It is a run of a workflow; absent = of an agent, or the machine of the workflow has not begun. */
  readonly kind?: 'workflow';
  readonly traceId?: string;
}

/** Returns the labels of a run, when it began, its trace, and whether it is a workflow's. */
export function listedIdentity({
  labels,
  beganAt,
  trace,
  workflow,
}: Pick<IdentityFields, 'labels' | 'beganAt' | 'trace'> & Pick<HeadFields, 'workflow'>): ListedIdentity {
  const traceId = traceIdIn(trace);
  return {
    ...(workflow ? { kind: 'workflow' } : {}),
    ...(labels ? { labels } : {}),
    ...(beganAt === undefined ? {} : { beganAt }),
    ...(traceId === undefined ? {} : { traceId }),
  };
}

/** Returns the open waits of a run, each with the input of its call. */
export function openWaitsIn({ waiting, openStep }: Pick<RunHead, 'waiting' | 'openStep'>): readonly OpenWait[] {
  const calls = new Map(openStep?.calls.map((call) => [call.callId, call]));
  return (waiting?.waits ?? []).map((wait) => {
    const call = wait.callId === undefined ? undefined : calls.get(wait.callId);
    if (!call) return wait;
    const input = wait.kind === 'approval' && wait.input !== undefined ? wait.input : inputOf(call);
    return { input, ...(input === call.input ? {} : { modelInput: call.input }), ...wait };
  });
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
  const code = /^[A-Z][A-Z_]+: /.exec(reason)?.[0].slice(0, -2);
  return code === undefined ? { message: reason } : { code, message: reason.slice(code.length + 2) };
}

/** What a record says of its run: it is due `now`, it waits and keeps its time (`kept`), or it is `never` due. */
export type DueOfRecord = 'now' | 'kept' | 'never';

/**
 * Returns when a stored run is due, as its record says: now, never, or when the store has kept. A run without open waits
 * has work to do: if its process dies, another one must take it, even if it had rested before.
 */
export function dueOfRecord({ parked, hosted, waiting }: Pick<RunHead, 'parked' | 'hosted' | 'waiting'>): DueOfRecord {
  if (parked || hosted) return 'never';
  return waiting && waiting.waits.length > 0 ? 'kept' : 'now';
}

/**
 * Returns why a stored run is not due: the kind of its first open wait, `parked`, or `hosted` by a machine of its host. Undefined
 * for a run that has work to do.
 */
export function pauseOf({
  parked,
  hosted,
  waiting,
}: Pick<RunHead, 'parked' | 'hosted' | 'waiting'>): string | undefined {
  if (parked) return 'parked';
  return hosted ? 'hosted' : waiting?.waits[0]?.kind;
}

/**
 * Returns the definition by which a parked run is found: that which its agent must have. Empty: it is not found so, because it is
 * parked for another reason, or its parent continues it. Undefined for a run that is not parked.
 */
export function definitionOfParked(head: RunHead): string | undefined {
  const { meta, parked, hosted } = head;
  if (!parked || hosted) return undefined;
  if (staysParked(parked.code) || parentOf(head)) return '';
  return neededPhases(meta.agentId, head) ?? '';
}
