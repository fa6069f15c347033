import type { RunCheckpoint } from '../../../record/checkpoint.ts';
import { parentOf } from '../../../record/identify.ts';
import {
  type InterruptedRun,
  interruptedRun,
  listedIdentity,
  openWaitsIn,
  type ReadableRun,
} from '../../../record/interrupted.ts';
import { listedStatus } from '../../../record/listed-status.ts';
import { TURN_MARK } from '../../../run/identity.ts';
import type { Labels, ParentCall, RunCheckpointMeta } from '../../../run/request.ts';
import { type RunOutcome, type RunOutput, withoutId } from '../../../run/result.ts';
import type { CheckpointStore } from '../../../store/port.ts';
import { checkKeys } from '../../../values/known-options.ts';
import type { ActiveRun, ExecutorServices } from '../../run/active-run.ts';
import { isLive, type LiveRunLine, liveLine, type StoredRunLine } from './list-runs.ts';
import type { StoredEntry } from './stored-run-pages.ts';

/** A run that has ended: its outcome, and, while its record is kept, what the record says of it. */
export interface EndedRunLine {
  readonly runId: string;
  readonly status: 'ended';
  /** It was a run of a workflow; only while its record is kept. */
  readonly kind?: 'workflow';
  /** How it ended, without messages. */
  readonly outcome: RunOutput;
  /**
   * Absent if only the outcome is kept, by an executor without `retention.records` and `journal`. Of an outcome it has up to 200 characters
   * of the prompt.
   */
  readonly meta?: RunCheckpointMeta;
  readonly parent?: ParentCall;
  readonly labels?: Labels;
  /** When it began, wall clock of its process, ms; absent: its record does not say it. */
  readonly beganAt?: number;
  /** The last record of the run, wall clock, ms; absent if only the outcome was read. */
  readonly updatedAt?: number;
  /** When it ended, wall clock, ms; only if the kept outcome says it. */
  readonly endedAt?: number;
}

/** A message of a thread that waits for its turn: its run has not begun. */
export interface QueuedRunLine {
  readonly runId: string;
  readonly status: 'queued';
  readonly meta: RunCheckpointMeta;
  readonly parent?: undefined;
  readonly labels?: Labels;
  /** When the message was sent, wall clock, ms. */
  readonly updatedAt: number;
}

/** The answer of `executor.find()`: a line as in `executor.list()`, a run that waits for its turn, or one that has ended. */
export type FoundRun = LiveRunLine | StoredRunLine | QueuedRunLine | EndedRunLine;

/** The options of `executor.find()`. */
export interface FindRunOptions {
  /** Whether to ask who works on a stored run. Without it, a run that is live in another process looks interrupted. */
  readonly owner?: boolean;
}

/**
 * Finds one run: live in this process, stored, a turn of a thread that has not begun, or ended with a kept outcome.
 * @throws the store's own error if the record cannot be read
 */
export async function findRun(
  services: ExecutorServices,
  runId: string,
  options: FindRunOptions,
): Promise<FoundRun | null> {
  checkKeys(options, { owner: true }, { of: 'executor.find' });
  const { registry, config } = services;
  const { store } = config;
  const live = registry.live(runId);
  if (isLive(live) && (isAccepted(live) || !store)) return liveLine(live);
  if (!store) return endedHere(registry.ended(runId));
  // The transcript may be large, and nothing of it is shown.
  const record = await store.load(runId, { messages: false });
  // It may have begun, or continued here, while the store was asked.
  const begun = registry.live(runId);
  if (isLive(begun) && (isAccepted(begun) || !record)) return liveLine(begun);
  if (isLive(begun) && record) return startingLine(begun, record);
  if (record) return recordedLine(record, options.owner ? await ownerOf(services, store, record) : undefined);
  const queued = await findQueued(store, runId);
  if (queued) return queuedLine(queued);
  const outcome = (await store.outcomes?.find(runId)) ?? null;
  if (outcome) return endedLine(outcome);
  // A record may be kept longer than its outcome.
  const kept = store.history ? await store.load(runId, { ended: true, messages: false }) : null;
  if (kept) return recordedLine(kept, undefined);
  return null;
}

function endedLine(outcome: RunOutcome): EndedRunLine {
  const { runId, run, endedAt } = outcome;
  const at = endedAt === undefined ? {} : { endedAt };
  return { runId, status: 'ended', outcome: withoutId(outcome), ...run, ...at };
}

/** Returns the first record of a run whose turn has not begun; undefined if no thread has such a turn. */
export async function findQueued(store: CheckpointStore, runId: string): Promise<RunCheckpoint | undefined> {
  if (!runId.startsWith(TURN_MARK) || !store.threads) return undefined;
  return (await store.threads.queuedRun(runId)) ?? undefined;
}

function queuedLine({ meta, labels, updatedAt }: RunCheckpoint): QueuedRunLine {
  return { runId: meta.runId, status: 'queued', meta, ...(labels ? { labels } : {}), updatedAt };
}

function isAccepted({ life }: ActiveRun): boolean {
  return life.hasBegun;
}

/** A run that is about to continue here has read nothing of its record yet, not even what it waits for. */
function startingLine(run: ActiveRun, record: RunCheckpoint): LiveRunLine {
  const { meta } = record;
  const [parent, waits] = [parentOf(record), openWaitsIn(record)];
  return {
    ...liveLine(run),
    meta,
    ...(parent ? { parent } : {}),
    ...listedIdentity(record),
    ...(waits.length > 0 ? { waits } : {}),
  };
}

/** Without a store only the results in memory are known; a refused start, or a run that was left, has no outcome. */
function endedHere(output: RunOutput | undefined): EndedRunLine | null {
  if (!output || output.status === 'interrupted' || output.status === 'waiting') return null;
  return { runId: output.runId, status: 'ended', outcome: output };
}

function recordedLine(record: RunCheckpoint, owner: string | undefined): FoundRun {
  const { meta, outcome, updatedAt } = record;
  const parent = parentOf(record);
  if (outcome) {
    const known = { meta, ...(parent ? { parent } : {}), ...listedIdentity(record), updatedAt };
    return { runId: meta.runId, status: 'ended', outcome: withoutId(outcome), ...known };
  }
  const { status, owner: _, ...entry } = interruptedRun(record) as ReadableRun;
  if (owner !== undefined) return { ...entry, owner, status: 'live' };
  return { ...entry, status: status ?? 'interrupted' };
}

const PAGE = 50;
/** Most pages of runs that were recorded in the same millisecond. */
const MAX_PAGES = 20;

async function ownerOf(
  services: ExecutorServices,
  store: CheckpointStore,
  record: RunCheckpoint,
): Promise<string | undefined> {
  const found = await findEntry(store, record);
  return found && liveOwner(found.entry, services.owner);
}

/**
 * Finds the entry of a stored run in the list of its store: only a list names the owner of a run. The list that is asked for
 * begins at the run.
 */
export async function findEntry(
  store: CheckpointStore,
  { meta: { runId }, updatedAt, waiting, workflow }: RunCheckpoint,
): Promise<StoredEntry | undefined> {
  const mayRest = (workflow !== undefined || (waiting && waiting.waits.length > 0)) && store.due !== undefined;
  const lists = mayRest ? ([undefined, 'waiting'] as const) : [undefined];
  for (const status of lists) {
    let after = { updatedAt, runId: '' };
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const page = await store.listInterrupted({ after, limit: PAGE, ...(status ? { status } : {}) });
      const entry = page.find((each) => each.runId === runId);
      if (entry) return { entry, isResting: status === 'waiting' };
      const last = page.at(-1);
      if (page.length < PAGE || last?.updatedAt !== updatedAt || last.runId === after.runId) break;
      after = { updatedAt, runId: last.runId };
    }
  }
  return undefined;
}

/** Returns the owner of a live claim on a listed run. @param asker its own claims say nothing */
export function liveOwner(entry: InterruptedRun, asker: string): string | undefined {
  return entry.status !== 'quarantined' && listedStatus(entry, asker) === 'live' ? entry.owner : undefined;
}
