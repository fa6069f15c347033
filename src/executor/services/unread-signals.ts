import { parseCommand, type SentCommand, type SignalAnswer } from '../../run/command.ts';
import type { Wait } from '../../run/waits/wait.ts';
import type { Claim } from '../../store/port.ts';
import { policyOf } from '../../values/error-codes.ts';
import { readProperty } from '../../values/error-data.ts';
import type { Config } from '../host/config.ts';

/**
 * Gives a signal back to its store, for another run: the wait that it was delivered to is over. It was sent when it first was.
 * @returns whether it may leave the inbox; false = the store is away
 */
export async function returnSignal(
  { store, warn }: Config,
  runId: string,
  { value, signal, sentAt }: SignalAnswer & { readonly sentAt: number | undefined },
): Promise<boolean> {
  const { id, topic, untilMs } = signal;
  if (!store?.waits) return true;
  try {
    await store.waits.signal({ topic, id, value, untilMs, from: runId, sentAt });
    return true;
  } catch (error) {
    const isDropped = policyOf(readProperty(error, 'code'))?.retry === 'never';
    if (isDropped)
      warn('signal.return.failed', {
        runId,
        error,
      });
    return isDropped;
  }
}

/**
 * Withdraws the waits for events of a run that ends, and gives its unread signals back: they would be deleted with its record.
 * Never rejects: the end of a run does not wait for that.
 */
export async function returnUnread(
  config: Config,
  claim: Claim | undefined,
  waits: readonly Wait[] = [],
): Promise<void> {
  const { store, warn } = config;
  const expected = waits.filter(({ kind }) => kind === 'event');
  if (expected.length === 0 || !claim || !store?.waits) return;
  const { runId } = claim;
  try {
    for (const { id: waitId } of expected) await store.waits.expect(claim, { waitId, topic: null });
    for (const sent of (await store.commands?.inbox({ runId })) ?? []) {
      const answer = signalIn(sent);
      if (answer) await returnSignal(config, runId, { ...answer, sentAt: answer.signal.sentAt ?? sent.sentAt });
    }
  } catch (error) {
    warn('signal.return.failed', { runId, error });
  }
}

function signalIn({ command }: SentCommand): SignalAnswer | undefined {
  try {
    const known = parseCommand(command);
    return known.kind === 'answer' && known.answer.how === 'signal' ? known.answer : undefined;
  } catch {
    return undefined;
  }
}
