import { type InterruptedRun, listedIdentity, type OpenWait, openWaitsIn } from '../../../record/interrupted.ts';
import { listedStatus } from '../../../record/listed-status.ts';
import { classifyCheckpointOutcome } from '../../../run/finalize.ts';
import { type Labels, labelsOf, type ParentCall, type RunCheckpointMeta } from '../../../run/request.ts';
import type { ListedStatus } from '../../../run/result.ts';
import { redactWait } from '../../../run/waits/wait.ts';
import { checkKeys, type KnownKeys, kindOf } from '../../../values/known-options.ts';
import type { Spend } from '../../../values/usage.ts';
import { metaFor } from '../../host/request.ts';
import type { ActiveRun, ExecutorServices } from '../../run/active-run.ts';
import type { RunSummary } from '../../services/registry.ts';
import { allListed } from './stored-run-pages.ts';

/** A run that is live in this process. */
export type LiveRunLine = RunSummary & {
  readonly status: 'live';
  /** It is a run of a workflow; absent = of an agent, or the machine of the workflow has not begun. */
  readonly kind?: 'workflow';
  readonly meta: RunCheckpointMeta;
  /** The call that began the run; absent = a host did. */
  readonly parent?: ParentCall;
  /** When it began, wall clock of its process, ms; absent: its record does not say it. */
  readonly beganAt?: number;
  /** The trace of `pawl/otel`; absent = it has none. */
  readonly traceId?: string;
  /** Its open waits; absent = none. */
  readonly waits?: readonly OpenWait[];
  /** The live runs that its calls began; absent = none. */
  readonly children?: readonly string[];
  /** The cost so far as a budget counts it; absent without a budget. */
  readonly spend?: Spend;
  readonly owner?: undefined;
  readonly updatedAt?: undefined;
};

/** A stored run: live in another process, which `owner` names, or waiting for one. */
export type StoredRunLine = Omit<Extract<InterruptedRun, { meta: RunCheckpointMeta }>, 'status' | 'owner'> &
  (
    | { readonly status: 'live'; readonly owner: string }
    | { readonly status: 'interrupted' | 'waiting' | 'parked'; readonly owner?: undefined }
  );

/** A record that cannot be read. */
export type QuarantinedRunLine = Extract<InterruptedRun, { status: 'quarantined' }> & { readonly owner?: undefined };

/** An entry of `executor.list()`. */
export type ListedRun = LiveRunLine | StoredRunLine | QuarantinedRunLine;

/** The beginning of a page of `executor.list()`: any entry of it, or these two fields of one. */
export interface ListCursor {
  readonly runId: string;
  /** Wall clock, ms; absent in entries of runs that are live in this process. */
  readonly updatedAt?: number | undefined;
}

/** The options of `executor.list()`. */
export interface ListRunsOptions {
  /** Most entries of the answer; default 1,000. A shorter answer is the last page. */
  readonly limit?: number;
  /** The last entry of the page before. */
  readonly after?: ListCursor;
  /** Only runs of this status, or of one of these. */
  readonly status?: ListedStatus | readonly ListedStatus[];
  /** Only runs of this agent. An unreadable record has none. */
  readonly agentId?: string;
  /** Only runs of this caller (`invocation.callerId`). An unreadable record has none. */
  readonly callerId?: string;
  /** Only runs that have all of these. An unreadable record has none. */
  readonly labels?: Labels;
}

const optionKeys: KnownKeys<ListRunsOptions> = {
  limit: true,
  after: true,
  status: true,
  agentId: true,
  callerId: true,
  labels: true,
};
const USUAL_LIMIT = 1_000;

/**
 * Lists one page of the runs of an executor: first those that are live in this process, by their ids, then those of the
 * store, by the time of their last record.
 * @throws {TypeError} for options that cannot be; the store's own error when its list cannot be read
 */
export async function listRuns(services: ExecutorServices, options: ListRunsOptions): Promise<readonly ListedRun[]> {
  const { limit, after, callerId, isWanted } = checked(options);
  const { registry, config } = services;
  const isInStore = after?.updatedAt !== undefined;
  const page = isInStore ? [] : liveHere(services, { after: after?.runId, callerId }).filter(isWanted).slice(0, limit);
  if (!config.store || page.length === limit) return page;
  const from = isInStore ? { updatedAt: after.updatedAt, runId: after.runId } : undefined;
  let updatedAt = after?.updatedAt ?? 0;
  for await (const { entry } of allListed(config.store, { after: from, callerId, wanted: limit })) {
    updatedAt = entry.updatedAt ?? updatedAt;
    const line = lineOf(entry, { owner: services.owner, updatedAt });
    if (isLive(registry.live(entry.runId)) || !isWanted(line)) continue;
    page.push(line);
    if (page.length === limit) break;
  }
  return page;
}

/** Returns the entries of runs that are live in this process, by id. @param callerId undefined = of all callers */
function liveHere(
  { registry }: ExecutorServices,
  { after = '', callerId }: { readonly after: string | undefined; readonly callerId: string | undefined },
): ListedRun[] {
  return registry
    .all()
    .filter((run) => run.runId > after && isLive(run) && isOfCaller(run, callerId))
    .sort((a, b) => (a.runId < b.runId ? -1 : 1))
    .map(liveLine);
}

/** Returns whether a run is one of this caller. @param callerId undefined = of any */
export function isOfCaller({ progress, seed }: ActiveRun, callerId: string | undefined): boolean {
  return callerId === undefined || (progress?.meta ?? seed.request).callerId === callerId;
}

/** Returns the entry of a run that is live in this process, in `executor.list`. Its texts are redacted as in its record. */
export function liveLine(run: ActiveRun): LiveRunLine {
  const { agent, seed, services, progress, redaction } = run;
  const meta = progress?.meta ?? metaFor(agent, seed.request, services.config.defaults.model);
  const parent = run.parent ?? seed.request.parent;
  const waits = openWaitsOf(run);
  const shown = redaction?.records;
  const children = [...run.resources.children].map(({ runId }) => runId);
  return {
    ...run.summary,
    status: 'live',
    meta: shown ? { ...meta, prompt: shown.text(meta.prompt) } : meta,
    ...(parent ? { parent } : {}),
    ...listedIdentity(progress ?? seed.request),
    ...(progress?.spend ? { spend: progress.spend } : {}),
    ...(children.length > 0 ? { children } : {}),
    ...(waits.length > 0 ? { waits: shown ? redactedWaits(waits, shown) : waits } : {}),
  };
}

/** Returns the open waits of a live run whose answers it can take. */
export function openWaitsOf({ actor, progress, waits }: ActiveRun): readonly OpenWait[] {
  if (!progress?.waiting) return [];
  const { cause } = actor.getSnapshot().context;
  // It is about to end, and no process will take an answer.
  if (cause && classifyCheckpointOutcome(cause, cause) === 'fail') return [];
  return openWaitsIn(progress).filter((wait) => waits.isShown(wait));
}

/** Returns open waits without their secrets, the inputs of their calls included. */
export function redactedWaits(waits: readonly OpenWait[], by: RecordRedactor): readonly OpenWait[] {
  return waits.map((wait) => ({
    ...redactWait(wait, by),
    ...(wait.input === undefined ? {} : { input: by.json(wait.input) }),
    ...(wait.modelInput === undefined ? {} : { modelInput: by.json(wait.modelInput) }),
  }));
}

type RecordRedactor = NonNullable<ActiveRun['redaction']>['records'];

/**
 * Returns whether a run of the registry is live. A start that was refused, or answered with a kept result, has its place there
 * until its result settles; but it is not a run.
 */
export function isLive(run: ActiveRun | undefined): run is ActiveRun {
  return run !== undefined && !run.life.isRefused && !run.life.isAnswered;
}

/**
 * The entry of a stored run in `executor.list`.
 * @param at `owner`: the claims of this executor itself last for a moment, and say nothing; `updatedAt`: for a store that cannot tell
 */
function lineOf(entry: InterruptedRun, at: { readonly owner: string; readonly updatedAt: number }): ListedRun {
  if (entry.status === 'quarantined') return { updatedAt: at.updatedAt, ...entry };
  const { status: _, owner = '', ...rest } = entry;
  const status = listedStatus(entry, at.owner);
  return status === 'live'
    ? { ...rest, owner, status }
    : { ...rest, status: status as 'interrupted' | 'waiting' | 'parked' };
}

function checked(options: ListRunsOptions) {
  checkKeys(options, optionKeys, { of: 'executor.list' });
  const { limit = USUAL_LIMIT, after, agentId, callerId, labels = {} } = options;
  if (!Number.isInteger(limit) || limit < 1)
    throw new TypeError(`executor.list: limit must be a whole number above 0, not ${String(limit)}`);
  if (after !== undefined && !isCursor(after))
    throw new TypeError('executor.list: after must be the last line of a page, or its { updatedAt, runId }');
  if (agentId !== undefined && (typeof agentId !== 'string' || agentId === ''))
    throw new TypeError(
      `executor.list: agentId must be the id of an agent, not ${agentId === '' ? "''" : kindOf(agentId)}`,
    );
  if (callerId !== undefined && typeof callerId !== 'string')
    throw new TypeError(`executor.list: callerId must be a string, not ${kindOf(callerId)}`);
  const statuses = statusesOf(options.status);
  const wanted = Object.entries(labelsOf(labels, 'executor.list: labels'));
  const hasLabels = (run: ListedRun) => {
    const own = 'labels' in run ? (run.labels ?? {}) : {};
    return wanted.every(([name, text]) => Object.hasOwn(own, name) && own[name] === text);
  };
  const isWanted = (run: ListedRun) =>
    statuses.includes(run.status) &&
    (agentId === undefined || agentId === metaIn(run)?.agentId) &&
    (callerId === undefined || callerId === metaIn(run)?.callerId) &&
    hasLabels(run);
  return { limit, after, callerId, isWanted };
}

function isCursor(after: Partial<ListCursor> | null): boolean {
  if (typeof after?.runId !== 'string') return false;
  return after.updatedAt === undefined || Number.isFinite(after.updatedAt);
}

const allStatuses: readonly ListedStatus[] = ['live', 'interrupted', 'waiting', 'parked', 'quarantined'];

function statusesOf(status: ListRunsOptions['status'] = allStatuses): readonly ListedStatus[] {
  const wanted: unknown = typeof status === 'string' ? [status] : status;
  if (!Array.isArray(wanted) || wanted.length === 0) {
    const got = Array.isArray(wanted) ? 'an empty list' : kindOf(wanted);
    throw new TypeError(`executor.list: status must be one or more of ${allStatuses.join(', ')}, not ${got}`);
  }
  for (const each of wanted) {
    if (allStatuses.includes(each)) continue;
    const got = typeof each === 'string' ? JSON.stringify(each.slice(0, 100)) : kindOf(each);
    throw new TypeError(`executor.list: there is no status ${got}; known: ${allStatuses.join(', ')}`);
  }
  return wanted;
}

function metaIn(run: ListedRun): RunCheckpointMeta | undefined {
  return 'meta' in run ? run.meta : undefined;
}
