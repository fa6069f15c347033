import { outcomeOwnerOf } from '../../record/identify.ts';
import type { IdentityFields } from '../../run/fields.ts';
import { keptOutcome } from '../../run/outcome.ts';
import type { RunOutcome } from '../../run/result.ts';
import type { Wait } from '../../run/waits/wait.ts';
import { isKeepingOutcomes } from '../../store/capabilities.ts';
import type { Claim, Ended, EndOptions } from '../../store/port.ts';
import type { BegunTurn, TurnEnd } from '../../store/thread-port.ts';
import { hasTrait, toErrorData } from '../../values/error-data.ts';
import { UnsupportedError } from '../../values/errors.ts';
import type { Config } from '../host/config.ts';
import { returnUnread } from './unread-signals.ts';

/** The steps that only a run with a record has at its end. */
interface StoredEnd {
  readonly claim: Claim | undefined;
  /** As it is kept: redacted, with the fingerprint of the request. */
  readonly outcome: RunOutcome & { readonly fingerprint?: string };
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
  readonly identity: () => IdentityFields;
  /** Ends the record so that it is kept; absent if this store, or the checkpointer of a host, can only delete it. */
  readonly end?: ((options: EndOptions) => Promise<Ended>) | undefined;
  /** Deletes the record. */
  readonly remove: () => Promise<unknown>;
}

interface RunEnd {
  readonly runId: string;
  /** Passes the outcome to the host. */
  readonly announce: () => Promise<void>;
  /** Absent if no record of the run is kept. */
  readonly stored: StoredEnd | undefined;
}

/**
 * Ends a run in its store, live or stored: writes the outcome, delivers it to the host, keeps it, ends its
 * children, sends it to its parent, gives unread signals back, deletes the record. With `history`, one commit at the end keeps both
 * the outcome and the record. So a crash at any point leaves a record whose outcome is only delivered again. The caller releases
 * the run afterwards.
 * @returns the turn of the same thread that begins now, if the run was one
 * @throws the first error; then the later steps are left to the next start
 */
export async function endRun(config: Config, { runId, announce, stored }: RunEnd): Promise<BegunTurn | undefined> {
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
  await announce();
  await stored.closeAudit();
  const end = endOf(config, stored);
  if (!end) await keep(config, runId, stored);
  await stored.endChildren();
  await stored.tellParent();
  await returnUnread(config, stored.claim, stored.waits);
  if (end) return (await stored.end?.(end))?.admitted;
  await stored.remove();
  return undefined;
}

/**
 * How the record is kept; undefined: it is deleted. One commit ends a turn of a thread: its record stays as long as the thread, its
 * messages belong to that, and the next turn begins.
 */
function endOf({ keepRecordsMs, keepOutcomesMs, clock }: Config, stored: StoredEnd): EndOptions | undefined {
  const { turn } = stored;
  if (turn && !stored.end) throw new UnsupportedError('this store keeps no threads');
  if (!stored.end || (!turn && keepRecordsMs <= 0)) return undefined;
  const now = clock.now();
  return {
    outcome: keptOutcome(withOwner(stored, now)),
    keepUntil: turn ? Number.POSITIVE_INFINITY : now + keepRecordsMs,
    outcomeUntil: keepOutcomesMs > 0 ? now + keepOutcomesMs : 0,
    ...(turn ? { turn } : {}),
  };
}

const withOwner = ({ outcome, identity }: StoredEnd, endedAt: number): RunOutcome => ({
  ...outcome,
  run: { ...outcomeOwnerOf(identity()), endedAt },
});

async function keep(config: Config, runId: string, stored: StoredEnd): Promise<void> {
  const { store, keepOutcomesMs, keepRecordsMs, clock } = config;
  if (!store || !isKeepingOutcomes(store) || keepOutcomesMs <= 0) return;
  const { claim } = stored;
  const outcome = keepRecordsMs > 0 ? withOwner(stored, clock.now()) : stored.outcome;
  await store.keepOutcome(runId, keptOutcome(outcome), clock.now() + keepOutcomesMs, claim ? { claim } : {});
}
