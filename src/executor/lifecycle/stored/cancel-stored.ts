import type { RunCheckpoint } from '../../../record/checkpoint.ts';
import { toResumeState } from '../../../record/checkpoint.ts';
import { fingerprintIn, identified, outcomeOwnerOf, parentOf } from '../../../record/identify.ts';
import { usedBefore } from '../../../run/attempt.ts';
import type { RunEventBody } from '../../../run/events/body.ts';
import { bornRunOf, outcomeIdOf, waitIdOf } from '../../../run/identity.ts';
import { firstPlace, type JournalEntry, type JournalWrite } from '../../../run/journal/entry.ts';
import { MAX_LEVELS } from '../../../run/limits.ts';
import { keptOutcome, outcomeOf } from '../../../run/outcome.ts';
import { beginProgress } from '../../../run/progress.ts';
import { type RunOutcome, withoutId } from '../../../run/result.ts';
import { resumeProgress } from '../../../run/resume.ts';
import { outboxOf } from '../../../run/workflow/advanced.ts';
import type { Claim } from '../../../store/port.ts';
import type { TurnEnd } from '../../../store/thread-port.ts';
import { type ErrorData, hasCode, toErrorData } from '../../../values/error-data.ts';
import { CancelledError } from '../../../values/errors.ts';
import type { ExecutorServices } from '../../run/active-run.ts';
import { runAtWork } from '../../run/life/run-at-work.ts';
import { sendRecorded } from '../../run/outbox.ts';
import { type Ending, endActiveRun } from '../../run/record/end-run.ts';
import { recordedText, rewriteHead, type StoredRun, withStoredRun } from '../../run/record/stored-run.ts';
import { infoFrom } from '../../run/run-info.ts';
import { readTurnEnd } from '../../run/threads/thread-turn.ts';
import { openChildren } from '../../run/waits/child-end.ts';
import { Auditing } from '../../services/auditing.ts';
import { offerOutcome } from '../../services/deliveries.ts';

/**
 * Cancels an interrupted or parked run that has no owner, without its agent. It uses the order of every end, so a crash on
 * the way leaves a record that is only delivered. A run that had ended already keeps its own outcome. Concurrent calls get
 * the same answer; the first reason stays.
 * @throws {RUN_OWNED_ELSEWHERE} while another owner works on it @throws {RUN_NOT_FOUND} if there is no record of
 *   it
 */
export function cancelStored(
  services: ExecutorServices,
  runId: string,
  reason = 'the run was cancelled',
): Promise<void> {
  return cancelOne(services, { runId, reason, above: [] });
}

interface Cancel {
  readonly runId: string;
  readonly reason: string;
  readonly above: readonly string[];
}

function cancelOne(services: ExecutorServices, { runId, reason, above }: Cancel): Promise<void> {
  const error = toErrorData(new CancelledError(recordedText(services, reason)));
  return endStored(services, { runId, above, endOf: async () => ({ status: 'cancelled', error }) });
}

/** How a stored run ends. */
interface EndWish {
  readonly runId: string;
  /** The runs above it that are being cancelled. */
  readonly above?: readonly string[];
  /** Returns its end, unless its record has one. An error leaves the run as it is. */
  endOf(record: RunCheckpoint): Promise<FailedEnd>;
}

interface FailedEnd {
  readonly status: 'cancelled' | 'error';
  readonly error: ErrorData;
  /** Later turns of its thread do not send it. */
  readonly refused?: 'parked';
}

/** Ends a stored run that has no owner, without its agent. Concurrent calls get the same answer. */
export function endStored(services: ExecutorServices, wish: EndWish): Promise<void> {
  const { cancels } = services;
  const { runId } = wish;
  const ending = cancels.get(runId) ?? end(services, wish).finally(() => cancels.delete(runId));
  cancels.set(runId, ending);
  return ending;
}

async function end(services: ExecutorServices, { runId, above = [], endOf }: EndWish): Promise<void> {
  const next = await withStoredRun(services, runId, async (run) => {
    const { store, claim, record } = run;
    const { refused, ...end } = await endOf(record);
    const ended = record.outcome
      ? { ...record, outcome: record.outcome }
      : { ...record, ...(refused ? { refused } : {}), outcome: outcomeFor(record, claim, end) };
    const turn = await readTurnEnd(store, ended, services.config.clock.now());
    services.deliveries.begin();
    return endActiveRun(storedEnding(services, run, { ended, turn, above: [...above, runId] }));
  });
  if (next) void services.startTurn(next);
}

interface StoredEnd {
  readonly ended: RunCheckpoint & { readonly outcome: RunOutcome };
  readonly turn: TurnEnd | undefined;
  /** This run, and those above it that are being cancelled. */
  readonly above: readonly string[];
}

/** The end of a run that only its store has. */
function storedEnding(services: ExecutorServices, run: StoredRun, { ended, turn, above }: StoredEnd): Ending {
  const { store, claim, record } = run;
  const { history } = store;
  const { runId, agentId } = record.meta;
  const { outcome, parked: _, waiting, ...rest } = ended;
  const settled = waiting && { waiting: { waits: [], settled: waiting.settled } };
  const withOutcome = { ...rest, ...settled, outcome: keptOutcome(outcome) };
  return {
    services,
    runId,
    agentId,
    claim,
    outcome: { ...outcome, ...fingerprintIn(identified(record)) },
    isRepeated: record.outcome !== undefined,
    waits: waiting?.waits,
    counted: usedBefore(record),
    turn,
    parent: () => parentOf(record),
    treeRuns: () => record.treeRuns,
    owner: () => outcomeOwnerOf(identified(record)),
    storeOutcome: () => rewriteHead(store, withOutcome, { claim, events: lastEvents(services, run, outcome) }),
    deliver: () => offerOutcome(services.config, outcome),
    closeAudit: () => closeAudit(services, run, outcome),
    sendMessages: () => sendRecorded(services, outboxOf(record)),
    cancelChildren: () => cancelChildren(services, record, above),
    keepRecord: claim && history ? (options) => history.end(claim, options) : undefined,
    deleteRecord: () => store.delete(runId, claim ? { claim } : {}),
  };
}

/** What the journal of a run gets at its end: its open waits are withdrawn, and it has ended. */
function lastEvents(
  { config: { journaling, clock } }: ExecutorServices,
  { record: { meta, seq = 0, waiting }, claim }: StoredRun,
  { status, output, error }: RunOutcome,
): JournalWrite | undefined {
  if (!journaling || !claim) return undefined;
  const bodies: RunEventBody[] = (waiting?.waits ?? []).map(({ id: waitId, kind, callId }) => {
    return { type: 'wait.withdrawn', waitId, kind, ...(callId === undefined ? {} : { callId }) };
  });
  bodies.push({ type: 'run.ended', status, output, ...(error ? { error } : {}) });
  const first = firstPlace(seq, claim.epoch) + 1;
  const entries = bodies.map((body, i): JournalEntry => {
    const place = first + i;
    return { place, keep: 'kept', event: { ...body, runId: meta.runId, seq: place, at: clock.now() } };
  });
  return { entries };
}

async function cancelChildren(
  services: ExecutorServices,
  record: RunCheckpoint,
  above: readonly string[],
): Promise<void> {
  if (above.length > MAX_LEVELS) return;
  // Damaged records may name each other: a run that waits for its own end would never end.
  for (const childRunId of openChildren(record))
    if (!above.includes(childRunId)) await endChild(services, childRunId, { above });
}

const parentGone = 'the run that began it is over';

/**
 * Cancels a child run whose parent ends: one that is live here gets a cancel, one that rests or was left is ended in its store,
 * with its own children, and one of another process is sent a command. Each repetition finds what is left to do.
 * @throws the store's error: then the record of the parent must stay, and its next start repeats this
 */
export async function endChild(
  services: ExecutorServices,
  childRunId: string,
  {
    above = [],
    reason = parentGone,
  }: { readonly above?: readonly string[]; readonly reason?: string | undefined } = {},
): Promise<void> {
  const live = await runAtWork(services, childRunId);
  if (live) return live.send({ type: 'run.cancel', reason });
  try {
    // Most calls have no child that is left: a read costs less than a claim.
    if (await services.config.store?.load(childRunId)) await cancelOne(services, { runId: childRunId, reason, above });
  } catch (error) {
    if (hasCode(error, 'RUN_OWNED_ELSEWHERE')) return sendCancel(services, childRunId, reason);
    // A child that cannot be read cannot be ended either. A person has to look at it.
    if (!unreadable.some((code) => hasCode(error, code))) throw error;
    services.config.warn('run.cancel.failed', { runId: childRunId, error });
  }
}

const unreadable = ['CHECKPOINT_CORRUPT', 'CHECKPOINT_TOO_NEW', 'KEY_MISMATCH'];

async function sendCancel({ config: { store } }: ExecutorServices, runId: string, reason: string): Promise<void> {
  if (!store?.commands) return;
  try {
    await store.commands.send(runId, { id: waitIdOf([runId, 'cancel']), kind: 'cancel', reason });
  } catch (error) {
    if (!hasCode(error, 'RUN_NOT_FOUND')) throw error;
  }
}

function outcomeFor(record: RunCheckpoint, claim: Claim | undefined, { status, error }: FailedEnd): RunOutcome {
  const { meta, definition = { version: '', hash: '' } } = record;
  const progress = resumeProgress(beginProgress(meta, definition), toResumeState(record));
  const outcomeId = outcomeIdOf(bornRunOf(record), claim?.epoch);
  return outcomeOf(progress, { status, error }, { durable: true, saveErrors: 0, outcomeId });
}

async function closeAudit({ config }: ExecutorServices, { record }: StoredRun, outcome: RunOutcome): Promise<void> {
  const { audit, clock, warn, defaults } = config;
  const info = infoFrom(record, {
    inputs: record.inputs ?? {},
    now: clock.now(),
    maxIterations: defaults.maxSteps,
  });
  const auditing = Auditing.start(audit, info, { clock, warn, ms: defaults.finalizeMs / 2 });
  await auditing?.close(withoutId(outcome), record.elapsedMs ?? 0);
}
