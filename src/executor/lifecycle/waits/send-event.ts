import type { Agent } from '../../../agent/agent.ts';
import type { RunCheckpoint } from '../../../record/checkpoint.ts';
import type { Progress } from '../../../run/progress.ts';
import { isKnownEvent } from '../../../run/workflow/advanced.ts';
import { checkMachineEvent, type MachineEvent } from '../../../run/workflow/event.ts';
import { hasCode } from '../../../values/error-data.ts';
import { RunNotFoundError, UnsupportedError } from '../../../values/errors.ts';
import { checkKeys } from '../../../values/known-options.ts';
import { isWorkflow, programOf } from '../../../workflow/program.ts';
import { checkTaken } from '../../../workflow/view.ts';
import type { ActiveRun, ExecutorServices } from '../../run/active-run.ts';
import { fittingEvent } from '../../run/fitting.ts';
import { runAtWork } from '../../run/life/run-at-work.ts';
import { agentFor } from '../stored/recover-one-run.ts';
import { mailStore, recordableValue } from './answer-wait.ts';

/** How a machine event is sent. */
export interface SendEventOptions {
  /** Names the event: sent twice with the same id, it counts once. Default: a random id. */
  readonly id?: string;
  /** Refuses an event that the present state does not take. Default `false`: such an event is recorded, and the machine ignores it. */
  readonly mustTake?: boolean;
}

/** Longest id of an event, in characters. */
const MAX_EVENT_ID_CHARS = 128;

/**
 * Sends an event to the machine of a workflow, in any process.
 * @returns `recorded`: its record has the event. `sent`: the event waits in the store for the process that has the run, now or later
 * @param given.agent the definition of the workflow that the sender names
 * @throws {EVENT_INVALID} @throws {EVENT_NOT_TAKEN} @throws {RUN_NOT_FOUND} @throws {UNSUPPORTED} for a run of an
 *   agent; with `mustTake` for a stored run whose workflow this executor does not know @throws {TypeError}
 */
export async function sendEvent(
  services: ExecutorServices,
  runId: string,
  given: { readonly event: unknown; readonly options: SendEventOptions; readonly agent?: Agent | undefined },
): Promise<'recorded' | 'sent'> {
  const { options } = given;
  checkKeys(options, { id: true, mustTake: true }, { of: 'send' });
  const event = checkMachineEvent(given.event);
  recordableValue(services, event, 'the event');
  const { id = crypto.randomUUID(), mustTake = false } = options;
  if (typeof id !== 'string' || id === '' || id.length > MAX_EVENT_ID_CHARS)
    throw new TypeError(`send: the id of an event is a text of 1 to ${MAX_EVENT_ID_CHARS} characters`);
  const sent = { id, event, mustTake };
  const { agent } = given;
  for (let live = await runAtWork(services, runId); live; live = await runAtWork(services, runId)) {
    checkWorkflow(live.agent.id, { runId, agent });
    if (await isEntered(live, sent)) return 'recorded';
    await live.life.ended.promise;
  }
  const record = await readOpen(services, runId);
  checkWorkflow(record.meta.agentId, { runId, agent });
  const known = agent ?? agentFor(services, record.meta.agentId);
  // The process that has the run reads the event with the schema; one that does not fit is refused here.
  await fittingEvent(services, known, event);
  if (mustTake) refuseUntaken(known, record, sent);
  const { stuck, sweep } = services;
  await mailStore(services).commands.send(runId, { id, kind: 'event', event });
  stuck.retry(runId);
  if (sweep.isOn) void sweep.look();
  return 'sent';
}

/** A control that names a workflow sends no event to a run of another one. @throws {UNSUPPORTED} */
function checkWorkflow(
  id: string,
  { runId, agent }: { readonly runId: string; readonly agent: Agent | undefined },
): void {
  if (!agent || agent.id === id) return;
  throw new UnsupportedError(`run ${runId} is of ${id}, and not of workflow ${agent.id}`);
}

interface SentEvent extends Required<SendEventOptions> {
  readonly event: MachineEvent;
}

/** Gives an event to a live run. @returns false if the run leaves this process before it has the event */
async function isEntered(live: ActiveRun, sent: SentEvent): Promise<boolean> {
  if (!isWorkflow(live.agent)) throw ofAgent(live.runId);
  const { id, mustTake } = sent;
  const event = await fittingEvent(live.services, live.agent, sent.event);
  if (mustTake) refuseUntaken(live.agent, live.progress, { ...sent, event });
  try {
    const at = live.services.config.clock.now();
    await live.waits.inOrder(at, async () => ({ recorded: live.machineEvents.send({ id, event, at }) }));
    return true;
  } catch (error) {
    if (!hasCode(error, 'UNDELIVERED')) throw error;
    return false;
  }
}

/** Checks that the machine takes an event now. One that is known by its id has been checked, and may have changed the state. */
function refuseUntaken(
  agent: Agent | undefined,
  progress: Pick<Progress, 'workflow'> | undefined,
  { id, event }: SentEvent,
): void {
  if (progress && isKnownEvent(progress, id)) return;
  const program = agent && programOf(agent);
  if (!program)
    throw new UnsupportedError('mustTake needs the workflow of the run: give it to createExecutor({ workflows })');
  checkTaken(program, progress ?? {}, event);
}

/** Reads the record of a workflow that has not ended. @throws {RunNotFoundError} @throws {UnsupportedError} */
async function readOpen(services: ExecutorServices, runId: string): Promise<RunCheckpoint> {
  const store = mailStore(services);
  const record = await store.load(runId, { messages: false });
  if (!record || record.outcome) {
    const ended = record?.outcome ?? (await store.outcomes?.find(runId));
    throw new RunNotFoundError(`run ${runId} ${ended ? 'has ended' : 'has ended, or never began'}: it takes no event`);
  }
  if (isOfAgent(record)) throw ofAgent(runId);
  return record;
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
