import type { RunCheckpoint, RunHead } from '../../../record/checkpoint.ts';
import { parseCommand, type SentCommand } from '../../../run/command.ts';
import { topicOf } from '../../../run/identity.ts';
import { isAtRest } from '../../../run/waits/model-waits.ts';
import { earliest, withoutLostWaits } from '../../../run/waits/wait-rules.ts';
import { isDue } from '../../../store/capabilities.ts';
import type { RestingStore } from '../../../store/due-port.ts';
import type { ActiveRun } from '../active-run.ts';
import { forgetClaim, uncounted } from '../record/acquire.ts';

/** A command that only a newer version reads may bring a process of it: until then the run looks again after this time, ms. */
const UNREAD_MS = 30_000;

/** A command may come between each read of the inbox and its `leave`; a host's own store may refuse without a reason. */
const MAX_TRIES = 5;

/**
 * Gives an acquired run back to its store if nothing has changed since it rests: no answer, no time that is over. Such a start
 * counts no attempt, and neither audit nor budget sees it.
 * @returns whether the run rests again
 */
export async function restAgain(run: ActiveRun, record: RunCheckpoint): Promise<boolean> {
  const { store, clock } = run.services.config;
  if (!store || !isDue(store) || !isRestable(run, record) || !isAtRest(record)) return false;
  const { waits = [] } = record.waiting ?? {};
  await expectEvents(run, withoutLostWaits(record));
  const isOver = (dueAt: number | undefined) => dueAt !== undefined && dueAt <= clock.now();
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const sent = await store.commands.inbox({ runId: run.runId });
    const kinds = sent.map(kindOf);
    if (kinds.some(isNews) || waits.some(({ dueAt }) => isOver(dueAt)) || run.options.signal?.aborted) return false;
    if (await run.life.leave(leave(run, store, { sent, wakeAt: record.waiting?.wakeAt }))) return true;
  }
  // The run waits in this process, which tries again with pauses.
  return false;
}

/** Returns when a run looks again that leaves these commands unread; undefined if they are none, or damaged. Wall clock, ms. */
export function unreadDueAt(unread: readonly SentCommand[], now: number): number | undefined {
  return unread.some((sent) => kindOf(sent) !== 'damaged') ? now + UNREAD_MS : undefined;
}

/**
 * Whether the store would wake this run: it is stored, neither a host's machine nor an unstored parent has to continue it, and
 * the store carries the signals that it waits for.
 */
export function isRestable(run: ActiveRun, state: Pick<RunHead, 'hosted' | 'parent' | 'waiting'> | undefined): boolean {
  const { services, seed, options } = run;
  const { store } = services.config;
  const isHosted = seed.origin === 'hosted' || state?.hosted === true;
  if (isHosted || options.checkpointer || !store || !isDue(store)) return false;
  if (!store.waits && state?.waiting?.waits.some(({ kind }) => kind === 'event')) return false;
  const above = state?.parent && services.registry.live(state.parent.runId);
  return !above || (above.isDurable && above.resources.claim !== undefined && above.options.checkpointer === undefined);
}

/** Returns whether a run that rests has a command to read. */
export function hasUnread(sent: readonly SentCommand[]): boolean {
  return sent.map(kindOf).some(isNews);
}

/** A process may have died before its store knew which event the run waits for. A kept signal is in the inbox then. */
async function expectEvents({ claim, services }: ActiveRun, { waiting }: RunCheckpoint): Promise<void> {
  const { store } = services.config;
  if (!claim || !store?.waits) return;
  for (const wait of waiting?.waits ?? []) {
    if (wait.kind === 'event')
      await store.waits.expect(claim, { waitId: wait.id, topic: topicOf(wait.name, wait.key) });
  }
}

const isNews = (kind: string) => kind !== 'unknown' && kind !== 'damaged';

function kindOf({ command }: SentCommand): string {
  try {
    return parseCommand(command).kind;
  } catch {
    return 'damaged';
  }
}

interface Leaving {
  readonly sent: readonly SentCommand[];
  readonly wakeAt: number | undefined;
}

async function leave(run: ActiveRun, store: RestingStore, { sent, wakeAt }: Leaving): Promise<boolean> {
  const { claim, services } = run;
  if (!claim) return false;
  const readUpTo = sent.reduce((most, { seq = 0 }) => Math.max(most, seq), 0);
  const dueAt = earliest([wakeAt, unreadDueAt(sent, services.config.clock.now())]);
  const since = services.leases.drop(run);
  const left = await store.due.leave(claim, { readUpTo, ...uncounted(run), dueAt });
  if (left) forgetClaim(run);
  else services.leases.keep(run, since ?? services.config.clock.monotonic());
  // It is to continue in the process that retried it, as soon as it is due.
  if (left && run.seed.retry) services.sweep.begin();
  return left;
}
