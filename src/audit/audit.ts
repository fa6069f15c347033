import { childToolPrefixes } from '../agent/names.ts';
import type { RunCheckpoint } from '../record/checkpoint.ts';
import type { KeptRun, ReadableKeptRun } from '../record/kept-run.ts';
import { dayOf } from '../record/totals.ts';
import { bornRunOf, childRunId } from '../run/identity.ts';
import type { RunCheckpointMeta } from '../run/request.ts';
import { checkStore } from '../store/capabilities.ts';
import type { EndedCursor, ListEndedOptions } from '../store/history-port.ts';
import type { CheckpointStore, StoreGroups } from '../store/port.ts';
import { UnsupportedError } from '../values/errors.ts';
import { nextTurn } from '../values/event-loop.ts';
import { checkKeys } from '../values/known-options.ts';
import { toolCallsOf } from '../values/message.ts';
import { addSpend, addUsage, noSpend, noUsage } from '../values/usage.ts';
import type {
  AuditedAt,
  AuditedRun,
  AuditedRunDetail,
  AuditedRunFilter,
  AuditedTree,
  AuditQueries,
  AuditTotal,
  AuditTotalsFilter,
} from './queries.ts';
import { AuditRecording } from './recording.ts';

export interface AuditOptions {
  /** The store of an executor with the option `audit`. */
  readonly store: CheckpointStore;
}

/** A store from which an audit can be read. */
type AuditedStore = CheckpointStore & Pick<StoreGroups, 'history' | 'journal'>;

/** Most runs, or events, that are read in one turn of the event loop. */
const AT_ONCE = 500;

/**
 * Returns the queries of the audit that an executor with the option `audit` keeps in its store: how runs ran and ended, their steps,
 * tool calls, phases and events, and totals. Any process that opens the store can ask.
 *
 * @throws {TypeError} for an invalid option @throws {UNSUPPORTED} if the store cannot keep what an audit reads
 * @example
 * const executor = createExecutor({ models, store, audit: true, retention: { audit: '30d' } });
 * await createAudit({ store }).totals({ by: 'day' });
 */
export function createAudit(options: AuditOptions): AuditQueries {
  checkKeys(options, { store: true }, { of: 'createAudit' });
  const { store } = options;
  checkStore('createAudit: store', store);
  if (!store.history || !store.journal)
    throw new UnsupportedError('this store keeps nothing for an audit: it lacks the group history or journal');
  const audited = store as AuditedStore;
  return {
    runs: async (filter = {}) => listRuns(audited, filter, most(100, filter.limit)),
    run: async (runId, { limit } = {}) => readRun(audited, runId, most(10_000, limit)),
    tree: async (runId, { depth = 8, limit } = {}) => readTree(audited, runId, { depth, limit: most(1_000, limit) }),
    totals: async (filter) => readTotals(audited, filter, most(1_000, filter.limit)),
  };
}

async function listRuns(store: AuditedStore, filter: AuditedRunFilter, limit: number): Promise<AuditedRun[]> {
  const found: AuditedRun[] = [];
  for await (const run of endedRuns(store, filter)) {
    if (isWanted(run, filter)) found.push(run);
    if (found.length === limit) break;
  }
  return found;
}

function isWanted({ parentRunId, status, startedAt }: AuditedRun, filter: AuditedRunFilter): boolean {
  const { since = Number.NEGATIVE_INFINITY, until = Number.POSITIVE_INFINITY } = filter;
  if (startedAt < since || startedAt >= until) return false;
  return parentRunId === (filter.parentRunId ?? parentRunId) && status === (filter.status ?? status);
}

/** The kept runs from the latest end on, page by page. Those before `since` have ended before it too. */
async function* endedRuns(
  store: AuditedStore,
  { agentId, callerId, after, since = Number.NEGATIVE_INFINITY }: AuditedRunFilter,
): AsyncGenerator<AuditedRun, undefined> {
  const page: ListEndedOptions = { limit: AT_ONCE, agentId, callerId };
  let from: EndedCursor | undefined = after && { runId: after.runId, endedAt: after.endedAt ?? 0 };
  for (;;) {
    const runs: readonly KeptRun[] = await store.history.list({ ...page, after: from });
    for (const run of runs) {
      if (run.endedAt < since) return;
      if (run.status !== 'quarantined') yield keptRun(run);
    }
    from = runs.at(-1);
    if (!from || runs.length < AT_ONCE) return;
    await nextTurn();
  }
}

function keptRun(run: ReadableKeptRun): AuditedRun {
  const { meta, status, usage, spend, iterations, endedAt, beganAt = 0, elapsedMs = 0 } = run;
  const totals = { status, usage, ...(spend ? { spend } : {}), iterations, elapsedMs };
  return { ...namesOf(meta), startedAt: beganAt, endedAt, ...totals };
}

function recordedRun(record: RunCheckpoint): AuditedRun {
  const { meta, usage = noUsage, spend, iteration, outcome, updatedAt, beganAt = 0, elapsedMs = 0 } = record;
  const end = outcome ? ({ endedAt: updatedAt, status: outcome.status } as const) : ({ status: 'open' } as const);
  const totals = { usage, ...(spend ? { spend } : {}), iterations: iteration, elapsedMs };
  return { ...namesOf(meta), startedAt: beganAt, ...end, ...totals };
}

function namesOf({ runId, parentRunId, agentId, agentName, callerId, ...rest }: RunCheckpointMeta) {
  const { channelId, guildId, modelTier, prompt } = rest;
  return { runId, parentRunId, agentId, agentName, callerId, channelId, guildId, modelTier, prompt };
}

async function readRun(store: AuditedStore, runId: string, limit: number): Promise<AuditedRunDetail | null> {
  const record = await store.load(runId, { ended: true });
  if (!record) return null;
  const { outcome, inputs = {} } = record;
  return {
    ...recordedRun(record),
    inputs,
    output: outcome?.output ?? '',
    ...(outcome?.error ? { error: outcome.error } : {}),
    ...(await readEvents(store, runId, limit)),
  };
}

type RecordedEvents = Pick<AuditedRunDetail, 'steps' | 'tools' | 'phases' | 'events' | 'isCut'>;
type Growing<Lists> = { -readonly [Name in keyof Lists]: Lists[Name] extends readonly (infer Each)[] ? Each[] : never };

async function readEvents(store: AuditedStore, runId: string, limit: number): Promise<RecordedEvents> {
  const found: Growing<Omit<RecordedEvents, 'isCut'>> = { steps: [], tools: [], phases: [], events: [] };
  let at: AuditedAt = { at: 0 };
  const recording = new AuditRecording({
    onStep: (step) => void found.steps.push({ ...at, ...step }),
    onTool: (call) => void found.tools.push({ ...at, ...call }),
    onPhase: (phase) => void found.phases.push({ ...at, ...phase }),
    logEvent: (type, fields) => void found.events.push({ ...at, type, fields }),
  });
  let left = limit;
  for (let after = 0; ; ) {
    const page = await store.journal.read(runId, { after, limit: AT_ONCE });
    const kept = page?.entries.filter(({ keep }) => keep === 'kept') ?? [];
    for (const { event } of kept.slice(0, left)) {
      at = { at: event.at };
      recording.take(event);
    }
    left -= kept.length;
    if (left < 0 || !page || page.next === after) return { ...found, isCut: left < 0 };
    after = page.next;
    await nextTurn();
  }
}

interface Branch extends AuditedTree {
  readonly children: Branch[];
}

/** Reads level by level, so that the limit cuts off the deepest runs. */
async function readTree(
  store: AuditedStore,
  runId: string,
  { depth, limit }: { readonly depth: number; readonly limit: number },
): Promise<AuditedTree | null> {
  const record = await store.load(runId, { ended: true });
  if (!record) return null;
  const root: Branch = { run: recordedRun(record), children: [] };
  let level = [{ branch: root, calls: childrenOf(record) }];
  let count = 1;
  for (let below = 0; below < depth && level.length > 0; below++) {
    const next: typeof level = [];
    for (const { branch, calls } of level) {
      for (const childId of calls) {
        if (count >= limit) return root;
        const child = await store.load(childId, { ended: true });
        if (!child) continue;
        count += 1;
        const grown: Branch = { run: recordedRun(child), children: [] };
        branch.children.push(grown);
        next.push({ branch: grown, calls: childrenOf(child) });
      }
    }
    level = next;
  }
  return root;
}

/** The ids of the runs that the calls of a run began, as far as there are such runs. */
function childrenOf(record: RunCheckpoint): readonly string[] {
  const messages = record.openStep ? [...record.messages, record.openStep.message] : record.messages;
  const calls = messages.flatMap((message) => toolCallsOf(message));
  const begun = calls.filter(({ toolName }) => childToolPrefixes.some((prefix) => toolName.startsWith(prefix)));
  return begun.map(({ toolCallId }) => childRunId(bornRunOf(record), toolCallId));
}

async function readTotals(store: AuditedStore, filter: AuditTotalsFilter, limit: number): Promise<AuditTotal[]> {
  const { by, since, until } = filter;
  if (!['day', 'agent', 'caller'].includes(by))
    throw new TypeError(`totals: by must be 'day', 'agent' or 'caller', not ${JSON.stringify(by)}`);
  const sums = new Map<string, AuditTotal>();
  if (by === 'day') {
    const from = since === undefined ? undefined : dayOf(since);
    const to = until === undefined ? undefined : dayOf(until - 1);
    for (const { day, ...part } of await store.history.totals({ from, to })) add(sums, day, part);
    return [...sums.values()].slice(-limit);
  }
  for await (const run of endedRuns(store, { since }))
    if (isWanted(run, filter as AuditedRunFilter))
      add(sums, by === 'agent' ? run.agentId : run.callerId, { ...run, runs: 1 });
  const tokensOf = ({ usage }: AuditTotal) => usage.inputTokens + usage.outputTokens;
  return [...sums.values()].sort((a, b) => tokensOf(b) - tokensOf(a) || (a.key < b.key ? -1 : 1)).slice(0, limit);
}

type Part = Pick<AuditedRun, 'status' | 'usage' | 'spend' | 'iterations' | 'elapsedMs'> & { readonly runs: number };

const nothing = { runs: 0, statuses: {}, usage: noUsage, spend: noSpend, iterations: 0, elapsedMs: 0 };

function add(sums: Map<string, AuditTotal>, key: string, { status, runs, spend = noSpend, ...part }: Part): void {
  const before: Omit<AuditTotal, 'key'> = sums.get(key) ?? nothing;
  const { statuses } = before;
  sums.set(key, {
    key,
    runs: before.runs + runs,
    statuses: status === 'open' ? statuses : { ...statuses, [status]: (statuses[status] ?? 0) + runs },
    usage: addUsage(before.usage, part.usage),
    spend: addSpend(before.spend, spend),
    iterations: before.iterations + part.iterations,
    elapsedMs: before.elapsedMs + part.elapsedMs,
  });
}

const MOST = 10_000;

/** The most rows that a query of the audit may return. @throws {TypeError} if the limit is not a whole number >= 1 */
function most(usual: number, limit: number | undefined): number {
  if (limit === undefined) return usual;
  if (!Number.isSafeInteger(limit) || limit < 1) throw new TypeError(`limit must be a whole number >= 1, not ${limit}`);
  return Math.min(MOST, limit);
}
