import { randomUUID } from 'node:crypto';
import { isObject, type JsonObject } from '../../../values/json.ts';
import type { Command } from '../../command.ts';
import { controlExecutor } from '../../open/control-executor.ts';
import { exitCodes, Failure, oneLine } from '../../ui/failure.ts';
import { withStore } from '../obstacle.ts';

/** Runs `pawl send`: sends an event to the machine of a workflow. */
export const sendCommand: Command = async ({ args, output }) => {
  const [runId, type] = args.words;
  if (runId === undefined || type === undefined)
    throw new Failure('`pawl send` needs the id of a run, and the type of an event');
  const { id = randomUUID() } = args;
  const event = { ...dataOf(args.data), type };
  const send = async (store: Parameters<typeof controlExecutor>[0]) => {
    const status = await controlExecutor(store).control(runId).send(event, { id });
    if (args.json) output.printJson({ runId, type, id, status });
    else output.say(`the event ${oneLine(type)} waits for run ${oneLine(runId)}: its process reads it, now or later`);
    return exitCodes.ok;
  };
  return withStore(args, send, runId);
};

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
