import { type ParkedReason, type SetupFault, staysParked } from '../run/fields.ts';
import { nameOfWait, type Wait, type Waiting } from '../run/waits/wait.ts';
import type { ErrorData } from '../values/error-data.ts';
import type { RunCheckpoint } from './checkpoint.ts';
import { damageIn, type InterruptedRun, isAwaitingEvents, type ReadableRun } from './interrupted.ts';
import { listedStatus } from './listed-status.ts';
import { mayBeChild, type TreePlace } from './run-tree.ts';

/*
 * What becomes of a stored run is decided here, once, for `recover`, `diagnose`, `executor.list` and the command line. Each of
 * them brings the facts that it knows. The first row of the table that applies gives the verdict, and its words.
 */

/** The effect of the next `recover()` on a stored run. */
export interface RunVerdict {
  /**
   * `resumes`: it continues. `waits`: for an answer, an event, a time, a child or its model. `child`: its parent continues it.
   * `live`: a process works on it. `parked`: it is parked, or the next start parks it. `skipped`: left alone, because there is
   * no agent of its id, or a newer deployment has claimed it. `fails`: `migrate` fails, and it stays as it is. `unreadable`: its bytes are kept, and nothing is done.
   */
  readonly verdict: 'resumes' | 'waits' | 'child' | 'live' | 'parked' | 'skipped' | 'fails' | 'unreadable';
  /** Why, in words, without the code. */
  readonly reason: string;
  /** The error code of the reason, if there is one. */
  readonly code?: string;
  /** Whether it stays as it is until a person, or a deploy, changes something. */
  readonly needsPerson: boolean;
}

/** What a start of the run finds after it has read the whole record. */
export type NextStart =
  | { readonly failed: ErrorData }
  | {
      /** The record after `migrate`. */
      readonly record: RunCheckpoint;
      /** Why the start parks it, if it does. */
      readonly parks: ParkedReason | undefined;
      /** Where a workflow rests that waits for events alone, if its machine is known. */
      readonly rest?: { readonly text: string; readonly isDeadEnd: boolean } | undefined;
      /** Wall clock, ms. */
      readonly now: number;
      /** Whether it rests if nothing but waits is left: not in a store without `leave`, nor if a command waits for it. */
      readonly mayRest?: boolean;
    };

/** What is known of a stored run. A fact that is absent is not known. */
export interface VerdictFacts {
  readonly entry: InterruptedRun;
  /** What reading the whole record threw. */
  readonly damage?: ErrorData | undefined;
  /** Whether this process works on it. */
  readonly isLiveHere?: boolean | undefined;
  /** The owner that asks. Its own claims on stored runs last for a moment, and no run continues under them. */
  readonly asker?: string | undefined;
  /** Whether there is an agent for it. */
  readonly agent?: 'found' | 'missing' | undefined;
  readonly place?: TreePlace | undefined;
  /** Whether it rests and is not due: nothing looks at it before. */
  readonly isResting?: boolean | undefined;
  /** A higher deployment than that of this process, which has claimed it. */
  readonly newer?: number | undefined;
  readonly next?: (() => NextStart) | undefined;
}

/** A fact that the verdict depends on and that was not given: its place in the tree of runs, or what its start finds. */
export interface PersonNeed {
  readonly need: 'place' | 'start';
  readonly run: ReadableRun;
}

/** Returns the verdict on a run, or the fact that it depends on. A run that needs only its start is started, or would be. */
export function verdictOfRun(facts: VerdictFacts): RunVerdict | PersonNeed {
  const { entry } = facts;
  if (entry.status === 'quarantined') return unreadable(damageIn(entry.reason));
  if (facts.damage) return unreadable(facts.damage);
  const known = { ...facts, entry };
  for (const row of rows) {
    const found = row(known);
    if (found) return found;
  }
  return { need: 'start', run: entry };
}

interface Known extends VerdictFacts {
  readonly entry: ReadableRun;
}

type Row = (facts: Known) => RunVerdict | PersonNeed | undefined;

/** In this order, after `unreadable`: see docs/decisions/0031. */
const rows: readonly Row[] = [live, parked, newer, failing, child, agentless, waiting, parking, resuming];

/** The words for a run that is live in the process that asks. */
export const LIVE_HERE = 'it is live in this process';

function live({ entry, isLiveHere, asker }: Known): RunVerdict | undefined {
  if (isLiveHere) return { verdict: 'live', reason: LIVE_HERE, needsPerson: false };
  if (listedStatus(entry, asker) !== 'live') return undefined;
  return { verdict: 'live', reason: 'a process works on it', code: 'RUN_OWNED_ELSEWHERE', needsPerson: false };
}

/** A run that was parked because its agent had changed continues when the agent is the same again: its start finds out. */
function parked({ entry, agent }: Known): RunVerdict | undefined {
  const { status, code, reason } = entry;
  if (status !== 'parked' || (agent !== undefined && !staysParked(code))) return undefined;
  const words = reason === undefined ? 'it is parked' : `it is parked: ${reason}`;
  return { verdict: 'parked', reason: words, ...(code ? { code } : {}), needsPerson: true };
}

/** While it rests, an answer or a time is what it needs: which deployment continues it then is open. */
function newer({ newer: deployment, isResting: rests = false }: Known): RunVerdict | undefined {
  if (deployment === undefined || rests) return undefined;
  const reason = `it is left to deployment ${deployment}, which has worked on it and is newer than this one`;
  return { verdict: 'skipped', reason, code: 'NEWER_DEPLOYMENT', needsPerson: true };
}

function failing({ next }: Known): RunVerdict | undefined {
  const found = next?.();
  if (!found || !('failed' in found)) return undefined;
  const { code, message, cause } = found.failed;
  const reason = cause ? `${message}: ${cause.message}` : message;
  return { verdict: 'fails', reason, code, needsPerson: true };
}

/**
 * A child belongs to its parent as long as the run at the top of its tree exists. A parent that rests until the child has ended
 * continues nothing: the child is taken up by itself.
 */
function child({ entry, place }: Known): RunVerdict | PersonNeed | undefined {
  if (!place && mayBeChild(entry)) return { need: 'place', run: entry };
  if (place?.kind !== 'child' || place.isAlone) return undefined;
  const { parent, root, trouble } = place;
  if (!trouble) return { verdict: 'child', reason: `its parent run ${parent} continues it`, needsPerson: false };
  const above = root === parent ? `its parent run ${parent}` : `run ${root}, at the top of its tree,`;
  const { code, message } = trouble;
  return { verdict: 'child', reason: `${above} cannot be read: ${message}`, code, needsPerson: false };
}

/** Only after `child`: the agent of a child may be one that only its parent has. */
function agentless({ entry, agent }: Known): RunVerdict | undefined {
  if (agent !== 'missing') return undefined;
  const reason = `there is no agent ${entry.meta.agentId} to continue it; its record is kept`;
  return { verdict: 'skipped', reason, code: 'AGENT_NOT_FOUND', needsPerson: true };
}

/** No run waits for the answer of a child whose root has ended: when it is due, it is ended without the answer that it waits for. */
function waiting({ next, place, isResting: rests = false }: Known): RunVerdict | undefined {
  const found = next?.();
  if (!found || 'failed' in found || (place?.kind === 'orphan' && !rests)) return undefined;
  const { record, now, mayRest = true, rest } = found;
  if (mayRest && isAwaitingEvents(record)) {
    const { text = 'its machine waits for an event (send)', isDeadEnd = false } = rest ?? {};
    return { verdict: 'waits', reason: text, needsPerson: isDeadEnd };
  }
  if (!mayRest || !isResting(record.waiting, now)) return undefined;
  const { waits, wakeAt } = record.waiting;
  const latest = wakeAt === undefined ? '' : `, until ${timeOf(wakeAt)} at the latest`;
  const things = [
    ...new Set(waits.map((wait) => (wait.kind === 'limit' ? nameOfWait(wait) : awaited[wait.kind]))),
  ].join(', ');
  return { verdict: 'waits', reason: `it waits for ${things}${latest}`, needsPerson: waits.some(needsPerson) };
}

function isResting(waits: Waiting | undefined, now: number): waits is Waiting {
  return waits !== undefined && waits.waits.length > 0 && !(waits.wakeAt !== undefined && waits.wakeAt <= now);
}

const awaited: { readonly [Kind in Exclude<Wait['kind'], 'limit'>]: string } = {
  approval: 'an approval',
  question: 'an answer',
  event: 'an event',
  timer: 'a time',
  child: 'a child run',
  retry: 'its model',
};

function needsPerson(wait: Wait): boolean {
  return wait.kind === 'approval' || wait.kind === 'question' || (wait.kind === 'retry' && wait.needsPerson);
}

/** A stored time need not be one. */
function timeOf(ms: number): string {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? String(ms) : date.toISOString();
}

/** The next start parks it. */
function parking({ next }: Known): RunVerdict | undefined {
  const found = next?.();
  if (!found || 'failed' in found || !found.parks) return undefined;
  const { code, reason } = found.parks;
  return { verdict: 'parked', reason: `the next start parks it: ${reason}`, code, needsPerson: true };
}

function resuming({ next, place }: Known): RunVerdict | undefined {
  const found = next?.();
  if (!found || 'failed' in found) return undefined;
  const { record } = found;
  if (place?.kind !== 'orphan' && !record.outcome && record.setup) return lacking(record, record.setup);
  const reason = place?.kind === 'orphan' ? ORPHAN : record.outcome ? delivered(record.outcome) : continued(record);
  return { verdict: 'resumes', reason, needsPerson: false };
}

/** The last process that tried could not: the next one may be set up no better. */
function lacking(record: RunCheckpoint, { code, since }: SetupFault): RunVerdict {
  const why = `a process gave it back, because a model, its key or a tool was missing (${code}, since ${timeOf(since)})`;
  return { verdict: 'resumes', reason: `${continued(record)}; ${why}`, code: 'SETUP', needsPerson: true };
}

const ORPHAN = 'the run that began it no longer exists: it is ended as cancelled, without another model call';

const delivered = ({ status }: { readonly status: string }) =>
  `it ended (${status}), and only its outcome has to be delivered`;

function continued({ iteration, attempts = 0 }: RunCheckpoint): string {
  const from = `it continues after ${iteration === 1 ? '1 step' : `${iteration} steps`}`;
  if (attempts === 0) return from;
  return `${from}; it was started ${attempts === 1 ? 'once' : `${attempts} times`} without recording anything new`;
}

function unreadable({ code, message }: { readonly code?: string; readonly message: string }): RunVerdict {
  const reason = `it cannot be read: ${message}`;
  return { verdict: 'unreadable', reason, ...(code ? { code } : {}), needsPerson: true };
}
