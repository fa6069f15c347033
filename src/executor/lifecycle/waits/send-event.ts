import type { RunCheckpoint } from '../../../record/checkpoint.ts';
import { checkMachineEvent, type MachineEvent } from '../../../run/workflow/event.ts';
import { isKeepingOutcomes } from '../../../store/capabilities.ts';
import { hasCode } from '../../../values/error-data.ts';
import { RunNotFoundError, UnsupportedError } from '../../../values/errors.ts';
import { checkKeys } from '../../../values/known-options.ts';
import { isWorkflow } from '../../../workflow/program.ts';
import type { ActiveRun, ExecutorServices } from '../../run/active-run.ts';
import { runAtWork } from '../../run/life/run-at-work.ts';
import { mailStore, recordableValue } from './answer-wait.ts';

/** How a machine event is sent. */
export interface SendEventOptions {
  /** Names the event: sent twice with the same id, it counts once. Default: a random id. */
  readonly id?: string;
}

/**
 * Sends an event to the machine of a workflow, in any process.
 * @returns `recorded`: its record has the event. `sent`: the event waits in the store for the process that has the run, now or later
 * @throws {EVENT_INVALID} @throws {RUN_NOT_FOUND} @throws {UNSUPPORTED} for a run of an agent
 */
export async function sendEvent(
  services: ExecutorServices,
  runId: string,
  given: { readonly event: unknown; readonly options: SendEventOptions },
): Promise<'recorded' | 'sent'> {
  const { options } = given;
  checkKeys(options, { id: true }, { of: 'send' });
  const event = checkMachineEvent(given.event);
  recordableValue(services, event, 'the event');
  const { id = crypto.randomUUID() } = options;
  for (let live = await runAtWork(services, runId); live; live = await runAtWork(services, runId)) {
    if (await isEntered(live, id, event)) return 'recorded';
    await live.life.ended.promise;
  }
  await checkStored(services, runId);
  const { stuck, sweep } = services;
  await mailStore(services).send(runId, { id, kind: 'event', event });
  stuck.retry(runId);
  if (sweep.isOn) void sweep.look();
  return 'sent';
}

/** Gives an event to a live run. @returns false if the run leaves this process before it has the event */
async function isEntered(live: ActiveRun, id: string, event: MachineEvent): Promise<boolean> {
  if (!isWorkflow(live.agent)) throw ofAgent(live.runId);
  try {
    await live.machineEvents.send(id, event);
    return true;
  } catch (error) {
    if (!hasCode(error, 'UNDELIVERED')) throw error;
    return false;
  }
}

async function checkStored(services: ExecutorServices, runId: string): Promise<void> {
  const store = mailStore(services);
  const record = await store.load(runId, { messages: false });
  if (!record || record.outcome) {
    const ended = record?.outcome ?? (isKeepingOutcomes(store) ? await store.outcome(runId) : null);
    throw new RunNotFoundError(`run ${runId} ${ended ? 'has ended' : 'has ended, or never began'}: it takes no event`);
  }
  if (isOfAgent(record)) throw ofAgent(runId);
}

/** A workflow has no prompt, and its machine begins in its first step. */
function isOfAgent({ workflow, iteration, meta }: RunCheckpoint): boolean {
  return !workflow && (iteration > 0 || meta.prompt !== '');
}

function ofAgent(runId: string): UnsupportedError {
  return new UnsupportedError(
    `run ${runId} is of an agent, which takes no machine events: use steer, or executor.signal`,
  );
}
