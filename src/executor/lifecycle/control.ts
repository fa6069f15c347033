import { type Command, checkCommand } from '../../run/command.ts';
import { type ControlStore, isControlling } from '../../store/port.ts';
import { withDeadline } from '../../values/deadline.ts';
import { hasCode } from '../../values/error-data.ts';
import { UndeliveredError, UnsupportedError } from '../../values/errors.ts';
import { checkKeys } from '../../values/known-options.ts';
import { settledAtLast } from '../effects/settle.ts';
import type { ActiveRun, ExecutorServices } from '../run/active-run.ts';
import { handleOf } from '../run/handle.ts';
import { recordedText, storeOf } from '../run/stored-run.ts';
import { cancelStored } from './cancel-stored.ts';
import { park, unpark } from './parking.ts';

/**
 * A run by its id, wherever it is: live in this process, live in another one, or waiting in the store. A process that only
 * controls needs neither the agent nor its models.
 */
export interface RunControl {
  readonly runId: string;
  /**
   * Ends the run for good. `ended`: it is over, and its record is gone. `sent`: another process works on it and ends it at its
   * next look (`defaults.controlMs`), or, if that process dies first, whoever goes on with it.
   * @throws {CheckpointMissingError} when there is no such run @throws whatever keeps its record from going, for example
   *   {StoreUnavailableError}: then it may go on at the next boot, so cancel it again
   */
  cancel(reason?: string): Promise<'ended' | 'sent'>;
  /**
   * Says something to the model before its next turn. `durable`, `queued`: as of `Run.steer`. `sent`: it waits in the store for
   * whoever works on the run, now or later, and reaches the model once, redacted as it is stored. A run that ends before it
   * looks never hears of it.
   * @param options.children says it to the agents as well that the run has put to work
   * @throws {CheckpointMissingError} when there is no such run @throws {UndeliveredError} when 1,000 commands wait for it
   * @throws {KeyMismatchError} when the run is sealed with a key that this store was not given @throws {CheckpointCorruptError}
   */
  steer(text: string, options?: { readonly children?: boolean }): Promise<'durable' | 'queued' | 'sent'>;
  /**
   * How many commands wait in the store for this run; 0 once the run has taken in what was sent, or is over.
   * @throws {UnsupportedError} when the store carries no commands
   */
  waiting(): Promise<number>;
  /** As `executor.park`. */
  park(reason: string): Promise<void>;
  /** As `executor.unpark`. */
  unpark(): Promise<void>;
}

/** Makes the control of a run by its id, which cancels, steers, parks and unparks it. */
export function controlOf(services: ExecutorServices, runId: string): RunControl {
  return {
    runId,
    cancel: (reason) => cancel(services, runId, reason),
    steer: async (text, options = {}) => {
      checkKeys(options, { children: true }, { of: 'steer' });
      return steer(services, runId, { text, children: options.children ?? false });
    },
    waiting: async () => (await mailStore(services).inbox({ runId })).length,
    park: (reason) => park(services, runId, reason),
    unpark: () => unpark(services, runId),
  };
}

async function cancel(
  services: ExecutorServices,
  runId: string,
  reason: string | undefined,
): Promise<'ended' | 'sent'> {
  let wasLive = false;
  for (let live = services.registry.live(runId); ; live = services.registry.live(runId)) {
    if (live) {
      if (await endLive(services, live, reason)) return 'ended';
      wasLive = true;
    }
    try {
      await cancelStored(services, runId, reason);
      return 'ended';
    } catch (error) {
      // Whoever else was told to end it has done so.
      if (wasLive && hasCode(error, 'CHECKPOINT_MISSING')) return 'ended';
      if (!hasCode(error, 'RUN_OWNED_ELSEWHERE')) throw error;
    }
    if (!services.registry.live(runId)) break;
  }
  await send(services, runId, { id: newCommandId(), kind: 'cancel', ...(reason === undefined ? {} : { reason }) });
  return 'sent';
}

/**
 * Ends a run that is live here. What comes of it is not always its end: a shutdown leaves it for the next process, another
 * process may have had it all the time, and while the store is away nobody can tell its record that it is over.
 * @returns whether its record is gone
 */
async function endLive(services: ExecutorServices, live: ActiveRun, reason: string | undefined): Promise<boolean> {
  const { status, durable } = await handleOf(live).cancel(reason);
  // What the host is still told of must not be told a second time beside it.
  const { clock, defaults, store } = services.config;
  const limit = { ms: defaults.portMs, clock, what: 'finalising' };
  await withDeadline(settledAtLast(live), limit).catch(() => {});
  const hadRecord = durable || status === 'interrupted' || live.life.resolution !== 'accepted';
  if (!store || !hadRecord) return true;
  return (await store.load(live.runId)) === null;
}

async function steer(
  services: ExecutorServices,
  runId: string,
  { text, children }: { text: string; children: boolean },
): Promise<'durable' | 'queued' | 'sent'> {
  for (let live = services.registry.live(runId); live; live = services.registry.live(runId)) {
    // Of a run that only tries to start nobody knows yet whose it is: a refused one would take the message with it.
    await live.life.accepted.promise;
    if (live.life.resolution === 'accepted') return handleOf(live).steer(text, { children });
    await live.life.ended.promise;
  }
  await send(services, runId, { id: newCommandId(), kind: 'steer', text, ...(children ? { children } : {}) });
  return 'sent';
}

async function send(services: ExecutorServices, runId: string, command: Command): Promise<void> {
  const sent = withoutSecrets(services, checkCommand(command));
  await refuseUnreadable(services, runId, command);
  await mailStore(services).send(runId, sent);
}

/**
 * Whoever has not the keys of a run cannot say anything to it: its owner would not take what is sealed otherwise, or not at
 * all, and what was said would stand in the store for everybody. To say something to a damaged record is to talk to nobody.
 */
async function refuseUnreadable(services: ExecutorServices, runId: string, { kind }: Command): Promise<void> {
  try {
    await mailStore(services).load(runId);
  } catch (error) {
    const isDamaged = kind === 'steer' && hasCode(error, 'CHECKPOINT_CORRUPT');
    if (isDamaged || hasCode(error, 'KEY_MISMATCH')) throw error;
  }
}

/** A command is stored, so it is redacted like all that is stored. What is left of it is what the run hears. */
function withoutSecrets(services: ExecutorServices, command: Command): Command {
  if (command.kind === 'cancel') {
    const { reason } = command;
    return reason === undefined ? command : { ...command, reason: recordedText(services, reason) };
  }
  const text = recordedText(services, command.text);
  if (text.trim() !== '') return { ...command, text };
  throw new UndeliveredError('the message was not sent: its redaction left nothing of it');
}

/** Unique over all processes that a store has: a host's own port for ids need not be. */
const newCommandId = () => crypto.randomUUID();

function mailStore(services: ExecutorServices): ControlStore {
  const store = storeOf(services);
  if (isControlling(store)) return store;
  throw new UnsupportedError(
    'this store carries no commands to other processes: it has no send, inbox and acknowledge',
  );
}
