import type { RunCheckpoint } from '../../../record/checkpoint.ts';
import { messageIdOf } from '../../../run/command.ts';
import type { HeadFields, ThreadPlace } from '../../../run/fields.ts';
import type { Progress } from '../../../run/progress.ts';
import { allMessagesOf, openingOf, ownFrom } from '../../../run/progress.ts';
import type { RunOutcome } from '../../../run/result.ts';
import type { CheckpointStore } from '../../../store/port.ts';
import type { Compaction, TurnEnd } from '../../../store/thread-port.ts';
import { UnsupportedError } from '../../../values/errors.ts';
import { Hidden } from '../../../values/hidden.ts';
import { enterMessage, enterStored, type Message } from '../../../values/message.ts';
import type { ActiveRun } from '../active-run.ts';
import type { Found } from '../record/acquire.ts';
import { withoutParked, withoutRefused } from './refused-turn.ts';

/*
 * A run that is a turn of a thread. Its record holds its own messages, and says where they begin in the thread; the messages
 * before them are in the records of earlier turns.
 */

/** Returns what a start has found, with the earlier messages of the run's thread: the run continues from both. */
export async function withThread(run: ActiveRun, found: Found): Promise<Found> {
  if (!found.record?.thread) return found;
  return { ...found, record: await joinThread(run, found.record, found.record.thread) };
}

async function joinThread(run: ActiveRun, record: RunCheckpoint, thread: ThreadPlace): Promise<RunCheckpoint> {
  const { meta, messages } = record;
  const { store } = run.services.config;
  if (!store?.threads) throw new UnsupportedError(`run ${run.runId} is a turn of a thread, and this store has none`);
  const history = await store.threads.history({ callerId: meta.callerId, id: thread.id }, thread.upTo);
  const earlier = history.map(enterStored);
  // Between two phases a record has no messages: then the next phase begins with these.
  return { ...record, earlier, messages: messages.length > 0 ? [...earlier, ...messages] : [] };
}

/**
 * Returns the progress of a turn that has ended as its thread keeps it. The phases of a pipeline have conversations of their own:
 * the thread gets the message and the answer, and they stay beside these.
 */
export function withTurnOf(progress: Progress): Progress {
  const { thread, completedPhases, openPhase, outcome } = progress;
  if (!thread || !outcome || (completedPhases.length === 0 && !openPhase)) return progress;
  const opening = openingOf(progress);
  const phaseMessages = new Hidden(allMessagesOf(progress).slice(ownFrom(progress)));
  const { whole: _, ...ended } = progress;
  const rest = { ...ended, phaseMessages };
  if (outcome.output === '') return { ...rest, transcript: opening };
  const answer = enterMessage({ role: 'assistant', content: [{ type: 'text', text: outcome.output }] });
  return { ...rest, transcript: opening.append(answer) };
}

/** Returns what the store needs at the end of a turn; undefined for a run that is none. */
function turnEndOf(
  { thread, meta }: Pick<RunCheckpoint, 'thread' | 'meta'>,
  {
    own,
    compaction,
    now,
  }: { readonly own: readonly Message[]; readonly compaction?: Compaction | undefined; readonly now: number },
): TurnEnd | undefined {
  if (!thread) return undefined;
  return {
    callerId: meta.callerId,
    id: thread.id,
    delivered: own.flatMap((message) => messageIdOf(message) ?? []),
    now,
    ...(compaction ? { compaction } : {}),
  };
}

/** Returns what the store needs at the end of a live turn. */
export function liveTurnEndOf(run: ActiveRun, progress: Progress, outcome: RunOutcome): TurnEnd | undefined {
  if (!progress.thread) return undefined;
  const now = run.services.config.clock.now();
  const compaction = isRefused(run, progress, outcome)
    ? leftOut(run, withTurnOf({ ...progress, outcome }))
    : compactionOf(run, progress);
  return turnEndOf(progress, { own: allMessagesOf(progress).slice(ownFrom(progress)), compaction, now });
}

/** Codes of an end that say by themselves that a provider refused what it was sent. */
const refusals: readonly string[] = ['CONTENT_REFUSED', 'CONTEXT_TOO_LONG'];

/** Returns whether later turns leave a run out: its provider refused the content of a request for good, or it was parked. */
export function isRefused({ endFacts }: ActiveRun, progress: Progress, { status, error }: RunOutcome): boolean {
  if (status !== 'error') return false;
  return endFacts.isContentRefused || progress.refused !== undefined || refusals.includes(error?.code ?? '');
}

/** What later turns send in the place of one that they leave out: the history before it, and the calls that it made. */
function leftOut({ redaction }: ActiveRun, progress: Progress): Compaction | undefined {
  const { thread, transcript, earlier } = progress;
  if (!thread) return undefined;
  const own = transcript.slice(ownFrom(progress));
  const kept = keptOf(own, progress).map((message) => redaction?.records.message(message) ?? message);
  return { upTo: thread.upTo + own.length, messages: [...earlier.value, ...kept] };
}

function keptOf(own: readonly Message[], { refused, openStep }: Pick<HeadFields, 'refused' | 'openStep'>) {
  return refused === 'parked' ? withoutParked(own, openStep) : withoutRefused(own);
}

/** As for a live turn, for one whose end is made from its record. */
export async function readTurnEnd(store: CheckpointStore, record: RunCheckpoint, now: number) {
  const { thread, meta, messages, refused, completedPhases = [], openPhase } = record;
  if (!thread || !refused || !store.threads) return turnEndOf(record, { own: messages, now });
  const earlier = await store.threads.history({ callerId: meta.callerId, id: thread.id }, thread.upTo);
  // The phases of a pipeline have conversations of their own.
  const kept = completedPhases.length > 0 || openPhase ? [] : keptOf(messages, record);
  const compaction = { upTo: thread.upTo + messages.length, messages: [...earlier, ...kept] };
  return turnEndOf(record, { own: messages, compaction, now });
}

/** The shorter history that the run sends in place of the earlier one, as its thread keeps it. */
function compactionOf({ resources, redaction }: ActiveRun, progress: Progress): Compaction | undefined {
  const [loop, ...phases] = resources.loops ?? [];
  const shorter = phases.length === 0 ? loop?.view?.shorter : undefined;
  if (!shorter || !progress.thread) return undefined;
  const { records } = redaction ?? {};
  return {
    upTo: progress.thread.upTo + shorter.replaced - ownFrom(progress),
    messages: records ? shorter.messages.map((message) => records.message(message)) : shorter.messages,
  };
}
