import { agentFrom } from '../../agent/agent.ts';
import { toCheckpoint } from '../../record/checkpoint.ts';
import { ProgressRedaction } from '../../record/redact-progress.ts';
import { type Invocation, labelsOf } from '../../run/request.ts';
import type { ScheduledRun } from '../../schedules/definition.ts';
import type { TickRun } from '../../store/schedules/port.ts';
import { hasCode } from '../../values/error-data.ts';
import { isObject } from '../../values/json.ts';
import { checkKeys } from '../../values/known-options.ts';
import { Redactor } from '../../values/redact.ts';
import { isWorkflow } from '../../workflow/program.ts';
import { agentOfWorkflow } from '../../workflow/workflow.ts';
import { requestOf } from '../host/request.ts';
import type { ExecutorServices } from '../run/active-run.ts';
import { withFittingInput } from '../run/fitting.ts';
import { fairKeyOf } from '../run/run-info.ts';
import { newProgress } from '../run/seed.ts';

/** A tick of a schedule. */
interface Tick {
  readonly runId: string;
  readonly schedule: string;
}

/**
 * Makes the first record of the run that a tick begins, as an admission does. From now on this executor knows its agent.
 * @throws {TypeError} for a value that is no run @throws what `executor.start` refuses
 */
export async function startScheduled(
  services: ExecutorServices,
  given: ScheduledRun,
  { runId, schedule }: Tick,
): Promise<TickRun> {
  const { newId, clock, redact } = services.config;
  const { agent, invocation } = askedOf(given);
  const labels = { ...(invocation.labels === undefined ? {} : labelsOf(invocation.labels)), schedule };
  const now = clock.now();
  const of = { agentId: agent.id, newId, now, isWorkflow: isWorkflow(agent) };
  const request = requestOf({ ...invocation, labels, runId }, of);
  const fitting = await withFittingInput({ services, agent }, newProgress(services, agent, request), undefined);
  const progress = redact ? new ProgressRedaction(new Redactor(redact, 'record')).progress(fitting) : fitting;
  services.see(agent);
  const fairKey = fairKeyOf(services.config, labels);
  return {
    record: { ...toCheckpoint(progress, now, 1), attempts: 0 },
    ...(fairKey === undefined ? {} : { fairKey }),
  };
}

function askedOf(given: ScheduledRun) {
  if (!isObject(given)) throw new TypeError('start must return { agent, invocation }, or { workflow, input }');
  checkKeys(given, { agent: true, workflow: true, invocation: true, input: true }, { of: 'start' });
  const { agent, workflow, input, invocation } = given as {
    readonly [Key in 'agent' | 'workflow' | 'input' | 'invocation']?: unknown;
  };
  if ((agent === undefined) === (workflow === undefined))
    throw new TypeError('start must return either an agent or a workflow');
  if (input !== undefined && (workflow === undefined || invocation !== undefined))
    throw new TypeError('start: input is of a workflow, in place of its invocation');
  const found = workflow === undefined ? agentFrom(agent as never, 'start: agent is not') : agentOfWorkflow(workflow);
  if (!found) throw new TypeError('start: workflow is not a workflow made with defineWorkflow');
  const asked = invocation ?? (workflow === undefined ? undefined : { ...(input === undefined ? {} : { input }) });
  if (!isObject(asked)) throw new TypeError('start must return an invocation: { prompt: string, … }');
  if (asked.runId !== undefined) throw new TypeError('start: the id of the run is that of its tick; leave runId out');
  return { agent: found, invocation: asked as unknown as Omit<Invocation, 'runId'> };
}

/**
 * Returns whether a run has ended, or is parked: the next tick of its schedule may begin another one.
 * @throws the store's own error
 */
export async function hasScheduledEnded({ config: { store } }: ExecutorServices, runId: string): Promise<boolean> {
  try {
    const record = await store?.load(runId, { messages: false });
    return !record || record.parked !== undefined || record.outcome !== undefined;
  } catch (error) {
    // Only a person can continue it.
    if (hasCode(error, 'CHECKPOINT_CORRUPT')) return true;
    throw error;
  }
}
