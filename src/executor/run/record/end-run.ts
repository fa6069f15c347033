import { outcomeOwnerOf } from '../../../record/identify.ts';
import type { HeadFields, IdentityFields } from '../../../run/fields.ts';
import { keptOutcome } from '../../../run/outcome.ts';
import type { RunOutcome } from '../../../run/result.ts';
import type { Wait } from '../../../run/waits/wait.ts';
import { isDelivering, isKeepingOutcomes } from '../../../store/capabilities.ts';
import type { Undelivered } from '../../../store/deliveries/port.ts';
import type { Claim, Ended, EndOptions } from '../../../store/port.ts';
import type { BegunTurn, TurnEnd } from '../../../store/thread-port.ts';
import { hasCode, hasTrait, toErrorData } from '../../../values/error-data.ts';
import { UnsupportedError } from '../../../values/errors.ts';
import type { Config } from '../../host/config.ts';
import { returnUnread } from '../../services/unread-signals.ts';

/** The steps that only a run with a record has at its end. */
interface StoredEnd {
  readonly claim: Claim | undefined;
  /** As it is kept: redacted, with the fingerprint of the request. */
  readonly outcome: RunOutcome & { readonly fingerprint?: string };
  /** Whether the next start of its request begins the run again. */
  readonly isUnbegun?: boolean | undefined;
  /** Stores the outcome in the head of the record; absent if the record has one already. */
  readonly record?: (() => Promise<void>) | undefined;
  /** Resolves when the audit is closed, or its time is over. */
  readonly closeAudit: () => Promise<void>;
  /** Cancels its child runs that rest: no run waits for their answers any more. */
  readonly endChildren: () => Promise<void>;
  /** Sends the outcome to the run whose call began it, if that waits for it. */
  readonly tellParent: () => Promise<void>;
  /** The open waits of the run before its end. */
  readonly waits: readonly Wait[] | undefined;
  /** Set if the run is a turn of a thread: then its record is kept, and the next turn begins. */
  readonly turn?: TurnEnd | undefined;
  /** Whose run it is, as the record has it: redacted. */
  readonly identity: () => IdentityFields & Partial<Pick<HeadFields, 'elapsedMs'>>;
  /** Ends the record so that it is kept; absent if this store, or the checkpointer of a host, can only delete it. */
  readonly end?: ((options: EndOptions) => Promise<Ended>) | undefined;
  /** Deletes the record. */
  readonly remove: () => Promise<unknown>;
}

interface RunEnd {
  readonly runId: string;
  readonly agentId: string;
  /** Passes the outcome to the host. Rejects if the host does not accept it. */
  readonly announce: () => Promise<void>;
  /** Absent if no record of the run is kept. */
  readonly stored: StoredEnd | undefined;
}

/**
 * Ends a run in its store, live or stored: writes the outcome, delivers it to the host, keeps it, ends its
 * children, sends it to its parent, gives unread signals back, deletes the record. With `retention.records`, one commit at the end keeps both
 * the outcome and the record. So a crash at any point leaves a record whose outcome is only delivered again. An outcome that this
 * host has not accepted, or does not ask for, is kept with a mark: an executor with `onOutcome` delivers it later. The caller
 * releases the run afterwards.
 * @returns the turn of the same thread that begins now, if the run was one
 * @throws the first error; then the later steps are left to the next start
 */
export async function endRun(config: Config, ending: RunEnd): Promise<BegunTurn | undefined> {
  const { runId, announce, stored } = ending;
  if (!stored) {
    await announce();
    return undefined;
  }
  try {
    await stored.record?.();
  } catch (error) {
    // A record that cannot hold its outcome now (too large, not JSON) never can: the run ends without it.
    if (!hasTrait(error, 'isUnstorable')) throw error;
    config.warn('run: outcome save failed', { runId, error: toErrorData(error) });
  }
  const isKept = !stored.record && (await isEndKept(config, runId, stored.outcome));
  const undelivered = isKept ? undefined : await announced(config, ending);
  await stored.closeAudit();
  const end = endOf(config, stored, undelivered);
  if (!end && !isKept) await keep(config, runId, { stored, undelivered });
  await stored.endChildren();
  await stored.tellParent();
  await returnUnread(config, stored.claim, stored.waits);
  if (end) return (await stored.end?.(end))?.admitted;
  await stored.remove();
  return undefined;
}

const WEEK_MS = 7 * 86_400_000;

/** The process that kept this end died before it removed the record: the mark of the end says whether it is delivered. */
async function isEndKept({ store }: Config, runId: string, { outcomeId }: RunOutcome): Promise<boolean> {
  if (!store || !isDelivering(store)) return false;
  return (await store.outcome(runId))?.outcomeId === outcomeId;
}

/**
 * Passes the outcome to the host.
 * @returns the mark of an end that this host has not accepted, or does not ask for; undefined: it needs none
 * @throws if the host does not accept it, and the store cannot keep that: then the record stays
 */
async function announced(config: Config, { agentId, announce }: RunEnd): Promise<Undelivered | undefined> {
  const { store, onOutcome, keepOutcomesMs, clock } = config;
  const isDeferred = store !== undefined && isDelivering(store);
  const undelivered = () => ({ agentId, untilMs: clock.now() + Math.max(keepOutcomesMs, WEEK_MS) });
  try {
    await announce();
  } catch (error) {
    if (!isDeferred || hasCode(error, 'LEASE_LOST')) throw error;
    return undelivered();
  }
  // A host that keeps no outcomes keeps none for others.
  return onOutcome || !isDeferred || keepOutcomesMs <= 0 ? undefined : undelivered();
}

/** Until when an outcome is kept: one that the host has not accepted as long as its mark. 0 = it is not kept. */
function keptUntil({ onOutcome, keepOutcomesMs, clock }: Config, undelivered: Undelivered | undefined): number {
  if (undelivered && onOutcome) return undelivered.untilMs;
  return keepOutcomesMs > 0 ? clock.now() + keepOutcomesMs : 0;
}

/**
 * How the record is kept; undefined: it is deleted. One commit ends a turn of a thread: its record stays as long as the thread, its
 * messages belong to that, and the next turn begins.
 */
function endOf(config: Config, stored: StoredEnd, undelivered: Undelivered | undefined): EndOptions | undefined {
  const { keepRecordsMs, isAudited, clock } = config;
  const { turn } = stored;
  if (turn && !stored.end) throw new UnsupportedError('this store keeps no threads');
  if (!stored.end || (!turn && keepRecordsMs <= 0)) return undefined;
  const now = clock.now();
  return {
    outcome: keptOutcome(withOwner(stored, endedWith(stored, now))),
    keepUntil: turn ? Number.POSITIVE_INFINITY : now + keepRecordsMs,
    outcomeUntil: keptUntil(config, undelivered),
    ...(isAudited ? { isCounted: true } : {}),
    ...(undelivered ? { undelivered } : {}),
    ...(turn ? { turn } : {}),
  };
}

const endedWith = ({ outcome, isUnbegun }: StoredEnd, endedAt: number): RunOutcome => ({
  ...outcome,
  endedAt,
  ...(isUnbegun ? { isUnbegun } : {}),
});

const withOwner = ({ identity }: StoredEnd, outcome: RunOutcome): RunOutcome => ({
  ...outcome,
  run: outcomeOwnerOf(identity()),
});

interface ToKeep {
  readonly stored: StoredEnd;
  readonly undelivered: Undelivered | undefined;
}

async function keep(config: Config, runId: string, { stored, undelivered }: ToKeep): Promise<void> {
  const { store, keepRecordsMs, clock } = config;
  const untilMs = keptUntil(config, undelivered);
  if (!store || !isKeepingOutcomes(store) || untilMs <= 0) return;
  const { claim } = stored;
  const ended = endedWith(stored, clock.now());
  const outcome = keepRecordsMs > 0 ? withOwner(stored, ended) : ended;
  const options = { ...(claim ? { claim } : {}), ...(undelivered ? { undelivered } : {}) };
  await store.keepOutcome(runId, keptOutcome(outcome), untilMs, options);
}
