import type { Agent } from '../../agent/agent.ts';
import type { Progress } from '../../run/progress.ts';
import { checkMachineEvent, type MachineEvent } from '../../run/workflow/event.ts';
import type { ToolInput, Validation } from '../../tool/schema.ts';
import { withDeadline } from '../../values/deadline.ts';
import { toErrorData } from '../../values/error-data.ts';
import { EventInvalidError, InputInvalidError } from '../../values/errors.ts';
import { Hidden } from '../../values/hidden.ts';
import { frozenJson, isObject } from '../../values/json.ts';
import { kindOf } from '../../values/known-options.ts';
import { programOf } from '../../workflow/program.ts';
import type { ActiveRun, ExecutorServices } from './active-run.ts';

type Bounds = Pick<ExecutorServices, 'config'>;

/**
 * Returns an event as its workflow's schema makes it.
 * @param agent the definition of the workflow's runs; an event without a schema is as it is
 * @throws {EVENT_INVALID} with the path of what does not fit
 */
export async function fittingEvent(
  services: Bounds,
  agent: Agent | undefined,
  event: MachineEvent,
): Promise<MachineEvent> {
  const { type, ...fields } = event;
  const schema = agent && programOf(agent)?.events.get(type);
  if (!schema) return event;
  const of = `the event ${JSON.stringify(type)}`;
  const fit = await check(services, schema, { value: fields, of });
  if (!fit.ok) throw new EventInvalidError(`${of} does not fit its schema: ${fit.message}`);
  if (!isObject(fit.value))
    throw new EventInvalidError(`the schema of ${of} must give an object, not ${kindOf(fit.value)}`);
  return checkMachineEvent({ ...fit.value, type });
}

/**
 * Returns where a run begins, with its input as its workflow's schema makes it. That of a run that is resumed was checked.
 * @throws {INPUT_INVALID} with the path of what does not fit
 */
export async function withFittingInput(
  { services, agent }: Pick<ActiveRun, 'services' | 'agent'>,
  begun: Progress,
  resumed: object | undefined,
): Promise<Progress> {
  const schema = programOf(agent)?.input;
  if (!schema || resumed) return begun;
  const of = `the input of workflow ${agent.id}`;
  const fit = await check(services, schema, { value: begun.inputs.value.input, of });
  if (!fit.ok) throw new InputInvalidError(`${of} does not fit its schema: ${fit.message}`);
  const { input: _, ...inputs } = begun.inputs.value;
  const now = fit.value === undefined ? inputs : { ...inputs, input: frozenJson(fit.value, 'input') };
  return { ...begun, inputs: new Hidden(now) };
}

/** A schema that throws, or does not answer in time, takes nothing. */
async function check(
  { config }: Bounds,
  schema: ToolInput,
  { value, of }: { readonly value: unknown; readonly of: string },
): Promise<Validation> {
  const { clock, defaults } = config;
  try {
    const validation = Promise.resolve(schema.validate(value));
    return await withDeadline(validation, { ms: defaults.portMs, clock, what: `the schema of ${of}` });
  } catch (error) {
    return { ok: false, message: toErrorData(error).message };
  }
}
