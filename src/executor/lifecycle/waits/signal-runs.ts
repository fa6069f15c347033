import { tooLongToSay } from '../../../run/command.ts';
import { topicOf } from '../../../run/identity.ts';
import { checkEvent } from '../../../tool/requested-waits.ts';
import { UnsupportedError } from '../../../values/errors.ts';
import type { JsonValue } from '../../../values/json.ts';
import { checkKeys, type KnownKeys } from '../../../values/known-options.ts';
import type { ExecutorServices } from '../../run/active-run.ts';
import { recordableValue } from './answer-wait.ts';

/** Which event a signal reports, and which signal it is. */
export interface SignalKeys {
  /** Tells events of one name apart, for example the number of an order. Default ''. */
  readonly key?: string;
  /** Names the signal: sent twice with the same id, it counts once. 1 to 128 characters. */
  readonly id: string;
}

const signalKeys: KnownKeys<SignalKeys> = { key: true, id: true };

/** Longest id of a signal, in characters. */
const MAX_SIGNAL_ID_CHARS = 128;

const NEEDS_ID = `signal needs an id, a text of 1 to ${MAX_SIGNAL_ID_CHARS} characters: signal(name, value, { id }). A signal that is sent twice with one id counts once`;

/**
 * Sends an event to the oldest wait for it, or keeps it for the next one.
 * @returns the run that got it; none = it is kept
 */
export async function signalRuns(
  services: ExecutorServices,
  { name, value }: { readonly name: string; readonly value: JsonValue },
  keys: SignalKeys,
): Promise<{ readonly to?: string }> {
  if (keys === undefined) throw new TypeError(NEEDS_ID);
  checkKeys(keys, signalKeys, { of: 'signal' });
  const event = checkEvent('signal', name, keys.key ?? '');
  const { id } = keys;
  if (typeof id !== 'string' || id === '' || id.length > MAX_SIGNAL_ID_CHARS) throw new TypeError(NEEDS_ID);
  const sent = recordableValue(services, value, 'value');
  const tooLong = tooLongToSay(JSON.stringify(sent));
  if (tooLong) throw tooLong;
  const { store, clock, keepSignalsMs } = services.config;
  const signal = { topic: topicOf(event.name, event.key), id, value: sent, untilMs: clock.now() + keepSignalsMs };
  const here = await services.signals.send(signal);
  if (here) return here;
  if (store?.waits) {
    const { to } = await store.waits.signal(signal);
    if (to === undefined) return {};
    wake(services, to);
    return { to };
  }
  if (store && services.registry.all().length === 0) {
    throw new UnsupportedError(
      'this store carries no signals to other processes (it has no group waits), and no run is live in this process: send the signal in the process of the run, or use a store that has them',
    );
  }
  services.signals.keep(signal);
  return {};
}

/** The signal is in the inbox of the run: its owner need not wait for the next look. */
function wake({ registry, inbox, stuck, sweep }: ExecutorServices, runId: string): void {
  if (registry.live(runId)) void inbox.look();
  stuck.retry(runId);
  if (sweep.isOn) void sweep.look();
}
