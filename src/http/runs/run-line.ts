import type { EndedRunLine, FoundRun, KeptRun, Labels, ListedRun, OpenWait, RunOutput } from '../../index.ts';
import { nameOfWait } from '../../run/waits/wait.ts';
import { publicError } from '../problem.ts';

/**
 * Where a run stands. `you`: it waits for a person. `run`: a process works on it. `wait`: for an event, a time, a child or its
 * model. `idle`: no process works on it. `park`: it is set aside. `bad`: its record cannot be read. `ok`, `fail`, `cut`: it
 * ended well, with an error, or was cancelled.
 */
export type RunState = 'you' | 'run' | 'wait' | 'idle' | 'park' | 'bad' | 'ok' | 'fail' | 'cut';

/** All states of a run, in the order in which a person wants to see them. */
export const runStates: readonly RunState[] = ['you', 'run', 'wait', 'idle', 'park', 'bad', 'ok', 'fail', 'cut'];

/** A run in a list. */
export interface RunLine {
  readonly runId: string;
  readonly agentId: string;
  readonly agentName: string;
  /** Its first 200 characters. */
  readonly prompt: string;
  readonly state: RunState;
  /** Where it is, in a few words. */
  readonly where: string;
  /** Why it is there, if that needs a word: what it waits for, or what is wrong. */
  readonly why?: string;
  /** The error code of the reason. */
  readonly code?: string;
  readonly steps: number;
  readonly maxSteps?: number;
  readonly tokens: number;
  readonly usd?: number;
  /** When it began, wall clock, ms; absent if its record does not say it. */
  readonly beganAt?: number;
  /** Its last record, or its end, wall clock, ms; absent while it is live in the process that answers. */
  readonly updatedAt?: number;
  /** The process that works on it, if another one does. */
  readonly owner?: string;
  /** How many runs below it are known to work for it, or it waits for. */
  readonly children: number;
  readonly labels: Labels;
  /** The trace of `pawl/otel`; absent = it has none. */
  readonly traceId?: string;
}

/** What a line needs besides the run itself. */
export interface LineFacts {
  /** Whether its reader sees everything: reasons may quote a provider's error, or an operator. */
  readonly all?: boolean;
  /** Whether a run below it waits for a person. */
  readonly needsPerson?: boolean;
  /** Whether persons have answered its own waits, and no process has read that. */
  readonly isAnswered?: boolean;
  readonly maxSteps?: number | undefined;
}

/** A run whose record is kept after its end, in a list. */
interface EndedEntry extends Omit<EndedRunLine, 'outcome'> {
  readonly outcome: Pick<RunOutput, 'status' | 'error' | 'usage' | 'spend' | 'iterations' | 'traceId'>;
}

/** A run in any place. */
export type AnyRun = FoundRun | ListedRun | EndedEntry;
type ReadableKeptRun = Exclude<KeptRun, { status: 'quarantined' }>;
type OpenRun = Exclude<AnyRun, { status: 'queued' | 'ended' | 'quarantined' }>;

const PROMPT_CHARS = 200;

/** Returns the entry of a kept run in the form of a run that was found. */
export function endedLine({ runId, meta, parent, labels, beganAt, endedAt, ...outcome }: ReadableKeptRun): EndedEntry {
  return {
    runId,
    status: 'ended',
    outcome: outcome as EndedEntry['outcome'],
    meta,
    ...(parent ? { parent } : {}),
    ...(labels ? { labels } : {}),
    ...(beganAt === undefined ? {} : { beganAt }),
    updatedAt: endedAt,
  };
}

/** Makes the line of a run, as `GET /runs` lists it. */
export function runLine(run: AnyRun, facts: LineFacts = {}): RunLine {
  const meta = 'meta' in run ? run.meta : undefined;
  const names = { agentId: meta?.agentId ?? '', agentName: meta?.agentName ?? '' };
  const { maxSteps } = facts;
  const traceId = traceIdOf(run);
  return {
    runId: run.runId,
    ...names,
    prompt: shortened(meta?.prompt ?? ''),
    ...standing(run, facts),
    ...spent(run),
    ...(maxSteps === undefined ? {} : { maxSteps }),
    ...('beganAt' in run && run.beganAt !== undefined ? { beganAt: run.beganAt } : {}),
    ...(run.updatedAt === undefined ? {} : { updatedAt: run.updatedAt }),
    ...('owner' in run && run.owner !== undefined ? { owner: run.owner } : {}),
    children: childrenOf(run).length,
    labels: ('labels' in run ? run.labels : undefined) ?? {},
    ...(traceId === undefined ? {} : { traceId }),
  };
}

/** What an outcome of a foreign store has there may be any text. */
function traceIdOf(run: AnyRun): string | undefined {
  const place = run.status === 'ended' ? run.outcome : run;
  const traceId = 'traceId' in place ? place.traceId : undefined;
  return traceId && /^[0-9a-f]{32}$/.test(traceId) ? traceId : undefined;
}

function shortened(text: string): string {
  return text.length <= PROMPT_CHARS ? text : `${text.slice(0, PROMPT_CHARS - 1).toWellFormed()}…`;
}

function spent(run: AnyRun): Pick<RunLine, 'steps' | 'tokens' | 'usd'> {
  if (run.status === 'quarantined' || run.status === 'queued') return { steps: 0, tokens: 0 };
  const { usage, spend } = run.status === 'ended' ? run.outcome : run;
  const steps = run.status === 'ended' ? run.outcome.iterations : run.iteration;
  const tokens = (usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0);
  return { steps, tokens, ...(spend ? { usd: spend.usd } : {}) };
}

/** Why a run was set aside, in words that quote no error. */
const parkings: { readonly [code: string]: string } = {
  BUDGET_EXCEEDED: 'its budget is used up',
  DEFINITION_CHANGED: 'the agent has changed',
  MODEL_OUTAGE: 'its model was away for too long',
  OUTCOME_UNKNOWN: 'it is unknown whether a call took effect',
  PARKED: 'set aside by hand',
  RESTORED: 'it comes from a backup',
  SETUP: 'no process could continue it',
  TOO_MANY_ATTEMPTS: 'it died several times without progress',
};

/** Returns why a run was set aside, as clients may see it. */
export function publicParking(given: string): { readonly code: string; readonly why: string } {
  const code = Object.hasOwn(parkings, given) ? given : 'PARKED';
  return { code, why: parkings[code] ?? '' };
}

type Standing = Pick<RunLine, 'state' | 'where' | 'why' | 'code'>;

function standing(run: AnyRun, { needsPerson = false, isAnswered = false, all = false }: LineFacts): Standing {
  if (run.status === 'quarantined') {
    const [code = ''] = run.reason.split(':');
    return { state: 'bad', where: 'its record cannot be read', ...(isCode(code) ? { code } : {}) };
  }
  if (run.status === 'ended') return ended(run.outcome);
  if (run.status === 'queued') return { state: 'wait', where: 'in its conversation', why: 'waits for its turn' };
  if (run.status === 'parked') {
    const { code = 'PARKED', reason } = run;
    return { state: 'park', where: afterSteps(run), ...(all && reason ? { code, why: reason } : publicParking(code)) };
  }
  const waits = ('waits' in run ? run.waits : undefined) ?? [];
  if (isAnswered && !needsPerson)
    return { state: 'wait', where: `step ${run.iteration + 1}`, why: 'answered: waits for a process' };
  const isForPerson = needsPerson || waits.some(isForPersonWait);
  if (isForPerson || (waits.length > 0 && isResting(run))) return waiting(run, waits, isForPerson);
  if (run.status === 'live') return { state: 'run', where: placeOf(run) };
  if ('setup' in run && run.setup) return { state: 'idle', where: afterSteps(run), ...publicParking('SETUP') };
  return { state: 'idle', where: afterSteps(run), why: 'no process works on it' };
}

function waiting(run: OpenRun, waits: readonly OpenWait[], isForPerson: boolean): Standing {
  const below = 'a run below it';
  const own = waits.length === 0 ? [below] : waits.map((wait) => (wait.kind === 'child' ? below : nameOfWait(wait)));
  const things = [...new Set(own)].slice(0, MAX_THINGS);
  // The step that asks: its card names it, too.
  const where = `step ${run.iteration + 1}`;
  return { state: isForPerson ? 'you' : 'wait', where, why: `waits for ${things.join(', ')}` };
}

const MAX_THINGS = 3;

/** Whether nothing but its waits is left. */
function isResting(run: OpenRun): boolean {
  if (run.status !== 'live') return true;
  return 'state' in run ? run.state.endsWith('waiting') : false;
}

function placeOf(run: OpenRun): string {
  const step = `step ${run.iteration + 1}`;
  if (!('state' in run)) return step;
  return `${step}, ${run.state.slice(run.state.lastIndexOf('.') + 1).replaceAll('-', ' ')}`;
}

function afterSteps({ iteration }: OpenRun): string {
  return iteration === 0 ? 'at its beginning' : `after ${iteration === 1 ? '1 step' : `${iteration} steps`}`;
}

const ends: { readonly [status in RunOutput['status']]: RunState } = {
  ok: 'ok',
  error: 'fail',
  timeout: 'fail',
  killed: 'fail',
  cancelled: 'cut',
  interrupted: 'idle',
  waiting: 'wait',
};

function ended({ status, error }: EndedEntry['outcome']): Standing {
  const where = `ended: ${status}`;
  if (!error) return { state: ends[status], where };
  const { code, message } = publicError(error);
  return { state: ends[status], where, why: message, code };
}

function isCode(text: string): boolean {
  return text !== '' && text.length <= 64 && /^[A-Z_]+$/.test(text);
}

/** Returns whether a person can end a wait. */
export function isForPersonWait(wait: OpenWait): boolean {
  return wait.kind === 'approval' || wait.kind === 'question' || (wait.kind === 'retry' && wait.needsPerson);
}

/** Returns the ids of the runs below a run that are known to work for it, or that it waits for. */
export function childrenOf(run: AnyRun): readonly string[] {
  const waits = 'waits' in run ? (run.waits ?? []) : [];
  const awaited = waits.flatMap((wait) => (wait.kind === 'child' ? [wait.childRunId] : []));
  return [...new Set([...awaited, ...(('children' in run ? run.children : undefined) ?? [])])];
}

/** An open wait as clients see it: without the message of a provider's error. */
export function publicWait<W extends OpenWait>(wait: W): W {
  return wait.kind === 'retry' ? ({ ...wait, error: { name: 'Error', ...publicError(wait.error) } } as W) : wait;
}
