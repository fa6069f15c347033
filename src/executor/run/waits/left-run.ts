import type { RunMachineEvent } from '../../../../machines/context.ts';
import { type Command, checkCommand } from '../../../run/command.ts';
import { type RunResult, withoutId } from '../../../run/result.ts';
import type { Person } from '../../../run/waits/wait.ts';
import { UndeliveredError } from '../../../values/errors.ts';
import type { ActiveRun } from '../active-run.ts';
import { recordedText } from '../record/stored-run.ts';

/* What still reaches a run after its store took it: it goes through the store, to the next process that has the run. */

/** Sends what a machine can no longer take: a cancel. Steering and answers see to themselves; a shutdown leaves the run anyway. */
export function forwardEvent(run: ActiveRun, event: RunMachineEvent): void {
  if (event.type === 'run.cancel') void forwardCancel(run, event.reason);
  else if (event.type === 'run.stop' && event.cause.code === 'CANCELLED') void forwardCancel(run, event.cause.message);
}

/** Sends a cancel to a run that has left. Never rejects: the run rests, and can be cancelled again. */
export async function forwardCancel(run: ActiveRun, reason: string | undefined): Promise<void> {
  const { services, runId } = run;
  try {
    await send(run, {
      id: crypto.randomUUID(),
      kind: 'cancel',
      ...(reason === undefined ? {} : { reason: recordedText(services, reason) }),
    });
  } catch (error) {
    services.config.warn('run.cancel.failed', { runId, error });
  }
}

/** Sends a message to a run that has left. @throws {UNDELIVERED} */
export async function forwardSteering(run: ActiveRun, text: string, by?: Person): Promise<'durable'> {
  const said = recordedText(run.services, text);
  await send(run, { id: crypto.randomUUID(), kind: 'steer', text: said, ...(by ? { by } : {}) });
  return 'durable';
}

async function send({ services, runId }: ActiveRun, command: Command): Promise<void> {
  const { store } = services.config;
  if (!store?.commands) throw new UndeliveredError(`run ${runId} has left, and its store has no inbox`);
  await store.commands.send(runId, checkCommand(command));
  services.stuck.retry(runId);
  if (services.sweep.isOn) void services.sweep.look();
}

/** Cancels a run that rests, for the handle of its start. @returns its kept outcome, or that it waits */
export async function cancelResting(run: ActiveRun, result: RunResult, reason: string | undefined): Promise<RunResult> {
  const { services, runId } = run;
  const { store } = services.config;
  try {
    await services.endChild(runId, reason ?? 'cancelled');
    const outcome = (await store?.outcomes?.find(runId)) ?? null;
    return outcome ? { ...withoutId(outcome), messages: result.messages } : result;
  } catch (error) {
    services.config.warn('run.cancel.failed', { runId, error });
    return result;
  }
}
