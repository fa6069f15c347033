import { randomUUID } from 'node:crypto';
import type { Executor, Workflow } from '../../../index.ts';
import { isTypeOf } from '../../../run/workflow/event.ts';
import { isObject, type JsonObject } from '../../../values/json.ts';
import type { CliCommand } from '../../command.ts';
import { controlExecutor, workflowsIn } from '../../open/control-executor.ts';
import type { RunStore } from '../../open/open-store.ts';
import { exitCodes, Failure, lineOf, oneLine } from '../../ui/failure.ts';
import { withStore } from '../obstacle.ts';

/** Runs `pawl send`: sends an event to the machine of a workflow. */
export const sendEventCommand: CliCommand = async ({ args, output }) => {
  const [runId, type] = args.words;
  if (runId === undefined || type === undefined)
    throw new Failure('`pawl send` needs the id of a run, and the type of an event');
  const { id = randomUUID() } = args;
  const event = { ...dataOf(args.data), type };
  const workflows = await workflowsIn(args);
  const send = async (store: RunStore) => {
    const executor = executorFor(store, workflows);
    const takes = (await executor.explain(runId, { messages: { from: 0, to: 0 } }))?.workflow?.takes;
    const status = await executor.control(runId).send(event, { id });
    if (takes && !takes.some((each) => isTypeOf(each, type)))
      output.say(`pawl: warning: the run does not take ${oneLine(type)} in its present state: ${takenWords(takes)}`);
    if (args.json) output.printJson({ runId, type, id, status });
    else output.say(`the event ${oneLine(type)} waits for run ${oneLine(runId)}: its process reads it, now or later`);
    return exitCodes.ok;
  };
  return withStore(args, send, runId);
};

const takenWords = (takes: readonly string[]): string =>
  takes.length === 0 ? 'it takes no event' : `it takes ${oneLine(takes.join(', '))}`;

/** Makes the executor that sends. @throws {Failure} if the module exports no workflow */
function executorFor(store: RunStore, workflows: readonly Workflow[]): Executor {
  try {
    return controlExecutor(store, { workflows });
  } catch (error) {
    throw new Failure(lineOf(error), { cause: error });
  }
}

/** Reads the fields of an event. @throws {Failure} */
function dataOf(text = '{}'): JsonObject {
  try {
    const data: unknown = JSON.parse(text);
    if (isObject(data)) return data as JsonObject;
  } catch {
    // The failure below says it.
  }
  throw new Failure(`--data must be a JSON object, not ${oneLine(text.slice(0, 100))}`);
}
