import type { RunCheckpoint } from '../../../record/checkpoint.ts';
import { TURN_MARK } from '../../../run/identity.ts';
import { hasCode } from '../../../values/error-data.ts';
import { RunOwnedElsewhereError } from '../../../values/errors.ts';
import type { ExecutorServices } from '../../run/active-run.ts';
import { endStored } from '../stored/cancel-stored.ts';

/*
 * A parked turn does not hold up its conversation: it ends as a failed one, with the code and the reason of its parking, when a
 * message waits behind it. The claim of the run decides between this and an `unpark`, and the commit of the end begins the next
 * turn. The writer of each half looks for the other one afterwards: a message for a parked run before it, a parking for messages
 * behind it.
 */

/**
 * Ends a parked turn, and begins the next one.
 * @returns whether it has ended; false: it is not parked, or a process works on it
 */
export async function passParked(services: ExecutorServices, runId: string): Promise<boolean> {
  const { config, registry } = services;
  const found = registry.live(runId) ? null : await config.store?.load(runId, { messages: false });
  if (!found || !isHeldUp(found)) return false;
  try {
    await endStored(services, { runId, endOf });
    return true;
  } catch (error) {
    // Another message has ended it already.
    if (hasCode(error, 'RUN_NOT_FOUND')) return true;
    if (hasCode(error, 'RUN_OWNED_ELSEWHERE')) return false;
    throw error;
  }
}

/** A turn that is parked, or whose process died while it ended. */
const isHeldUp = ({ thread, parked, outcome }: RunCheckpoint) =>
  thread !== undefined && (parked ?? outcome) !== undefined;

async function endOf({ meta: { runId }, parked, outcome }: RunCheckpoint) {
  if (!parked && !outcome) throw new RunOwnedElsewhereError(`run ${runId} was unparked meanwhile`);
  const { code = '', reason = '' } = parked ?? {};
  const message = `${reason}; a later message of its conversation was answered without it`;
  return { status: 'error', error: { name: 'RunParkedError', code, message }, refused: 'parked' } as const;
}

/** How many times less often than due runs the turns are looked for that hold up messages. */
const LOOKS = 30;
const PAGE = 100;

/**
 * Looks for parked turns behind which messages wait, now and then: the process that wrote the later half may have died before it
 * ended them. No caller waits for it.
 */
export function lookForHeldUp(services: ExecutorServices): void {
  const { clock, defaults } = services.config;
  const now = clock.monotonic();
  if (now < services.heldUpAt) return;
  services.heldUpAt = now + LOOKS * defaults.dueMs;
  void services.outlive(passHeldUp(services));
}

async function passHeldUp(services: ExecutorServices): Promise<void> {
  const { store, warn } = services.config;
  if (!store?.threads) return;
  try {
    for (let after: string | undefined; ; ) {
      const page = await store.threads.list({ heldUp: true, limit: PAGE, after });
      for (const { live, queued } of page) {
        if (services.isShutDown) return;
        if (live !== undefined && queued > 0) await passIfAwaited(services, live);
      }
      // A store that does not know the option answers with other threads: then the last changed ones are enough.
      if (page.length < PAGE || page.some(({ queued }) => queued === 0)) return;
      const next = page.at(-1)?.cursor;
      // A host's own store may return the same page each time.
      if (next === after) return;
      after = next;
    }
  } catch (error) {
    warn('turn.read.failed', { error });
  }
}

/** Ends a turn that was parked, if messages wait behind it. Never rejects. */
export async function passIfAwaited(services: ExecutorServices, runId: string): Promise<void> {
  const { store, warn } = services.config;
  if (!runId.startsWith(TURN_MARK) || !store?.threads) return;
  try {
    const { thread, meta, parked } = (await store.load(runId, { messages: false })) ?? {};
    // After a restore a person looks at each run first.
    if (!thread || !meta || parked?.code === 'RESTORED') return;
    const waiting = await store.threads.turns({ callerId: meta.callerId, id: thread.id }, { limit: 1, waiting: true });
    // A store that does not know the option answers with turns that have begun.
    if (waiting.some(({ state }) => state === 'queued' || state === 'steered')) await passParked(services, runId);
  } catch (error) {
    warn('turn.end.failed', { runId, error });
  }
}
