import type { Agent } from '../../agent/agent.ts';
import { type Command, checkCommand } from '../../run/command.ts';
import { checkRunId } from '../../run/identity.ts';
import type { Person } from '../../run/waits/wait.ts';
import type { MachineEvent } from '../../run/workflow/event.ts';
import { withDeadline } from '../../values/deadline.ts';
import { hasCode } from '../../values/error-data.ts';
import { UndeliveredError } from '../../values/errors.ts';
import type { JsonValue } from '../../values/json.ts';
import { checkKeys, kindOf } from '../../values/known-options.ts';
import { agentOfWorkflow, type Workflow, type WorkflowEventOf } from '../../workflow/workflow.ts';
import { settleAtLast } from '../effects/settle.ts';
import type { ActiveRun, ExecutorServices } from '../run/active-run.ts';
import { handleOf } from '../run/handle.ts';
import { runAtWork } from '../run/life/run-at-work.ts';
import { recordedText } from '../run/record/stored-run.ts';
import { checkedSteering } from '../run/steering.ts';
import { cancelStored } from './stored/cancel-stored.ts';
import { type ParkOptions, park, unpark } from './stored/parking.ts';
import { retryStored } from './stored/retry.ts';
import { type AnswerState, answerWait, mailStore, wakeAll } from './waits/answer-wait.ts';
import { type SendEventOptions, sendEvent } from './waits/send-event.ts';

/**
 * A run by its id: live in this process, live in another one, or waiting in the store. A process that only controls runs needs
 * neither the agent nor its models.
 */
export interface RunControl {
  /** The id of the run; no run of it needs to exist. */
  readonly runId: string;
  /**
   * Ends the run for good. `ended`: it is over, and its record is deleted. `sent`: another process works on it and ends it at
   * its next look (`defaults.controlMs`). If that process dies first, the process that continues the run ends it.
   * @throws {RUN_NOT_FOUND} if there is no such run @throws the error that keeps its record from being deleted, for
   *   example {STORE_UNAVAILABLE}: then the run may continue at the next boot, so cancel it again
   */
  cancel(reason?: string): Promise<'ended' | 'sent'>;
  /**
   * Sends a message to the model before its next turn. `durable`, `queued`: as for `Run.steer`. `sent`: it waits in the store
   * for the process that works on the run, now or later. It reaches the model once, redacted as it is stored. A run that ends
   * before its next look never gets it.
   * @param options.children whether running child runs get the message as well
   * @param options.by the person who says it: the transcript names it, the model does not read it
   * @throws {RUN_NOT_FOUND} if there is no such run @throws {UNDELIVERED} if 1,000 commands wait for it
   * @throws {KEY_MISMATCH} if the run is encrypted with a key that this store does not have @throws
   *   {CHECKPOINT_CORRUPT}
   */
  steer(
    text: string,
    options?: { readonly children?: boolean; readonly by?: Person },
  ): Promise<'durable' | 'queued' | 'sent'>;
  /**
   * Approves a call that waits for it: a wait of `executor.waiting()`, of this run or of one below it (its children, their
   * children). The first
   * recorded answer stands; the same one again succeeds.
   * @param options.by the person; required where several must approve, or the tool checks who may
   * @param options.input the input as the person changed it, if the tool allows that
   * @param options.digest that of the wait as the person saw it: if the call has changed since, the answer is refused
   * @throws {WAIT_GONE} @throws {ALREADY_ANSWERED} @throws {ANSWER_REFUSED} @throws {ANSWER_REDACTED}
   * @example await executor.control(runId).approve(wait.id, { by: { id: 'ada' }, digest: wait.digest })
   */
  approve(waitId: string, options?: ApproveOptions): Promise<AnswerState>;
  /**
   * Denies a call: it does not start, and the model reads the reason. One denial decides.
   * @throws {WAIT_GONE} @throws {ALREADY_ANSWERED} @throws {ANSWER_REFUSED} @throws {ANSWER_REDACTED}
   */
  deny(waitId: string, options?: { readonly by?: Person; readonly reason?: string }): Promise<AnswerState>;
  /**
   * Answers a question of a call, with JSON that fits its schema or options.
   * @throws {WAIT_GONE} @throws {ALREADY_ANSWERED} @throws {ANSWER_REFUSED} @throws {ANSWER_REDACTED}
   */
  answer(waitId: string, value: JsonValue, options?: { readonly by?: Person }): Promise<AnswerState>;
  /**
   * Ends a timer, or the wait for a model that is away: the run tries again at once. Without an id: each such wait of the run and
   * of those below it.
   */
  wake(waitId?: string): Promise<AnswerState>;
  /**
   * Sends an event to the machine of a workflow. Each machine takes or ignores it as XState does. `recorded`: the record has it.
   * `sent`: it waits in the store for the process that has the run, now or later.
   * @param options.id names the event: sent twice with the same id, it counts once
   * @param options.mustTake refuses an event that the present state does not take: its guards are asked. A live run asks its machine, a
   *   stored one the snapshot of its record
   * @throws {EVENT_INVALID} for a type that XState itself uses, what is not JSON, or what does not fit the schema of its workflow: in
   *   a process that does not know the workflow the last shows later, as `workflow.ignored` @throws {RUN_NOT_FOUND}
   * @throws {EVENT_NOT_TAKEN} @throws {UNSUPPORTED} for a run of an agent; with `mustTake` for a stored run of a workflow that
   *   this executor does not know
   * @example await executor.control('refund-42').send({ type: 'cancel', by: 'ada' }, { id: 'click-7' });
   */
  send(event: MachineEvent, options?: SendEventOptions): Promise<'recorded' | 'sent'>;
  /**
   * How many commands wait in the store for this run; 0 once the run has accepted them, or is over.
   * @throws {UNSUPPORTED} if the store carries no commands
   */
  unread(): Promise<number>;
  /** Parks the stored run, as `executor.park` does. @throws {RUN_OWNED_ELSEWHERE} @throws {RUN_NOT_FOUND} */
  park(reason: string, options?: ParkOptions): Promise<void>;
  /** Frees the parked run, as `executor.unpark` does. @throws {RUN_NOT_FOUND} */
  unpark(options?: ParkOptions): Promise<void>;
  /**
   * Lets a run that ended badly continue, as `executor.retry` does, in any process that has its agent: the run is due. A run that has
   * not ended is unparked, or asks its model at once; otherwise nothing changes.
   * @throws {RUN_ENDED} @throws {RECORD_GONE} @throws {RUN_NOT_FOUND} @throws {RUN_OWNED_ELSEWHERE}
   * @throws {UNSUPPORTED} if the store keeps no records of ended runs
   */
  retry(options?: ParkOptions): Promise<void>;
}

/** The control of a workflow's run: its `send` takes the events of the workflow. */
export type WorkflowControl<W extends Workflow> = Omit<RunControl, 'send'> & {
  /** As `RunControl.send`. A run of another workflow is `UNSUPPORTED`. */
  send(event: WorkflowEventOf<W>, options?: SendEventOptions): Promise<'recorded' | 'sent'>;
};

export interface ApproveOptions {
  /** Who approves; needed where several must approve, or the tool checks who may. */
  readonly by?: Person;
  /**
   * A note for those who read the decision later. The event `wait.answered` and the record (`waiting.settled`) keep it, redacted as
   * other texts are. The model does not read it: what it must read is the reason of a denial, or a steered message.
   */
  readonly note?: string;
  /** The input as the person changed it, if the tool allows that. */
  readonly input?: JsonValue;
  /** That of the wait as the person saw it; another input is asked again. */
  readonly digest?: string;
}

/**
 * Makes the control of a run by its id, which cancels, steers, parks and unparks it.
 * @param agent the definition of the workflow that it is of, where the caller names it
 */
export function controlOf(services: ExecutorServices, runId: string, agent?: Agent): RunControl {
  return {
    runId,
    cancel: (reason) => cancel(services, runId, reason),
    steer: async (text, options = {}) => {
      const { children = false, by } = checkedSteering(options);
      return steer(services, runId, { text, children, by });
    },
    approve: async (waitId, options = {}) => {
      checkKeys(options, { by: true, note: true, input: true, digest: true }, { of: 'approve' });
      checkWaitId('approve', waitId);
      const { by, ...answer } = options;
      return answerWait(services, runId, { waitId, by, answer: { how: 'approve', ...answer } });
    },
    deny: async (waitId, options = {}) => {
      checkKeys(options, { by: true, reason: true }, { of: 'deny' });
      checkWaitId('deny', waitId);
      const { by, reason } = options;
      return answerWait(services, runId, { waitId, by, answer: { how: 'deny', ...(reason ? { reason } : {}) } });
    },
    answer: async (waitId, value, options = {}) => {
      checkKeys(options, { by: true }, { of: 'answer' });
      checkWaitId('answer', waitId);
      return answerWait(services, runId, { waitId, by: options.by, answer: { how: 'answer', value } });
    },
    wake: (waitId) => wake(services, runId, waitId),
    send: (event, options = {}) => sendEvent(services, runId, { event, options, agent }),
    unread: async () => (await mailStore(services).commands.inbox({ runId })).length,
    park: (reason, options = {}) => park(services, runId, { ...options, reason }),
    unpark: (options = {}) => unpark(services, runId, options),
    retry: (options = {}) => retryStored(services, runId, options),
  };
}

/** A missing id would look like that of a wait which is over. */
function checkWaitId(of: string, waitId: unknown): void {
  if (typeof waitId === 'string' && waitId !== '') return;
  throw new TypeError(
    `${of}: waitId must be the id of a wait (executor.waiting() has them), not ${waitId === '' ? "''" : kindOf(waitId)}`,
  );
}

/**
 * Makes the control that `executor.control(runId)` or `executor.control(workflow, runId)` asks for.
 * @throws {TypeError} @throws {INVALID_RUN_ID}
 */
export function controlFrom(services: ExecutorServices, [first, ...rest]: readonly unknown[]): RunControl {
  if (rest.length === 0) return controlOf(services, checkRunId(first));
  const agent = agentOfWorkflow(first);
  if (!agent) throw new TypeError(`control needs a workflow made with defineWorkflow, not ${kindOf(first)}`);
  return controlOf(services, checkRunId(rest[0]), agent);
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
      // Another process that had to end it has done so.
      if (wasLive && hasCode(error, 'RUN_NOT_FOUND')) return 'ended';
      if (!hasCode(error, 'RUN_OWNED_ELSEWHERE')) throw error;
    }
    if (!services.registry.live(runId)) break;
  }
  await send(services, runId, { id: newCommandId(), kind: 'cancel', ...(reason === undefined ? {} : { reason }) });
  return 'sent';
}

/**
 * Ends a run that is live here. The result is not always its end: a shutdown leaves it for the next process, another process
 * may have had it all the time, or the store may not answer, so that its record stays.
 * @returns whether its record is deleted
 */
async function endLive(services: ExecutorServices, live: ActiveRun, reason: string | undefined): Promise<boolean> {
  const { status, durable } = await handleOf(live).cancel(reason);
  // A pending delivery to the host must not be repeated in parallel.
  const { clock, defaults, store } = services.config;
  const limit = { ms: defaults.portMs, clock, what: 'finalising' };
  await withDeadline(settleAtLast(live), limit).catch(() => {});
  const hadRecord = durable || status === 'interrupted' || !live.life.hasBegun;
  if (!store || !hadRecord) return true;
  return (await store.load(live.runId)) === null;
}

async function steer(
  services: ExecutorServices,
  runId: string,
  { text, children, by }: { text: string; children: boolean; by: Person | undefined },
): Promise<'durable' | 'queued' | 'sent'> {
  const live = await runAtWork(services, runId);
  if (live) return live.steerAll(text, { children, by });
  await send(services, runId, {
    id: newCommandId(),
    kind: 'steer',
    text,
    ...(children ? { children } : {}),
    ...(by ? { by } : {}),
  });
  return 'sent';
}

async function wake(services: ExecutorServices, runId: string, waitId: string | undefined): Promise<AnswerState> {
  if (waitId === undefined) return wakeAll(services, runId);
  return answerWait(services, runId, { waitId, answer: { how: 'wake' } });
}

async function send(services: ExecutorServices, runId: string, command: Command): Promise<void> {
  const sent = withoutSecrets(services, checkCommand(command));
  await refuseUnreadable(services, runId, command);
  await mailStore(services).commands.send(runId, sent);
}

/**
 * A process without the keys of a run cannot send it a command. Its owner would refuse a command with another encryption, or
 * none, and the text would be readable in the store. A damaged record has no reader.
 */
async function refuseUnreadable(services: ExecutorServices, runId: string, { kind }: Command): Promise<void> {
  try {
    await mailStore(services).load(runId);
  } catch (error) {
    const isDamaged = kind === 'steer' && hasCode(error, 'CHECKPOINT_CORRUPT');
    if (isDamaged || hasCode(error, 'KEY_MISMATCH')) throw error;
  }
}

/** A command is stored, so it is redacted like all stored data. The run gets the redacted text. */
function withoutSecrets(services: ExecutorServices, command: Command): Command {
  if (command.kind === 'cancel') {
    const { reason } = command;
    return reason === undefined ? command : { ...command, reason: recordedText(services, reason) };
  }
  if (command.kind !== 'steer') return command;
  const text = recordedText(services, command.text);
  if (text.trim() !== '') return { ...command, text };
  throw new UndeliveredError('the message was not sent: its redaction left nothing of it');
}

/** Unique over all processes of a store: a host's own port for ids need not be. */
const newCommandId = () => crypto.randomUUID();
