import { type Command, parseCommand, type SentCommand, type SignalAnswer } from '../../run/command.ts';
import { callOf } from '../../run/open-step.ts';
import type { GivenAnswer } from '../../run/waits/wait-answer.ts';
import { waitsOf } from '../../run/waits/wait-rules.ts';
import type { MachineEvent } from '../../run/workflow/event.ts';
import type { Claim } from '../../store/port.ts';
import { policyOf } from '../../values/error-codes.ts';
import { readProperty, toErrorData } from '../../values/error-data.ts';
import { isFromRun } from '../../workflow/messages.ts';
import { isWorkflow } from '../../workflow/program.ts';
import type { CommandTarget } from '../services/command-inbox.ts';
import { returnSignal } from '../services/unread-signals.ts';
import type { ActiveRun } from './active-run.ts';
import { fittingEvent } from './fitting.ts';
import type { Entered } from './run-state.ts';
import { isTaking } from './waits/due-waits.ts';
import { isClosed } from './waits/expected-events.ts';

type ChildEnded = Extract<Command, { kind: 'child-ended' }>;
type MachineEventCommand = Extract<Command, { kind: 'event' }>;

/** The receiver of commands (cancel, steer, answer) of other processes for one run. */
export class RunCommandTarget implements CommandTarget {
  readonly #run: ActiveRun;
  /** The commands that its record knows; its progress knows them only when `resolving` is over. */
  #known: readonly string[];

  constructor(run: ActiveRun, stored: readonly string[]) {
    this.#run = run;
    this.#known = stored;
  }

  get runId(): string {
    return this.#run.runId;
  }

  get claim(): Claim | undefined {
    return this.#run.resources.claim;
  }

  get commands(): readonly string[] {
    const taken = this.#run.progress?.commands ?? [];
    return this.#known.length > 0 ? [...new Set([...this.#known, ...taken])] : taken;
  }

  async obey(sent: SentCommand): Promise<boolean> {
    const run = this.#run;
    // From a host's store, or from a newer version: an unknown command must not end a run.
    const command = parseCommand(sent.command);
    const at = sent.sentAt ?? run.services.config.clock.now();
    switch (command.kind) {
      case 'unknown':
        return false;
      case 'steer': {
        const { text, children = false, id, messageId, by } = command;
        return (await run.steerAll(text, { children, command: id, messageId, by })) === 'durable';
      }
      case 'answer': {
        const { waitId, answer, by, id } = command;
        const given = { waitId, answer, by, command: id, at };
        if (answer.how !== 'signal') return isTaken(run, given);
        // A store that did not know the wait has kept its signal since.
        const { sentAt = given.at } = answer.signal;
        return isSignalTaken(run, { ...given, at: Math.min(given.at, sentAt) }, answer);
      }
      case 'event':
        return run.waits.inOrder(at, () => isEntered(run, command, at));
      case 'child-ended':
        return childEnded(run, command, at);
      case 'cancel': {
        const { reason } = command;
        run.send({ type: 'run.cancel', ...(reason === undefined ? {} : { reason }) });
        // It stays in the inbox and is deleted with the record: a crash on the way to the end must not undo it.
        await run.life.ended.promise;
        return false;
      }
    }
  }

  forget(ids: readonly string[]): void {
    this.#known = this.#known.filter((id) => !ids.includes(id));
    this.#run.send({ type: 'run.forget', commands: ids });
  }
}

/**
 * Records the end of a child that ended by itself. Its call may still run here, because its wait is not recorded yet or because
 * the call began again after a crash: then that call reads the output, and the command stays until the result is recorded.
 * @returns whether the command may leave the inbox
 */
async function childEnded(run: ActiveRun, command: ChildEnded, at: number): Promise<boolean> {
  await run.life.accepted.promise;
  const { progress, life, resources } = run;
  if (!life.hasBegun || !progress) return false;
  const { childRunId, callId, output, id, treeRuns } = command;
  if (treeRuns) run.tree.learn(treeRuns);
  const wait = waitsOf(progress).find((each) => each.kind === 'child' && each.childRunId === childRunId);
  if (wait) return isTaken(run, { waitId: wait.id, answer: { how: 'ended', output }, command: id, at });
  const call = progress.openStep && callOf(progress.openStep, callId);
  if (call && call.state !== 'done') {
    resources.endedChildren ??= new Map();
    resources.endedChildren.set(childRunId, output);
    return false;
  }
  resources.endedChildren?.delete(childRunId);
  const { persisted, requested } = run.actor.getSnapshot().context;
  return run.isDurable && persisted >= requested;
}

/** Gives a machine event to a workflow. @returns whether the record has it. No agent takes one: then it is gone */
async function isEntered(run: ActiveRun, { id, event }: MachineEventCommand, at: number): Promise<Entered<boolean>> {
  const known = (isOver: boolean) => ({ recorded: Promise.resolve(isOver) });
  if (!run.life.hasBegun) return known(false);
  const fitting = isWorkflow(run.agent) && (await fittingIn(run, event as MachineEvent));
  if (!fitting) return known(true);
  const sent = run.machineEvents.send({ id, event: fitting, ...(isFromRun(id) ? {} : { at }) });
  return {
    recorded: sent.then(
      (how) => how === 'durable',
      () => false,
    ),
  };
}

/** Its sender did not know the workflow: an event that does not fit is gone, and the events of the run say so. */
async function fittingIn(run: ActiveRun, event: MachineEvent): Promise<MachineEvent | undefined> {
  try {
    return await fittingEvent(run.services, run.agent, event);
  } catch (thrown) {
    const error = toErrorData(thrown);
    run.publish({ type: 'workflow.ignored', step: run.progress?.iteration ?? 0, event: event.type, error });
    run.services.config.warn('event.invalid', { runId: run.runId, error });
    return undefined;
  }
}

/** Gives an answer to the run. @returns whether it may leave the inbox: the record has its effect, or it can never have one */
async function isTaken(run: ActiveRun, given: GivenAnswer): Promise<boolean> {
  try {
    return (await run.waits.take(given)) === 'durable';
  } catch (error) {
    // A run that is over, or left, has not answered: the next process reads the command again.
    if (!isTaking(run)) return false;
    return policyOf(readProperty(error, 'code'))?.retry === 'never';
  }
}

/**
 * Gives a signal to the run. If its wait has closed, the store gets the signal back, for another wait. If its value does not
 * fit, the signal is used up, and the store must know again that the run waits.
 * @returns whether the signal may leave the inbox
 */
async function isSignalTaken(run: ActiveRun, given: GivenAnswer, answer: SignalAnswer): Promise<boolean> {
  try {
    return (await run.waits.take(given)) === 'durable';
  } catch (error) {
    if (!isTaking(run)) return false;
    if (isClosed(error)) return returnSignal(run.services.config, run.runId, { ...answer, sentAt: given.at });
    if (policyOf(readProperty(error, 'code'))?.retry !== 'never') return false;
    const { store } = run.services.config;
    // While this command is in the inbox, the store takes the wait for served.
    if (run.claim && given.command !== undefined) await store?.commands?.acknowledge(run.claim, [given.command]);
    run.waits.again(given.waitId);
    return true;
  }
}
