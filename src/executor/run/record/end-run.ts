import type { UsedByEnd } from '../../../run/attempt.ts';
import { keptOutcome } from '../../../run/outcome.ts';
import type { OutcomeOwner, RunOutcome } from '../../../run/result.ts';
import type { Wait } from '../../../run/waits/wait.ts';
import { isDelivering } from '../../../store/capabilities.ts';
import type { Undelivered } from '../../../store/deliveries/port.ts';
import type { Ended, EndOptions } from '../../../store/history-port.ts';
import type { Claim } from '../../../store/port.ts';
import type { BegunTurn, TurnEnd } from '../../../store/thread-port.ts';
import { hasCode, hasTrait } from '../../../values/error-data.ts';
import { UnsupportedError } from '../../../values/errors.ts';
import { returnUnread } from '../../services/unread-signals.ts';
import type { ExecutorServices } from '../active-run.ts';
import { type ChildEnd, tellParent } from '../waits/child-end.ts';

/** A recorded run at its end. It has two forms: the run is live in this process, or only its store has it. */
export interface Ending extends ChildEnd {
  readonly services: ExecutorServices;
  readonly claim: Claim | undefined;
  /** As it is kept: redacted, with the fingerprint of the request. */
  readonly outcome: RunOutcome;
  /** Whether the record has the outcome from an earlier end, which a crash or a refusal cut off. */
  readonly isRepeated: boolean;
  /** The open waits of the run before its end. */
  readonly waits: readonly Wait[] | undefined;
  /** What an earlier end of the run has counted: it was retried. */
  readonly counted: UsedByEnd | undefined;
  /** Set if the run is a turn of a thread: then its record is kept, and the next turn begins. */
  readonly turn: TurnEnd | undefined;
  /** Returns whose run it is, as the record has it: redacted. */
  owner(): OutcomeOwner;
  /** Stores the outcome in the head of the record. */
  storeOutcome(): Promise<void>;
  /** Passes the outcome to the host. Rejects if the host does not accept it. */
  deliver(): Promise<void>;
  /** Resolves when the audit is closed, or its time is over. */
  closeAudit(): Promise<void>;
  /** Sends the events for other runs that its record has; of a workflow whose machine has ended they have arrived. */
  sendMessages(): Promise<void>;
  /** Cancels its child runs that rest: no run waits for their answers any more. */
  cancelChildren(): Promise<void>;
  /** Ends the record so that it is kept; absent if this store, or the checkpointer of a host, can only delete it. */
  readonly keepRecord: ((options: EndOptions) => Promise<Ended>) | undefined;
  deleteRecord(): Promise<unknown>;
}

/**
 * Ends a recorded run, live or stored: one step after the other, each repeatable. A crash, or a step that fails, leaves the record
 * with its outcome: the next start of the run repeats the steps. An outcome that this host has not accepted, or does not ask for, is
 * kept with a mark: an executor with `onOutcome` delivers it later. The caller releases the run afterwards.
 * @returns the turn of the same thread that begins now, if the run was one
 * @throws the first error: then the later steps are left to the next start
 */
export async function endActiveRun(run: Ending): Promise<BegunTurn | undefined> {
  if (!run.isRepeated) await storeOutcome(run);
  const isKept = run.isRepeated && (await isOutcomeKept(run));
  const undelivered = isKept ? undefined : await deliver(run);
  await run.closeAudit();
  // Where the record is kept, its last commit keeps the outcome too.
  const end = endOf(run, undelivered);
  if (!end && !isKept) await keepOutcome(run, undelivered);
  await run.sendMessages();
  await run.cancelChildren();
  await tellParent(run.services, run);
  await returnUnread(run.services.config, run.claim, run.waits);
  if (end) return (await run.keepRecord?.(end))?.admitted;
  await run.deleteRecord();
  return undefined;
}

async function storeOutcome(run: Ending): Promise<void> {
  try {
    await run.storeOutcome();
  } catch (error) {
    // A record that cannot hold its outcome now (too large, not JSON) never can: the run ends without it.
    if (!hasTrait(error, 'isUnstorable')) throw error;
    run.services.config.warn('outcome.save.failed', { runId: run.runId, error });
  }
}

/** The process that kept this end died before it removed the record: the mark of the end says whether it is delivered. */
async function isOutcomeKept({ services, runId, outcome }: Ending): Promise<boolean> {
  const { store } = services.config;
  if (!store || !isDelivering(store)) return false;
  return (await store.outcomes.find(runId))?.outcomeId === outcome.outcomeId;
}

const WEEK_MS = 7 * 86_400_000;

/**
 * Passes the outcome to the host.
 * @returns the mark of an end that this host has not accepted, or does not ask for; undefined: it needs none
 * @throws if the host does not accept it, and the store cannot keep that: then the record stays
 */
async function deliver(run: Ending): Promise<Undelivered | undefined> {
  const { store, onOutcome, keepOutcomesMs, clock } = run.services.config;
  const isDeferred = store !== undefined && isDelivering(store);
  const undelivered = () => ({ agentId: run.agentId, untilMs: clock.now() + Math.max(keepOutcomesMs, WEEK_MS) });
  try {
    await run.deliver();
  } catch (error) {
    if (!isDeferred || hasCode(error, 'LEASE_LOST')) throw error;
    return undelivered();
  }
  // A host that keeps no outcomes keeps none for others.
  return onOutcome || !isDeferred || keepOutcomesMs <= 0 ? undefined : undelivered();
}

/**
 * How the record is kept; undefined: it is deleted. One commit ends a turn of a thread: its record stays as long as the thread, its
 * messages belong to that, and the next turn begins.
 */
function endOf(run: Ending, undelivered: Undelivered | undefined): EndOptions | undefined {
  const { keepRecordsMs, keepBadEndsMs, isAudited, clock } = run.services.config;
  const { turn, keepRecord, outcome, counted } = run;
  // A run without its answer may be retried.
  const keepMs = outcome.status === 'ok' ? keepRecordsMs : keepBadEndsMs;
  if (turn && !keepRecord) throw new UnsupportedError('this store keeps no threads');
  if (!keepRecord || (!turn && keepMs <= 0)) return undefined;
  const endedAt = clock.now();
  return {
    outcome: keptOutcome({ ...outcome, endedAt, run: run.owner() }),
    keepUntil: turn ? Number.POSITIVE_INFINITY : endedAt + keepMs,
    outcomeUntil: outcomeUntil(run, undelivered),
    ...(isAudited ? { isCounted: true, ...(counted ? { counted } : {}) } : {}),
    ...(undelivered ? { undelivered } : {}),
    ...(turn ? { turn } : {}),
  };
}

async function keepOutcome(run: Ending, undelivered: Undelivered | undefined): Promise<void> {
  const { store, keepRecordsMs, clock } = run.services.config;
  const untilMs = outcomeUntil(run, undelivered);
  if (!store?.outcomes || untilMs <= 0) return;
  const { claim, runId } = run;
  const owner = keepRecordsMs > 0 ? { run: run.owner() } : {};
  const options = { ...(claim ? { claim } : {}), ...(undelivered ? { undelivered } : {}) };
  await store.outcomes.keep(runId, keptOutcome({ ...run.outcome, endedAt: clock.now(), ...owner }), untilMs, options);
}

/** Until when an outcome is kept: one that the host has not accepted as long as its mark. 0 = it is not kept. */
function outcomeUntil({ services }: Ending, undelivered: Undelivered | undefined): number {
  const { onOutcome, keepOutcomesMs, clock } = services.config;
  if (undelivered && onOutcome) return undelivered.untilMs;
  return keepOutcomesMs > 0 ? clock.now() + keepOutcomesMs : 0;
}
